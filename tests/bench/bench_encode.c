// How near the CPU's encoders come to the speed of memory.
//
//   bench_encode [--json] [--quick] [--qubits N] [--threads T] [--megabytes M] [--rounds R]
//
// For every encoder and type: states a second, and
//
//   ratio_to_copy  the time that reading each input twice and writing each output once
//                  takes at the bandwidth of a copy (bytes read and bytes written), over
//                  the time that encoding takes
//   ratio_to_fill  the time that writing each output once takes where nothing is read and
//                  numbers are not zero, over the same
//
// Both yardsticks run on the same threads between the encoders' rounds; of each the better
// of the C library's way and of one past the caches counts.  Best of all rounds.
//
// Encoders that read next to nothing end where filling does: fill_ratio_to_copy is the
// ratio_to_copy they would have if they cost nothing.  Processors whose cores have half as
// wide a way out as in have it below 1.  Zeros (basis) may go faster than that.
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/sys/clock.h"
#include "server/device/cpu/encode_parts.h"
#include "server/workload/encode/inputs.h"
#include "tests/bench/bench.h"

enum { CASES = (int)ENCODER_COUNT * (int)ENCODE_TYPE_COUNT, YARDSTICK_PARTS = 64 };

static struct {
    bool json, quick;
    int64_t qubits, threads, megabytes, rounds;
} options = {.qubits = 16, .threads = 2, .megabytes = 128, .rounds = 7};

struct bench {
    struct thread_pool *pool;
    size_t size; // bytes of input and of output memory
    void *in, *out, *scratch;
    size_t scratch_size;
    uint8_t *faults;
    uint64_t copy_ns[2]; // best, of each way
    uint64_t fill_ns[2]; // likewise
};

static void die_of(const struct error *err)
{
    bench_die("cannot start", err->text);
}

static void *new_memory(size_t size)
{
    void *memory = NULL;
    size_t huge = (size_t)2 << 20;
    size_t rounded = (size + huge - 1) / huge * huge;
    if (posix_memalign(&memory, huge, rounded) != 0)
        bench_die("memory", "there is none left");
    (void)madvise(memory, rounded, MADV_HUGEPAGE); // as the device's memory is
    memset(memory, 1, size);
    return memory;
}

struct yardstick {
    struct bench *bench;
    bool stream;
};

static void copy_part(void *context, size_t part, unsigned int thread)
{
    (void)thread;
    const struct yardstick *copy = context;
    size_t size = copy->bench->size / YARDSTICK_PARTS;
    char *to = (char *)copy->bench->out + part * size;
    const char *from = (const char *)copy->bench->in + part * size;
    const struct encode_kernels *kernels = encode_kernels_best(ENCODE_F64);
    if (!copy->stream)
        memcpy(to, from, size);
    else
        kernels->copy_rows(to, size, from, size, size, 1, true);
    kernels->fence();
}

static void fill_part(void *context, size_t part, unsigned int thread)
{
    enum { BYTE = 0x3f, BLOCK = 4096 };
    (void)thread;
    const struct yardstick *fill = context;
    size_t size = fill->bench->size / YARDSTICK_PARTS;
    char *to = (char *)fill->bench->out + part * size;
    const struct encode_kernels *kernels = encode_kernels_best(ENCODE_F64);
    if (!fill->stream) {
        memset(to, BYTE, size);
        return;
    }
    alignas(ENCODE_ALIGNMENT) char block[BLOCK];
    memset(block, BYTE, sizeof block);
    kernels->copy_rows(to, BLOCK, block, 0, BLOCK, size / BLOCK, true);
    kernels->fence();
}

static void time_yardstick(struct bench *bench, uint64_t best_ns[2], thread_pool_task *part)
{
    for (int stream = 0; stream < 2; stream++) {
        struct yardstick yardstick = {bench, stream == 1};
        uint64_t begun = clock_monotonic_ns();
        thread_pool_run(bench->pool, part, &yardstick, YARDSTICK_PARTS);
        uint64_t took = clock_monotonic_ns() - begun;
        if (best_ns[stream] == 0 || took < best_ns[stream])
            best_ns[stream] = took;
    }
}

// Bytes a nanosecond.
struct rates {
    double copy, fill; // read and written; written
};

static double rate_of(size_t bytes, const uint64_t best_ns[2])
{
    return (double)bytes / (double)(best_ns[0] < best_ns[1] ? best_ns[0] : best_ns[1]);
}

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

static void encode_a_round(struct timed *timed, const struct bench *bench)
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

static void report(const struct timed *timed, const struct rates *rates)
{
    const struct encode_job *job = &timed->job;
    double written = (double)encode_out_size(job);
    double bytes = 2.0 * (double)encode_in_size(job) + written;
    double to_copy = bytes / rates->copy / (double)timed->best_ns;
    double to_fill = written / rates->fill / (double)timed->best_ns;
    double states = (double)job->samples * 1e9 / (double)timed->best_ns;
    char key[64];
    const char *encoder = encoder_name(job->encoder);
    const char *type = encode_type_name(job->type);
    if (!options.json) {
        (void)printf("%-10s %s %12.0f states/s  %5.2f of the copy's speed  %5.2f of the fill's\n",
                     encoder, type, states, to_copy, to_fill);
        return;
    }
    (void)snprintf(key, sizeof key, "%s_%s_items_per_second", encoder, type);
    bench_json_number(key, states, 0);
    (void)snprintf(key, sizeof key, "%s_%s_ratio_to_copy", encoder, type);
    bench_json_number(key, to_copy, 3);
    (void)snprintf(key, sizeof key, "%s_%s_ratio_to_fill", encoder, type);
    bench_json_number(key, to_fill, 3);
}

static void begin_report(const struct rates *rates)
{
    const char *kernels = encode_kernels_best(ENCODE_F64)->name;
    if (options.json) {
        bench_json_text("kernels", kernels);
        bench_json_number("qubits", (double)options.qubits, 0);
        bench_json_number("threads", (double)options.threads, 0);
        bench_json_number("copy_bytes_per_second", rates->copy * 1e9, 0);
        bench_json_number("fill_bytes_per_second", rates->fill * 1e9, 0);
        bench_json_number("fill_ratio_to_copy", rates->fill / rates->copy, 3);
        return;
    }
    (void)printf("%lld qubits, %lld threads, %s; a copy reads and writes %.1f GB/s, a fill writes "
                 "%.1f GB/s (%.2f)\n",
                 (long long)options.qubits, (long long)options.threads, kernels, rates->copy,
                 rates->fill, rates->fill / rates->copy);
}

static void read_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            options.json = true;
        else if (strcmp(argv[i], "--quick") == 0)
            options.quick = true;
        else if (strcmp(argv[i], "--qubits") == 0)
            bench_option_number(&options.qubits, argv, argc, &i, 1, 26);
        else if (strcmp(argv[i], "--threads") == 0)
            bench_option_number(&options.threads, argv, argc, &i, 1, 256);
        else if (strcmp(argv[i], "--megabytes") == 0)
            bench_option_number(&options.megabytes, argv, argc, &i, 1, 65536);
        else if (strcmp(argv[i], "--rounds") == 0)
            bench_option_number(&options.rounds, argv, argc, &i, 1, 100000);
        else
            bench_die("usage", "[--json] [--quick] [--qubits N] [--threads T] [--megabytes M] "
                               "[--rounds R]");
    }
    if (options.quick) {
        options.megabytes = 16;
        options.rounds = 2;
    }
}

static void run_all(struct bench *bench)
{
    struct timed timed[CASES];
    memset(timed, 0, sizeof timed);
    for (int i = 0; i < CASES; i++)
        prepare(&timed[i], bench, (enum encoder)(i / (int)ENCODE_TYPE_COUNT),
                (enum encode_type)(i % (int)ENCODE_TYPE_COUNT));
    for (int64_t round = 0; round < options.rounds; round++)
        for (int i = 0; i < CASES; i++) {
            time_yardstick(bench, bench->copy_ns, copy_part);
            time_yardstick(bench, bench->fill_ns, fill_part);
            encode_a_round(&timed[i], bench);
        }
    const struct rates rates = {rate_of(2 * bench->size, bench->copy_ns),
                                rate_of(bench->size, bench->fill_ns)};
    begin_report(&rates);
    for (int i = 0; i < CASES; i++)
        report(&timed[i], &rates);
    if (options.json)
        bench_json_end();
}

int main(int argc, char **argv)
{
    struct error err;
    struct bench bench = {0};
    (void)bench_open("bench_encode");
    read_options(argc, argv);
    if (thread_pool_new(&bench.pool, (unsigned int)options.threads, &err) != STATUS_OK)
        die_of(&err);
    bench.size = (size_t)options.megabytes << 20;
    bench.in = new_memory(bench.size);
    bench.out = new_memory(bench.size);
    bench.faults = new_memory(bench.size / 8);
    bench.scratch_size = bench.size / 8 + ((size_t)options.threads << 21);
    bench.scratch = new_memory(bench.scratch_size);
    run_all(&bench);
    thread_pool_free(bench.pool);
    free(bench.in);
    free(bench.out);
    free(bench.faults);
    free(bench.scratch);
    return 0;
}
