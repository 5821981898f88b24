#include "server/device/cpu/cpu_encode.h"

#include <assert.h>

#include "server/device/cpu/launch.h"

static enum status encode_kernel(const void *arguments, struct thread_pool *pool, struct error *err)
{
    (void)err;
    const struct encode_job *job = arguments;
    cpu_encode_run(job, encode_kernels_best(job->type), pool);
    return STATUS_OK;
}

enum status cpu_encode(struct device_stream *stream, const struct encode_job *job,
                       struct error *err)
{
    static_assert(sizeof *job <= CPU_KERNEL_ARGUMENTS_MAX, "a job is passed as arguments");
    return cpu_launch(stream, encoder_name(job->encoder), encode_kernel, job, sizeof *job, err);
}

size_t cpu_encode_scratch(const struct device *device, const struct encode_job *job)
{
    struct device_description description;
    device_describe(device, &description);
    return cpu_encode_scratch_size(job, description.threads);
}
