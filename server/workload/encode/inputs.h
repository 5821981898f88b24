// Data loader of the quantum state encoders (server/device/encode.h): reads samples (input vectors)
// from a .npy file or generates random ones.  inputs_fill writes them directly into the
// pinned staging buffers of the pipeline (server/pipeline/pipeline.h), which copies them to the
// device.
//
// Order of calls: inputs_open; inputs_prepare; inputs_fill or inputs_borrow; inputs_close.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/device/encode.h"

enum inputs_from {
    INPUTS_FROM_GENERATOR, // "generator": generated when needed
    INPUTS_FROM_PAGEABLE,  // "pageable": generated in advance, pageable memory
    INPUTS_FROM_PINNED,    // "pinned": generated in advance, pinned memory: lent, not copied
    INPUTS_FROM_COUNT
};

// Maximum bytes of inputs generated in advance, rounded down to whole batches, but at least one.
// Later batches repeat these inputs.
enum { INPUTS_STRETCH = 256 * 1024 * 1024 };

struct inputs_options {
    enum encoder encoder;
    unsigned int qubits;
    int type;         // enum encode_type; negative: the file's, or f64
    size_t batch;     // samples of a batch
    uint64_t batches; // number of batches (of a file at most); 0: the whole file, or 1 if generated
    // NULL: generated.  A one-dimensional array is one sample; basis: each number is a sample.
    const char *path;
    enum inputs_from from; // used only if generated, like the seed
    uint64_t seed;
};

// Returns where samples come from, as pipelines are recorded: "file", or the name of `from`.
const char *inputs_source_name(const struct inputs_options *options);

struct inputs;

// Opens the file or sets up the generator.  Copies `*options`, but borrows options->path until
// inputs_close.  Fails with STATUS_CORRUPT if the shape of the array does not fit the encoder,
// STATUS_INVALID if the file's type is not the requested one or the total size overflows, or as
// npy_open does.
MUST_CHECK enum status inputs_open(struct inputs **out, const struct inputs_options *options,
                                   struct error *err);

// Generates the inputs in advance if there is no file and `from` is PAGEABLE or PINNED (by
// `device`).  Sets `*took_ns` to the time of generating.  Fails as device_pinned_new does.
MUST_CHECK enum status inputs_prepare(struct inputs *inputs, struct device *device,
                                      uint64_t *took_ns, struct error *err);

// Frees the inputs.  Call it before the device is closed.  Accepts NULL.
void inputs_close(struct inputs *inputs);

struct inputs_shape {
    enum encode_type type;
    uint64_t samples;   // in all batches
    size_t inputs;      // real numbers of a sample
    size_t sample_size; // bytes of a sample
    size_t stretch;     // bytes generated in advance; 0: none
    const char *name;   // for messages: path of the file, or "generated"
};
const struct inputs_shape *inputs_get_shape(const struct inputs *inputs);

// Copies `size` bytes from byte `offset` of the concatenated samples to `to`.  The range must lie
// within one batch and consist of whole numbers.  Any thread, concurrently.
MUST_CHECK enum status inputs_fill(const struct inputs *inputs, uint64_t offset, void *to,
                                   size_t size, struct error *err);

// Returns the address of byte `offset` of the concatenated samples in pinned memory.  Only if
// `from` is PINNED.
const void *inputs_borrow(const struct inputs *inputs, uint64_t offset);

// ---- Random numbers -------------------------------------------------------

// Parameters of a sequence of random inputs.  Each number depends only on them and on its position,
// so that any thread can generate any range.
struct generator {
    enum encoder encoder;
    enum encode_type type;
    unsigned int qubits;
    uint64_t seed;
};

// Writes `count` numbers of `type` to `to`, from position `first` of the sequence on.  They are
// uniformly distributed: from -1 to 1 for the amplitude encoder, integers from 0 to 2^qubits - 1
// for the basis encoder, and from 0 to 2 pi for the others.
void generator_fill(const struct generator *generator, uint64_t first, size_t count, void *to);
