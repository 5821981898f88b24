// How near the CPU's encoders come to the speed of memory.
//
//   bench_encode [--json] [--quick] [--qubits N] [--threads T] [--megabytes M]
//
// For every encoder and type: states a second, and ratio_to_copy, the time that reading
// each input twice and writing each output once takes at the bandwidth of a copy, over
// the time that encoding takes.  The copy runs on the same threads between the encoders'
// rounds; the better of memcpy and of one past the caches counts.  Best of all rounds.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/parse.h"
#include "common/sys/clock.h"
#include "server/device/cpu/encode.h"
#include "server/workload/encode/generator.h"
#include "tests/bench/bench.h"

enum { CASES = (int)ENCODER_COUNT * (int)ENCODE_TYPE_COUNT, COPY_PARTS = 64 };

static struct {
    bool json, quick;
    int64_t qubits, threads, megabytes;
} options = {.qubits = 16, .threads = 2, .megabytes = 128};

struct bench {
    struct pool *pool;
    size_t size; // bytes of input and of output memory
    void *in, *out, *scratch;
    size_t scratch_size;
    uint8_t *faults;
    uint64_t copy_ns[2]; // best, of each way
};

static void die_of(const struct error *err)
{
    bench_die("cannot start", err->text);
}

static void *new_memory(size_t size)
{
    void *memory = NULL;
    size_t huge = (size_t)2 << 20;
    if (posix_memalign(&memory, huge, (size + huge - 1) / huge * huge) != 0)
        bench_die("memory", "there is none left");
    memset(memory, 1, size);
    return memory;
}

// ---- The yardstick --------------------------------------------------------

struct copy {
    struct bench *bench;
    bool stream;
};

static void copy_part(void *context, size_t part, unsigned int thread)
{
    (void)thread;
    const struct copy *copy = context;
    size_t size = copy->bench->size / COPY_PARTS;
    char *to = (char *)copy->bench->out + part * size;
    const char *from = (const char *)copy->bench->in + part * size;
    const struct encode_kernels *kernels = encode_kernels_best(ENCODE_F64);
    if (!copy->stream)
        memcpy(to, from, size);
    else
        kernels->copy_rows(to, size, from, size, size, 1, true);
    kernels->fence();
}

static void copy_round(struct bench *bench)
{
    for (int stream = 0; stream < 2; stream++) {
        struct copy copy = {bench, stream == 1};
        uint64_t begun = clock_monotonic_ns();
        pool_run(bench->pool, copy_part, &copy, COPY_PARTS);
        uint64_t took = clock_monotonic_ns() - begun;
        if (bench->copy_ns[stream] == 0 || took < bench->copy_ns[stream])
            bench->copy_ns[stream] = took;
    }
}

// Bytes read and written a nanosecond.
static double copy_rate(const struct bench *bench)
{
    uint64_t best = bench->copy_ns[0] < bench->copy_ns[1] ? bench->copy_ns[0] : bench->copy_ns[1];
    return 2.0 * (double)bench->size / (double)best;
}

// ---- Encoders -------------------------------------------------------------

struct timed {
    struct encode_job job;
    uint64_t best_ns;
};

static void prepare(struct timed *timed, const struct bench *bench, enum encoder encoder,
                    enum encode_type type)
{
    struct encode_job *job = &timed->job;
    *job = (struct encode_job){.encoder = encoder,
                               .type = type,
                               .qubits = (unsigned int)options.qubits,
                               .samples = 1,
                               .inputs = encoder_inputs(encoder, (unsigned int)options.qubits)};
    if (job->inputs == 0)
        job->inputs = (size_t)1 << options.qubits;
    job->samples = bench->size / encode_out_size(job);
    if (job->samples == 0)
        bench_die("--megabytes", "less than one state");
    job->in = bench->in;
    job->out = bench->out;
    job->faults = bench->faults;
    job->scratch = bench->scratch;
    if (cpu_encode_scratch_size(job, (unsigned int)options.threads) > bench->scratch_size)
        bench_die("scratch", "too small");
}

static void encode_round(struct timed *timed, const struct bench *bench)
{
    const struct encode_job *job = &timed->job;
    const struct generator generator = {job->encoder, job->type, job->qubits, 1};
    generator_fill(&generator, 0, job->samples * job->inputs, bench->in);
    uint64_t begun = clock_monotonic_ns();
    cpu_encode_run(job, encode_kernels_best(job->type), bench->pool);
    uint64_t took = clock_monotonic_ns() - begun;
    if (timed->best_ns == 0 || took < timed->best_ns)
        timed->best_ns = took;
    if (job->faults[0] != ENCODE_FAULT_NONE)
        bench_die("encode", "a sample was refused");
}

static void report(const struct timed *timed, double rate)
{
    const struct encode_job *job = &timed->job;
    double bytes = 2.0 * (double)encode_in_size(job) + (double)encode_out_size(job);
    double ratio = bytes / rate / (double)timed->best_ns;
    double states = (double)job->samples * 1e9 / (double)timed->best_ns;
    char key[64];
    const char *encoder = encoder_name(job->encoder);
    const char *type = encode_type_name(job->type);
    if (!options.json) {
        (void)printf("%-10s %s %12.0f states/s  %5.2f of the copy's speed\n", encoder, type, states,
                     ratio);
        return;
    }
    (void)snprintf(key, sizeof key, "%s_%s_items_per_second", encoder, type);
    bench_json_number(key, states, 0);
    (void)snprintf(key, sizeof key, "%s_%s_ratio_to_copy", encoder, type);
    bench_json_number(key, ratio, 3);
}

static void begin_report(double rate)
{
    const char *kernels = encode_kernels_best(ENCODE_F64)->name;
    if (options.json) {
        bench_json_text("kernels", kernels);
        bench_json_number("qubits", (double)options.qubits, 0);
        bench_json_number("threads", (double)options.threads, 0);
        bench_json_number("copy_bytes_per_second", rate * 1e9, 0);
        return;
    }
    (void)printf("%lld qubits, %lld threads, %s; a copy reads and writes %.1f GB/s\n",
                 (long long)options.qubits, (long long)options.threads, kernels, rate);
}

// ---- The program ----------------------------------------------------------

static void read_number(int64_t *out, char **argv, int argc, int *at, int64_t minimum,
                        int64_t maximum)
{
    struct error err;
    const char *name = argv[*at];
    if (*at + 1 == argc)
        bench_die(name, "a number is missing");
    *at += 1;
    if (parse_int(out, argv[*at], minimum, maximum, name, &err) != STATUS_OK)
        bench_die("usage", err.text);
}

static void read_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            options.json = true;
        else if (strcmp(argv[i], "--quick") == 0)
            options.quick = true;
        else if (strcmp(argv[i], "--qubits") == 0)
            read_number(&options.qubits, argv, argc, &i, 1, 26);
        else if (strcmp(argv[i], "--threads") == 0)
            read_number(&options.threads, argv, argc, &i, 1, 256);
        else if (strcmp(argv[i], "--megabytes") == 0)
            read_number(&options.megabytes, argv, argc, &i, 1, 65536);
        else
            bench_die("usage", "[--json] [--quick] [--qubits N] [--threads T] [--megabytes M]");
    }
    if (options.quick)
        options.megabytes = 16;
}

static void run_all(struct bench *bench)
{
    struct timed timed[CASES];
    memset(timed, 0, sizeof timed);
    for (int i = 0; i < CASES; i++)
        prepare(&timed[i], bench, (enum encoder)(i / (int)ENCODE_TYPE_COUNT),
                (enum encode_type)(i % (int)ENCODE_TYPE_COUNT));
    for (int round = 0; round < (options.quick ? 2 : 7); round++)
        for (int i = 0; i < CASES; i++) {
            copy_round(bench);
            encode_round(&timed[i], bench);
        }
    double rate = copy_rate(bench);
    begin_report(rate);
    for (int i = 0; i < CASES; i++)
        report(&timed[i], rate);
    if (options.json)
        bench_json_end();
}

int main(int argc, char **argv)
{
    struct error err;
    struct bench bench = {0};
    (void)bench_open("bench_encode");
    read_options(argc, argv);
    if (pool_new(&bench.pool, (unsigned int)options.threads, &err) != STATUS_OK)
        die_of(&err);
    bench.size = (size_t)options.megabytes << 20;
    bench.in = new_memory(bench.size);
    bench.out = new_memory(bench.size);
    bench.faults = new_memory(bench.size / 8);
    bench.scratch_size = bench.size / 8 + ((size_t)options.threads << 21);
    bench.scratch = new_memory(bench.scratch_size);
    run_all(&bench);
    pool_free(bench.pool);
    free(bench.in);
    free(bench.out);
    free(bench.faults);
    free(bench.scratch);
    return 0;
}
