// Where the numbers come from that are encoded: a file, or a generator, straight into
// the memory they are copied to the device from.
#ifndef INFERSTAT_SERVER_WORKLOAD_ENCODE_INPUTS_H
#define INFERSTAT_SERVER_WORKLOAD_ENCODE_INPUTS_H

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"
#include "server/device/encode.h"

#define INPUTS_FROM_TABLE(X)                                                                       \
    X(GENERATOR, "generator") /* each number made when it is needed */                             \
    X(PAGEABLE, "pageable")   /* made beforehand, in ordinary memory */                            \
    X(PINNED, "pinned")       /* made beforehand, in pinned memory: lent, not copied */

enum inputs_from {
#define INPUTS_FROM_ENUM(name, text) INPUTS_FROM_##name,
    INPUTS_FROM_TABLE(INPUTS_FROM_ENUM)
#undef INPUTS_FROM_ENUM
        INPUTS_FROM_COUNT
};

const char *inputs_from_name(enum inputs_from from);

// What is made beforehand is a stretch of whole batches of about this size, used again
// and again where more is asked for.
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

// Opens the file, or chooses what is generated.  Fails as npy_open does, with
// STATUS_CORRUPT on a shape that does not fit the encoder, STATUS_INVALID on a type that
// is not the one asked for.
MUST_CHECK enum status inputs_open(struct inputs **out, const struct inputs_options *options,
                                   struct error *err);

// Makes what is made beforehand.  `*took_ns` is the time that took.
MUST_CHECK enum status inputs_prepare(struct inputs *inputs, struct device *device,
                                      uint64_t *took_ns, struct error *err);

// Before the device is closed.  Accepts NULL.
void inputs_close(struct inputs *inputs);

struct inputs_shape {
    enum encode_type type;
    uint64_t samples;   // in all
    size_t inputs;      // of a sample
    size_t sample_size; // bytes of one
    size_t stretch;     // bytes made beforehand; 0: none
    const char *name;   // for messages: the file's, or "generated"
};
const struct inputs_shape *inputs_get_shape(const struct inputs *inputs);

// Writes `size` bytes from byte `offset` of all samples on; not across the end of a
// batch.  Any thread, several at once.
MUST_CHECK enum status inputs_fill(const struct inputs *inputs, uint64_t offset, void *to,
                                   size_t size, struct error *err);

// Where they lie in pinned memory, for INPUTS_FROM_PINNED.
const void *inputs_borrow(const struct inputs *inputs, uint64_t offset);

#endif
