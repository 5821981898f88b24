// What a back end provides.  For device.c and the back ends only.
#ifndef INFERSTAT_SERVER_DEVICE_DEVICE_OPS_H
#define INFERSTAT_SERVER_DEVICE_DEVICE_OPS_H

#include "server/device/device.h"

// The part of a device every back end shares; a back end's own device begins
// with it.
struct device {
    const struct device_ops *ops;
    int64_t memory_used;
    char reason[DEVICE_REASON_SIZE];
};

// Arguments have been checked by the wrappers of device.c, which say what they
// mean: shapes fit, types are right, nothing is empty.
struct device_ops {
    const char *name;
    enum status (*open)(struct device **out, const struct device_options *options,
                        unsigned int ordinal, struct error *err);
    void (*close)(struct device *device);
    void (*describe)(const struct device *device, struct device_description *out);
    enum status (*synchronize)(struct device *device, struct error *err);

    // Zeroed memory, aligned for any element.
    enum status (*allocate)(struct device *device, void **out, size_t size, struct error *err);
    void (*release)(struct device *device, void *memory, size_t size);
    enum status (*upload)(struct device *device, void *to, const void *from, size_t size,
                          struct error *err);
    enum status (*download)(struct device *device, void *to, const void *from, size_t size,
                            struct error *err);

    enum status (*embed)(struct device *device, struct tensor *out, const struct tensor *table,
                         const uint32_t *ids, struct error *err);
    enum status (*matmul)(struct device *device, struct tensor *out, const struct tensor *in,
                          const struct tensor *weight, struct error *err);
    enum status (*rms_norm)(struct device *device, struct tensor *out, const struct tensor *in,
                            const struct tensor *weight, float epsilon, struct error *err);
    enum status (*rope)(struct device *device, struct tensor *x, const struct tensor *table,
                        size_t position, size_t heads, struct error *err);
    enum status (*attention)(struct device *device, struct tensor *out, const struct tensor *query,
                             const struct tensor *keys, const struct tensor *values,
                             size_t position, size_t heads, size_t kv_heads, struct error *err);
    enum status (*swiglu)(struct device *device, struct tensor *gate, const struct tensor *up,
                          struct error *err);
    enum status (*add)(struct device *device, struct tensor *x, const struct tensor *y,
                       struct error *err);
};

extern const struct device_ops device_cpu_ops;

#endif
