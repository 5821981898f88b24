// What the files of the fault device share.
#ifndef INFERSTAT_TESTS_SUPPORT_DEVICE_FAULT_STATE_H
#define INFERSTAT_TESTS_SUPPORT_DEVICE_FAULT_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "server/device/device_ops.h"
#include "tests/support/device_fault.h"

// Memory that was freed, poisoned and kept.
struct remains {
    struct remains *next;
    void *memory;
    size_t size;
};

struct fault {
    struct device base; // first: the wrappers see only this
    struct device *inner;
    struct device_fault_options options;
    // Counts and flags, relaxed: they order nothing, as what they stand for would not.
    _Atomic uint64_t calls[DEVICE_FAULT_COUNT];
    _Atomic uint64_t queued; // copies, fills and kernels together
    atomic_bool lost;
    // Allocation and its end happen on a stream of their own, one caller at a time.
    pthread_mutex_t lock;
    struct device_stream *memory;
    struct remains *remains;
};

static inline struct fault *fault_of(struct device *device)
{
    return (struct fault *)device;
}

static inline bool fault_is_lost(struct fault *fault)
{
    return atomic_load_explicit(&fault->lost, memory_order_relaxed);
}

// Says so, and answers STATUS_IO.
enum status fault_lost(struct error *err);

// Counts a call that answers at once, and fails it where it is to fail.
MUST_CHECK enum status fault_meet(struct fault *fault, enum device_fault_kind kind,
                                  struct error *err);

// Tensors and their operations: the inner device's.
MUST_CHECK enum status fault_allocate(struct device *device, void **out, size_t size,
                                      struct error *err);
void fault_release(struct device *device, void *memory, size_t size);
MUST_CHECK enum status fault_upload(struct device *device, void *to, const void *from, size_t size,
                                    struct error *err);
MUST_CHECK enum status fault_download(struct device *device, void *to, const void *from,
                                      size_t size, struct error *err);
MUST_CHECK enum status fault_embed(struct device *device, struct tensor *out,
                                   const struct tensor *table, const uint32_t *ids,
                                   struct error *err);
MUST_CHECK enum status fault_matmul(struct device *device, struct tensor *out,
                                    const struct tensor *in, const struct tensor *weight,
                                    struct error *err);
MUST_CHECK enum status fault_rms_norm(struct device *device, struct tensor *out,
                                      const struct tensor *in, const struct tensor *weight,
                                      float epsilon, struct error *err);
MUST_CHECK enum status fault_rope(struct device *device, struct tensor *x,
                                  const struct tensor *table, size_t position, size_t heads,
                                  struct error *err);
MUST_CHECK enum status fault_attention(struct device *device, struct tensor *out,
                                       const struct tensor *query, const struct tensor *keys,
                                       const struct tensor *values, size_t position, size_t heads,
                                       size_t kv_heads, struct error *err);
MUST_CHECK enum status fault_swiglu(struct device *device, struct tensor *gate,
                                    const struct tensor *up, struct error *err);
MUST_CHECK enum status fault_add(struct device *device, struct tensor *x, const struct tensor *y,
                                 struct error *err);
MUST_CHECK enum status fault_synchronize(struct device *device, struct error *err);

#endif
