// The CPU back end's part of the quantum state encoders, which compute the state vector of each
// sample (2^qubits complex amplitudes; encode.h).  Runs encode jobs on a thread pool.
#ifndef INFERSTAT_SERVER_DEVICE_CPU_CPU_ENCODE_H
#define INFERSTAT_SERVER_DEVICE_CPU_CPU_ENCODE_H

#include "server/device/cpu/encode_kernels.h"
#include "server/device/cpu/thread_pool.h"
#include "server/device/encode.h"

// Executes a job, which device_encode has checked, on the threads of `pool` and returns when it is
// done.  `kernels` are those of the job's element type.  The caller supplies the job's scratch
// memory: 256-byte aligned, at least cpu_encode_scratch_size(job, thread_pool_threads(pool)) bytes.
void cpu_encode_run(const struct encode_job *job, const struct encode_kernels *kernels,
                    struct thread_pool *pool);

// Bytes of scratch memory that a job needs on that many threads; 0: none.
size_t cpu_encode_scratch_size(const struct encode_job *job, unsigned int threads);

// Entries of struct device_ops.  cpu_encode queues a checked job on `stream`; cpu_encode_scratch is
// cpu_encode_scratch_size for the device's number of threads.
enum status cpu_encode(struct device_stream *stream, const struct encode_job *job,
                       struct error *err);
size_t cpu_encode_scratch(const struct device *device, const struct encode_job *job);

#endif
