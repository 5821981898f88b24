// Samples of the process: its figures, and its requests in progress by model.
#include <pthread.h>
#include <unistd.h>

#include "common/monitor/inferstat.h"
#include "common/sys/clock.h"
#include "tests/support/monitor_fixture.h"
#include "tests/support/test.h"

// Samples arrive by themselves.  The time of a sample is that at which it was taken: a period
// after the monitor was opened, or later.
STATE_CASE(test_process_samples, struct fixture *fixture)
{
    fixture->options.sample_ms = 200;
    fixture->collector = fake_collector_open(fixture->folder);
    const int64_t before_ns = clock_wall_ns();
    struct inferstat_monitor *monitor = open_monitor(fixture);
    inferstat_set_device_memory(monitor, 5000);
    assert_true(fake_collector_wait(fixture->collector, 2));
    struct inferstat_summary summary;
    inferstat_get_summary(monitor, &summary);
    assert_true(summary.cpu_ratio >= 0);
    assert_int_equal(summary.device_memory_bytes, 5000);
    struct fake_row row;
    assert_true(fake_collector_row(fixture->collector, RECORD_KIND_PROCESS_SAMPLE, 0, &row));
    assert_true(row.started_ns > before_ns + 190 * INT64_C(1000000));
    assert_true(row.started_ns <= clock_wall_ns());
    assert_int_equal(row.stream, 0);
    assert_true(row.values[PROCESS_SAMPLE_CPU].r >= 0);
    assert_true(row.values[PROCESS_SAMPLE_HOST_MEMORY].i > 100000);
    assert_int_equal(row.values[PROCESS_SAMPLE_DEVICE_MEMORY].i, 5000);
}

enum { MODELS = 5, PER_THREAD = 12, SERVING_THREADS = 8, REQUESTS = 6 };

static const char *const model_names[MODELS] = {"even", "odd", "third", "fourth", "fifth"};

// Requests of the process, and of each model.
struct sampled_requests {
    int64_t running, waiting;
    int64_t of_models[MODELS][2];
};

// Reads the last sample: the row of the process, and those behind it with its time, of models.
static bool read_sample(struct fixture *fixture, struct sampled_requests *out)
{
    const unsigned count = fake_collector_count(fixture->collector, RECORD_KIND_PROCESS_SAMPLE);
    unsigned at = count;
    struct fake_row row = {.started_ns = 0};
    memset(out, 0, sizeof *out);
    do {
        if (at-- == 0)
            return false;
        (void)fake_collector_row(fixture->collector, RECORD_KIND_PROCESS_SAMPLE, at, &row);
    } while (row.present >> PROCESS_SAMPLE_MODEL & 1);
    out->running = row.values[PROCESS_SAMPLE_RUNNING].i;
    out->waiting = row.values[PROCESS_SAMPLE_WAITING].i;
    const int64_t started_ns = row.started_ns, memory = row.values[PROCESS_SAMPLE_HOST_MEMORY].i;
    while (++at < count) {
        assert_true(fake_collector_row(fixture->collector, RECORD_KIND_PROCESS_SAMPLE, at, &row));
        assert_int_equal(row.started_ns, started_ns);
        unsigned model = 0;
        while (model < MODELS &&
               strcmp(row.values[PROCESS_SAMPLE_MODEL].text, model_names[model]) != 0)
            model++;
        assert_true(model < MODELS);
        assert_true(row.values[PROCESS_SAMPLE_RUNNING].i > 0);
        assert_int_equal(row.values[PROCESS_SAMPLE_HOST_MEMORY].i, memory);
        out->of_models[model][0] += row.values[PROCESS_SAMPLE_RUNNING].i;
        out->of_models[model][1] += row.values[PROCESS_SAMPLE_WAITING].i;
    }
    return true;
}

// Waits, 20 seconds at most, for a sample with these requests; the process has those of its models.
static void wait_for_requests(struct fixture *fixture, const int64_t of_models[MODELS][2])
{
    struct sampled_requests wanted = {.running = 0}, found;
    memcpy(wanted.of_models, of_models, sizeof wanted.of_models);
    for (unsigned i = 0; i < MODELS; i++) {
        wanted.running += of_models[i][0];
        wanted.waiting += of_models[i][1];
    }
    for (int i = 0; i < 10000; i++) {
        if (read_sample(fixture, &found) && memcmp(&found, &wanted, sizeof found) == 0)
            return;
        (void)usleep(2000);
    }
    fail_msg("%lld and %lld requests, not %lld and %lld; of the first model %lld and %lld",
             (long long)found.running, (long long)found.waiting, (long long)wanted.running,
             (long long)wanted.waiting, (long long)found.of_models[0][0],
             (long long)found.of_models[0][1]);
}

struct served {
    struct inferstat_inference *inferences[REQUESTS];
};

// Computes on the second, third and fourth request, each in another way, and ends the fifth.
static void *serve_elsewhere(void *context)
{
    struct served *served = context;
    inferstat_inference_start_prefill(served->inferences[1]);
    inferstat_inference_start_prefill(served->inferences[1]); // once is enough
    inferstat_inference_token(served->inferences[1]);
    inferstat_inference_token(served->inferences[2]);
    inferstat_inference_count_tokens(served->inferences[3], 4);
    inferstat_inference_end(served->inferences[4], INFERSTAT_FINISH_CANCELLED);
    return NULL;
}

// Samples have the requests in progress, of each model on all threads, and those of them that wait:
// nothing of them has been computed, or the engine keeps them in a queue of its own.
STATE_CASE(test_requests_are_sampled, struct fixture *fixture)
{
    fixture->options.sample_ms = 10;
    fixture->collector = fake_collector_open(fixture->folder);
    struct inferstat_monitor *monitor = open_monitor(fixture);
    wait_for_requests(fixture, (const int64_t[MODELS][2]){{0}});
    struct served served;
    const uint32_t names[] = {inferstat_name(monitor, model_names[0]),
                              inferstat_name(monitor, model_names[1])};
    for (unsigned i = 0; i < REQUESTS; i++) {
        served.inferences[i] = inferstat_inference_new(monitor);
        inferstat_inference_begin(served.inferences[i],
                                  &(struct inferstat_request){.model = names[i % 2], .request = i});
    }
    wait_for_requests(fixture, (const int64_t[MODELS][2]){{3, 3}, {3, 3}});
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, serve_elsewhere, &served), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    wait_for_requests(fixture, (const int64_t[MODELS][2]){{2, 1}, {3, 1}});
    inferstat_set_queued_requests(monitor, names[0], 4);
    inferstat_set_queued_requests(monitor, names[0], 6);
    inferstat_set_queued_requests(monitor, names[1], 4);
    wait_for_requests(fixture, (const int64_t[MODELS][2]){{8, 7}, {7, 5}});
    inferstat_inference_end(served.inferences[1], INFERSTAT_FINISH_STOP);
    wait_for_requests(fixture, (const int64_t[MODELS][2]){{8, 7}, {6, 5}});
    inferstat_set_queued_requests(monitor, names[0], 0);
    inferstat_set_queued_requests(monitor, names[1], 0);
    for (unsigned i = 0; i < REQUESTS; i++)
        inferstat_inference_free(served.inferences[i]);
    wait_for_requests(fixture, (const int64_t[MODELS][2]){{0}});
    assert_int_equal(close_monitor(fixture, 10 * SECOND, NULL), INFERSTAT_OK);
    // The second request's own end: itself, four others, and the queues.
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct fake_row row;
        assert_true(fake_collector_row(fixture->collector, RECORD_KIND_INFERENCE, i, &row));
        if (row.values[INFERENCE_REQUEST].i == 1)
            assert_int_equal(row.values[INFERENCE_CONCURRENT].i, 15);
    }
}

struct serving {
    struct inferstat_monitor *monitor;
    pthread_t thread;
    unsigned number;
    struct inferstat_inference *inferences[PER_THREAD];
};

// Of each thread another mix of models: ends every third request, and computes on every second one
// of the others.
static void *serve_models(void *context)
{
    struct serving *serving = context;
    for (unsigned i = 0; i < PER_THREAD; i++) {
        const char *name = model_names[(serving->number * i + i) % MODELS];
        serving->inferences[i] = inferstat_inference_new(serving->monitor);
        inferstat_inference_begin(
            serving->inferences[i],
            &(struct inferstat_request){.model = inferstat_name(serving->monitor, name)});
        if (i % 2 == 0)
            inferstat_inference_token(serving->inferences[i]);
        if (i % 3 == 0)
            inferstat_inference_end(serving->inferences[i], INFERSTAT_FINISH_STOP);
    }
    return NULL;
}

// Requests of several models on many threads at once, ended by another thread.
STATE_CASE(test_requests_of_many_threads, struct fixture *fixture)
{
    struct serving serving[SERVING_THREADS];
    int64_t wanted[MODELS][2] = {{0}};
    fixture->options.sample_ms = 10;
    fixture->collector = fake_collector_open(fixture->folder);
    struct inferstat_monitor *monitor = open_monitor(fixture);
    for (unsigned t = 0; t < SERVING_THREADS; t++) {
        serving[t] = (struct serving){.monitor = monitor, .number = t};
        assert_int_equal(pthread_create(&serving[t].thread, NULL, serve_models, &serving[t]), 0);
        for (unsigned i = 0; i < PER_THREAD; i++) {
            wanted[(t * i + i) % MODELS][0] += i % 3 != 0;
            wanted[(t * i + i) % MODELS][1] += i % 3 != 0 && i % 2 != 0;
        }
    }
    for (unsigned t = 0; t < SERVING_THREADS; t++)
        assert_int_equal(pthread_join(serving[t].thread, NULL), 0);
    wait_for_requests(fixture, (const int64_t(*)[2])wanted);
    for (unsigned t = 0; t < SERVING_THREADS; t++)
        for (unsigned i = 0; i < PER_THREAD; i++)
            inferstat_inference_free(serving[t].inferences[i]);
    wait_for_requests(fixture, (const int64_t[MODELS][2]){{0}});
}

// Requests of more models than are counted each for itself: the process has them all.
STATE_CASE(test_requests_of_many_models, struct fixture *fixture)
{
    enum { MANY = 100 };
    struct inferstat_inference *inferences[MANY];
    fixture->options.sample_ms = 10;
    fixture->collector = fake_collector_open(fixture->folder);
    struct inferstat_monitor *monitor = open_monitor(fixture);
    for (unsigned i = 0; i < MANY; i++) {
        inferences[i] = inferstat_inference_new(monitor);
        const uint32_t model = inferstat_name(monitor, format_text("model %u", i));
        inferstat_inference_begin(inferences[i], &(struct inferstat_request){.model = model});
        inferstat_set_queued_requests(monitor, model, 1);
    }
    // The models after the 64th share one queue.
    const int64_t wanted = MANY + 64 + 1;
    unsigned process = 0, models = 0;
    for (unsigned at = 0, tries = 0; tries < 10000 && models < 64; tries++) {
        struct fake_row row;
        while (fake_collector_row(fixture->collector, RECORD_KIND_PROCESS_SAMPLE, at, &row)) {
            const bool is_model = row.present >> PROCESS_SAMPLE_MODEL & 1;
            if (!is_model) {
                process = row.values[PROCESS_SAMPLE_RUNNING].i == wanted;
                models = 0;
            }
            models += process && is_model && row.values[PROCESS_SAMPLE_RUNNING].i == 2;
            at++;
        }
        (void)usleep(2000);
    }
    assert_int_equal(process, 1);
    assert_int_equal(models, 64);
    for (unsigned i = 0; i < MANY; i++)
        inferstat_inference_free(inferences[i]);
}

TEST_MAIN_EACH(set_up, tear_down, test_process_samples, test_requests_are_sampled,
               test_requests_of_many_threads, test_requests_of_many_models)
