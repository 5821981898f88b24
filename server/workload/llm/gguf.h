// GGUF header parser: reads the metadata (a map from keys to values) and the list of tensors of a
// model file of llama.cpp.  It accepts little-endian files of versions 2 and 3.  The file may be
// malicious.  Format: https://github.com/ggerganov/ggml/blob/master/docs/gguf.md
//
// After gguf_read every text, array and tensor lies inside the file, keys and tensor names are
// unique, and tensors are aligned and do not overlap.  Memory use is linear in the header's size.
//
// A parsed header is immutable.  Returned pointers are borrowed until gguf_free.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/workload/byte_source.h"

// ---- Types ----------------------------------------------------------------

// One line per value type, in the order of the type ids in the file: enum suffix, name, bytes (0
// when the size varies).
#define GGUF_VALUE_TABLE(X)                                                                        \
    X(UINT8, "uint8", 1)                                                                           \
    X(INT8, "int8", 1)                                                                             \
    X(UINT16, "uint16", 2)                                                                         \
    X(INT16, "int16", 2)                                                                           \
    X(UINT32, "uint32", 4)                                                                         \
    X(INT32, "int32", 4)                                                                           \
    X(FLOAT32, "float32", 4)                                                                       \
    X(BOOL, "bool", 1)                                                                             \
    X(STRING, "string", 0)                                                                         \
    X(ARRAY, "array", 0)                                                                           \
    X(UINT64, "uint64", 8)                                                                         \
    X(INT64, "int64", 8)                                                                           \
    X(FLOAT64, "float64", 8)

enum gguf_value_type {
#define GGUF_VALUE_ENUM(name, text, size) GGUF_##name,
    GGUF_VALUE_TABLE(GGUF_VALUE_ENUM)
#undef GGUF_VALUE_ENUM
        GGUF_VALUE_TYPE_COUNT
};

size_t gguf_value_type_size(enum gguf_value_type type); // 0: varies
const char *gguf_value_type_name(enum gguf_value_type type);

// Storage format of a tensor: each block holds `block_elements` elements in `block_bytes` bytes.
struct gguf_tensor_type {
    uint32_t number; // the type's id in the file
    const char *name;
    uint32_t block_elements, block_bytes;
};

// Ids (`number`) of two tensor types.
enum { GGUF_TENSOR_F32 = 0, GGUF_TENSOR_F16 = 1 };

// Returns the tensor type with the id `number`; NULL if there is none.
const struct gguf_tensor_type *gguf_tensor_type(uint32_t number);

// ---- The file -------------------------------------------------------------

struct gguf;

// Reads the header; `source` may be closed afterwards.  `cancelled` is polled before every MB that
// is read; NULL: never cancelled.  Fails with STATUS_CORRUPT if the file is malformed or truncated
// (`err` names the key or tensor), STATUS_UNSUPPORTED if it is big-endian or of another version, or
// if the header has more than 48 MB, 65,536 keys or 131,072 tensors, STATUS_CANCELLED,
// STATUS_NOMEM, or STATUS_IO.
MUST_CHECK enum status gguf_read(struct gguf **out, const struct byte_source *source,
                                 bool (*cancelled)(void), struct error *err);

// Adds the tensors of another part of the same model to `gguf`.  `base` is added to their offsets.
// Takes ownership of `part`, also on failure, and keeps only its tensors.  Fails with
// STATUS_CORRUPT if a key of both files has two values or a tensor is in both (`err` names it),
// STATUS_UNSUPPORTED if all parts together have more than 48 MB of header or 131,072 tensors, or
// STATUS_NOMEM.
MUST_CHECK enum status gguf_append(struct gguf *gguf, struct gguf *part, uint64_t base,
                                   struct error *err);

// Accepts NULL.
void gguf_free(struct gguf *gguf);

// ---- Split models (gguf_split.c) ------------------------------------------

// Opens a model: the file at `path`, or, if it is named NAME-00001-of-00003.gguf, all files of the
// model as one source.  Fails as byte_source_open does, with STATUS_UNSUPPORTED if `path` is named
// like a part but the first, or with STATUS_NOMEM.
MUST_CHECK enum status gguf_open(struct byte_source *out, const char *path, struct error *err);

// Reads the headers of all files of a source that gguf_open opened; the keys are those of the
// first. Fails as gguf_read and gguf_append do, and with STATUS_NOT_FOUND or STATUS_CORRUPT if the
// keys of a part are missing or do not fit its name; `err` names the part.
MUST_CHECK enum status gguf_read_all(struct gguf **out, const struct byte_source *source,
                                     bool (*cancelled)(void), struct error *err);

// Puts `path`, as given to gguf_open, in front of an error of the model and returns the status,
// unless the error begins with the path of one of its parts.
enum status gguf_name_error(struct error *err, enum status status, const char *path);

// The length of a file's path without ".gguf" or "-00001-of-00003.gguf".
size_t gguf_name_size(const char *path);

// ---- Keys -----------------------------------------------------------------

bool gguf_has(const struct gguf *gguf, const char *key);

// A text of the file.  It is not NUL-terminated and may have any bytes, since UTF-8 is not checked.
struct gguf_text {
    const char *data;
    size_t size;
};

size_t gguf_key_count(const struct gguf *gguf);

// Key `index` < count, in no particular order.
const struct gguf_text *gguf_key_at(const struct gguf *gguf, size_t index);

bool gguf_text_is(const struct gguf_text *text, const char *word);

// Getters of the value of `key`.  They fail with STATUS_NOT_FOUND if the key is missing, and with
// STATUS_CORRUPT if the value has the wrong type, is outside minimum..maximum or is not finite;
// `err` names the key.  gguf_get_uint accepts integers of any width.
MUST_CHECK enum status gguf_get_uint(const struct gguf *gguf, const char *key, uint64_t minimum,
                                     uint64_t maximum, uint64_t *out, struct error *err);
MUST_CHECK enum status gguf_get_float(const struct gguf *gguf, const char *key, double minimum,
                                      double maximum, double *out, struct error *err);
MUST_CHECK enum status gguf_get_bool(const struct gguf *gguf, const char *key, bool *out,
                                     struct error *err);
MUST_CHECK enum status gguf_get_text(const struct gguf *gguf, const char *key,
                                     struct gguf_text *out, struct error *err);

// An array value; the functions below read its elements.  `data` (the next unread element) and
// `end` (the end of the array) are private.
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
    uint64_t shape[GGUF_DIMENSIONS_MAX]; // fastest dimension first; 1 beyond `dimensions`
    uint64_t offset;                     // of the data, from the start of the file
    uint64_t bytes;                      // of the data
};

size_t gguf_tensor_count(const struct gguf *gguf);

// Tensor `index` < count of an array sorted by name.
const struct gguf_tensor *gguf_tensor_at(const struct gguf *gguf, size_t index);

// Returns the tensor named `name`; NULL if there is none.
const struct gguf_tensor *gguf_find_tensor(const struct gguf *gguf, const char *name);
