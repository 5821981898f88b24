// Shared by the CUDA kernels for quantum data encoding (encode.h).  An encoder maps each sample, a
// vector of real numbers, to a state vector of 2^qubits complex amplitudes.  This header defines
// complex numbers, splits a job's samples among kernel launches, and declares the encoders.
#pragma once

#include "server/device/cuda/parts.cuh"

// A complex number.
template <typename T> struct alignas(2 * sizeof(T)) cuda_complex {
    T re, im;
};

static __device__ inline cuda_complex<double> complex_product(cuda_complex<double> a,
                                                              cuda_complex<double> b)
{
    return {fma(a.re, b.re, -(a.im * b.im)), fma(a.re, b.im, a.im * b.re)};
}

// Streaming stores (__stcs): states are not read again soon, so the cache is left to the inputs.
static __device__ inline void write_streaming(cuda_complex<double> *at, cuda_complex<double> z)
{
    __stcs(reinterpret_cast<double2 *>(at), make_double2(z.re, z.im));
}

static __device__ inline void write_streaming(cuda_complex<float> *at, cuda_complex<float> z)
{
    __stcs(reinterpret_cast<float2 *>(at), make_float2(z.re, z.im));
}

// Maximum number of samples of a kernel launch: the samples are the grid's second dimension.
constexpr size_t ENCODE_LAUNCH_SAMPLES = CUDA_GRID_MAX;

// A span: consecutive samples of a job, few enough for a kernel launch.  The buffers are parts of
// the job's, in device memory.
template <typename T> struct encode_span {
    using number = T;
    const T *in;          // the first sample's inputs
    cuda_complex<T> *out; // the first sample's state vector
    uint8_t *faults;      // one enum encode_fault per sample
    unsigned int samples; // at most ENCODE_LAUNCH_SAMPLES
};

// Calls `queue(span)`, which queues the kernels of a span, for each span of the job's samples in
// order.  Stops at the first failure and returns its status.
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

// Calls for_spans in the job's precision: double or float.
template <typename Queue>
static inline enum status cuda_encode_spans(const struct encode_job *job, Queue queue)
{
    return job->type == ENCODE_F64 ? for_spans<double>(job, queue) : for_spans<float>(job, queue);
}

// The encoders, one per file; cuda_encode_product is for angle, phase and iqp-z.  Each queues on
// `stream` a job that device_encode has checked.
enum status cuda_encode_amplitude(struct cuda *cuda, cudaStream_t stream,
                                  const struct encode_job *job, struct error *err);
enum status cuda_encode_product(struct cuda *cuda, cudaStream_t stream,
                                const struct encode_job *job, struct error *err);
enum status cuda_encode_basis(struct cuda *cuda, cudaStream_t stream, const struct encode_job *job,
                              struct error *err);
enum status cuda_encode_iqp(struct cuda *cuda, cudaStream_t stream, const struct encode_job *job,
                            struct error *err);

// Variants that keep a sample's whole state vector (amplitude: its real parts, as the others are 0)
// in shared memory.  They fail with STATUS_UNSUPPORTED if it does not fit.
enum status cuda_encode_amplitude_resident(struct cuda *cuda, cudaStream_t stream,
                                           const struct encode_job *job, struct error *err);
enum status cuda_encode_iqp_resident(struct cuda *cuda, cudaStream_t stream,
                                     const struct encode_job *job, struct error *err);

// Bytes of device memory that an encoder needs at job->scratch, which the job's caller supplies;
// the other encoders need none.  All spans of a job use it, one after the other.
size_t cuda_encode_amplitude_scratch(const struct encode_job *job);
size_t cuda_encode_product_scratch(const struct encode_job *job);
