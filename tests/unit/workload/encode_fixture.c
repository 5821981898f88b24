#include "tests/unit/workload/encode_fixture.h"

#include <math.h>

#include "server/workload/encode/reference.h"
#include "server/workload/llm/random.h"
#include "tests/support/test.h"

enum { CANARY = 64 };

static void *new_memory(size_t size, int byte)
{
    void *memory = NULL;
    size_t rounded = (size + CANARY + 255) / 256 * 256;
    assert_int_equal(posix_memalign(&memory, 256, rounded), 0);
    memset(memory, byte, rounded);
    return memory;
}

void launch_begin(struct launch *launch, enum encoder encoder, enum encode_type type,
                  unsigned int qubits, size_t samples, size_t inputs)
{
    *launch = (struct launch){
        .job = {.encoder = encoder, .type = type, .qubits = qubits, .samples = samples}};
    struct encode_job *job = &launch->job;
    job->inputs = inputs ? inputs : encoder_inputs(encoder, qubits);
    launch->in_size = encode_in_size(job);
    launch->out_size = encode_out_size(job);
    launch->scratch_size = cpu_encode_scratch_size(job, 3);
    job->in = launch->in = new_memory(launch->in_size, 0);
    job->out = launch->out = new_memory(launch->out_size, 0xa5);
    job->faults = launch->faults = new_memory(samples, 0xa5);
    job->scratch = launch->scratch = new_memory(launch->scratch_size, 0xa5);
}

static void check_canary(const unsigned char *memory, size_t size)
{
    for (size_t i = size; i < size + CANARY; i++)
        assert_int_equal(memory[i], 0xa5);
}

void launch_end(struct launch *launch)
{
    check_canary(launch->out, launch->out_size);
    check_canary(launch->faults, launch->job.samples);
    check_canary(launch->scratch, launch->scratch_size);
    free(launch->in);
    free(launch->out);
    free(launch->faults);
    free(launch->scratch);
}

void launch_set_input(struct launch *launch, size_t i, double value)
{
    if (launch->job.type == ENCODE_F64)
        ((double *)(void *)launch->in)[i] = value;
    else
        ((float *)(void *)launch->in)[i] = (float)value;
}

static double number(const struct launch *launch, const void *memory, size_t i)
{
    return launch->job.type == ENCODE_F64 ? ((const double *)memory)[i]
                                          : (double)((const float *)memory)[i];
}

double launch_input(const struct launch *launch, size_t i)
{
    return number(launch, launch->in, i);
}

void launch_run(const struct launch *launch, const struct encode_kernels *kernels,
                unsigned int threads)
{
    struct thread_pool *pool = NULL;
    struct error err = {0};
    assert_int_equal(thread_pool_new(&pool, threads, &err), STATUS_OK);
    memset(launch->out, 0xff, launch->out_size);
    cpu_encode_run(&launch->job, kernels, pool);
    thread_pool_free(pool);
}

const unsigned char *launch_state(const struct launch *launch, size_t sample)
{
    return launch->out + sample * (launch->out_size / launch->job.samples);
}

double launch_amplitude(const struct launch *launch, size_t sample, size_t real)
{
    return number(launch, launch_state(launch, sample), real);
}

void launch_check(const struct launch *launch)
{
    const struct encode_job *job = &launch->job;
    double *reference = malloc((2 * sizeof *reference) << job->qubits);
    assert_non_null(reference);
    for (size_t s = 0; s < job->samples; s++) {
        enum encode_fault fault =
            reference_encode(reference, job->encoder, job->qubits, job->type,
                             launch->in + s * (launch->in_size / job->samples), job->inputs);
        assert_int_equal(launch->faults[s], fault);
        struct reference_difference difference;
        reference_compare(&difference, launch_state(launch, s), job->type, reference, job->qubits);
        if (difference.largest > reference_tolerance(job->type) ||
            difference.fidelity <= reference_fidelity(job->type))
            fail_msg("%s %s, %u qubits, sample %zu: off by %g, fidelity 1 - %g",
                     encoder_name(job->encoder), encode_type_name(job->type), job->qubits, s,
                     difference.largest, 1.0 - difference.fidelity);
    }
    free(reference);
}

static double random_input(struct random *random, enum encoder encoder, unsigned int qubits)
{
    if (encoder == ENCODER_BASIS)
        return floor(ldexp(random_unit(random), (int)qubits));
    double x = 2.0 * random_unit(random) - 1.0;
    return encoder == ENCODER_AMPLITUDE ? x : x * 7.0;
}

void launch_fill(struct launch *launch, uint64_t seed)
{
    struct random random;
    random_seed(&random, seed);
    for (size_t i = 0; i < launch->job.samples * launch->job.inputs; i++)
        launch_set_input(launch, i, random_input(&random, launch->job.encoder, launch->job.qubits));
}

size_t launch_inputs(enum encoder encoder, unsigned int qubits, bool full)
{
    size_t inputs = encoder_inputs(encoder, qubits);
    return inputs ? inputs : full ? (size_t)1 << qubits : (((size_t)1 << qubits) * 2 + 2) / 3;
}
