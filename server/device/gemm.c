#include "server/device/gemm.h"

#include <limits.h>

#include "server/device/device_ops.h"

static const struct {
    const char *name;
    size_t size;
} types[GEMM_TYPE_COUNT] = {[GEMM_F32] = {"f32", 4},
                            [GEMM_F16] = {"f16", 2},
                            [GEMM_BF16] = {"bf16", 2},
                            [GEMM_INT8] = {"int8", 1}};

const char *gemm_type_name(unsigned int type)
{
    return type < GEMM_TYPE_COUNT ? types[type].name : NULL;
}

size_t gemm_type_bytes(enum gemm_type type)
{
    return types[type].size;
}

enum status gemm_library_open(struct gemm_library **out, struct device *device, struct error *err)
{
    if (!device->ops->gemm_open)
        return error_set(err, STATUS_UNSUPPORTED, "device %s: no library of matrix products",
                         device->name);
    return device->ops->gemm_open(device, out, err);
}

void gemm_library_close(struct gemm_library *library)
{
    if (library)
        library->close(library);
}

enum status gemm_multiply(struct gemm_library *library, enum gemm_type type, size_t n, void *c,
                          const void *a, const void *b, struct error *err)
{
    if (n == 0 || n > INT_MAX)
        return error_set(err, STATUS_INVALID, "matrices of %zu rows: none, or too many", n);
    if (!(library->types >> type & 1U))
        return error_set(err, STATUS_UNSUPPORTED, "%s has no product of %s", library->name,
                         types[type].name);
    return library->multiply(library, type, n, c, a, b, err);
}
