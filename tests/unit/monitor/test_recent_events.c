// The local history: limits, averages, the summary, many threads, listeners.  No
// collector is needed for it.
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "common/monitor/local/event_ring.h"
#include "common/monitor/inferstat.h"
#include "tests/support/monitor_fixture.h"
#include "tests/support/test.h"

static int make_options(void **state)
{
    struct inferstat_options *options = malloc(sizeof *options);
    assert_non_null(options);
    inferstat_options_init(options);
    options->report = 0;
    options->collector = "nobody reads this";
    options->run_folder = "/nor/makes/this";
    *state = options;
    return 0;
}

static int free_options(void **state)
{
    free(*state);
    return 0;
}

static struct inferstat_monitor *open_alone(const struct inferstat_options *options)
{
    struct inferstat_monitor *monitor;
    struct inferstat_error err;
    if (inferstat_open(&monitor, options, &err) != INFERSTAT_OK)
        fail_msg("%s", err.text);
    return monitor;
}

static void close_alone(struct inferstat_monitor *monitor)
{
    struct inferstat_totals totals;
    assert_int_equal(inferstat_close(monitor, 0, &totals), INFERSTAT_OK);
    assert_int_equal(totals.produced + totals.dropped, 0); // nothing was to be reported
}

STATE_CASE(test_history_limits, struct inferstat_options *options)
{
    static const struct {
        uint32_t limit;
        unsigned events;
    } cases[] = {{0, 5}, {1, 0}, {1, 1}, {1, 7}, {3, 3}, {1000, 999}, {1000, 2500}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        options->history_operations = cases[i].limit;
        options->history_inferences = cases[i].limit;
        struct inferstat_monitor *monitor = open_alone(options);
        const uint32_t name = inferstat_name(monitor, "step");
        operate(monitor, name, cases[i].events);
        for (unsigned n = 0; n < cases[i].events; n++)
            infer(monitor, name, n % 4);
        const unsigned wanted = cases[i].events < cases[i].limit ? cases[i].events : cases[i].limit;
        static struct inferstat_event events[3000];
        assert_int_equal(inferstat_history(monitor, INFERSTAT_EVENT_OPERATION, events, 3000),
                         wanted);
        assert_int_equal(inferstat_history(monitor, INFERSTAT_EVENT_INFERENCE, events, 3000),
                         wanted);
        for (unsigned n = 0; n < wanted; n++) {
            // The last ones, oldest first.
            assert_int_equal(events[n].generated_tokens, (cases[i].events - wanted + n) % 4);
            assert_string_equal(events[n].name, "step");
            assert_int_equal(events[n].tokens_per_second >= 0, events[n].generated_tokens > 1);
        }
        if (wanted > 0)
            assert_int_equal(inferstat_history(monitor, INFERSTAT_EVENT_INFERENCE, events, 1), 1);
        struct inferstat_summary summary;
        inferstat_get_summary(monitor, &summary);
        assert_int_equal(summary.inferences, cases[i].events);
        assert_int_equal(summary.operations, cases[i].events);
        assert_int_equal(summary.has_inference, wanted > 0);
        close_alone(monitor);
    }
}

STATE_CASE(test_means_summary_and_clear, struct inferstat_options *options)
{
    struct inferstat_monitor *monitor = open_alone(options);
    double mean = -7;
    assert_int_equal(inferstat_operation_mean(monitor, "never", &mean), 0);
    (void)inferstat_name(monitor, "named but never run");
    assert_int_equal(inferstat_operation_mean(monitor, "named but never run", &mean), 0);
    assert_true(mean < -6); // left alone

    uint64_t sum = 0;
    for (int i = 0; i < 3; i++) {
        struct inferstat_timer timer;
        inferstat_timer_begin(&timer, monitor, inferstat_name(monitor, "encode"));
        const struct timespec time = {.tv_nsec = 2000000 * (i + 1)};
        (void)nanosleep(&time, NULL);
        sum += inferstat_timer_end(&timer, NULL);
    }
    operate(monitor, inferstat_name(monitor, "other"), 5);
    assert_int_equal(inferstat_operation_mean(monitor, "encode", &mean), 1);
    assert_true(mean > (double)sum / 3 - 1 && mean < (double)sum / 3 + 1);

    const uint32_t model = inferstat_name(monitor, "m");
    infer(monitor, model, 10);
    infer(monitor, model, 1);
    infer(monitor, model, 5);
    struct inferstat_event events[3];
    assert_int_equal(inferstat_history(monitor, INFERSTAT_EVENT_INFERENCE, events, 3), 3);
    const double decode = (double)(events[0].decode_ns + events[2].decode_ns);
    struct inferstat_summary summary;
    inferstat_get_summary(monitor, &summary);
    assert_int_equal(summary.generated_tokens, 16);
    assert_int_equal(summary.inferences, 3);
    assert_int_equal(summary.operations, 8);
    assert_int_equal(summary.last_inference.generated_tokens, 5);
    // Total over total, not the mean of two speeds.
    const double wanted = (9 + 4) * 1e9 / decode;
    assert_true(summary.mean_tokens_per_second > wanted * (1 - 1e-9) &&
                summary.mean_tokens_per_second < wanted * (1 + 1e-9));
    assert_true(summary.host_memory_bytes > 0);
    assert_int_equal(summary.device_memory_bytes, -1);
    assert_false(summary.has_load);
    assert_false(summary.has_startup);

    // Throughput is by wall time: of 16 tokens and 3 requests, of which nobody knows how long.
    assert_true(summary.request_rate > 0);
    assert_true(fabs(summary.output_token_rate / summary.request_rate - 16.0 / 3) < 1e-9);

    inferstat_clear(monitor);
    inferstat_get_summary(monitor, &summary);
    assert_int_equal(summary.inferences + summary.operations + summary.generated_tokens, 0);
    assert_true(summary.request_rate + summary.output_token_rate <= 0);
    assert_false(summary.has_inference);
    assert_true(summary.mean_tokens_per_second < 0);
    assert_int_equal(inferstat_operation_mean(monitor, "encode", &mean), 0);
    infer(monitor, model, 3);
    inferstat_get_summary(monitor, &summary);
    assert_int_equal(summary.inferences, 1);
    assert_int_equal(summary.generated_tokens, 3);
    close_alone(monitor);
}

struct writer {
    struct inferstat_monitor *monitor;
    uint32_t name;
    unsigned times;
    pthread_t thread;
};

static void *write_history(void *context)
{
    const struct writer *writer = context;
    for (unsigned i = 0; i < writer->times; i++) {
        operate(writer->monitor, writer->name, 1);
        infer(writer->monitor, writer->name, 3);
    }
    return NULL;
}

// Readers see whole entries while several threads write, and the totals add up.
STATE_CASE(test_history_of_many_threads, struct inferstat_options *options)
{
    options->history_inferences = 7;
    options->history_operations = 7;
    struct inferstat_monitor *monitor = open_alone(options);
    struct writer writers[4];
    for (unsigned i = 0; i < COUNT_OF(writers); i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "thread%u", i);
        writers[i] = (struct writer){
            .monitor = monitor, .name = inferstat_name(monitor, name), .times = 2000};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_history, &writers[i]), 0);
    }
    for (int i = 0; i < 500; i++) {
        struct inferstat_event events[10];
        const size_t count = inferstat_history(monitor, INFERSTAT_EVENT_INFERENCE, events, 10);
        assert_true(count <= 7);
        for (size_t n = 0; n < count; n++) {
            assert_int_equal(events[n].generated_tokens, 3);
            assert_int_equal(events[n].prompt_tokens, 4);
            assert_true(strncmp(events[n].name, "thread", 6) == 0);
            assert_true(events[n].decode_ns <= events[n].duration_ns);
        }
        struct inferstat_summary summary;
        inferstat_get_summary(monitor, &summary);
        assert_int_equal(summary.generated_tokens % 3, 0);
        if (i == 250)
            inferstat_clear(monitor);
    }
    inferstat_clear(monitor);
    struct inferstat_summary before;
    inferstat_get_summary(monitor, &before);
    for (unsigned i = 0; i < COUNT_OF(writers); i++)
        assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
    infer(monitor, writers[0].name, 2);
    struct inferstat_summary after;
    inferstat_get_summary(monitor, &after);
    assert_int_equal((after.inferences - 1) * 3 + 2, after.generated_tokens);
    assert_int_equal(after.last_inference.generated_tokens, 2);
    close_alone(monitor);
}

// Entries that the writer has come round to while they were read are left out.
TEST_CASE(test_overwritten_entries_are_left_out)
{
    struct event_rings history = {.generated = 0};
    const uint32_t limits[EVENT_KINDS] = {7, 7, 7}; // eight places
    assert_int_equal(event_ring_init(&history, limits), STATUS_OK);
    for (uint64_t i = 0; i < 20; i++) {
        struct event_entry entry = {.ended_ns = i, .generated_tokens = 2};
        event_ring_add(&history, INFERSTAT_EVENT_LOAD, &entry);
    }
    static const struct {
        uint64_t begun, first;
        size_t count;
    } cases[] = {{20, 13, 7}, {21, 13, 7}, {22, 14, 6}, {24, 16, 4},
                 {27, 19, 1}, {28, 0, 0},  {99, 0, 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct event_entry entries[10];
        atomic_store(&history.rings[INFERSTAT_EVENT_LOAD].begun, cases[i].begun);
        assert_int_equal(event_ring_read(&history, INFERSTAT_EVENT_LOAD, 0, entries, 10),
                         cases[i].count);
        for (size_t n = 0; n < cases[i].count; n++) {
            assert_int_equal(entries[n].ended_ns, cases[i].first + n);
            assert_int_equal(entries[n].generated_so_far, 2 * (cases[i].first + n + 1));
        }
    }
    event_ring_deinit(&history);
}

struct heard {
    struct inferstat_monitor *monitor;
    _Atomic unsigned loads, inferences, operations;
    _Atomic int number; // unlisten this one when an operation comes; 0: none
    _Atomic bool slow, inside, gone, after;
};

static void hear(void *context, const struct inferstat_event *event)
{
    struct heard *heard = context;
    atomic_store(&heard->inside, true);
    if (atomic_load(&heard->gone))
        atomic_store(&heard->after, true);
    if (event->kind == INFERSTAT_EVENT_LOAD)
        atomic_fetch_add(&heard->loads, 1);
    else if (event->kind == INFERSTAT_EVENT_INFERENCE)
        atomic_fetch_add(&heard->inferences, 1);
    else
        atomic_fetch_add(&heard->operations, 1);
    if (atomic_load(&heard->slow))
        (void)usleep(30000);
    if (atomic_load(&heard->number))
        inferstat_unlisten(heard->monitor, atomic_load(&heard->number));
    atomic_store(&heard->inside, false);
}

STATE_CASE(test_listeners, struct inferstat_options *options)
{
    struct inferstat_monitor *monitor = open_alone(options);
    static struct heard heard[17];
    int numbers[17];
    for (unsigned i = 0; i < 17; i++) {
        heard[i] = (struct heard){.monitor = monitor};
        numbers[i] = inferstat_listen(monitor, hear, &heard[i]);
        assert_int_equal(numbers[i] > 0, i < 16);
    }
    const uint32_t name = inferstat_name(monitor, "x");
    infer(monitor, name, 2);
    operate(monitor, name, 3);
    inferstat_load_end(inferstat_load_begin(monitor, name, name), INFERSTAT_RESULT_OK, NULL);
    for (unsigned i = 0; i < 16; i++) {
        assert_int_equal(heard[i].inferences, 1); // each once
        assert_int_equal(heard[i].operations, 3);
        assert_int_equal(heard[i].loads, 1);
    }
    assert_int_equal(heard[16].inferences, 0);

    inferstat_unlisten(monitor, numbers[3]);
    inferstat_unlisten(monitor, numbers[3]); // again is harmless
    inferstat_unlisten(monitor, 0);
    inferstat_unlisten(monitor, -5);
    inferstat_unlisten(monitor, 1 << 20);
    const int again = inferstat_listen(monitor, hear, &heard[16]);
    assert_true(again > 0);
    inferstat_unlisten(monitor, numbers[3]); // not the one who has the place now
    infer(monitor, name, 2);
    assert_int_equal(heard[3].inferences, 1);
    assert_int_equal(heard[16].inferences, 1);

    // One that takes itself off.
    atomic_store(&heard[16].number, again);
    infer(monitor, name, 2);
    infer(monitor, name, 2);
    assert_int_equal(heard[16].inferences, 2);
    assert_int_equal(heard[0].inferences, 4);
    close_alone(monitor);
}

static void *infer_in_thread(void *context)
{
    infer(context, inferstat_name(context, "x"), 2);
    return NULL;
}

// unlisten waits for the call under way in another thread.
STATE_CASE(test_unlisten_waits, struct inferstat_options *options)
{
    struct inferstat_monitor *monitor = open_alone(options);
    static struct heard heard;
    heard = (struct heard){.monitor = monitor, .slow = true};
    const int number = inferstat_listen(monitor, hear, &heard);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, infer_in_thread, monitor), 0);
    while (!atomic_load(&heard.inside))
        (void)usleep(100);
    inferstat_unlisten(monitor, number);
    assert_false(atomic_load(&heard.inside));
    atomic_store(&heard.gone, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    infer(monitor, 1, 1);
    assert_false(atomic_load(&heard.after));
    assert_int_equal(heard.inferences, 1);
    close_alone(monitor);
}

TEST_MAIN_EACH(make_options, free_options, test_history_limits, test_means_summary_and_clear,
               test_history_of_many_threads, test_overwritten_entries_are_left_out, test_listeners,
               test_unlisten_waits)
