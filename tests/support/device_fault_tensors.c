#include "tests/support/device_fault_state.h"

enum status fault_allocate(struct device *device, void **out, size_t size, struct error *err)
{
    struct fault *fault = fault_of(device);
    enum status status = fault_meet(fault, DEVICE_FAULT_MEMORY, err);
    return status == STATUS_OK ? fault->inner->ops->allocate(fault->inner, out, size, err) : status;
}

void fault_release(struct device *device, void *memory, size_t size)
{
    struct device *inner = fault_of(device)->inner;
    inner->ops->release(inner, memory, size);
}

enum status fault_upload(struct device *device, void *to, const void *from, size_t size,
                         struct error *err)
{
    struct device *inner = fault_of(device)->inner;
    return inner->ops->upload(inner, to, from, size, err);
}

enum status fault_download(struct device *device, void *to, const void *from, size_t size,
                           struct error *err)
{
    struct device *inner = fault_of(device)->inner;
    return inner->ops->download(inner, to, from, size, err);
}

enum status fault_embed(struct device *device, struct tensor *out, const struct tensor *table,
                        const uint32_t *ids, struct error *err)
{
    struct device *inner = fault_of(device)->inner;
    return inner->ops->embed(inner, out, table, ids, err);
}

enum status fault_matmul(struct device *device, struct tensor *out, const struct tensor *in,
                         const struct tensor *weight, struct error *err)
{
    struct device *inner = fault_of(device)->inner;
    return inner->ops->matmul(inner, out, in, weight, err);
}

enum status fault_rms_norm(struct device *device, struct tensor *out, const struct tensor *in,
                           const struct tensor *weight, float epsilon, struct error *err)
{
    struct device *inner = fault_of(device)->inner;
    return inner->ops->rms_norm(inner, out, in, weight, epsilon, err);
}

enum status fault_rope(struct device *device, struct tensor *x, const struct tensor *table,
                       size_t position, size_t heads, struct error *err)
{
    struct device *inner = fault_of(device)->inner;
    return inner->ops->rope(inner, x, table, position, heads, err);
}

enum status fault_attention(struct device *device, struct tensor *out, const struct tensor *query,
                            const struct tensor *keys, const struct tensor *values, size_t position,
                            size_t heads, size_t kv_heads, struct error *err)
{
    struct device *inner = fault_of(device)->inner;
    return inner->ops->attention(inner, out, query, keys, values, position, heads, kv_heads, err);
}

enum status fault_swiglu(struct device *device, struct tensor *gate, const struct tensor *up,
                         struct error *err)
{
    struct device *inner = fault_of(device)->inner;
    return inner->ops->swiglu(inner, gate, up, err);
}

enum status fault_add(struct device *device, struct tensor *x, const struct tensor *y,
                      struct error *err)
{
    struct device *inner = fault_of(device)->inner;
    return inner->ops->add(inner, x, y, err);
}

enum status fault_synchronize(struct device *device, struct error *err)
{
    return fault_is_lost(fault_of(device)) ? fault_lost(err)
                                           : device_synchronize(fault_of(device)->inner, err);
}
