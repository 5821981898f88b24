// Quantum state encoders (encode.h) of the CPU back end.
#ifndef INFERSTAT_SERVER_DEVICE_CPU_CPU_ENCODE_H
#define INFERSTAT_SERVER_DEVICE_CPU_CPU_ENCODE_H

#include "server/device/cpu/encode_kernels.h"
#include "server/device/cpu/thread_pool.h"
#include "server/device/encode.h"

// Executes a checked job on the threads of `pool` with `kernels` of the job's type.  The job's
// scratch memory is 256-byte aligned and has cpu_encode_scratch_size bytes for at least the
// threads of `pool`.
void cpu_encode_run(const struct encode_job *job, const struct encode_kernels *kernels,
                    struct thread_pool *pool);

// Bytes of scratch memory; 0: none needed.
size_t cpu_encode_scratch_size(const struct encode_job *job, unsigned int threads);

// Entries of struct device_ops, which queue the job on a stream.
enum status cpu_encode(struct device_stream *stream, const struct encode_job *job,
                       struct error *err);
size_t cpu_encode_scratch(const struct device *device, const struct encode_job *job);

#endif
