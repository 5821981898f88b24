// Which kernels an encoder has, and which of them a job takes.
#include "server/device/cuda/cluster.cuh"
#include "server/device/cuda/encode_parts.cuh"

extern "C" {
#include "server/device/cuda/encode_ways.h"
}

typedef enum status queue_encoder(struct cuda *cuda, cudaStream_t stream,
                                  const struct encode_job *job, struct error *err);

static const struct encoder_line {
    queue_encoder *resident, *passes;                // the first is tried first, where there is one
    size_t (*scratch)(const struct encode_job *job); // NULL: none is needed
} encoders[ENCODER_COUNT] = {
    /* amplitude */ {cuda_encode_amplitude_resident, cuda_encode_amplitude,
                     cuda_encode_amplitude_scratch},
    /* angle     */ {nullptr, cuda_encode_product, cuda_encode_product_scratch},
    /* basis     */ {nullptr, cuda_encode_basis, nullptr},
    /* phase     */ {nullptr, cuda_encode_product, cuda_encode_product_scratch},
    /* iqp-z     */ {nullptr, cuda_encode_product, cuda_encode_product_scratch},
    /* iqp       */ {cuda_encode_iqp_resident, cuda_encode_iqp, nullptr},
};

enum status cuda_encode_by(struct device_stream *stream, const struct encode_job *job,
                           enum cuda_encode_way way, struct error *err)
{
    struct cuda *cuda = cuda_of(stream);
    const struct encoder_line *line = &encoders[job->encoder];
    const cudaStream_t handle = cuda_stream_of(stream)->handle;
    const enum status status = cuda_use(cuda, err);
    if (status != STATUS_OK)
        return status;
    if (way == CUDA_ENCODE_RESIDENT && !line->resident)
        return error_set(err, STATUS_UNSUPPORTED, "device cuda:%d: %s is not encoded in that way",
                         cuda->ordinal, encoder_name(job->encoder));
    if (way != CUDA_ENCODE_PASSES && line->resident) {
        struct error why = {};
        const enum status resident = line->resident(cuda, handle, job, &why);
        if (resident != STATUS_UNSUPPORTED || way == CUDA_ENCODE_RESIDENT) {
            if (err && resident != STATUS_OK)
                *err = why;
            return resident;
        }
    }
    return line->passes(cuda, handle, job, err);
}

enum status cuda_encode(struct device_stream *stream, const struct encode_job *job,
                        struct error *err)
{
    return cuda_encode_by(stream, job, CUDA_ENCODE_CHOSEN, err);
}

bool cuda_encode_has_clusters(const struct device *device)
{
    const struct cuda *cuda = reinterpret_cast<const struct cuda *>(device);
    return cuda->clusters && cuda->shared_max > CLUSTER_SHARE_MAX;
}

size_t cuda_encode_scratch(const struct device *device, const struct encode_job *job)
{
    (void)device;
    const struct encoder_line *line = &encoders[job->encoder];
    return line->scratch ? line->scratch(job) : 0;
}
