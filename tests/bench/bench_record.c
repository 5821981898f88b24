// What recording costs the engine: nanoseconds for a token and for the end of a
// request, with a collector taking the records over a real socket meanwhile.
//
//   bench_record [--json] [--quick] [--repeats N]
//
// A token: a loop of tokens of one request.  The end: the time from before to
// after each inferstat_inference_end(), less what two clock reads with nothing
// between them give, median of all; a request has 16 tokens with gaps.  Beside it,
// measured the same way in turn with it: a tracepoint of LTTng's user-space tracer,
// eight fields, in a session that has it enabled, where that is installed.  Every
// figure is the median of several repeats.
//
// Allocations: malloc and its kin are this program's own and count calls on the
// thread that measures.  System calls: a second thread would hide them, so a
// child process runs the loop under ptrace, which stops its measuring thread at
// every system call; the calls of a run with many requests less those of a run
// with none are those of recording.
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/monitor/inferstat.h"
#include "tests/bench/bench.h"
#include "tests/bench/lttng_session.h"
#include "tests/support/fake_collector.h"
#include "tests/support/folder.h"

enum {
    TOKENS = 2000000,    // of one token loop
    REQUESTS = 2000,     // of one loop of ends: fewer than a ring holds
    REQUEST_TOKENS = 16, // with gaps, in each of them
    THREADS_MAX = 4,
    MODELS_MAX = 4,
    REPEATS_DEFAULT = 9,
    COUNTED_REQUESTS = 100000, // of the loops in which calls are counted
};

static __thread bool counting;
static __thread uint64_t allocations;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size)
{
    allocations += counting;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    allocations += counting;
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    allocations += counting;
    return __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    allocations += counting;
    return __libc_memalign(alignment, size);
}

struct setting {
    struct inferstat_monitor *monitor;
    uint32_t models[MODELS_MAX];
    unsigned model_count; // requests take turns
    uint32_t device;
};

static double time_clock_reads(void)
{
    uint64_t sum = 0;
    const uint64_t begun = inferstat_clock_ns();
    for (int i = 0; i < TOKENS; i++)
        sum += inferstat_clock_ns();
    const uint64_t ended = inferstat_clock_ns();
    return sum ? (double)(ended - begun) / TOKENS : 0;
}

static void begin(struct inferstat_inference *inference, const struct setting *setting,
                  unsigned request)
{
    const uint32_t model = setting->models[request % setting->model_count];
    inferstat_inference_begin(inference, &(struct inferstat_request){.model = model,
                                                                     .device = setting->device,
                                                                     .prompt_tokens = 32});
    inferstat_inference_start_prefill(inference);
}

static double time_tokens(const struct setting *setting)
{
    struct inferstat_inference *inference = inferstat_inference_new(setting->monitor);
    begin(inference, setting, 0);
    inferstat_inference_token(inference);
    const uint64_t begun = inferstat_clock_ns();
    for (int i = 0; i < TOKENS; i++)
        inferstat_inference_token(inference);
    const uint64_t ended = inferstat_clock_ns();
    inferstat_inference_end(inference, INFERSTAT_FINISH_LENGTH);
    inferstat_inference_free(inference);
    return (double)(ended - begun) / TOKENS;
}

static double time_counts(const struct setting *setting)
{
    struct inferstat_inference *inference = inferstat_inference_new(setting->monitor);
    begin(inference, setting, 0);
    inferstat_inference_start_generation(inference);
    const uint64_t begun = inferstat_clock_ns();
    for (int i = 0; i < TOKENS; i++)
        inferstat_inference_count_tokens(inference, 1);
    const uint64_t ended = inferstat_clock_ns();
    inferstat_inference_end(inference, INFERSTAT_FINISH_LENGTH);
    inferstat_inference_free(inference);
    return (double)(ended - begun) / TOKENS;
}

// Runs requests; `times` gets the nanoseconds of each end, or is NULL.
static void run_requests(struct inferstat_inference *inference, const struct setting *setting,
                         int requests, double *times)
{
    for (int i = 0; i < requests; i++) {
        begin(inference, setting, (unsigned)i);
        for (int token = 0; token <= REQUEST_TOKENS; token++)
            inferstat_inference_token(inference);
        const uint64_t begun = times ? inferstat_clock_ns() : 0;
        inferstat_inference_end(inference, INFERSTAT_FINISH_LENGTH);
        if (times)
            times[i] = (double)(inferstat_clock_ns() - begun);
    }
}

// What two clock reads in a row give.
static double time_nothing(void)
{
    static double times[REQUESTS];
    for (int i = 0; i < REQUESTS; i++) {
        const uint64_t begun = inferstat_clock_ns();
        times[i] = (double)(inferstat_clock_ns() - begun);
    }
    return bench_stepped_median(times, REQUESTS);
}

struct runner {
    const struct setting *setting;
    pthread_barrier_t *barrier;
    pthread_t thread;
    double times[REQUESTS];
};

static void wait_for_collector(struct inferstat_monitor *monitor)
{
    struct inferstat_totals totals;
    do {
        (void)usleep(1000);
        inferstat_get_totals(monitor, &totals);
    } while (totals.acknowledged < totals.produced);
}

// The first requests, not measured, take the thread's seat and warm its memory.
static void *run_thread(void *context)
{
    struct runner *runner = context;
    struct inferstat_inference *inference = inferstat_inference_new(runner->setting->monitor);
    run_requests(inference, runner->setting, REQUESTS / 2, NULL);
    (void)pthread_barrier_wait(runner->barrier);
    wait_for_collector(runner->setting->monitor);
    (void)pthread_barrier_wait(runner->barrier);
    run_requests(inference, runner->setting, REQUESTS, runner->times);
    inferstat_inference_free(inference);
    return NULL;
}

static double time_ends(struct setting setting, unsigned threads, unsigned models)
{
    static struct runner runners[THREADS_MAX];
    static double all[THREADS_MAX * REQUESTS];
    setting.model_count = models;
    pthread_barrier_t barrier;
    (void)pthread_barrier_init(&barrier, NULL, threads);
    for (unsigned i = 0; i < threads; i++) {
        runners[i].setting = &setting;
        runners[i].barrier = &barrier;
        if (pthread_create(&runners[i].thread, NULL, run_thread, &runners[i]) != 0)
            abort();
    }
    for (unsigned i = 0; i < threads; i++) {
        (void)pthread_join(runners[i].thread, NULL);
        memcpy(all + (size_t)i * REQUESTS, runners[i].times, sizeof runners[i].times);
    }
    (void)pthread_barrier_destroy(&barrier);
    wait_for_collector(setting.monitor);
    return bench_stepped_median(all, (size_t)threads * REQUESTS) - time_nothing();
}

// An inference of items, from begin to end; models take turns.
static double time_items(const struct setting *setting, unsigned models)
{
    struct inferstat_inference *inference = inferstat_inference_new(setting->monitor);
    const uint64_t begun = inferstat_clock_ns();
    for (unsigned i = 0; i < REQUESTS; i++) {
        inferstat_inference_begin(inference,
                                  &(struct inferstat_request){.model = setting->models[i % models],
                                                              .device = setting->device,
                                                              .items = 32});
        inferstat_inference_end(inference, INFERSTAT_FINISH_STOP);
    }
    const uint64_t ended = inferstat_clock_ns();
    inferstat_inference_free(inference);
    wait_for_collector(setting->monitor);
    return (double)(ended - begun) / REQUESTS;
}

static uint64_t count_allocations(const struct setting *setting)
{
    struct inferstat_inference *inference = inferstat_inference_new(setting->monitor);
    run_requests(inference, setting, 10, NULL);
    allocations = 0;
    counting = true;
    run_requests(inference, setting, COUNTED_REQUESTS, NULL);
    counting = false;
    inferstat_inference_free(inference);
    wait_for_collector(setting->monitor);
    return allocations;
}

static struct setting open_setting(const char *folder)
{
    char address[FOLDER_PATH_SIZE + 8];
    (void)snprintf(address, sizeof address, "ipc://%s", folder);
    struct inferstat_options options;
    inferstat_options_init(&options);
    options.collector = address;
    options.run_folder = folder;
    options.spool_folder = "";
    struct inferstat_error err;
    struct setting setting;
    if (inferstat_open(&setting.monitor, &options, &err) != INFERSTAT_OK) {
        (void)fprintf(stderr, "bench_record: %s\n", err.text);
        exit(1);
    }
    for (unsigned i = 0; i < MODELS_MAX; i++) {
        char name[] = "model 0";
        name[sizeof name - 2] = (char)('1' + i);
        setting.models[i] = inferstat_name(setting.monitor, name);
    }
    setting.model_count = 1;
    setting.device = inferstat_name(setting.monitor, "cpu");
    return setting;
}

// The child: its main thread is traced from here on.
static void be_counted(const char *folder, int requests)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    const struct setting setting = open_setting(folder);
    struct inferstat_inference *inference = inferstat_inference_new(setting.monitor);
    run_requests(inference, &setting, 10, NULL);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(2);
    (void)raise(SIGSTOP);
    run_requests(inference, &setting, requests, NULL);
    _exit(0);
}

// System calls of the traced thread until it ends; negative when it cannot be traced.
static long count_system_calls(const char *folder, int requests)
{
    const pid_t child = fork();
    if (child == 0)
        be_counted(folder, requests);
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
        return -1;
    (void)ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    long stops = 0;
    for (;;) {
        if (ptrace(PTRACE_SYSCALL, child, NULL, NULL) != 0)
            return -1;
        if (waitpid(child, &status, 0) != child)
            return -1;
        if (WIFEXITED(status))
            return WEXITSTATUS(status) == 0 ? (stops + 1) / 2 : -1;
        if (WIFSIGNALED(status))
            return -1;
        stops += WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80);
    }
}

struct results {
    double clock_read_ns, token_ns, count_token_ns;
    double end_ns, end_two_models_ns, end_four_models_ns, end_4_threads_ns;
    double items_ns, items_four_models_ns;
    double tracepoint_ns, end_to_tracepoint; // 0: not measured
    uint64_t allocations;
    long system_calls;
    uint64_t dropped;
};

static void measure(const struct setting *setting, int repeats, bool traced,
                    struct results *results)
{
    struct figures clock = {0}, token = {0}, count = {0}, tracepoint = {0}, ratio = {0};
    struct figures end = {0}, end_two = {0}, end_four = {0}, end_4 = {0};
    struct figures items = {0}, items_four = {0};
    (void)time_tokens(setting);
    (void)time_items(setting, MODELS_MAX);
    for (int i = 0; i < repeats; i++) {
        figures_add(&clock, time_clock_reads());
        figures_add(&token, time_tokens(setting));
        figures_add(&count, time_counts(setting));
        figures_add(&end, time_ends(*setting, 1, 1));
        const double point = traced ? lttng_session_time(REQUESTS, REQUEST_TOKENS) : 0;
        if (point > 0) {
            figures_add(&tracepoint, point);
            figures_add(&ratio, end.values[end.count - 1] / point);
        }
        figures_add(&end_two, time_ends(*setting, 1, 2));
        figures_add(&end_four, time_ends(*setting, 1, MODELS_MAX));
        figures_add(&end_4, time_ends(*setting, THREADS_MAX, 1));
        figures_add(&items, time_items(setting, 1));
        figures_add(&items_four, time_items(setting, MODELS_MAX));
    }
    results->clock_read_ns = figures_median(&clock);
    results->token_ns = figures_median(&token);
    results->count_token_ns = figures_median(&count);
    results->end_ns = figures_median(&end);
    results->end_two_models_ns = figures_median(&end_two);
    results->end_four_models_ns = figures_median(&end_four);
    results->end_4_threads_ns = figures_median(&end_4);
    results->items_ns = figures_median(&items);
    results->items_four_models_ns = figures_median(&items_four);
    results->tracepoint_ns = figures_median(&tracepoint);
    results->end_to_tracepoint = figures_median(&ratio);
}

static void print_json(const struct results *results)
{
    const double nothing = (double)NAN;
    const bool traced = results->tracepoint_ns > 0;
    bench_json_number("clock_read_ns", results->clock_read_ns, 2);
    bench_json_number("token_ns", results->token_ns, 2);
    bench_json_number("count_token_ns", results->count_token_ns, 2);
    bench_json_number("end_ns", results->end_ns, 1);
    bench_json_number("end_two_models_ns", results->end_two_models_ns, 1);
    bench_json_number("end_four_models_ns", results->end_four_models_ns, 1);
    bench_json_number("end_4_threads_ns", results->end_4_threads_ns, 1);
    bench_json_number("items_ns", results->items_ns, 1);
    bench_json_number("items_four_models_ns", results->items_four_models_ns, 1);
    bench_json_number("lttng_tracepoint_ns", traced ? results->tracepoint_ns : nothing, 1);
    bench_json_number("ratio_to_lttng", traced ? results->end_to_tracepoint : nothing, 3);
    bench_json_number("token_ratio_to_clock_read", results->token_ns / results->clock_read_ns, 3);
    bench_json_number("allocations", (double)results->allocations, 0);
    bench_json_number("system_calls", (double)results->system_calls, 0);
    bench_json_number("dropped", (double)results->dropped, 0);
    bench_json_end();
}

static void print_table(const struct results *results)
{
    (void)printf("one clock read            %8.2f ns\n"
                 "token with its gap        %8.2f ns  = %.2f clock reads\n"
                 "token counted only        %8.2f ns\n"
                 "end of a request          %8.1f ns  (goal <= 60)\n"
                 "  of two models in turn   %8.1f ns\n"
                 "  of four models in turn  %8.1f ns\n"
                 "  with 4 threads at once  %8.1f ns\n"
                 "inference of items        %8.1f ns  (goal <= 200)\n"
                 "  of four models in turn  %8.1f ns\n"
                 "allocations               %8llu in %d requests\n"
                 "system calls              %8ld in %d requests\n"
                 "records dropped           %8llu\n",
                 results->clock_read_ns, results->token_ns,
                 results->token_ns / results->clock_read_ns, results->count_token_ns,
                 results->end_ns, results->end_two_models_ns, results->end_four_models_ns,
                 results->end_4_threads_ns, results->items_ns, results->items_four_models_ns,
                 (unsigned long long)results->allocations, COUNTED_REQUESTS, results->system_calls,
                 COUNTED_REQUESTS, (unsigned long long)results->dropped);
    if (results->tracepoint_ns > 0)
        (void)printf("tracepoint of LTTng       %8.1f ns\n"
                     "  end of a request to it  %8.2f     (goal <= 0.5)\n",
                     results->tracepoint_ns, results->end_to_tracepoint);
}

// Repeats asked for; 0 where the arguments make no sense.
static int read_arguments(int argc, char **argv, bool *json)
{
    int repeats = REPEATS_DEFAULT;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            *json = true;
        else if (strcmp(argv[i], "--quick") == 0)
            repeats = 1;
        else if (strcmp(argv[i], "--repeats") == 0 && i + 1 < argc)
            repeats = atoi(argv[++i]);
        else
            return 0;
    }
    return repeats > 0 && repeats <= BENCH_ROUNDS_MAX ? repeats : 0;
}

int main(int argc, char **argv)
{
    bool json = false;
    const int repeats = read_arguments(argc, argv, &json);
    if (repeats == 0) {
        (void)fprintf(stderr, "usage: bench_record [--json] [--quick] [--repeats N]\n");
        return 2;
    }
    (void)bench_open("bench_record");
    const char *folder = bench_memory_folder();
    struct results results;

    // Children first: they must not inherit sockets and threads.
    const long with = count_system_calls(folder, COUNTED_REQUESTS);
    const long without = count_system_calls(folder, 0);
    results.system_calls = with < 0 || without < 0 ? -1 : with - without;

    const char *why = NULL;
    const bool traced = lttng_session_open(folder, &why);
    if (!traced)
        (void)fprintf(stderr, "bench_record: not compared with LTTng: %s\n", why);
    struct fake_collector *collector = fake_collector_open(folder);
    fake_collector_set_forgetful(collector, true);
    struct setting setting = open_setting(folder);
    measure(&setting, repeats, traced, &results);
    struct inferstat_totals totals;
    inferstat_get_totals(setting.monitor, &totals);
    results.dropped = totals.dropped;
    results.allocations = count_allocations(&setting);
    (void)inferstat_close(setting.monitor, UINT64_C(5000000000), NULL);
    fake_collector_close(collector);
    if (traced && !lttng_session_close())
        bench_die("LTTng", "it discarded events: what they cost is not known");
    if (json)
        print_json(&results);
    else
        print_table(&results);
    return 0;
}
