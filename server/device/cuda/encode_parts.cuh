// Shared code of the CUDA encoders: complex numbers, and the split of a batch into launches.
#ifndef INFERSTAT_SERVER_DEVICE_CUDA_ENCODE_PARTS_CUH
#define INFERSTAT_SERVER_DEVICE_CUDA_ENCODE_PARTS_CUH

#include "server/device/cuda/parts.cuh"

extern "C" {
#include "server/device/encode.h"
}

// A complex number.
template <typename T> struct alignas(2 * sizeof(T)) cuda_complex {
    T re, im;
};

static __device__ inline cuda_complex<double> complex_product(cuda_complex<double> a,
                                                              cuda_complex<double> b)
{
    return {fma(a.re, b.re, -(a.im * b.im)), fma(a.re, b.im, a.im * b.re)};
}

// Maximum number of samples per launch, which is the grid's second dimension.
constexpr size_t ENCODE_LAUNCH_SAMPLES = CUDA_GRID_MAX;

// A span: the consecutive samples of a job that one launch encodes.
template <typename T> struct encode_span {
    using number = T;
    const T *in;
    cuda_complex<T> *out;
    uint8_t *faults;
    unsigned int samples;
};

// Calls `queue(span)` for each span of the job's samples.
template <typename T, typename Queue>
static inline enum status for_spans(const struct encode_job *job, Queue queue)
{
    enum status status = STATUS_OK;
    for (size_t first = 0; first < job->samples && status == STATUS_OK;
         first += ENCODE_LAUNCH_SAMPLES) {
        struct encode_span<T> span;
        span.in = static_cast<const T *>(job->in) + first * job->inputs;
        span.out = static_cast<cuda_complex<T> *>(job->out) + (first << job->qubits);
        span.faults = job->faults + first;
        span.samples = (unsigned int)cuda_least(job->samples - first, ENCODE_LAUNCH_SAMPLES);
        status = queue(span);
    }
    return status;
}

// Calls for_spans with the real type of the job.
template <typename Queue>
static inline enum status cuda_encode_spans(const struct encode_job *job, Queue queue)
{
    return job->type == ENCODE_F64 ? for_spans<double>(job, queue) : for_spans<float>(job, queue);
}

// The encoders, one per file.  Each queues a checked job on `stream`.
enum status cuda_encode_amplitude(struct cuda *cuda, cudaStream_t stream,
                                  const struct encode_job *job, struct error *err);
enum status cuda_encode_product(struct cuda *cuda, cudaStream_t stream,
                                const struct encode_job *job, struct error *err);
enum status cuda_encode_basis(struct cuda *cuda, cudaStream_t stream, const struct encode_job *job,
                              struct error *err);
enum status cuda_encode_iqp(struct cuda *cuda, cudaStream_t stream, const struct encode_job *job,
                            struct error *err);

// Variants that keep the whole state in shared memory.  They fail with STATUS_UNSUPPORTED if the
// state does not fit.
enum status cuda_encode_amplitude_resident(struct cuda *cuda, cudaStream_t stream,
                                           const struct encode_job *job, struct error *err);
enum status cuda_encode_iqp_resident(struct cuda *cuda, cudaStream_t stream,
                                     const struct encode_job *job, struct error *err);

// Bytes of scratch memory that an encoder needs.
size_t cuda_encode_amplitude_scratch(const struct encode_job *job);
size_t cuda_encode_product_scratch(const struct encode_job *job);

#endif
