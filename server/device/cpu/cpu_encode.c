// Queues a launch and splits it into parts; helpers of all encoders.
#include "server/device/cpu/encode_parts.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "server/device/cpu/cpu_stream.h"

#if defined(__x86_64__)

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}

#endif

const struct encode_kernels *encode_kernels_at(unsigned int index, enum encode_type type)
{
    bool real64 = type == ENCODE_F64;
    if (index == 0)
        return real64 ? &encode_kernels_plain_f64 : &encode_kernels_plain_f32;
#if defined(__x86_64__)
    // The compiler's own tests know whether the system saves the wide registers.
    if (index == 1 && __builtin_cpu_supports("avx2"))
        return real64 ? &encode_kernels_avx2_f64 : &encode_kernels_avx2_f32;
    if (index == 2 && has_avx512())
        return real64 ? &encode_kernels_avx512_f64 : &encode_kernels_avx512_f32;
#endif
    return NULL;
}

const struct encode_kernels *encode_kernels_best(enum encode_type type)
{
    const struct encode_kernels *best = NULL;
    for (unsigned int i = 0; i < ENCODE_KERNEL_SETS; i++) {
        const struct encode_kernels *kernels = encode_kernels_at(i, type);
        best = kernels ? kernels : best;
    }
    return best;
}

enum {
    PIECE_SIZE = 1024 * 1024, // bytes of output of a part at most
    PART_SIZE = 128 * 1024,   // at least, where samples are smaller
    STREAM_SIZE = 4 * 1024 * 1024,
};

struct encode_split encode_split(const struct encode_run *run, bool pieces)
{
    size_t samples = run->job->samples;
    struct encode_split split = {.samples = 1, .pieces = 1, .piece = run->states};
    if (pieces && run->state_size > PIECE_SIZE) {
        split.pieces = run->state_size / PIECE_SIZE;
        split.piece = run->states / split.pieces;
    } else if (run->state_size < PART_SIZE) {
        split.samples = PART_SIZE / run->state_size;
    }
    split.parts = (samples + split.samples - 1) / split.samples * split.pieces;
    return split;
}

struct pieces {
    const struct encode_run *run;
    struct encode_split split;
    encode_piece *encode;
};

static void encode_part(void *context, size_t part, unsigned int thread)
{
    (void)thread;
    const struct pieces *pieces = context;
    const struct encode_split *split = &pieces->split;
    size_t first = part / split->pieces * split->samples;
    for (size_t s = first; s < first + split->samples && s < pieces->run->job->samples; s++)
        pieces->encode(pieces->run, s, part % split->pieces * split->piece, split->piece);
    pieces->run->kernels->fence();
}

void encode_all(const struct encode_run *run, bool pieces, encode_piece *encode)
{
    struct pieces task = {run, encode_split(run, pieces), encode};
    thread_pool_run(run->pool, encode_part, &task, task.split.parts);
}

double encode_input(const struct encode_run *run, size_t sample, size_t i)
{
    size_t at = sample * run->job->inputs + i;
    return run->job->type == ENCODE_F64 ? ((const double *)run->job->in)[at]
                                        : (double)((const float *)run->job->in)[at];
}

bool encode_inputs_finite(const struct encode_run *run, size_t sample)
{
    for (size_t i = 0; i < run->job->inputs; i++)
        if (!isfinite(encode_input(run, sample, i)))
            return false;
    return true;
}

void *encode_state(const struct encode_run *run, size_t sample, size_t index)
{
    return (char *)run->job->out + sample * run->state_size + index * run->pair_size;
}

void encode_round(const struct encode_run *run, void *to, const double *from, size_t n)
{
    if (run->job->type == ENCODE_F64) {
        memcpy(to, from, n * sizeof *from);
        return;
    }
    float *out = to;
    for (size_t i = 0; i < n; i++)
        out[i] = (float)from[i];
}

void encode_product_table(double (*table)[2], unsigned int bits, const double first[2],
                          const double (*factors)[2][2])
{
    table[0][0] = first[0];
    table[0][1] = first[1];
    for (unsigned int k = 0; k < bits; k++) {
        size_t half = (size_t)1 << k;
        bool plain = factors[k][0][0] == 1.0 && factors[k][0][1] == 0.0;
        for (size_t x = 0; x < half; x++) {
            table[x + half][0] = table[x][0];
            table[x + half][1] = table[x][1];
            encode_multiply(table[x + half], factors[k][1]);
            if (!plain)
                encode_multiply(table[x], factors[k][0]);
        }
    }
}

static void (*const encoders[])(const struct encode_run *run) = {
    [ENCODER_AMPLITUDE] = encode_amplitude, [ENCODER_ANGLE] = encode_product,
    [ENCODER_BASIS] = encode_basis,         [ENCODER_PHASE] = encode_product,
    [ENCODER_IQP_Z] = encode_product,       [ENCODER_IQP] = encode_iqp,
};

void cpu_encode_run(const struct encode_job *job, const struct encode_kernels *kernels,
                    struct thread_pool *pool)
{
    struct encode_run run = {
        .job = job,
        .kernels = kernels,
        .tables = kernels->f64,
        .pool = pool,
        .states = (size_t)1 << job->qubits,
        .pair_size = 2 * encode_type_size(job->type),
        .input_size = job->inputs * encode_type_size(job->type),
    };
    run.state_size = run.states * run.pair_size;
    run.stream = job->samples * run.state_size >= STREAM_SIZE &&
                 run.state_size % ENCODE_ALIGNMENT == 0 &&
                 (uintptr_t)job->out % ENCODE_ALIGNMENT == 0;
    encoders[job->encoder](&run);
}

size_t cpu_encode_scratch_size(const struct encode_job *job, unsigned int threads)
{
    if (job->encoder == ENCODER_AMPLITUDE)
        return encode_amplitude_scratch(job);
    return job->encoder == ENCODER_IQP ? encode_iqp_scratch(job, threads) : 0;
}

static enum status encode_kernel(const void *arguments, struct thread_pool *pool, struct error *err)
{
    (void)err;
    const struct encode_job *job = arguments;
    cpu_encode_run(job, encode_kernels_best(job->type), pool);
    return STATUS_OK;
}

enum status cpu_encode(struct device_stream *stream, const struct encode_job *job,
                       struct error *err)
{
    static_assert(sizeof *job <= CPU_KERNEL_ARGUMENTS_MAX, "a job is passed as arguments");
    return cpu_launch(stream, encoder_name(job->encoder), encode_kernel, job, sizeof *job, err);
}

size_t cpu_encode_scratch(const struct device *device, const struct encode_job *job)
{
    struct device_description description;
    device_describe(device, &description);
    return cpu_encode_scratch_size(job, description.threads);
}
