#include "server/device/cpu/launch.h"

#include <string.h>

#include "server/device/cpu/cpu_stream.h"

struct launch_arguments {
    cpu_kernel *kernel;
    alignas(max_align_t) unsigned char arguments[CPU_KERNEL_ARGUMENTS_MAX];
};

static enum status run_kernel(struct cpu_stream *stream, void *arguments, struct error *err)
{
    struct launch_arguments *launch = arguments;
    return launch->kernel(launch->arguments, stream->pool, err);
}

enum status cpu_stream_launch(struct device_stream *stream, const char *name, cpu_kernel *kernel,
                              const void *arguments, size_t size, struct error *err)
{
    struct cpu_stream *own = (struct cpu_stream *)stream;
    enum status status = cpu_stream_pool(own, err);
    if (status != STATUS_OK)
        return status;
    struct command command = {.name = name, .run = run_kernel};
    struct launch_arguments launch = {.kernel = kernel};
    memcpy(launch.arguments, arguments, size);
    return cpu_stream_add(own, &command, &launch, sizeof launch, err);
}

enum status cpu_launch(struct device_stream *stream, const char *name, cpu_kernel *kernel,
                       const void *arguments, size_t size, struct error *err)
{
    if (size > CPU_KERNEL_ARGUMENTS_MAX)
        return error_set(err, STATUS_INVALID, "%s: %zu bytes of arguments: more than %d", name,
                         size, CPU_KERNEL_ARGUMENTS_MAX);
    const struct device_ops *ops = stream->device->ops;
    if (!ops->launch)
        return error_set(err, STATUS_UNSUPPORTED, "%s: device %s runs no functions of the host",
                         name, ops->name);
    return ops->launch(stream, name, kernel, arguments, size, err);
}
