// The CPU back end's part of the quantum state encoders (encode.h): runs encode jobs on a thread
// pool.
#ifndef INFERSTAT_SERVER_DEVICE_CPU_CPU_ENCODE_H
#define INFERSTAT_SERVER_DEVICE_CPU_CPU_ENCODE_H

#include "server/device/cpu/encode_kernels.h"
#include "server/device/cpu/thread_pool.h"
#include "server/device/encode.h"

// Executes a checked job on the threads of `pool` and returns when it is done.  `kernels` are those
// of the job's element type.  The job's scratch memory must be 256-byte aligned and have at least
// cpu_encode_scratch_size(job, thread_pool_threads(pool)) bytes.
void cpu_encode_run(const struct encode_job *job, const struct encode_kernels *kernels,
                    struct thread_pool *pool);

// Bytes of scratch memory that a job needs on that many threads; 0: none.
size_t cpu_encode_scratch_size(const struct encode_job *job, unsigned int threads);

// Entries of struct device_ops, which queue the job on a stream.
enum status cpu_encode(struct device_stream *stream, const struct encode_job *job,
                       struct error *err);
size_t cpu_encode_scratch(const struct device *device, const struct encode_job *job);

#endif
