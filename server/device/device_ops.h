// Back-end interface (vtable): the functions that the CPU and CUDA back ends implement.  Wrappers
// check arguments and call them: device.c, stream.c, encode.c and properties.c in this folder, and
// cpu_launch in cpu/cpu_stream.c.
#pragma once

#include "server/device/device.h"

// Base structs of device, stream and event.  A back end's own structs have them as first member;
// the back end allocates these structs zeroed.  device_open sets the members of `struct device`
// after ops->open, except memory_used (device_count_memory).  The back end sets the members of
// streams and events.
struct device {
    const struct device_ops *ops;
    int64_t memory_used; // bytes; accessed by any thread, with atomic builtins only
    bool spin;           // as in struct device_options
    char name[DEVICE_NAME_SIZE];
    unsigned int ordinal;            // number among the back end's devices
    char reason[DEVICE_REASON_SIZE]; // why device_open chose this device
    bool fell_back;                  // another back end was tried first and failed
    struct device_profile *profile;  // measures the operations (profile.h); NULL: it does not
};

struct device_stream {
    struct device *device;
};

struct device_event {
    struct device *device;
    enum device_event_kind kind;
};

// Base struct of a network; the back end's own has it as first member and sets its members.
struct device_network {
    struct device *device;
    size_t batch; // most items of a run
};

// Direction of a copy: host to device, device to host, within the device.
#define DEVICE_COPY_TABLE(X)                                                                       \
    X(IN, "copy_in")                                                                               \
    X(OUT, "copy_out")                                                                             \
    X(WITHIN, "copy_within")

enum device_copy {
#define DEVICE_COPY_ENUM(name, text) DEVICE_COPY_##name,
    DEVICE_COPY_TABLE(DEVICE_COPY_ENUM)
#undef DEVICE_COPY_ENUM
        DEVICE_COPY_COUNT
};

// Adds `size` bytes to the allocated memory; negative for freed bytes.
static inline void device_count_memory(struct device *device, int64_t size)
{
    (void)__atomic_fetch_add(&device->memory_used, size, __ATOMIC_RELAXED);
}

struct encode_job;
struct network_memory;
struct network_plan;
struct device_properties;
struct gemm_library;
struct thread_pool;

enum { CPU_KERNEL_ARGUMENTS_MAX = 192 }; // bytes; cpu_launch enforces it

// A kernel of the CPU back end: a host function that the stream's thread calls.  `arguments` is the
// copy that cpu_launch made, aligned for any type.  `pool` is the stream's thread pool.  A status
// other than STATUS_OK, with `err` filled, becomes the stream's sticky error.
typedef enum status cpu_kernel(const void *arguments, struct thread_pool *pool, struct error *err);

// The wrappers have checked the arguments: shapes match, types are correct, nothing is empty, and
// stream and event belong to one device.  device.h, stream.h and encode.h document the operations.
struct device_ops {
    const char *name;
    enum status (*open)(struct device **out, const struct device_options *options,
                        unsigned int ordinal, struct error *err);
    void (*close)(struct device *device);
    void (*describe)(const struct device *device, struct device_description *out);
    // Fills the properties that `describe` does not, except the rates.  NULL: there are none.
    void (*properties)(const struct device *device, struct device_properties *out);
    enum status (*synchronize)(struct device *device, struct error *err);

    // Allocates zeroed memory, aligned for any element.
    enum status (*allocate)(struct device *device, void **out, size_t size, struct error *err);
    void (*release)(struct device *device, void *memory, size_t size);
    enum status (*upload)(struct device *device, void *to, const void *from, size_t size,
                          struct error *err);
    enum status (*download)(struct device *device, void *to, const void *from, size_t size,
                            struct error *err);

    // Bit t: `embed` and `matmul` take weights of the tensor type t.
    unsigned int weight_types;
    enum status (*embed)(struct device *device, struct tensor *out, const struct tensor *table,
                         const uint32_t *ids, struct error *err);
    enum status (*matmul)(struct device *device, struct tensor *out, const struct tensor *in,
                          const struct tensor *weight, struct error *err);
    enum status (*rms_norm)(struct device *device, struct tensor *out, const struct tensor *in,
                            const struct tensor *weight, float epsilon, struct error *err);
    enum status (*rope)(struct device *device, struct tensor *x, const struct tensor *table,
                        size_t position, size_t heads, enum rope_pairs pairs, struct error *err);
    enum status (*attention)(struct device *device, struct tensor *out, const struct tensor *query,
                             const struct tensor *keys, const struct tensor *values,
                             size_t position, size_t heads, size_t kv_heads, size_t window,
                             struct error *err);
    enum status (*swiglu)(struct device *device, struct tensor *gate, const struct tensor *up,
                          struct error *err);
    enum status (*add)(struct device *device, struct tensor *x, const struct tensor *y,
                       struct error *err);
    enum status (*scatter_add)(struct device *device, struct tensor *x, const struct tensor *y,
                               const uint32_t *rows, const float *weights, struct error *err);

    // Records a timed event after the operations so far.  NULL: an operation is done on return.
    enum status (*mark)(struct device_event *event, struct error *err);

    // stream.h
    enum status (*memory_new)(struct device_stream *stream, void **out, size_t size,
                              struct error *err);
    void (*memory_free)(struct device_stream *stream, void *memory, size_t size);
    enum status (*pinned_new)(struct device *device, void **out, size_t size, struct error *err);
    void (*pinned_free)(struct device *device, void *memory, size_t size);

    enum status (*stream_new)(struct device *device, struct device_stream **out, const char *name,
                              struct error *err);
    void (*stream_free)(struct device_stream *stream);
    enum status (*stream_synchronize)(struct device_stream *stream, struct error *err);
    enum status (*stream_wait)(struct device_stream *stream, struct device_event *event,
                               struct error *err);

    enum status (*event_new)(struct device *device, struct device_event **out,
                             enum device_event_kind kind, struct error *err);
    void (*event_free)(struct device_event *event);
    enum status (*event_record)(struct device_event *event, struct device_stream *stream,
                                struct error *err);
    enum status (*event_wait)(struct device_event *event, struct error *err);
    enum status (*event_query)(struct device_event *event, bool *done, struct error *err);
    enum status (*event_elapsed)(struct device_event *from, struct device_event *to, double *ns,
                                 struct error *err);

    enum status (*copy)(struct device_stream *stream, enum device_copy copy, void *to,
                        const void *from, size_t size, struct error *err);
    enum status (*fill)(struct device_stream *stream, void *to, int byte, size_t size,
                        struct error *err);

    // Queues a host function as a kernel (cpu_launch).  NULL: not supported.
    enum status (*launch)(struct device_stream *stream, const char *name, cpu_kernel *kernel,
                          const void *arguments, size_t size, struct error *err);

    // Opens the library of matrix products (gemm.h); NULL: there is none.
    enum status (*gemm_open)(struct device *device, struct gemm_library **out, struct error *err);

    // Quantum state encoders (encode.h); NULL if the back end has none.
    enum status (*encode)(struct device_stream *stream, const struct encode_job *job,
                          struct error *err);
    size_t (*encode_scratch)(const struct device *device, const struct encode_job *job);

    // Small networks (network.h); NULL if the back end runs none.  network_new sets the members of
    // `struct device_network`.
    enum status (*network_new)(struct device *device, struct device_network **out,
                               const struct network_plan *plan, size_t batch, struct error *err);
    enum status (*network_run)(struct device_network *network, const float *const *inputs,
                               float *const *outputs, size_t items, struct error *err);
    void (*network_memory)(const struct device_network *network, struct network_memory *out);
    void (*network_free)(struct device_network *network);
};

extern const struct device_ops device_cpu_ops;
// In builds with INFERSTAT_CUDA.
extern const struct device_ops device_cuda_ops;
extern const int device_cuda_runtime; // version of the runtime: 1000 * major + 10 * minor
