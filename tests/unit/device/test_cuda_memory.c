// Memory that is short, at every place that asks for some, on the CUDA back end (emulated:
// tests/support/cuda): said with the numbers, ended in order, recorded as failed.  And
// models that the back end cannot run.

#include "server/workload/encode/run.h"
#include "server/workload/llm/llama.h"
#include "tests/support/cuda/emulation.h"
#include "tests/support/test.h"
#include "tests/unit/workload/llm_fixture.h"
#include "tests/unit/workload/model_files.h"

enum { NO_MEMORY = 2 };

// Everything of the runtime's that takes memory.
static const char *const calls[] = {"cudaMalloc", "cudaMallocAsync", "cudaHostAlloc",
                                    "cudaStreamCreateWithFlags", "cudaEventCreateWithFlags"};

// Runs `work` with the n-th such call failing, for every n; returns how many there are.
static unsigned int fail_each(const char *call,
                              enum status (*work)(bool failing, struct error *err))
{
    // Opening a device tries whether its pool gives memory, and does without where it does not.
    const unsigned int first = strcmp(call, "cudaMallocAsync") == 0 ? 2 : 1;
    for (unsigned int n = first;; n++) {
        struct error err = {0};
        emulation_fail(call, n, NO_MEMORY);
        const enum status status = work(true, &err);
        const bool reached = !emulation_pending();
        emulation_fail(NULL, 0, 0);
        assert_int_equal(emulation_live(), 0);
        if (!reached) {
            assert_int_equal(status, STATUS_OK);
            return n - first;
        }
        if (status != STATUS_NOMEM || !strstr(err.text, "out of memory") ||
            !strstr(err.text, "device cuda:0: ") || !strstr(err.text, call))
            fail_msg("%s, call %u: status %d, '%s'", call, n, (int)status, err.text);
    }
}

static enum encoder encoder;
static bool records;

static enum status encode(bool failing, struct error *err)
{
    (void)failing;
    struct inferstat_monitor *monitor = records ? open_monitor() : NULL;
    struct encoding *encoding = NULL;
    struct encoding_figures figures;
    const struct encoding_options options = {
        .inputs = {.encoder = encoder,
                   .qubits = 3,
                   .type = ENCODE_F64,
                   .batch = 2,
                   .batches = 3,
                   .from = INPUTS_FROM_PINNED},
        .device = {.spec = "cuda"},
        .check = true,
        .tuning = {.chunk_mb = 1, .pool_metrics = -1, .overlap_tracking = -1},
    };
    enum status status = encoding_new(&encoding, &options, monitor, err);
    if (status == STATUS_OK)
        status = encoding_run(encoding, &figures, err);
    if (monitor && !encoding) { // it was the load that failed, and is recorded so
        const struct inferstat_event event = last_event(monitor, INFERSTAT_EVENT_LOAD);
        assert_int_equal(event.status, INFERSTAT_RESULT_ERROR);
    }
    encoding_free(encoding);
    if (monitor)
        close_monitor(monitor);
    return status;
}

TEST_CASE(encoding_without_memory)
{
    static const enum encoder encoders[] = {ENCODER_AMPLITUDE, ENCODER_IQP};
    for (size_t e = 0; e < COUNT_OF(encoders); e++) {
        encoder = encoders[e];
        for (size_t i = 0; i < COUNT_OF(calls); i++) {
            const unsigned int met = fail_each(calls[i], encode);
            assert_true(met > 0 || strcmp(calls[i], "cudaMalloc") == 0);
        }
    }
}

// Where memory is not given in the order of streams the plain call is the one that fails.
TEST_CASE(encoding_without_ordered_memory)
{
    encoder = ENCODER_PHASE;
    assert_int_equal(setenv("INFERSTAT_ASYNC_ALLOC", "0", 1), 0);
    assert_true(fail_each("cudaMalloc", encode) >= 4);
    assert_int_equal(fail_each("cudaMallocAsync", encode), 0);
    assert_int_equal(unsetenv("INFERSTAT_ASYNC_ALLOC"), 0);
}

TEST_CASE(a_failed_load_is_recorded)
{
    encoder = ENCODER_ANGLE;
    records = true;
    struct error err = {0};
    emulation_fail("cudaMallocAsync", 3, NO_MEMORY);
    assert_int_equal(encode(true, &err), STATUS_NOMEM);
    assert_non_null(strstr(err.text, "(use smaller batches"));
    records = false;
}

static const char *model;

static enum status generate(bool failing, struct error *err)
{
    struct inferstat_monitor *monitor = open_monitor();
    struct llm *llm = NULL;
    struct llama_session *session = NULL;
    static float logits[400];
    static const uint32_t ids[] = {1, 5, 9};
    const struct llm_load_options options = {.path = model, .device = {.spec = "cuda"}};
    enum status status = load(&llm, monitor, options, err);
    const struct inferstat_event event = last_event(monitor, INFERSTAT_EVENT_LOAD);
    assert_int_equal(event.status,
                     status == STATUS_OK ? INFERSTAT_RESULT_OK : INFERSTAT_RESULT_ERROR);
    if (status == STATUS_OK)
        status = llama_session_new(&session, llm->llama, 8, err);
    if (status == STATUS_OK)
        status = llama_session_eval(session, ids, COUNT_OF(ids), logits, err);
    llama_session_free(session);
    llm_free(llm);
    close_monitor(monitor);
    assert_true(failing || status != STATUS_NOMEM);
    return status;
}

TEST_CASE(models_without_memory)
{
    model = model_files_path("smallest.gguf");
    assert_int_equal(synthetic_write(model, &model_files_smallest, TENSOR_F16, 1, 1, NULL),
                     STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        const unsigned int met = fail_each(calls[i], generate);
        assert_true(met > 0 || strcmp(calls[i], "cudaMallocAsync") == 0);
    }
}

// A head that does not fit the kernel is refused when the model is loaded, not at the first
// token; the largest that fits is computed.
TEST_CASE(heads_that_are_too_large)
{
    struct synthetic_shape shape = model_files_smallest;
    struct error err = {0};
    for (uint32_t head = 256; head <= 258; head += 2) {
        shape.dim = shape.heads * head;
        model = model_files_path("heads.gguf");
        assert_int_equal(synthetic_write(model, &shape, TENSOR_F16, 1, 1, NULL), STATUS_OK);
        const enum status status = generate(false, &err);
        assert_int_equal(status, head == 256 ? STATUS_OK : STATUS_UNSUPPORTED);
    }
    assert_non_null(strstr(err.text, "attention heads of 258: device cuda:0 computes heads of at "
                                     "most 256 (use --device cpu)"));
    assert_int_equal(emulation_live(), 0);
}

TEST_MAIN_ONCE(model_files_setup, model_files_teardown, encoding_without_memory,
               encoding_without_ordered_memory, a_failed_load_is_recorded, models_without_memory,
               heads_that_are_too_large)
