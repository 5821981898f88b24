// What a device's encoders and copies reach beside its own memory: all sides in one run,
// by turns, timed by the device's events.
//
//   bench_device [--json] [--quick] [--device cpu|cuda[:N]] [--qubits N] [--megabytes M]
//                [--rounds N]
//
//   copy       from one half of the memory to the other, M bytes: read and written
//   encoders   states a second of every encoder and type, inputs and states in the device's
//              memory, and ratio_to_copy: the time that reading each input twice and writing
//              each output once takes at the copy's rate, over the time that encoding takes
//   once       amplitudes beside the time that reading each input once and writing each
//              output once takes: ratio_to_copy_once
//   passes     amplitudes and iqp by passes over the device's memory, as where a state does
//              not fit the shared memory of some processors: on CUDA alone, as what follows
//   unfused    amplitudes by a kernel for the norms, one for the quotients and one for the
//              complex numbers
//   h2d, d2h   one stream's copies from and to pinned memory, and from pageable memory
//
// Medians of the rounds, of ratios within one round.  Every encoder's first and last sample
// are compared with the reference before anything is timed.  What is asked for is printed
// beside what was measured; in JSON as a second number, NAME_goal.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/sys/clock.h"
#include "server/device/properties.h"
#include "server/device/stream.h"
#include "server/workload/encode/inputs.h"
#include "server/workload/encode/reference.h"
#include "tests/bench/bench.h"
#include "tests/bench/unfused.h"

enum { CASES = (int)ENCODER_COUNT * (int)ENCODE_TYPE_COUNT, LINK_COPIES = 8 };

static struct {
    bool json, quick;
    const char *spec; // of the device
    int64_t qubits, megabytes, rounds;
} options = {.spec = "auto", .qubits = 16, .megabytes = 1024, .rounds = 15};

// An encoder and type: a launch, and what its rounds took.
struct timed {
    struct encode_job job;
    struct figures ratio, states_per_second;
    struct figures passes_states_per_second, ratio_to_passes;   // amplitude and iqp
    struct figures unfused_states_per_second, ratio_to_unfused; // amplitude alone
    struct figures ratio_once;                                  // the same
};

enum link { LINK_PINNED, LINK_PAGEABLE, LINK_BACK, LINK_COUNT };

static struct {
    struct device *device;
    struct device_stream *stream;
    struct device_event *start, *end;
    size_t size;       // of each of the two memories
    void *out, *other; // states; the copy's other half, and quotients
    void *norms, *faults, *scratch;
    size_t small, scratch_size; // bytes of norms and of faults
    void *pinned, *plain;       // on the host, link_size bytes
    size_t link_size;
    struct timed cases[CASES];
    struct figures copy_rate, link_rates[LINK_COUNT]; // bytes a second
} bench;

static void check(enum status status, const struct error *err)
{
    if (status != STATUS_OK)
        bench_die("bench_device", err->text);
}

static void *device_room(size_t size)
{
    struct error err = {.status = STATUS_OK};
    void *memory = NULL;
    check(device_memory_new(bench.stream, &memory, size, &err), &err);
    // Touched, and not zero.
    check(device_fill(bench.stream, memory, 0x5a, size, &err), &err);
    return memory;
}

typedef enum status work(const struct timed *timed, struct error *err);

// Seconds between events before and behind the work.
static double seconds_of(work *queue, const struct timed *timed)
{
    struct error err = {.status = STATUS_OK};
    double ns = 0;
    check(device_event_record(bench.start, bench.stream, &err), &err);
    check(queue(timed, &err), &err);
    check(device_event_record(bench.end, bench.stream, &err), &err);
    check(device_event_wait(bench.end, &err), &err);
    check(device_event_elapsed(bench.start, bench.end, &ns, &err), &err);
    return ns / 1e9;
}

static enum status copy(const struct timed *timed, struct error *err)
{
    (void)timed;
    return device_copy_within(bench.stream, bench.other, bench.out, bench.size, err);
}

static enum status encode(const struct timed *timed, struct error *err)
{
    return device_encode(bench.stream, &timed->job, err);
}

static enum status encode_unfused(const struct timed *timed, struct error *err)
{
    const struct unfused_memory memory = {bench.norms, bench.other};
    return unfused_amplitude(bench.stream, &timed->job, &memory, err);
}

static enum status encode_passes(const struct timed *timed, struct error *err)
{
    return unfused_passes(bench.stream, &timed->job, err);
}

static bool has_passes(const struct encode_job *job)
{
    return unfused_runs(bench.device) &&
           (job->encoder == ENCODER_AMPLITUDE || job->encoder == ENCODER_IQP);
}

static enum status copy_over(enum link link, struct error *err)
{
    void *host = link == LINK_PAGEABLE ? bench.plain : bench.pinned;
    if (link == LINK_BACK)
        return device_copy_out(bench.stream, host, bench.out, bench.link_size, err);
    return device_copy_in(bench.stream, bench.out, host, bench.link_size, err);
}

// By the host's clock, since copies from pageable memory keep the host too.
static void time_link(enum link link)
{
    struct error err = {.status = STATUS_OK};
    check(device_stream_synchronize(bench.stream, &err), &err);
    const uint64_t begun_ns = clock_monotonic_ns();
    for (int i = 0; i < LINK_COPIES; i++)
        check(copy_over(link, &err), &err);
    check(device_stream_synchronize(bench.stream, &err), &err);
    const double seconds = (double)(clock_monotonic_ns() - begun_ns) / 1e9;
    figures_add(&bench.link_rates[link], LINK_COPIES * (double)bench.link_size / seconds);
}

static size_t sample_size(const struct encode_job *job)
{
    return job->inputs * encode_type_size(job->type);
}

static size_t state_size(const struct encode_job *job)
{
    return 2 * encode_type_size(job->type) << job->qubits;
}

// The sample's state is the reference's.
static void check_state(const struct encode_job *job, const uint8_t *in, size_t sample)
{
    struct error err = {.status = STATUS_OK};
    void *state = malloc(state_size(job));
    double *reference = malloc(sizeof(double) * 2 << job->qubits);
    if (!state || !reference)
        bench_die("bench_device", "out of memory");
    check(device_copy_out(bench.stream, state, (const uint8_t *)job->out + sample * state_size(job),
                          state_size(job), &err),
          &err);
    check(device_stream_synchronize(bench.stream, &err), &err);
    struct reference_difference difference;
    (void)reference_encode(reference, job->encoder, job->qubits, job->type,
                           in + sample * sample_size(job), job->inputs);
    reference_compare(&difference, state, job->type, reference, job->qubits);
    if (!(difference.largest <= reference_tolerance(job->type)) ||
        !(difference.fidelity >= reference_fidelity(job->type)))
        bench_die(encoder_name(job->encoder), "a state is not the reference's");
    free(state);
    free(reference);
}

// Once, over states that were something else: what is timed later is what was checked.
static void check_work(work *queue, const struct timed *timed, const uint8_t *in)
{
    struct error err = {.status = STATUS_OK};
    check(device_fill(bench.stream, bench.out, 0x5a, bench.size, &err), &err);
    check(queue(timed, &err), &err);
    check_state(&timed->job, in, 0);
    check_state(&timed->job, in, timed->job.samples - 1);
}

static void check_encoder(const struct timed *timed, const uint8_t *in)
{
    check_work(encode, timed, in);
    if (has_passes(&timed->job))
        check_work(encode_passes, timed, in);
    if (timed->job.encoder == ENCODER_AMPLITUDE && unfused_runs(bench.device))
        check_work(encode_unfused, timed, in);
}

static struct encode_job job_of(enum encoder encoder, enum encode_type type)
{
    struct encode_job job = {.encoder = encoder,
                             .type = type,
                             .qubits = (unsigned int)options.qubits,
                             .samples = 1,
                             .inputs = encoder_inputs(encoder, (unsigned int)options.qubits)};
    if (job.inputs == 0)
        job.inputs = (size_t)1 << options.qubits;
    job.samples = bench.size / encode_out_size(&job);
    if (job.samples == 0)
        bench_die("--megabytes", "less than one state");
    return job;
}

static void prepare_case(struct timed *timed, enum encoder encoder, enum encode_type type)
{
    struct error err = {.status = STATUS_OK};
    struct encode_job *job = &timed->job;
    *job = job_of(encoder, type);
    const size_t size = encode_in_size(job);
    void *samples = malloc(size);
    if (!samples)
        bench_die("bench_device", "out of memory");
    const struct generator generator = {encoder, type, job->qubits, 1};
    generator_fill(&generator, 0, job->samples * job->inputs, samples);
    void *in = device_room(size);
    check(device_copy_in(bench.stream, in, samples, size, &err), &err);
    check(device_stream_synchronize(bench.stream, &err), &err);
    job->in = in;
    job->out = bench.out;
    job->faults = bench.faults;
    job->scratch = bench.scratch;
    check_encoder(timed, samples);
    free(samples);
}

static void time_case(struct timed *timed)
{
    const struct encode_job *job = &timed->job;
    const double bytes = 2.0 * (double)encode_in_size(job) + (double)encode_out_size(job);
    const double rate = 2.0 * (double)bench.size / seconds_of(copy, timed);
    const double took = seconds_of(encode, timed);
    figures_add(&bench.copy_rate, rate);
    figures_add(&timed->ratio, bytes / rate / took);
    figures_add(&timed->states_per_second, (double)job->samples / took);
    if (has_passes(job)) {
        const double passes = seconds_of(encode_passes, timed);
        figures_add(&timed->passes_states_per_second, (double)job->samples / passes);
        figures_add(&timed->ratio_to_passes, passes / took);
    }
    if (job->encoder != ENCODER_AMPLITUDE)
        return;
    figures_add(&timed->ratio_once, (bytes - (double)encode_in_size(job)) / rate / took);
    if (!unfused_runs(bench.device))
        return;
    const double unfused = seconds_of(encode_unfused, timed);
    figures_add(&timed->unfused_states_per_second, (double)job->samples / unfused);
    figures_add(&timed->ratio_to_unfused, unfused / took);
}

static void one_round(int64_t round)
{
    // Each round begins with another case, so that none always comes first.
    for (int i = 0; i < CASES; i++)
        time_case(&bench.cases[(i + (int)round) % CASES]);
    for (enum link link = LINK_PINNED; link < LINK_COUNT; link++)
        time_link(link);
}

static void forget_figures(void)
{
    memset(&bench.copy_rate, 0, sizeof bench.copy_rate);
    memset(bench.link_rates, 0, sizeof bench.link_rates);
    for (int i = 0; i < CASES; i++) {
        const struct encode_job job = bench.cases[i].job;
        bench.cases[i] = (struct timed){.job = job};
    }
}

// One figure, with what is asked of it at least (0: nothing is).
static void print_figure(const char *key, const struct figures *figures, double scale, int digits,
                         double goal)
{
    char goal_key[128];
    const double value = figures->count ? figures_median(figures) * scale : (double)NAN;
    if (options.json) {
        bench_json_number(key, value, digits);
        (void)snprintf(goal_key, sizeof goal_key, "%s_goal", key);
        if (goal > 0)
            bench_json_number(goal_key, goal, 3);
        return;
    }
    if (figures->count == 0)
        (void)printf("%-42s not measured\n", key);
    else if (goal > 0)
        (void)printf("%-42s %.*f (goal %g: %s)\n", key, digits, value, goal,
                     value >= goal ? "reached" : "missed");
    else
        (void)printf("%-42s %.*f\n", key, digits, value);
}

static void print_device(void)
{
    struct device_properties properties;
    device_properties(bench.device, &properties);
    const bool is_emulated = strncmp(properties.product, "Emulated", 8) == 0;
    if (options.json) {
        bench_json_text("device", properties.name);
        bench_json_text("product", properties.product);
        bench_json_text("driver", properties.driver);
        bench_json_number("qubits", (double)options.qubits, 0);
        bench_json_number("megabytes", (double)options.megabytes, 0);
        bench_json_number("rounds", (double)options.rounds, 0);
        bench_json_number("emulated", is_emulated ? 1 : 0, 0);
        return;
    }
    if (is_emulated)
        (void)printf("the CUDA runtime is emulated on a CPU: no time below means anything\n");
    (void)printf("%s: %s, %s; %lld qubits, %lld MB of states\n", properties.name,
                 properties.product, properties.driver, (long long)options.qubits,
                 (long long)options.megabytes);
}

static void print_case(const struct timed *timed)
{
    char key[96];
    const struct encode_job *job = &timed->job;
    const char *encoder = encoder_name(job->encoder), *type = encode_type_name(job->type);
    // What iqp does is arithmetic, and passes over the states.
    const double goal = job->encoder == ENCODER_IQP ? 0 : 0.8;
    (void)snprintf(key, sizeof key, "%s_%s_states_per_second", encoder, type);
    print_figure(key, &timed->states_per_second, 1, 0, 0);
    (void)snprintf(key, sizeof key, "%s_%s_ratio_to_copy", encoder, type);
    print_figure(key, &timed->ratio, 1, 3, goal);
    if (job->encoder == ENCODER_AMPLITUDE || job->encoder == ENCODER_IQP) {
        (void)snprintf(key, sizeof key, "%s_passes_%s_states_per_second", encoder, type);
        print_figure(key, &timed->passes_states_per_second, 1, 0, 0);
        (void)snprintf(key, sizeof key, "%s_%s_ratio_to_passes", encoder, type);
        print_figure(key, &timed->ratio_to_passes, 1, 3, 0);
    }
    if (job->encoder != ENCODER_AMPLITUDE)
        return;
    (void)snprintf(key, sizeof key, "amplitude_%s_ratio_to_copy_once", type);
    print_figure(key, &timed->ratio_once, 1, 3, unfused_runs(bench.device) ? 0.8 : 0);
    (void)snprintf(key, sizeof key, "unfused_%s_states_per_second", type);
    print_figure(key, &timed->unfused_states_per_second, 1, 0, 0);
    (void)snprintf(key, sizeof key, "amplitude_%s_ratio_to_unfused", type);
    print_figure(key, &timed->ratio_to_unfused, 1, 3, 2);
}

static void report(void)
{
    static const char *const links[LINK_COUNT] = {
        "h2d_pinned_mb_per_second", "h2d_pageable_mb_per_second", "d2h_pinned_mb_per_second"};
    print_device();
    print_figure("copy_mb_per_second", &bench.copy_rate, 1e-6, 0, 0);
    for (int i = 0; i < CASES; i++)
        print_case(&bench.cases[i]);
    for (int link = 0; link < LINK_COUNT; link++)
        print_figure(links[link], &bench.link_rates[link], 1e-6, 0, 0);
    if (options.json)
        bench_json_end();
}

static void read_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            options.json = true;
        else if (strcmp(argv[i], "--quick") == 0)
            options.quick = true;
        else if (strcmp(argv[i], "--device") == 0 && i + 1 < argc)
            options.spec = argv[++i];
        else if (strcmp(argv[i], "--qubits") == 0)
            bench_option_number(&options.qubits, argv, argc, &i, 1, 26);
        else if (strcmp(argv[i], "--megabytes") == 0)
            bench_option_number(&options.megabytes, argv, argc, &i, 1, 16384);
        else if (strcmp(argv[i], "--rounds") == 0)
            bench_option_number(&options.rounds, argv, argc, &i, 1, BENCH_ROUNDS_MAX);
        else
            bench_die("usage", "[--json] [--quick] [--device D] [--qubits N] [--megabytes M] "
                               "[--rounds N]");
    }
    if (options.quick) {
        options.qubits = options.qubits < 10 ? options.qubits : 10;
        options.megabytes = 0;
        options.rounds = 2;
    }
}

static void prepare(void)
{
    const struct device_options device = {.spec = options.spec};
    struct error err = {.status = STATUS_OK};
    check(device_open(&bench.device, &device, &err), &err);
    check(device_stream_new(bench.device, &bench.stream, "bench", &err), &err);
    check(device_event_new(bench.device, &bench.start, DEVICE_EVENT_TIMED, &err), &err);
    check(device_event_new(bench.device, &bench.end, DEVICE_EVENT_TIMED, &err), &err);
    bench.size = options.quick ? (size_t)1 << 17 : (size_t)options.megabytes << 20;
    bench.out = device_room(bench.size);
    bench.other = device_room(bench.size);
    bench.small = bench.size / 4; // a number a sample: a state has four at least
    bench.norms = device_room(bench.small);
    bench.faults = device_room(bench.small);
    for (int i = 0; i < CASES; i++) {
        const struct encode_job job = job_of((enum encoder)(i / (int)ENCODE_TYPE_COUNT),
                                             (enum encode_type)(i % (int)ENCODE_TYPE_COUNT));
        const size_t size = encode_scratch_size(bench.device, &job);
        bench.scratch_size = size > bench.scratch_size ? size : bench.scratch_size;
    }
    bench.scratch = bench.scratch_size > 0 ? device_room(bench.scratch_size) : NULL;
    for (int i = 0; i < CASES; i++)
        prepare_case(&bench.cases[i], (enum encoder)(i / (int)ENCODE_TYPE_COUNT),
                     (enum encode_type)(i % (int)ENCODE_TYPE_COUNT));

    const size_t link_max = (size_t)64 << 20;
    bench.link_size = bench.size < link_max ? bench.size : link_max;
    check(device_pinned_new(bench.device, &bench.pinned, bench.link_size, &err), &err);
    bench.plain = malloc(bench.link_size);
    if (!bench.plain)
        bench_die("bench_device", "out of memory");
    memset(bench.pinned, 1, bench.link_size);
    memset(bench.plain, 2, bench.link_size);
}

static void put_away(void)
{
    free(bench.plain);
    device_pinned_free(bench.device, bench.pinned, bench.link_size);
    for (int i = 0; i < CASES; i++) {
        union {
            const void *borrowed;
            void *own;
        } in = {bench.cases[i].job.in};
        device_memory_free(bench.stream, in.own, encode_in_size(&bench.cases[i].job));
    }
    device_memory_free(bench.stream, bench.scratch, bench.scratch_size);
    device_memory_free(bench.stream, bench.faults, bench.small);
    device_memory_free(bench.stream, bench.norms, bench.small);
    device_memory_free(bench.stream, bench.other, bench.size);
    device_memory_free(bench.stream, bench.out, bench.size);
    device_event_free(bench.end);
    device_event_free(bench.start);
    device_stream_free(bench.stream);
    device_close(bench.device);
}

int main(int argc, char **argv)
{
    (void)bench_open("bench_device");
    read_options(argc, argv);
    prepare();
    one_round(0);
    forget_figures(); // that was to warm up
    for (int64_t round = 0; round < options.rounds; round++)
        one_round(round);
    report();
    put_away();
    return 0;
}
