// Which kernels an encoder has.
#include "server/device/cuda/encode_parts.cuh"
#include "server/device/cuda/operations.cuh"

static size_t no_scratch(const struct encode_job *job)
{
    (void)job;
    return 0;
}

static const struct encoder_line {
    enum status (*queue)(struct cuda *cuda, cudaStream_t stream, const struct encode_job *job,
                         struct error *err);
    size_t (*scratch)(const struct encode_job *job);
} encoders[ENCODER_COUNT] = {
    /* amplitude */ {cuda_encode_amplitude, cuda_encode_amplitude_scratch},
    /* angle     */ {cuda_encode_product, cuda_encode_product_scratch},
    /* basis     */ {cuda_encode_basis, no_scratch},
    /* phase     */ {cuda_encode_product, cuda_encode_product_scratch},
    /* iqp-z     */ {cuda_encode_product, cuda_encode_product_scratch},
    /* iqp       */ {cuda_encode_iqp, no_scratch},
};

enum status cuda_encode(struct device_stream *stream, const struct encode_job *job,
                        struct error *err)
{
    struct cuda *cuda = cuda_of(stream->device);
    const enum status status = cuda_use(cuda, err);
    if (status != STATUS_OK)
        return status;
    return encoders[job->encoder].queue(cuda, cuda_stream_of(stream)->handle, job, err);
}

size_t cuda_encode_scratch(const struct device *device, const struct encode_job *job)
{
    (void)device;
    return encoders[job->encoder].scratch(job);
}
