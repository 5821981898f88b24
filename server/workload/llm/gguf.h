// GGUF header parser for untrusted files of versions 2 and 3, little-endian: reads the metadata
// keys with their values, and the list of tensors.
//
// After gguf_read every text, array and tensor lies inside the file, names are unique, tensors
// are aligned and do not overlap.  Memory use is proportional to the header's size.  The getters
// check types and ranges of values and name the key in errors.
//
// Immutable once read.  Returned pointers are borrowed until gguf_free.
#ifndef INFERSTAT_SERVER_WORKLOAD_LLM_GGUF_H
#define INFERSTAT_SERVER_WORKLOAD_LLM_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"
#include "server/workload/byte_source.h"
#include "server/workload/llm/gguf_type.h"

struct gguf;

// Reads the header.  Fails with STATUS_CORRUPT on a malformed or truncated file, naming the
// offset, STATUS_UNSUPPORTED on another version or byte order, STATUS_NOMEM, or STATUS_IO.
MUST_CHECK enum status gguf_read(struct gguf **out, const struct byte_source *source,
                                 struct error *err);

// Accepts NULL.
void gguf_free(struct gguf *gguf);

// ---- Keys -----------------------------------------------------------------

bool gguf_has(const struct gguf *gguf, const char *key);

// A text of the file: not terminated, and may hold any byte, since UTF-8 is not checked.
struct gguf_text {
    const char *data;
    size_t size;
};

bool gguf_text_is(const struct gguf_text *text, const char *word);

// Getters of the value of `key`.  They fail with STATUS_NOT_FOUND when the key is missing,
// STATUS_CORRUPT when its type is wrong, a number is outside minimum..maximum, or a float is not
// finite.  Integers may have any width.
MUST_CHECK enum status gguf_get_uint(const struct gguf *gguf, const char *key, uint64_t minimum,
                                     uint64_t maximum, uint64_t *out, struct error *err);
MUST_CHECK enum status gguf_get_float(const struct gguf *gguf, const char *key, double minimum,
                                      double maximum, double *out, struct error *err);
MUST_CHECK enum status gguf_get_bool(const struct gguf *gguf, const char *key, bool *out,
                                     struct error *err);
MUST_CHECK enum status gguf_get_text(const struct gguf *gguf, const char *key,
                                     struct gguf_text *out, struct error *err);

// An array; its elements are read with the functions below.
struct gguf_array {
    enum gguf_value_type type;
    size_t count;
    const unsigned char *data, *end;
};

MUST_CHECK enum status gguf_get_array(const struct gguf *gguf, const char *key,
                                      enum gguf_value_type type, struct gguf_array *out,
                                      struct error *err);

// Element `index` < count of an array of GGUF_FLOAT32 or GGUF_INT32.
float gguf_array_float(const struct gguf_array *array, size_t index);
int32_t gguf_array_int(const struct gguf_array *array, size_t index);

// Removes and returns the first text of a GGUF_STRING array with count > 0.
struct gguf_text gguf_array_next_text(struct gguf_array *array);

// ---- Tensors --------------------------------------------------------------

enum { GGUF_DIMENSIONS_MAX = 4 };

struct gguf_tensor {
    struct gguf_text name;
    const struct gguf_tensor_type *type;
    uint32_t dimensions;
    uint64_t shape[GGUF_DIMENSIONS_MAX]; // fastest first, as in the file; 1 beyond `dimensions`
    uint64_t offset;                     // in the file
    uint64_t bytes;
};

size_t gguf_tensor_count(const struct gguf *gguf);

// Tensor `index` < count of an array sorted by name.
const struct gguf_tensor *gguf_tensor_at(const struct gguf *gguf, size_t index);

// The tensor of that name; NULL when there is none.
const struct gguf_tensor *gguf_find_tensor(const struct gguf *gguf, const char *name);

#endif
