// Input source of the encoders: reads samples from a .npy file, or generates them, directly into
// the staging buffers from which they are copied to the device.
#ifndef INFERSTAT_SERVER_WORKLOAD_ENCODE_INPUTS_H
#define INFERSTAT_SERVER_WORKLOAD_ENCODE_INPUTS_H

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"
#include "server/device/encode.h"

#define INPUTS_FROM_TABLE(X)                                                                       \
    X(GENERATOR, "generator") /* generated when needed */                                          \
    X(PAGEABLE, "pageable")   /* generated in advance, pageable memory */                          \
    X(PINNED, "pinned")       /* generated in advance, pinned memory: lent, not copied */

enum inputs_from {
#define INPUTS_FROM_ENUM(name, text) INPUTS_FROM_##name,
    INPUTS_FROM_TABLE(INPUTS_FROM_ENUM)
#undef INPUTS_FROM_ENUM
        INPUTS_FROM_COUNT
};

const char *inputs_from_name(enum inputs_from from);

// Inputs generated in advance are whole batches of about this size in total, repeated for later
// batches.
enum { INPUTS_STRETCH = 256 * 1024 * 1024 };

struct inputs_options {
    enum encoder encoder;
    unsigned int qubits;
    int type;         // enum encode_type; negative: the file's, or f64
    size_t batch;     // samples
    uint64_t batches; // 0: the whole file; generated: 1
    const char *path; // NULL: generated
    enum inputs_from from;
    uint64_t seed;
};

struct inputs;

// Opens the file or sets up the generator.  Fails as npy_open does, with STATUS_CORRUPT when the
// shape does not fit the encoder, STATUS_INVALID when the file's type is not the requested one or
// the total size overflows.
MUST_CHECK enum status inputs_open(struct inputs **out, const struct inputs_options *options,
                                   struct error *err);

// With PAGEABLE or PINNED, allocates and generates the inputs; `*took_ns` is the time of
// generating.  Fails with STATUS_NOMEM.
MUST_CHECK enum status inputs_prepare(struct inputs *inputs, struct device *device,
                                      uint64_t *took_ns, struct error *err);

// Call before the device is closed.  Accepts NULL.
void inputs_close(struct inputs *inputs);

struct inputs_shape {
    enum encode_type type;
    uint64_t samples;   // total
    size_t inputs;      // numbers of a sample
    size_t sample_size; // bytes of a sample
    size_t stretch;     // bytes generated in advance; 0: none
    const char *name;   // for messages: the file's, or "generated"
};
const struct inputs_shape *inputs_get_shape(const struct inputs *inputs);

// Writes `size` bytes of the samples, from byte `offset` of the first sample on; the range lies
// within one batch.  Any thread, concurrently.
MUST_CHECK enum status inputs_fill(const struct inputs *inputs, uint64_t offset, void *to,
                                   size_t size, struct error *err);

// With PINNED: the address of byte `offset` of the samples in pinned memory.
const void *inputs_borrow(const struct inputs *inputs, uint64_t offset);

#endif
