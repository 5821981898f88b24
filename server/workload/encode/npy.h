// Reader and writer of NumPy array files (.npy): reads inputs of the quantum state encoders
// (server/device/encode.h) and writes the states that they compute.
//
// The reader accepts versions 1.0 to 3.0 with little-endian f8 (double) or f4 (float) in C order,
// and one or two dimensions.  The writer writes version 1.0 with little-endian c16 or c8 (complex
// numbers of two doubles or floats), and two dimensions.
// Format: numpy.lib.format.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/device/encode.h"

enum {
    NPY_PREFIX_SIZE = 12,         // bytes that tell the header's size in any version
    NPY_HEADER_MAX = 64 * 1024,   // longest accepted header
    NPY_WRITTEN_HEADER_SIZE = 128 // of written files
};

struct npy_header {
    enum encode_type type;
    unsigned int dimensions; // 1 or 2
    uint64_t shape[2];       // with one dimension, shape[1] is 1
    uint64_t data_offset;    // of the first array element, in the file
    uint64_t data_size;      // bytes of all array elements; above zero
};

// Reads the size of the header (all before the data) from `bytes`, the file's first `size` bytes.
// npy_open calls it, then npy_parse.  Fails with STATUS_CORRUPT if `size` < NPY_PREFIX_SIZE or it
// is no .npy file, STATUS_UNSUPPORTED on an unknown version or a header over NPY_HEADER_MAX.
MUST_CHECK enum status npy_header_size(size_t *out, const unsigned char *bytes, size_t size,
                                       struct error *err);

// Parses a header of exactly `size` bytes.  Fails with STATUS_CORRUPT if the header is malformed,
// STATUS_UNSUPPORTED if the element type, the order or the number of dimensions is not accepted.
MUST_CHECK enum status npy_parse(struct npy_header *out, const unsigned char *bytes, size_t size,
                                 struct error *err);

// ---- Reading --------------------------------------------------------------

struct npy_reader;

// Opens a file and checks that it is not truncated.  Borrows `path` until npy_close.  Fails with
// STATUS_CORRUPT if the file is truncated, or as byte_source_open, npy_header_size and npy_parse
// do.
MUST_CHECK enum status npy_open(struct npy_reader **out, const char *path, struct error *err);
void npy_close(struct npy_reader *reader); // accepts NULL

const struct npy_header *npy_get_header(const struct npy_reader *reader);

// Reads `size` bytes of the data from byte `offset` on.  Any thread, concurrently.
MUST_CHECK enum status npy_read(const struct npy_reader *reader, uint64_t offset, void *to,
                                size_t size, struct error *err);

// ---- Writing --------------------------------------------------------------

struct npy_writer;

// Creates a file of `rows` rows of `columns` complex numbers.  Until npy_finish the file is named
// `path`.part (.part1 and so on if that exists), and an existing file at `path` stays.  If `path`
// is a pipe or a device file, the writer writes to it directly, with `rows` in the header.  Fails
// with STATUS_BUSY if a regular file exists at `path` and `replace` is false.  Fails with STATUS_IO
// if the disk has no space for all rows, or npy_finish could not replace `path` (dangling link,
// mount point, read-only file).
MUST_CHECK enum status npy_create(struct npy_writer **out, const char *path, enum encode_type type,
                                  uint64_t rows, uint64_t columns, bool replace, struct error *err);

// Appends rows: `size` bytes, a multiple of the row size.
MUST_CHECK enum status npy_append(struct npy_writer *writer, const void *rows, size_t size,
                                  struct error *err);

// Writes the number of appended rows to the header, syncs the file and renames it to `path`, so
// that a power failure leaves either the new or the old file.  Only closes a pipe or device file.
// On failure removes the written file; but a complete file that cannot be renamed is kept,
// and `err` names it.  Frees the writer also on failure.
MUST_CHECK enum status npy_finish(struct npy_writer *writer, struct error *err);

// Frees the writer and removes the unfinished file; an existing file at `path` stays.  Accepts
// NULL.
void npy_abandon(struct npy_writer *writer);
