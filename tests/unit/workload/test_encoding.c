// Whole runs of the encode workload: every cut of the input, what comes out, what is
// refused, what is recorded.  On the CPU, or with ENCODING_ON_CUDA through the CUDA back
// end: on a device where this was built for one, else on the emulated runtime.
#include "server/workload/encode/run.h"

#include <math.h>
#include <stdatomic.h>
#include <unistd.h>

#include "server/workload/encode/inputs.h"
#include "tests/support/folder.h"
#include "tests/support/monitor_fixture.h"
#include "tests/support/test.h"
#include "tests/unit/workload/encoding_fixture.h"

#ifdef ENCODING_ON_CUDA
#define DEVICE      "cuda"
#define DEVICE_NAME "cuda:0"
#else
#define DEVICE      "cpu"
#define DEVICE_NAME "cpu"
#endif

static struct encoding_options options_of(enum encoder encoder, unsigned int qubits, size_t batch,
                                          uint64_t batches)
{
    return (struct encoding_options){
        .inputs = {.encoder = encoder,
                   .qubits = qubits,
                   .type = -1,
                   .batch = batch,
                   .batches = batches,
                   .seed = 3},
        .device = {.spec = DEVICE, .threads = 2},
        .tuning = {.chunk_mb = 1, .pool_metrics = -1, .overlap_tracking = -1},
    };
}

static void assert_runs(const struct encoding_options *options, struct encoding_figures *figures)
{
    struct error err = {0};
    expect_ok(run_with(options, NULL, figures, &err), &err);
}

// A file of `rows` x `columns` numbers made up for the encoder, one of them `bad`.
static void make_input(const char *path, const struct generator *generator, size_t rows,
                       size_t columns, size_t bad_at, double bad)
{
    size_t count = rows * columns;
    double *numbers = malloc(count * sizeof *numbers);
    assert_non_null(numbers);
    generator_fill(generator, 0, count, numbers);
    if (bad_at < count)
        numbers[bad_at] = bad;
    char header[129];
    (void)snprintf(header, sizeof header, "%-117s\n", "");
    char text[118];
    (void)snprintf(text, sizeof text,
                   "{'descr': '<f8', 'fortran_order': False, 'shape': (%zu, %zu), }", rows,
                   columns);
    memcpy(header, text, strlen(text));
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file), 10);
    assert_int_equal(fwrite(header, 1, 118, file), 118);
    assert_int_equal(fwrite(numbers, sizeof *numbers, count, file), count);
    assert_int_equal(fclose(file), 0);
    free(numbers);
}

// Chunks of every size from one number to more than a batch, and one number more and
// less than a sample and a batch: the same states, to the last bit.
STATE_CASE(every_cut_gives_the_same_states, struct fixture *fixture)
{
    char path[FOLDER_PATH_SIZE];
    char input[FOLDER_PATH_SIZE];
    (void)folder_path(path, fixture->folder, "states.npy");
    (void)folder_path(input, fixture->folder, "input.npy");
    static const struct {
        enum encoder encoder;
        unsigned int qubits;
    } cases[] = {{ENCODER_AMPLITUDE, 3}, {ENCODER_ANGLE, 5}, {ENCODER_IQP, 3}, {ENCODER_BASIS, 4}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        enum { BATCH = 3, ROWS = 7 };
        size_t columns = encoder_inputs(cases[c].encoder, cases[c].qubits);
        columns = columns ? columns : (size_t)1 << cases[c].qubits;
        const struct generator generator = {cases[c].encoder, ENCODE_F64, cases[c].qubits, 11};
        make_input(input, &generator, ROWS, columns, SIZE_MAX, 0.0);
        const size_t sample = columns * 8;
        const size_t sizes[] = {8,
                                16,
                                sample,
                                sample + 8,
                                2 * sample,
                                BATCH * sample - 8,
                                BATCH * sample,
                                BATCH * sample + 8,
                                1 << 20};
        char *first = NULL;
        size_t first_size = 0;
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            struct encoding_figures figures;
            struct encoding_options options =
                options_of(cases[c].encoder, cases[c].qubits, BATCH, 0);
            options.chunk_bytes = sizes[i];
            options.inputs.path = input;
            options.output = path;
            options.replace = true;
            options.check = true;
            options.sync = i % 2 ? PIPELINE_SYNC_PERIODIC : PIPELINE_SYNC_EVENTS;
            options.tuning.fillers = 1 + (unsigned int)i % 3;
            options.tuning.pool_size = 1 + (unsigned int)i % 4;
            assert_runs(&options, &figures);
            assert_int_equal(figures.items, ROWS);
            assert_int_equal(figures.batches, 3);
            assert_int_equal(figures.checked, ROWS);
            assert_int_equal(figures.differing, 0);
            assert_int_equal(figures.pipeline.bytes_h2d, ROWS * sample);
            size_t size;
            char *bytes = read_file(path, &size);
            assert_int_equal(size, 128 + (ROWS * (size_t)16 << cases[c].qubits));
            if (!first) {
                first = bytes;
                first_size = size;
                continue;
            }
            assert_int_equal(size, first_size);
            assert_memory_equal(bytes, first, size);
            free(bytes);
        }
        free(first);
    }
}

STATE_CASE(every_source_gives_the_same_states, struct fixture *fixture)
{
    char path[FOLDER_PATH_SIZE];
    (void)folder_path(path, fixture->folder, "states.npy");
    for (int type = 0; type < (int)ENCODE_TYPE_COUNT; type++) {
        char *first = NULL;
        size_t first_size = 0;
        for (int from = 0; from < (int)INPUTS_FROM_COUNT; from++) {
            struct encoding_figures figures;
            struct encoding_options options = options_of(ENCODER_PHASE, 6, 4, 5);
            options.inputs.type = type;
            options.inputs.from = (enum inputs_from)from;
            options.output = path;
            options.replace = true;
            assert_runs(&options, &figures);
            assert_int_equal(figures.items, 20);
            size_t size;
            char *bytes = read_file(path, &size);
            if (first) {
                assert_int_equal(size, first_size);
                assert_memory_equal(bytes, first, size);
                free(first);
            }
            first = bytes;
            first_size = size;
        }
        free(first);
    }
}

TEST_CASE(what_is_made_up_is_in_range)
{
    enum { COUNT = 5000 };
    static double a[COUNT];
    static double b[COUNT];
    static float f[COUNT];
    const struct generator angles = {ENCODER_ANGLE, ENCODE_F64, 4, 1};
    const struct generator others = {ENCODER_ANGLE, ENCODE_F64, 4, 2};
    generator_fill(&angles, 0, COUNT, a);
    for (size_t at = 0; at < COUNT; at += 7) { // in pieces, the same
        generator_fill(&angles, at, at + 7 < COUNT ? 7 : COUNT - at, b + at);
    }
    assert_memory_equal(a, b, sizeof a);
    generator_fill(&others, 0, COUNT, b);
    size_t equal = 0;
    double sum = 0.0;
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(a[i] >= 0.0 && a[i] < 6.2831853071795867);
        equal += a[i] == b[i];
        sum += a[i];
    }
    assert_int_equal(equal, 0);
    assert_true(fabs(sum / COUNT - 3.14159) < 0.15);
    for (unsigned int qubits = 1; qubits <= ENCODE_QUBITS_MAX; qubits++) {
        const struct generator indices = {ENCODER_BASIS, ENCODE_F32, qubits, 9};
        generator_fill(&indices, 0, COUNT, f);
        for (size_t i = 0; i < COUNT; i++)
            assert_true(f[i] >= 0.0F && (double)f[i] < ldexp(1.0, (int)qubits) &&
                        floorf(f[i]) == f[i]);
    }
}

static void assert_refused(const struct encoding_options *options, enum status status,
                           const char *words)
{
    struct encoding_figures figures;
    struct error err = {0};
    assert_int_equal(run_with(options, NULL, &figures, &err), status);
    if (!strstr(err.text, words))
        fail_msg("'%s' instead of '%s'", err.text, words);
}

STATE_CASE(a_bad_sample_is_named, struct fixture *fixture)
{
    char input[FOLDER_PATH_SIZE];
    char output[FOLDER_PATH_SIZE];
    (void)folder_path(input, fixture->folder, "input.npy");
    (void)folder_path(output, fixture->folder, "output.npy");
    const struct generator generator = {ENCODER_AMPLITUDE, ENCODE_F64, 2, 1};
    make_input(input, &generator, 11, 4, 7 * 4 + 2, (double)NAN);
    struct encoding_options options = options_of(ENCODER_AMPLITUDE, 2, 3, 0);
    options.inputs.path = input;
    options.output = output;
    assert_refused(&options, STATUS_CORRUPT, "sample 7: an input is NaN or infinite");
    // Nothing of the output is there, and what was there before stays.
    assert_int_equal(access(output, F_OK), -1);
    make_input(output, &generator, 1, 4, SIZE_MAX, 0.0);
    options.replace = true;
    assert_refused(&options, STATUS_CORRUPT, "sample 7: an input is NaN or infinite");
    size_t size;
    free(read_file(output, &size));
    assert_int_equal(size, 128 + 32);
}

STATE_CASE(what_does_not_fit_is_refused, struct fixture *fixture)
{
    char input[FOLDER_PATH_SIZE];
    (void)folder_path(input, fixture->folder, "input.npy");
    const struct generator generator = {ENCODER_ANGLE, ENCODE_F64, 5, 1};
    make_input(input, &generator, 4, 5, SIZE_MAX, 0.0);

    struct encoding_options options = options_of(ENCODER_ANGLE, 4, 2, 0);
    options.inputs.path = input;
    assert_refused(&options, STATUS_CORRUPT, "4 x 5 numbers: angle of 4 qubits takes 4 a sample");
    options.inputs.encoder = ENCODER_AMPLITUDE;
    options.inputs.qubits = 2;
    assert_refused(&options, STATUS_CORRUPT, "amplitude of 2 qubits takes up to 4 a sample");
    options.inputs.qubits = 3;
    options.inputs.type = ENCODE_F32;
    assert_refused(&options, STATUS_INVALID, "the numbers are f64 (--type says f32)");
    options.inputs.path = "/nowhere/x.npy";
    assert_refused(&options, STATUS_NOT_FOUND, "/nowhere/x.npy: cannot open");

    options = options_of(ENCODER_IQP, 30, 1 << 20, 1);
    assert_refused(&options, STATUS_NOMEM, "encode: 30 qubits, batches of 1048576");
    options = options_of(ENCODER_IQP, 30, 64, 1);
    assert_refused(&options, STATUS_NOMEM,
                   "of memory are needed on device " DEVICE_NAME ", it has");
    options = options_of(ENCODER_AMPLITUDE, 4, 1 << 20, UINT64_MAX / 2);
    assert_refused(&options, STATUS_INVALID, "too many");
    options = options_of(ENCODER_AMPLITUDE, 4, 4, 4);
    options.tuning.chunk_mb = 0;
    options.chunk_bytes = (size_t)1 << 30;
    assert_refused(&options, STATUS_INVALID, "chunk");
}

// ---- Records --------------------------------------------------------------

static atomic_uint asked;

static bool cancelled_soon(void)
{
    return atomic_fetch_add(&asked, 1) > 40;
}

static struct fake_row row_of(struct fixture *fixture, enum record_kind kind)
{
    struct fake_row row;
    assert_true(fake_collector_row(fixture->collector, kind, 0, &row));
    return row;
}

STATE_CASE(a_run_is_recorded, struct fixture *fixture)
{
    struct encoding_figures figures;
    struct encoding_options options = options_of(ENCODER_ANGLE, 5, 4, 6);
    record_run(fixture, &options, STATUS_OK, &figures, NULL);

    assert_int_equal(fake_collector_count(fixture->collector, RECORD_KIND_LOAD), 1);
    const struct fake_row load = row_of(fixture, RECORD_KIND_LOAD);
    assert_string_equal(load.values[LOAD_MODEL].text, "angle 5 qubits f64");
    assert_string_equal(load.values[LOAD_DEVICE].text, DEVICE_NAME);
    assert_int_equal(load.values[LOAD_STATUS].i, INFERSTAT_RESULT_OK);
    assert_true(load.values[LOAD_MODEL_BYTES].i >= 2 * 4 * 5 * 8);

    assert_int_equal(fake_collector_count(fixture->collector, RECORD_KIND_OPERATION), 6);
    const struct fake_row operation = row_of(fixture, RECORD_KIND_OPERATION);
    assert_string_equal(operation.values[OPERATION_OPERATION].text, "encode");
    assert_int_equal(operation.values[OPERATION_ITEMS].i, 4);
    assert_int_equal(operation.values[OPERATION_BYTES].i, 4 * 5 * 8);

    assert_int_equal(fake_collector_count(fixture->collector, RECORD_KIND_PIPELINE), 1);
    const struct fake_row run = row_of(fixture, RECORD_KIND_PIPELINE);
    assert_string_equal(run.values[PIPELINE_WORKLOAD].text, "encode");
    assert_string_equal(run.values[PIPELINE_MODEL].text, load.values[LOAD_MODEL].text);
    assert_int_equal(run.values[PIPELINE_BATCH_ITEMS].i, 4);
    assert_int_equal(run.values[PIPELINE_STATUS].i, INFERSTAT_RESULT_OK);
    assert_int_equal(run.values[PIPELINE_ITEMS].i, 24);
    assert_int_equal(run.values[PIPELINE_BYTES_H2D].i, 24 * 5 * 8);
    assert_int_equal(run.values[PIPELINE_DURATION_NS].i, figures.pipeline.duration_ns);
    assert_true(run.values[PIPELINE_COPY_BUSY_NS].i > 0);
    assert_true(run.values[PIPELINE_COMPUTE_BUSY_NS].i > 0);
    assert_int_equal(run.values[PIPELINE_POOL_ACQUIRES].i, figures.pipeline.pool.acquires);
}

// One load, and each run a record of its own: no less is encoded and checked the next time.
static void a_run_can_be_repeated(void **state)
{
    enum { RUNS = 3 };
    struct fixture *fixture = *state;
    struct encoding *encoding = NULL;
    struct encoding_options options = options_of(ENCODER_IQP, 4, 4, 6);
    options.check = true;
    assert_int_equal(setenv("XDG_CACHE_HOME", fixture->folder, 1), 0); // of what is measured
    fixture->collector = fake_collector_open(fixture->folder);
    struct inferstat_monitor *monitor = open_monitor(fixture);
    assert_int_equal(encoding_new(&encoding, &options, monitor, NULL), STATUS_OK);
    uint64_t durations = 0;
    for (int i = 0; i < RUNS; i++) {
        struct encoding_figures figures;
        assert_int_equal(encoding_run(encoding, &figures, NULL), STATUS_OK);
        assert_int_equal(figures.items, 24);
        assert_int_equal(figures.checked, 24);
        assert_int_equal(figures.differing, 0);
        durations += figures.pipeline.duration_ns;
    }
    encoding_calibrate_devices(encoding);
    encoding_free(encoding);
    assert_int_equal(close_monitor(fixture, TIMEOUT_S * SECOND, NULL), INFERSTAT_OK);

    assert_int_equal(fake_collector_count(fixture->collector, RECORD_KIND_LOAD), 1);
    assert_int_equal(fake_collector_count(fixture->collector, RECORD_KIND_OPERATION), RUNS * 6);
    assert_int_equal(fake_collector_count(fixture->collector, RECORD_KIND_PIPELINE), RUNS);
    uint64_t recorded = 0;
    int64_t before_ns = 0;
    for (unsigned i = 0; i < RUNS; i++) {
        struct fake_row run;
        assert_true(fake_collector_row(fixture->collector, RECORD_KIND_PIPELINE, i, &run));
        assert_int_equal(run.values[PIPELINE_ITEMS].i, 24);
        assert_int_equal(run.values[PIPELINE_STATUS].i, INFERSTAT_RESULT_OK);
        assert_true(run.started_ns >= before_ns);
        before_ns = run.started_ns + run.values[PIPELINE_DURATION_NS].i;
        recorded += (uint64_t)run.values[PIPELINE_DURATION_NS].i;
    }
    assert_int_equal(recorded, durations);
}

// What an instrument would have said is absent where it is off, and only that.
static void expect_instruments(struct fixture *fixture, int tracking, int metrics)
{
    static const unsigned tracked[] = {PIPELINE_COPY_BUSY_NS,    PIPELINE_COMPUTE_BUSY_NS,
                                       PIPELINE_BOTH_BUSY_NS,    PIPELINE_EXPOSED_COPY_NS,
                                       PIPELINE_COPY_STARVED_NS, PIPELINE_UNMEASURED_CHUNKS,
                                       PIPELINE_IDLE_NS};
    static const unsigned of_pool[] = {PIPELINE_POOL_ACQUIRES,      PIPELINE_POOL_WAITS,
                                       PIPELINE_POOL_WAIT_NS,       PIPELINE_POOL_AVAILABLE_MIN,
                                       PIPELINE_POOL_AVAILABLE_MAX, PIPELINE_WAITS_64US,
                                       PIPELINE_WAITS_4096US};
    struct encoding_figures figures;
    struct encoding_options options = options_of(ENCODER_ANGLE, 5, 4, 6);
    options.tuning.overlap_tracking = tracking;
    options.tuning.pool_metrics = metrics;
    record_run(fixture, &options, STATUS_OK, &figures, NULL);
    const struct fake_row run = row_of(fixture, RECORD_KIND_PIPELINE);
    for (size_t i = 0; i < COUNT_OF(tracked); i++)
        assert_int_equal(run.present >> tracked[i] & 1, tracking);
    for (size_t i = 0; i < COUNT_OF(of_pool); i++)
        assert_int_equal(run.present >> of_pool[i] & 1, metrics);
    assert_int_equal(run.values[PIPELINE_ITEMS].i, 24);
}

static void a_run_without_tracking_is_recorded(void **state)
{
    expect_instruments(*state, 0, 1);
}

static void a_run_without_pool_metrics_is_recorded(void **state)
{
    expect_instruments(*state, 1, 0);
}

STATE_CASE(a_run_that_fails_is_recorded, struct fixture *fixture)
{
    char input[FOLDER_PATH_SIZE];
    (void)folder_path(input, fixture->folder, "input.npy");
    const struct generator generator = {ENCODER_BASIS, ENCODE_F64, 5, 1};
    make_input(input, &generator, 9, 1, 5, 99.0);
    struct encoding_figures figures;
    struct encoding_options options = options_of(ENCODER_BASIS, 5, 2, 0);
    options.inputs.path = input;
    record_run(fixture, &options, STATUS_CORRUPT, &figures, NULL);
    const struct fake_row run = row_of(fixture, RECORD_KIND_PIPELINE);
    assert_int_equal(run.values[PIPELINE_STATUS].i, INFERSTAT_RESULT_ERROR);
    assert_int_equal(run.values[PIPELINE_ITEMS].i, 4);
}

STATE_CASE(a_run_that_is_stopped_is_recorded, struct fixture *fixture)
{
    struct encoding_figures figures;
    struct encoding_options options = options_of(ENCODER_PHASE, 8, 4, 1000000);
    options.tuning.fillers = 1; // nothing is tried: it is the run that is stopped
    atomic_store(&asked, 0);
    options.cancelled = cancelled_soon;
    record_run(fixture, &options, STATUS_CANCELLED, &figures, NULL);
    const struct fake_row run = row_of(fixture, RECORD_KIND_PIPELINE);
    assert_int_equal(run.values[PIPELINE_STATUS].i, INFERSTAT_RESULT_CANCELLED);
    assert_int_equal(run.values[PIPELINE_ITEMS].i, figures.items);
    assert_true(figures.items < 4000000);
}

static bool never_cancelled(void)
{
    (void)atomic_fetch_add(&asked, 1);
    return false;
}

// How often a load asks whether it is cancelled: a trial does for each chunk.
static unsigned int questions_of_load(unsigned int fillers)
{
    struct encoding *encoding = NULL;
    struct encoding_options options = options_of(ENCODER_PHASE, 8, 4, 1000);
    options.tuning.fillers = fillers;
    options.cancelled = never_cancelled;
    atomic_store(&asked, 0);
    assert_int_equal(encoding_new(&encoding, &options, NULL, NULL), STATUS_OK);
    const struct pipeline_plan *plan = &encoding_get_share(encoding, 0)->plan;
    assert_true(plan->fillers >= 1 && plan->fillers <= plan->pool_size);
    assert_true(fillers == 0 || plan->fillers == fillers);
    encoding_free(encoding);
    return atomic_load(&asked);
}

TEST_CASE(threads_that_fill_are_chosen_by_trying)
{
    assert_true(questions_of_load(0) >= questions_of_load(2) + 16);
}

STATE_CASE(a_load_that_fails_is_recorded, struct fixture *fixture)
{
    struct encoding_figures figures;
    struct encoding_options options = options_of(ENCODER_PHASE, 30, 64, 1);
    record_run(fixture, &options, STATUS_NOMEM, &figures, NULL);
    const struct fake_row load = row_of(fixture, RECORD_KIND_LOAD);
    assert_int_equal(load.values[LOAD_STATUS].i, INFERSTAT_RESULT_ERROR);
    assert_non_null(strstr(load.values[LOAD_ERROR].text, "30 qubits"));
    assert_int_equal(fake_collector_count(fixture->collector, RECORD_KIND_PIPELINE), 0);
}

int main(void)
{
    struct error err = {0};
    struct device *probe = NULL;
    if (device_open(&probe, &(struct device_options){.spec = DEVICE}, &err) != STATUS_OK) {
        print_message("skipped: %s\n", err.text);
        return 77;
    }
    device_close(probe);
    return TEST_RUN_EACH(set_up, tear_down, every_cut_gives_the_same_states,
                         every_source_gives_the_same_states, what_is_made_up_is_in_range,
                         a_bad_sample_is_named, what_does_not_fit_is_refused, a_run_is_recorded,
                         a_run_can_be_repeated, a_run_without_tracking_is_recorded,
                         a_run_without_pool_metrics_is_recorded, a_run_that_fails_is_recorded,
                         a_run_that_is_stopped_is_recorded, threads_that_fill_are_chosen_by_trying,
                         a_load_that_fails_is_recorded);
}
