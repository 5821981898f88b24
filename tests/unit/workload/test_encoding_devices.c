// The encode workload on several devices at once: the same states to the last bit, each
// sample once, records by device, one that fails among them.  On the CPU, or with
// ENCODING_ON_CUDA through the CUDA back end on the emulated runtime.
#include <math.h>
#include <stdatomic.h>

#include "server/workload/encode/run_parts.h"
#include "server/workload/encode/run.h"
#include "tests/support/folder.h"
#include "tests/support/monitor_fixture.h"
#include "tests/support/test.h"
#include "tests/unit/workload/encoding_fixture.h"

#ifdef ENCODING_ON_CUDA
#include "tests/support/cuda/emulation.h"
#define BACKEND "cuda"
#define ALONE   "cuda:0"
#else
#define BACKEND "cpu"
#define ALONE   "cpu"
#endif

#define MODEL_NAME "iqp 4 qubits f64"

enum { BATCH = 3, NUMBERS = 4 };

static struct encoding_options options_of(const char *devices, uint64_t batches)
{
    return (struct encoding_options){
        .inputs = {.encoder = ENCODER_IQP,
                   .qubits = 4,
                   .type = -1,
                   .batch = BATCH,
                   .batches = batches,
                   .seed = 5},
        .device = {.spec = devices, .threads = 2},
        .tuning = {.chunk_mb = 1, .pool_metrics = -1, .overlap_tracking = -1},
        .replace = true,
    };
}

// The file of states, to be freed.
static char *states_of(const struct encoding_options *options, enum status wanted, size_t *size,
                       struct encoding_figures *figures)
{
    struct error err = {0};
    if (run_with(options, NULL, figures, &err) != wanted)
        fail_msg("%s: %s", options->device.spec, err.text);
    return read_file(options->output, size);
}

static void assert_same_states(struct fixture *fixture, const char *devices, uint64_t batches,
                               size_t chunk, enum inputs_from from)
{
    char path[FOLDER_PATH_SIZE];
    struct encoding_figures figures[2];
    size_t sizes[2];
    char *bytes[2];
    for (int i = 0; i < 2; i++) {
        struct encoding_options options = options_of(i ? devices : ALONE, batches);
        options.output = folder_path(path, fixture->folder, "states.npy");
        options.chunk_bytes = chunk;
        options.inputs.from = from;
        options.check = true;
        bytes[i] = states_of(&options, STATUS_OK, &sizes[i], &figures[i]);
        assert_int_equal(figures[i].items, BATCH * batches);
        assert_int_equal(figures[i].batches, batches);
        assert_int_equal(figures[i].checked, BATCH * batches);
        assert_int_equal(figures[i].differing, 0);
    }
    assert_int_equal(figures[0].pipeline.bytes_h2d, figures[1].pipeline.bytes_h2d);
    assert_int_equal(figures[0].pipeline.chunks, figures[1].pipeline.chunks);
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(bytes[0], bytes[1], sizes[0]);
    free(bytes[0]);
    free(bytes[1]);
}

// More devices than batches, as many, and fewer, whatever the cut and the source.
static void several_devices_give_the_same_states(void **state)
{
    static const char *const devices[] = {BACKEND ":0", BACKEND ":0,1", BACKEND ":1,0,2"};
    static const size_t chunks[] = {8, 10 * 8, 0};
    for (size_t d = 0; d < COUNT_OF(devices); d++)
        for (uint64_t batches = 1; batches <= 9; batches += batches < 4 ? 1 : 5)
            for (size_t c = 0; c < COUNT_OF(chunks); c++)
                for (int from = 0; from < (int)INPUTS_FROM_COUNT; from++)
                    assert_same_states(*state, devices[d], batches, chunks[c],
                                       (enum inputs_from)from);
}

static void make_input(const char *path, size_t rows, size_t first_bad, size_t second_bad)
{
    char header[118];
    (void)snprintf(header, sizeof header,
                   "{'descr': '<f8', 'fortran_order': False, 'shape': (%zu, %d), }", rows,
                   (int)NUMBERS);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    const size_t padded = (strlen(header) + 1 + 10 + 63) / 64 * 64 - 10;
    const unsigned char lead[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)padded, 0};
    assert_int_equal(fwrite(lead, 1, sizeof lead, file), sizeof lead);
    assert_int_equal(fprintf(file, "%-*s\n", (int)padded - 1, header), padded);
    for (size_t row = 0; row < rows; row++)
        for (size_t i = 0; i < NUMBERS; i++) {
            const bool bad = i == 1 && (row == first_bad || row == second_bad);
            const double number = bad ? (double)NAN : (double)(row + i + 1);
            assert_int_equal(fwrite(&number, sizeof number, 1, file), 1);
        }
    assert_int_equal(fclose(file), 0);
}

// With two bad samples at any places the first one is named, and the batches before it are
// put out: just as with one device.
STATE_CASE(the_first_bad_sample_is_named, struct fixture *fixture)
{
    enum { ROWS = 8 * BATCH };
    char input[FOLDER_PATH_SIZE];
    char output[FOLDER_PATH_SIZE];
    uint64_t random = 3;
    for (int i = 0; i < 40; i++) {
        struct encoding_figures figures;
        struct error err = {0};
        const size_t bad = test_random(&random) % ROWS, other = test_random(&random) % ROWS;
        const size_t first = bad < other ? bad : other;
        make_input(folder_path(input, fixture->folder, "input.npy"), ROWS, bad, other);
        struct encoding_options options = options_of(i % 2 ? BACKEND ":0,1" : BACKEND ":2,1,0", 0);
        options.inputs.encoder = ENCODER_AMPLITUDE;
        options.inputs.qubits = 2;
        options.inputs.path = input;
        options.output = folder_path(output, fixture->folder, "states.npy");
        char text[64];
        (void)snprintf(text, sizeof text, "input.npy: sample %zu: an input is NaN", first);
        assert_int_equal(run_with(&options, NULL, &figures, &err), STATUS_CORRUPT);
        if (!strstr(err.text, text))
            fail_msg("'%s' instead of '%s'", err.text, text);
        assert_int_equal(figures.items, first / BATCH * BATCH);
    }
}

// Sums of a column over a device's rows, and how many there are.
static unsigned int rows_of(struct fixture *fixture, enum record_kind kind, unsigned int device,
                            const char *name, unsigned int column, int64_t *sum)
{
    unsigned int count = 0;
    struct fake_row row;
    *sum = 0;
    for (unsigned int i = 0; fake_collector_row(fixture->collector, kind, i, &row); i++)
        if (strcmp(row.values[device].text, name) == 0) {
            *sum += row.values[column].i;
            count++;
        }
    return count;
}

STATE_CASE(each_device_is_recorded, struct fixture *fixture)
{
    struct encoding_figures figures;
    struct error err = {0};
    const struct encoding_options options = options_of(BACKEND ":0,1", 7);
    record_run(fixture, &options, STATUS_OK, &figures, &err);
    assert_int_equal(fake_collector_count(fixture->collector, RECORD_KIND_DEVICE), 2);
    for (int i = 0; i < 2; i++) {
        const char *name = i ? BACKEND ":1" : ALONE;
        const int64_t batches = i ? 3 : 4;
        int64_t sum;
        assert_int_equal(
            rows_of(fixture, RECORD_KIND_DEVICE, DEVICE_NAME, name, DEVICE_ORDINAL, &sum), 1);
        assert_int_equal(sum, i);
        assert_int_equal(rows_of(fixture, RECORD_KIND_LOAD, LOAD_DEVICE, name, LOAD_STATUS, &sum),
                         1);
        assert_int_equal(sum, INFERSTAT_RESULT_OK);
        assert_int_equal(
            rows_of(fixture, RECORD_KIND_LOAD, LOAD_DEVICE, name, LOAD_MODEL_BYTES, &sum), 1);
        assert_true(sum > 0);
        assert_int_equal(
            rows_of(fixture, RECORD_KIND_OPERATION, OPERATION_DEVICE, name, OPERATION_ITEMS, &sum),
            batches);
        assert_int_equal(sum, batches * BATCH);
        assert_int_equal(
            rows_of(fixture, RECORD_KIND_PIPELINE, PIPELINE_DEVICE, name, PIPELINE_ITEMS, &sum), 1);
        assert_int_equal(sum, batches * BATCH);
        assert_int_equal(rows_of(fixture, RECORD_KIND_PIPELINE, PIPELINE_DEVICE, name,
                                 PIPELINE_BATCH_ITEMS, &sum),
                         1);
        assert_int_equal(sum, BATCH);
        assert_int_equal(
            rows_of(fixture, RECORD_KIND_PIPELINE, PIPELINE_DEVICE, name, PIPELINE_STATUS, &sum),
            1);
        assert_int_equal(sum, INFERSTAT_RESULT_OK);
        struct fake_row load, run;
        assert_true(fake_collector_row(fixture->collector, RECORD_KIND_LOAD, (unsigned)i, &load));
        assert_true(
            fake_collector_row(fixture->collector, RECORD_KIND_PIPELINE, (unsigned)i, &run));
        assert_string_equal(load.values[LOAD_MODEL].text, MODEL_NAME);
        assert_string_equal(run.values[PIPELINE_MODEL].text, MODEL_NAME);
    }
}

static atomic_uint asked;

static bool cancelled_soon(void)
{
    return atomic_fetch_add(&asked, 1) > 40;
}

STATE_CASE(a_run_that_is_stopped_is_recorded, struct fixture *fixture)
{
    struct encoding_figures figures;
    struct error err = {0};
    char output[FOLDER_PATH_SIZE];
    struct encoding_options options = options_of(BACKEND ":0,1", 1000000);
    options.output = folder_path(output, fixture->folder, "states.npy");
    options.tuning.fillers = 1; // nothing is tried: it is the run that is stopped
    options.cancelled = cancelled_soon;
    atomic_store(&asked, 0);
    record_run(fixture, &options, STATUS_CANCELLED, &figures, &err);
    int64_t items[2], sum;
    for (int i = 0; i < 2; i++) {
        const char *name = i ? BACKEND ":1" : ALONE;
        assert_int_equal(
            rows_of(fixture, RECORD_KIND_PIPELINE, PIPELINE_DEVICE, name, PIPELINE_STATUS, &sum),
            1);
        assert_int_equal(sum, INFERSTAT_RESULT_CANCELLED);
        assert_int_equal(rows_of(fixture, RECORD_KIND_PIPELINE, PIPELINE_DEVICE, name,
                                 PIPELINE_ITEMS, &items[i]),
                         1);
    }
    assert_int_equal(items[0] + items[1], figures.items);
    assert_true(figures.items < 3000000);
    // Whose share ended last is nobody's business.
    char said[128];
    (void)snprintf(said, sizeof said, "encode: stopped after %llu of 1000000 batches",
                   (unsigned long long)figures.batches);
    assert_string_equal(err.text, said);
}

STATE_CASE(what_one_device_cannot_take_is_refused, struct fixture *fixture)
{
    struct encoding_figures figures;
    struct error err = {0};
    struct encoding_options options = options_of(BACKEND ":0,1", 4);
    options.inputs.qubits = 30;
    record_run(fixture, &options, STATUS_NOMEM, &figures, &err);
    assert_non_null(strstr(err.text, "30 qubits, batches of 3"));
    assert_int_equal(fake_collector_count(fixture->collector, RECORD_KIND_LOAD), 2);
    assert_int_equal(fake_collector_count(fixture->collector, RECORD_KIND_PIPELINE), 0);
    options = options_of(BACKEND ":0,0", 4);
    assert_int_equal(run_with(&options, NULL, &figures, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "named twice"));
}

#ifdef ENCODING_ON_CUDA

static void expect_status(struct fixture *fixture, const char *device, int64_t wanted)
{
    int64_t status;
    assert_int_equal(
        rows_of(fixture, RECORD_KIND_PIPELINE, PIPELINE_DEVICE, device, PIPELINE_STATUS, &status),
        1);
    assert_int_equal(status, wanted);
}

// The second device is lost in the middle: its record says error, the run ends in order
// with its error.
STATE_CASE(a_lost_device_ends_the_run, struct fixture *fixture)
{
    struct encoding_figures figures;
    struct error err = {0};
    char output[FOLDER_PATH_SIZE];
    struct encoding_options options = options_of("cuda:0,1", 400);
    options.output = folder_path(output, fixture->folder, "states.npy");
    emulation_lose_device(1, 600);
    record_run(fixture, &options, STATUS_IO, &figures, &err);
    emulation_lose_device(-1, 0);
    assert_int_equal(emulation_live(), 0);
    assert_non_null(strstr(err.text, "device cuda:1: "));
    assert_non_null(strstr(err.text, "unspecified launch failure"));
    expect_status(fixture, "cuda:0", INFERSTAT_RESULT_CANCELLED);
    expect_status(fixture, "cuda:1", INFERSTAT_RESULT_ERROR);
    assert_true(figures.items > 0 && figures.items < 400 * BATCH);
}

#endif

TEST_CASE(turns_come_in_order)
{
    struct output_order order;
    output_order_init(&order);
    assert_true(output_order_wait(&order, 0));
    assert_true(output_order_wait(&order, 0));
    output_order_advance(&order);
    assert_true(output_order_wait(&order, 1));
    assert_true(output_order_reaches(&order, UINT64_MAX - 1));
    output_order_end(&order, 5);
    output_order_end(&order, 7); // said before: 5
    assert_true(output_order_reaches(&order, 4));
    assert_false(output_order_reaches(&order, 5));
    assert_false(output_order_wait(&order, 5)); // does not come, and does not wait
    assert_false(output_order_wait(&order, 100));
    output_order_deinit(&order);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
#ifdef ENCODING_ON_CUDA
    emulation_devices(3);
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_come_in_order),   TEST(several_devices_give_the_same_states),
        TEST(the_first_bad_sample_is_named),     TEST(each_device_is_recorded),
        TEST(a_run_that_is_stopped_is_recorded), TEST(what_one_device_cannot_take_is_refused),
#ifdef ENCODING_ON_CUDA
        TEST(a_lost_device_ends_the_run),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
