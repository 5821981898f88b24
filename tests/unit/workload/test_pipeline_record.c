// What a run of a pipeline says of itself, as a record.
#include "server/workload/telemetry.h"

#include "tests/support/test.h"

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
}

TEST_MAIN(waits_are_told_by_length, idle_time_is_told, what_is_off_is_absent)
