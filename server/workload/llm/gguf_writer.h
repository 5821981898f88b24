// Writes a GGUF file, version 3: keys, then the list of tensors, then their data
// in that order.  The file appears under its name only when it is complete.
//
// Errors stick: after one, calls do nothing, and gguf_writer_commit reports it.
#ifndef INFERSTAT_SERVER_WORKLOAD_LLM_GGUF_WRITER_H
#define INFERSTAT_SERVER_WORKLOAD_LLM_GGUF_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"
#include "server/workload/llm/gguf_type.h"

struct gguf_writer;

// Opens a temporary file beside `path`.  Fails with STATUS_IO or STATUS_NOMEM.
MUST_CHECK enum status gguf_writer_open(struct gguf_writer **out, const char *path,
                                        struct error *err);

// ---- Keys -----------------------------------------------------------------

void gguf_writer_text(struct gguf_writer *writer, const char *key, const char *value);
void gguf_writer_uint(struct gguf_writer *writer, const char *key, uint32_t value);
void gguf_writer_float(struct gguf_writer *writer, const char *key, float value);
void gguf_writer_bool(struct gguf_writer *writer, const char *key, bool value);

// `count` elements of a type of fixed size, as they lie in memory.
void gguf_writer_array(struct gguf_writer *writer, const char *key, enum gguf_value_type type,
                       const void *elements, size_t count);
void gguf_writer_texts(struct gguf_writer *writer, const char *key, const char *const *texts,
                       size_t count);

// ---- Tensors --------------------------------------------------------------

// Lists a tensor of F32 or F16 (GGUF_TENSOR_*) with `rows` rows of `columns`.  All
// tensors are listed before the first data.
void gguf_writer_tensor(struct gguf_writer *writer, const char *name, uint32_t type, uint64_t rows,
                        uint64_t columns);

// Appends data.  Each tensor's data comes whole, in the order of the list, but may
// come in parts.
void gguf_writer_data(struct gguf_writer *writer, const void *data, size_t size);

// ---- The end --------------------------------------------------------------

// Puts the file in its place and frees the writer, also on failure, which leaves
// what was there before.
MUST_CHECK enum status gguf_writer_commit(struct gguf_writer *writer, struct error *err);

// Gives up: removes the temporary file and frees the writer.  Accepts NULL.
void gguf_writer_abandon(struct gguf_writer *writer);

#endif
