// GGUF writer (version 3) with atomic replacement: writes a model file under a temporary name and
// renames it when it is complete.  The caller writes the metadata, then the list of tensors, then
// the tensors' data in the order of the list.
//
// A write error is sticky: the functions then write nothing more, and gguf_writer_close returns it.
// Texts and data are borrowed only during the call.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/workload/llm/gguf.h"

struct gguf_writer;

// Creates a temporary file in the directory of `path`; a pipe or device is written directly.  Fails
// with STATUS_IO or STATUS_NOMEM.
MUST_CHECK enum status gguf_writer_open(struct gguf_writer **out, const char *path,
                                        struct error *err);

void gguf_writer_text(struct gguf_writer *writer, const char *key, const char *value);
void gguf_writer_uint(struct gguf_writer *writer, const char *key, uint32_t value);
void gguf_writer_float(struct gguf_writer *writer, const char *key, float value);
void gguf_writer_bool(struct gguf_writer *writer, const char *key, bool value);

// Writes `count` elements of a fixed-size type from the host's representation.
void gguf_writer_array(struct gguf_writer *writer, const char *key, enum gguf_value_type type,
                       const void *elements, size_t count);
void gguf_writer_texts(struct gguf_writer *writer, const char *key, const char *const *texts,
                       size_t count);

// Adds a tensor of `rows` times `columns` elements to the list.  `type` is the id of a type of
// GGUF, and a row has whole blocks of it.
void gguf_writer_tensor(struct gguf_writer *writer, const char *name, uint32_t type, uint64_t rows,
                        uint64_t columns);

// The same with 1 to GGUF_DIMENSIONS_MAX dimensions, the fastest first.
void gguf_writer_tensor_shape(struct gguf_writer *writer, const char *name, uint32_t type,
                              const uint64_t *shape, uint32_t dimensions);

// Pads the file to the alignment of tensor data.  Call it after the list of tensors, and after the
// data of each tensor.
void gguf_writer_align(struct gguf_writer *writer);

// Appends tensor data, in parts of any size.  The sizes of all data must add up to those of the
// list before gguf_writer_close with STATUS_OK; more may not be appended.
void gguf_writer_data(struct gguf_writer *writer, const void *data, size_t size);

// Whether writing has failed: the rest need not be written, since gguf_writer_close fails.
bool gguf_writer_failed(const struct gguf_writer *writer);

// Ends the file and frees the writer.  `status` is the caller's result.  If it and all writing are
// STATUS_OK, renames the temporary file to `path`; otherwise removes the temporary file and leaves
// an existing file at `path` unchanged.  Returns `status`, or the first error.
MUST_CHECK enum status gguf_writer_close(struct gguf_writer *writer, enum status status,
                                         struct error *err);
