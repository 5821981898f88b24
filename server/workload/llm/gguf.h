// The header of a GGUF file, versions 2 and 3, little-endian: keys with values,
// and where each tensor lies.
//
// The file is not trusted.  When gguf_read succeeds, every text, array and tensor
// it lists lies inside the file, names are unique, tensors are aligned and do not
// overlap; memory used is of the order of the header's size.  What a value must
// be is checked by the getters, which name the key in their errors.
//
// Immutable once read.  Pointers it gives are borrowed until gguf_free.
#ifndef INFERSTAT_SERVER_WORKLOAD_LLM_GGUF_H
#define INFERSTAT_SERVER_WORKLOAD_LLM_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"
#include "server/workload/llm/byte_source.h"
#include "server/workload/llm/gguf_type.h"

struct gguf;

// Reads the header.  Fails with STATUS_CORRUPT on damage (with the byte where it
// was seen), STATUS_UNSUPPORTED on another version or byte order, STATUS_NOMEM,
// or the source's failure.
MUST_CHECK enum status gguf_read(struct gguf **out, const struct byte_source *source,
                                 struct error *err);

// Accepts NULL.
void gguf_free(struct gguf *gguf);

uint32_t gguf_version(const struct gguf *gguf);

// ---- Keys -----------------------------------------------------------------

bool gguf_has(const struct gguf *gguf, const char *key);

// Text is UTF-8 by convention only, not terminated, and may hold any byte.
struct gguf_text {
    const char *data;
    size_t size;
};

// Each finds the value of `key`.  Fails with STATUS_NOT_FOUND where it is missing,
// STATUS_CORRUPT where its type is wrong or, for numbers, it is outside
// minimum..maximum.  Integers of any width are taken; floats are finite.
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

// Takes the first text off an array of GGUF_STRING that is not empty (count > 0).
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

// Tensor `index` < count, in the order of their places in the file.
const struct gguf_tensor *gguf_tensor_at(const struct gguf *gguf, size_t index);

// NULL where there is none.
const struct gguf_tensor *gguf_find_tensor(const struct gguf *gguf, const char *name);

#endif
