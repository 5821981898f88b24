// Inferences of models that make no tokens: their records have items, and nothing of tokens.
#include <time.h>
#include <unistd.h>

#include "common/monitor/inferstat.h"
#include "tests/support/monitor_fixture.h"
#include "tests/support/test.h"

#define MS          UINT64_C(1000000)
#define BIT(column) (UINT64_C(1) << (column))

// The columns of every inference, and those of one with tokens that made one.
#define COMMON                                                                                     \
    (BIT(INFERENCE_MODEL) | BIT(INFERENCE_DEVICE) | BIT(INFERENCE_REQUEST) |                       \
     BIT(INFERENCE_FINISH) | BIT(INFERENCE_QUEUE_NS) | BIT(INFERENCE_E2E_NS) |                     \
     BIT(INFERENCE_HOST_MEMORY) | BIT(INFERENCE_CONCURRENT))
#define OF_TOKENS                                                                                  \
    (BIT(INFERENCE_PROMPT_TOKENS) | BIT(INFERENCE_CACHED_PROMPT_TOKENS) |                          \
     BIT(INFERENCE_GENERATED_TOKENS) | BIT(INFERENCE_PREFILL_NS) | BIT(INFERENCE_TTFT_NS))

static int begin(void **state)
{
    (void)set_up(state);
    struct fixture *fixture = *state;
    fixture->collector = fake_collector_open(fixture->folder);
    return 0;
}

static void open_named(struct fixture *fixture)
{
    (void)open_monitor(fixture);
    fixture->model = inferstat_name(fixture->monitor, "ds-cnn");
    fixture->device = inferstat_name(fixture->monitor, "cpu");
}

static void begin_items(struct inferstat_inference *inference, const struct fixture *fixture,
                        uint32_t items, uint64_t arrival_ns)
{
    inferstat_inference_begin(inference, &(struct inferstat_request){.model = fixture->model,
                                                                     .device = fixture->device,
                                                                     .request = items,
                                                                     .arrival_ns = arrival_ns,
                                                                     .items = items});
}

static struct fake_row row_of(struct fixture *fixture, unsigned index)
{
    struct fake_row row;
    if (!fake_collector_row(fixture->collector, RECORD_KIND_INFERENCE, index, &row))
        fail_msg("no inference %u", index);
    return row;
}

// Inferences of items, of tokens, of items again: each has its own columns, though the tracker and
// the slots of the ring are the same.
STATE_CASE(test_columns, struct fixture *fixture)
{
    fixture->options.ring_records = 64;
    open_named(fixture);
    struct inferstat_inference *inference = inferstat_inference_new(fixture->monitor);
    for (uint32_t i = 1; i <= 100; i++) {
        begin_items(inference, fixture, i % 2 ? i : 0, 0);
        if (i % 2 == 0)
            inferstat_inference_token(inference);
        inferstat_inference_end(inference, INFERSTAT_FINISH_STOP);
        if (i % 16 == 0)
            assert_true(fake_collector_wait(fixture->collector, i));
    }
    begin_items(inference, fixture, UINT32_MAX, 0);
    inferstat_inference_fail(inference, "no memory");
    inferstat_inference_free(inference);
    assert_int_equal(close_monitor(fixture, 10 * SECOND, NULL), INFERSTAT_OK);

    for (uint32_t i = 1; i <= 100; i++) {
        const struct fake_row row = row_of(fixture, i - 1);
        assert_int_equal(row.present, i % 2 ? COMMON | BIT(INFERENCE_ITEMS) : COMMON | OF_TOKENS);
        assert_int_equal(row.values[INFERENCE_ITEMS].i, i % 2 ? i : 0);
        assert_int_equal(row.values[INFERENCE_GENERATED_TOKENS].i, i % 2 ? 0 : 1);
    }
    const struct fake_row failed = row_of(fixture, 100);
    assert_int_equal(failed.present, COMMON | BIT(INFERENCE_ITEMS) | BIT(INFERENCE_ERROR));
    assert_int_equal(failed.values[INFERENCE_ITEMS].i, UINT32_MAX);
    assert_int_equal(failed.values[INFERENCE_FINISH].i, RECORD_FINISH_ERROR);
    assert_string_equal(failed.values[INFERENCE_ERROR].text, "no memory");
}

static void sleep_ms(long ms)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

// The computation starts with begin: the queue is the time since the arrival; or with
// start_prefill.
STATE_CASE(test_times, struct fixture *fixture)
{
    open_named(fixture);
    struct inferstat_inference *inference = inferstat_inference_new(fixture->monitor);
    begin_items(inference, fixture, 8, 0);
    sleep_ms(5);
    inferstat_inference_end(inference, INFERSTAT_FINISH_STOP);
    begin_items(inference, fixture, 8, inferstat_clock_ns() - 20 * MS);
    inferstat_inference_end(inference, INFERSTAT_FINISH_STOP);
    begin_items(inference, fixture, 8, 0);
    sleep_ms(5);
    inferstat_inference_start_prefill(inference);
    inferstat_inference_end(inference, INFERSTAT_FINISH_STOP);
    inferstat_inference_free(inference);
    assert_int_equal(close_monitor(fixture, 10 * SECOND, NULL), INFERSTAT_OK);

    const struct fake_row plain = row_of(fixture, 0), late = row_of(fixture, 1);
    const struct fake_row queued = row_of(fixture, 2);
    assert_int_equal(plain.values[INFERENCE_QUEUE_NS].i, 0);
    assert_true(plain.values[INFERENCE_E2E_NS].i >= (int64_t)(5 * MS));
    assert_true(late.values[INFERENCE_QUEUE_NS].i >= (int64_t)(20 * MS));
    assert_true(late.values[INFERENCE_E2E_NS].i >= late.values[INFERENCE_QUEUE_NS].i);
    assert_true(queued.values[INFERENCE_QUEUE_NS].i >= (int64_t)(5 * MS));
}

// The local history and the log have the items, and no speed of tokens.
STATE_CASE(test_history, struct fixture *fixture)
{
    log_lines(fixture);
    open_named(fixture);
    struct inferstat_inference *inference = inferstat_inference_new(fixture->monitor);
    begin_items(inference, fixture, 32, 0);
    inferstat_inference_end(inference, INFERSTAT_FINISH_STOP);
    inferstat_inference_free(inference);

    struct inferstat_event event;
    assert_int_equal(inferstat_history(fixture->monitor, INFERSTAT_EVENT_INFERENCE, &event, 1), 1);
    assert_int_equal(event.items, 32);
    assert_int_equal(event.generated_tokens + event.ttft_ns + event.decode_ns, 0);
    assert_true(event.tokens_per_second < 0);
    struct inferstat_summary summary;
    inferstat_get_summary(fixture->monitor, &summary);
    assert_int_equal(summary.inferences, 1);
    assert_true(summary.mean_tokens_per_second < 0);
    assert_int_equal(close_monitor(fixture, 10 * SECOND, NULL), INFERSTAT_OK);
    assert_non_null(strstr(fixture->lines.text, "[INFER] model=ds-cnn items=32 total="));
    assert_null(strstr(fixture->lines.text, "tokens/sec"));
}

// An inference of items in progress is computed on, and what its thread does says so.
STATE_CASE(test_in_progress, struct fixture *fixture)
{
    fixture->options.sample_ms = 10;
    open_named(fixture);
    struct inferstat_inference *inference = inferstat_inference_new(fixture->monitor);
    begin_items(inference, fixture, 7, 0);
    struct fake_row row = {.started_ns = 0};
    struct fake_state state = {0};
    for (unsigned i = 0; i < 10000; i++) {
        const unsigned count = fake_collector_count(fixture->collector, RECORD_KIND_PROCESS_SAMPLE);
        if (count > 0)
            (void)fake_collector_row(fixture->collector, RECORD_KIND_PROCESS_SAMPLE, count - 1,
                                     &row);
        fake_collector_state(fixture->collector, &state);
        if (row.values[PROCESS_SAMPLE_RUNNING].i == 1 && *state.activity)
            break;
        (void)usleep(1000);
    }
    assert_int_equal(row.values[PROCESS_SAMPLE_RUNNING].i, 1);
    assert_int_equal(row.values[PROCESS_SAMPLE_WAITING].i, 0);
    assert_string_equal(state.activity, "inference ds-cnn request 7");
    inferstat_inference_free(inference);
}

TEST_MAIN_EACH(begin, tear_down, test_columns, test_times, test_history, test_in_progress)
