// The records of a device and of a pipeline run: what is known of them, and nothing else.

#include "common/sys/files.h"
#include "server/workload/telemetry.h"
#include "tests/support/monitor_fixture.h"
#include "tests/support/test.h"

// Records the device and returns what the collector got.
static struct fake_row recorded(struct fixture *fixture, const struct device_properties *device)
{
    struct inferstat_totals totals;
    struct fake_row row;
    fixture->collector = fake_collector_open(fixture->folder);
    (void)open_monitor(fixture);
    assert_int_equal(device_record(fixture->monitor, device),
                     inferstat_name(fixture->monitor, device->name));
    assert_int_equal(close_monitor(fixture, 10 * SECOND, &totals), INFERSTAT_OK);
    assert_true(fake_collector_row(fixture->collector, RECORD_KIND_DEVICE, 0, &row));
    return row;
}

static bool has(const struct fake_row *row, unsigned int column)
{
    return row->present >> column & 1;
}

static void all_that_is_known_is_recorded(void **state)
{
    static const struct device_properties properties = {
        .name = "cuda:1",
        .uuid = "GPU-1234",
        .ordinal = 1,
        .compute_capability = 90,
        .memory_bytes = INT64_C(150000000000),
        .pcie = {.generation = 1, .width = 8, .generation_max = 5, .width_max = 16},
        .rates = {.memory = 4.0e12, .h2d = 55e9},
        .power_cap_watts = 650.5,
        .sm_clock_max_hz = INT64_C(1980000000),
        .memory_clock_max_hz = INT64_C(3201000000),
    };
    struct fake_row row = recorded(*state, &properties);
    assert_int_equal(row.values[DEVICE_ORDINAL].i, 1);
    assert_string_equal(row.values[DEVICE_NAME].text, "cuda:1");
    assert_string_equal(row.values[DEVICE_UUID].text, "GPU-1234");
    assert_string_equal(row.values[DEVICE_COMPUTE_CAPABILITY].text, "9.0");
    assert_int_equal(row.values[DEVICE_MEMORY_BYTES].i, INT64_C(150000000000));
    assert_int_equal(row.values[DEVICE_PCIE_GENERATION].i, 1);
    assert_int_equal(row.values[DEVICE_PCIE_WIDTH].i, 8);
    assert_int_equal(row.values[DEVICE_PCIE_GENERATION_MAX].i, 5);
    assert_int_equal(row.values[DEVICE_PCIE_WIDTH_MAX].i, 16);
    assert_true(row.values[DEVICE_MEMORY_BANDWIDTH].r == 4.0e12);
    assert_true(row.values[DEVICE_H2D].r == 55e9);
    assert_false(has(&row, DEVICE_FLOPS));
    assert_true(row.values[DEVICE_POWER_CAP].r == 650.5);
    assert_int_equal(row.values[DEVICE_SM_CLOCK_MAX].i, INT64_C(1980000000));
    assert_int_equal(row.values[DEVICE_MEMORY_CLOCK_MAX].i, INT64_C(3201000000));
}

static void what_is_not_known_is_absent(void **state)
{
    static const struct device_properties properties = {.name = "cpu", .memory_bytes = 1000};
    struct fake_row row = recorded(*state, &properties);
    assert_int_equal(row.values[DEVICE_MEMORY_BYTES].i, 1000);
    for (unsigned int i = 0; i < DEVICE_COLUMNS; i++)
        assert_int_equal(has(&row, i),
                         i == DEVICE_ORDINAL || i == DEVICE_NAME || i == DEVICE_MEMORY_BYTES);
}

// The rates come from the file that measuring left, and from nowhere else.
STATE_CASE(what_was_measured_is_looked_up, struct fixture *fixture)
{
    struct error err = {0};
    struct device *device = NULL;
    struct device_properties measured;
    struct device_properties found;
    char folder[FOLDER_PATH_SIZE];
    assert_int_equal(setenv("XDG_CACHE_HOME", fixture->folder, 1), 0);
    assert_int_equal(device_open(&device, &(struct device_options){.spec = "cpu"}, &err),
                     STATUS_OK);
    device_look_up(device, &found);
    assert_string_equal(found.name, "cpu");
    assert_true(found.rates.memory == 0.0);

    device_calibrate_for_later(device);
    device_properties(device, &measured);
    assert_int_equal(files_cache_folder(folder, sizeof folder, &err), STATUS_OK);
    assert_true(device_rates_cached(&measured, folder));
    device_look_up(device, &found);
    // Rates that are not steady say nothing of the device.
    const struct device_rates none = {0};
    const struct device_rates *rates = measured.rates.steady ? &measured.rates : &none;
    assert_true(found.rates.memory == rates->memory);
    assert_true(found.rates.h2d == rates->h2d);
    struct fake_row row = recorded(fixture, &found);
    assert_true(row.values[DEVICE_H2D].r == rates->h2d);
    assert_true(row.values[DEVICE_FLOPS].r == rates->flops);
    device_close(device);
    assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
}

// ---- Pipeline runs --------------------------------------------------------

static const struct pipeline_plan all_on = {.pool_metrics = true, .overlap_tracking = true};

// A bin holds waits of 2^bin to 2^(bin + 1) us.
TEST_CASE(waits_are_told_by_length)
{
    struct pipeline_figures figures = {.pool = {.acquires = 99}};
    for (unsigned int bin = 0; bin < POOL_WAIT_BINS; bin++) {
        figures.pool.wait_histogram[bin] = UINT64_C(1) << bin;
        figures.pool.waits += UINT64_C(1) << bin;
    }
    struct inferstat_pipeline record;
    pipeline_record(&record, &all_on, &figures);
    assert_int_equal(record.pool_waits_below_64us, (1 << 6) - 1);
    assert_int_equal(record.pool_waits_below_4096us, (1 << 12) - 1);
    assert_int_equal(record.pool_waits, (1 << POOL_WAIT_BINS) - 1);
}

TEST_CASE(idle_time_is_told)
{
    const struct pipeline_figures figures = {
        .overlap = {.busy_ns = {50, 30}, .both_ns = 20, .idle_ns = 7, .span_ns = 67}};
    struct inferstat_pipeline record;
    pipeline_record(&record, &all_on, &figures);
    assert_int_equal(record.idle_ns, 7);
    // Where each interval got lost, how long nothing ran is not known either.
    const struct pipeline_figures lost = {.overlap = {.unmeasured = 3}};
    pipeline_record(&record, &all_on, &lost);
    assert_int_equal(record.idle_ns, -1);
}

TEST_CASE(what_is_off_is_absent)
{
    const struct pipeline_plan off = {0};
    const struct pipeline_figures figures = {.pool = {.acquires = 9, .waits = 4}};
    struct inferstat_pipeline record;
    pipeline_record(&record, &off, &figures);
    assert_int_equal(record.idle_ns, -1);
    assert_int_equal(record.pool_waits, -1);
    assert_int_equal(record.pool_waits_below_64us, -1);
    assert_int_equal(record.pool_waits_below_4096us, -1);
    // No slot is acquired to be filled with chunks that are lent.
    const struct pipeline_plan lends = {.pool_metrics = true, .borrows = true};
    pipeline_record(&record, &lends, &figures);
    assert_int_equal(record.pool_acquires, -1);
}

TEST_MAIN_EACH(set_up, tear_down, all_that_is_known_is_recorded, what_is_not_known_is_absent,
               what_was_measured_is_looked_up, waits_are_told_by_length, idle_time_is_told,
               what_is_off_is_absent)
