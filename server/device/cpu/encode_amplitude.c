// Amplitude and basis: inputs that become amplitudes as they are.
#include <math.h>
#include <stdint.h>

#include "server/device/cpu/encode_parts.h"

enum {
    BLOCK = 4096,            // reals whose squares are summed up in one go
    SPLIT_SIZE = 256 * 1024, // bytes of a state from which on threads share it
};

// Sums of squares that need no scaling: what underflows beside them is too small to
// count, and nothing has overflowed.
#define SUM_MIN 0x1p-800
#define SUM_MAX 0x1p+1000

// A sample's normalisation: (x * scale) * factor.
struct norm {
    double scale, factor;
    enum encode_fault fault;
};

static const void *input_at(const struct encode_run *run, size_t sample, size_t i)
{
    return (const char *)run->job->in + sample * run->input_size +
           i * encode_type_size(run->job->type);
}

static size_t block_count(const struct encode_job *job)
{
    return (job->inputs + BLOCK - 1) / BLOCK;
}

static double sum_block(const struct encode_run *run, size_t sample, size_t block, double scale)
{
    size_t first = block * BLOCK;
    size_t left = run->job->inputs - first;
    return run->kernels->sum_squares(input_at(run, sample, first), left < BLOCK ? left : BLOCK,
                                     scale);
}

// Sums of many blocks lose nothing: the error is carried along (Kahan).
struct total {
    double sum, error;
};

static void add(struct total *total, double value)
{
    double corrected = value - total->error;
    double sum = total->sum + corrected;
    total->error = (sum - total->sum) - corrected;
    total->sum = sum;
}

static double sum_all(const struct encode_run *run, size_t sample, double scale)
{
    struct total total = {0};
    size_t blocks = block_count(run->job);
    for (size_t i = 0; i < blocks; i++)
        add(&total, sum_block(run, sample, i, scale));
    return total.sum;
}

// The norm of values whose squares do not fit: scaled by a power of two first, so that
// the largest is near 1.
static struct norm scaled_norm(const struct encode_run *run, size_t sample)
{
    double largest = 0.0;
    for (size_t i = 0; i < run->job->inputs; i++) {
        double x = fabs(encode_input(run, sample, i));
        if (!isfinite(x))
            return (struct norm){.fault = ENCODE_FAULT_NOT_FINITE};
        largest = x > largest ? x : largest;
    }
    if (largest == 0.0)
        return (struct norm){.fault = ENCODE_FAULT_ZERO};
    int exponent;
    (void)frexp(largest, &exponent);
    exponent = exponent > 1022 ? 1022 : exponent < -1022 ? -1022 : exponent;
    double scale = ldexp(1.0, -exponent);
    return (struct norm){.scale = scale, .factor = 1.0 / sqrt(sum_all(run, sample, scale))};
}

static struct norm norm_of(const struct encode_run *run, size_t sample, double sum)
{
    if (sum >= SUM_MIN && sum <= SUM_MAX) // false of NaN
        return (struct norm){.scale = 1.0, .factor = 1.0 / sqrt(sum)};
    return scaled_norm(run, sample);
}

// States first..last-1 of a sample.
static void write_states(const struct encode_run *run, size_t sample, const struct norm *norm,
                         size_t first, size_t last)
{
    size_t inputs = norm->fault == ENCODE_FAULT_NONE ? run->job->inputs : 0;
    size_t end = last < inputs ? last : inputs;
    if (first < end)
        run->kernels->widen(encode_state(run, sample, first), input_at(run, sample, first),
                            end - first, norm->scale, norm->factor, run->stream);
    // The rest of the padding may start at any address.
    size_t from = first < end ? end : first;
    size_t step = ENCODE_ALIGNMENT / run->pair_size;
    size_t aligned = (from + step - 1) / step * step;
    aligned = aligned < last ? aligned : last;
    run->kernels->clear(encode_state(run, sample, from), (aligned - from) * run->pair_size, false);
    run->kernels->clear(encode_state(run, sample, aligned), (last - aligned) * run->pair_size,
                        run->stream);
}

// When threads share samples.
struct amplitude {
    const struct encode_run *run;
    struct encode_split split;
    double *sums; // of all blocks of all samples
    struct norm *norms;
};

static void encode_whole(const struct encode_run *run, size_t sample, size_t first, size_t count)
{
    struct norm norm = norm_of(run, sample, sum_all(run, sample, 1.0));
    run->job->faults[sample] = (uint8_t)norm.fault;
    write_states(run, sample, &norm, first, count);
}

static void sum_part(void *context, size_t part, unsigned int thread)
{
    (void)thread;
    const struct amplitude *task = context;
    size_t blocks = block_count(task->run->job);
    task->sums[part] = sum_block(task->run, part / blocks, part % blocks, 1.0);
}

static void norm_part(void *context, size_t sample, unsigned int thread)
{
    (void)thread;
    const struct amplitude *task = context;
    size_t blocks = block_count(task->run->job);
    struct total total = {0};
    for (size_t i = 0; i < blocks; i++)
        add(&total, task->sums[sample * blocks + i]);
    task->norms[sample] = norm_of(task->run, sample, total.sum);
    task->run->job->faults[sample] = (uint8_t)task->norms[sample].fault;
}

static void write_part(void *context, size_t part, unsigned int thread)
{
    (void)thread;
    const struct amplitude *task = context;
    size_t sample = part / task->split.pieces;
    size_t first = part % task->split.pieces * task->split.piece;
    write_states(task->run, sample, &task->norms[sample], first, first + task->split.piece);
    task->run->kernels->fence();
}

// True when threads share samples, because there are few.
static bool may_share(const struct encode_job *job)
{
    return ((size_t)2 * encode_type_size(job->type) << job->qubits) > SPLIT_SIZE;
}

void encode_amplitude(const struct encode_run *run)
{
    const struct encode_job *job = run->job;
    struct amplitude task = {.run = run};
    if (!may_share(job) || job->samples >= (size_t)4 * thread_pool_threads(run->pool)) {
        encode_all(run, false, encode_whole);
        return;
    }
    task.split = encode_split(run, true);
    task.norms = job->scratch;
    task.sums = (double *)(void *)(task.norms + job->samples);
    thread_pool_run(run->pool, sum_part, &task, job->samples * block_count(job));
    thread_pool_run(run->pool, norm_part, &task, job->samples);
    thread_pool_run(run->pool, write_part, &task, job->samples * task.split.pieces);
}

size_t encode_amplitude_scratch(const struct encode_job *job)
{
    return may_share(job) ? job->samples * (sizeof(struct norm) + block_count(job) * sizeof(double))
                          : 0;
}

static enum encode_fault read_index(const struct encode_run *run, size_t sample, size_t *index)
{
    double x = encode_input(run, sample, 0);
    if (!isfinite(x))
        return ENCODE_FAULT_NOT_FINITE;
    if (x < 0.0 || x >= (double)run->states || x != floor(x))
        return ENCODE_FAULT_INDEX;
    *index = (size_t)x;
    return ENCODE_FAULT_NONE;
}

static void set_one(const struct encode_run *run, void *state)
{
    const double one = 1.0;
    encode_round(run, state, &one, 1);
}

static void basis_piece(const struct encode_run *run, size_t sample, size_t first, size_t count)
{
    size_t index = 0;
    enum encode_fault fault = read_index(run, sample, &index);
    run->kernels->clear(encode_state(run, sample, first), count * run->pair_size, run->stream);
    run->kernels->fence(); // the zero was there before the one
    if (first == 0)
        run->job->faults[sample] = (uint8_t)fault;
    if (fault == ENCODE_FAULT_NONE && index >= first && index < first + count)
        set_one(run, encode_state(run, sample, index));
}

void encode_basis(const struct encode_run *run)
{
    encode_all(run, true, basis_piece);
}
