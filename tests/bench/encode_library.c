// The CPU encoders as a shared library: scripts/bench_encode_peers.py calls them in turn with other
// libraries, on the same arrays.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/device/cpu/encode_parts.h"

// Kept from call to call, since the pipeline's are as well.  One thread calls.
static struct thread_pool *pool;
static void *scratch;
static uint8_t *faults;
static size_t scratch_size, fault_count;

static bool prepare(const struct encode_job *job)
{
    enum { ALIGNMENT = 256 };
    struct error err;
    size_t wanted = cpu_encode_scratch_size(job, 1) / ALIGNMENT * ALIGNMENT + ALIGNMENT;
    if (!pool && thread_pool_new(&pool, 1, &err) != STATUS_OK)
        return false;
    if (scratch_size < wanted) {
        free(scratch);
        scratch = aligned_alloc(ALIGNMENT, wanted);
        scratch_size = scratch ? wanted : 0;
    }
    if (fault_count < job->samples) {
        free(faults);
        faults = malloc(job->samples);
        fault_count = faults ? job->samples : 0;
    }
    return scratch && faults;
}

// Encodes `samples` x `inputs` numbers on one thread.  Returns 0, or -1 if the encoder is unknown,
// memory is out or a sample was rejected.
__attribute__((visibility("default"))) int bench_encode(const char *encoder, unsigned int qubits,
                                                        size_t samples, size_t inputs,
                                                        const void *in, void *out);

int bench_encode(const char *encoder, unsigned int qubits, size_t samples, size_t inputs,
                 const void *in, void *out)
{
    struct encode_job job = {.type = ENCODE_F64,
                             .qubits = qubits,
                             .samples = samples,
                             .inputs = inputs,
                             .in = in,
                             .out = out};
    while (job.encoder < ENCODER_COUNT && strcmp(encoder, encoder_name(job.encoder)) != 0)
        job.encoder++;
    if (job.encoder == ENCODER_COUNT || !prepare(&job))
        return -1;
    job.scratch = scratch;
    job.faults = faults;
    cpu_encode_run(&job, encode_kernels_best(ENCODE_F64), pool);
    for (size_t i = 0; i < samples; i++)
        if (faults[i] != ENCODE_FAULT_NONE)
            return -1;
    return 0;
}
