// NumPy array files (.npy): reads input arrays and writes arrays of quantum states.
//
// Reads versions 1.0 to 3.0 with little-endian f8 or f4 in C order, one or two dimensions.
// Writes version 1.0 with little-endian c16 or c8, two dimensions.
// Format: numpy.lib.format.
#ifndef INFERSTAT_SERVER_WORKLOAD_ENCODE_NPY_H
#define INFERSTAT_SERVER_WORKLOAD_ENCODE_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"
#include "server/device/encode.h"

enum {
    NPY_PREFIX_SIZE = 12,         // enough to know the header's length, any version
    NPY_HEADER_MAX = 64 * 1024,   // longest accepted header
    NPY_WRITTEN_HEADER_SIZE = 128 // of written files
};

struct npy_header {
    enum encode_type type;
    unsigned int dimensions; // 1 or 2
    uint64_t shape[2];       // the second is 1 for one dimension
    uint64_t data_offset;    // of the first number
    uint64_t data_size;      // bytes of all numbers; not zero
};

// Reads the header's size from the file's first `size` bytes, at least NPY_PREFIX_SIZE.
// Fails with STATUS_CORRUPT when it is not a .npy file, STATUS_UNSUPPORTED on an unknown version
// or a header above NPY_HEADER_MAX.
MUST_CHECK enum status npy_header_size(size_t *out, const unsigned char *bytes, size_t size,
                                       struct error *err);

// Parses a header of exactly `size` bytes in memory.  Fails with STATUS_CORRUPT on a malformed
// header, STATUS_UNSUPPORTED on another type, order or number of dimensions.
MUST_CHECK enum status npy_parse(struct npy_header *out, const unsigned char *bytes, size_t size,
                                 struct error *err);

// ---- Reading --------------------------------------------------------------

struct npy_reader;

// Opens a file and checks that it is not truncated; `path` is borrowed until npy_close.  Fails as
// byte_source_open and npy_parse do, with STATUS_CORRUPT on a truncated file.
MUST_CHECK enum status npy_open(struct npy_reader **out, const char *path, struct error *err);
void npy_close(struct npy_reader *reader); // accepts NULL

const struct npy_header *npy_get_header(const struct npy_reader *reader);

// Reads `size` bytes of the data from byte `offset` on.  Any thread, concurrently.
MUST_CHECK enum status npy_read(const struct npy_reader *reader, uint64_t offset, void *to,
                                size_t size, struct error *err);

// ---- Writing --------------------------------------------------------------

struct npy_writer;

// Creates a file of `rows` rows of `columns` complex numbers.  Until npy_finish it is named
// `path`.part (.part1 and so on when that exists), and an existing file at `path` stays.  Pipes
// and devices are written directly.  Fails with STATUS_BUSY when a regular file exists at `path`
// and `replace` is false; with STATUS_IO when the disk has no space for all rows, or when `path`
// cannot be replaced later: a dangling link, a mount point, a read-only file.
MUST_CHECK enum status npy_create(struct npy_writer **out, const char *path, enum encode_type type,
                                  uint64_t rows, uint64_t columns, bool replace, struct error *err);

// Appends rows: `size` bytes, a multiple of the row size.
MUST_CHECK enum status npy_append(struct npy_writer *writer, const void *rows, size_t size,
                                  struct error *err);

// Writes the number of rows to the header, syncs the file and renames it to `path`: a power
// failure leaves the whole new file or the old one.  A failure removes the written file, except a
// complete one that could not be renamed; the error names it.  Frees the writer in any case.
MUST_CHECK enum status npy_finish(struct npy_writer *writer, struct error *err);

// Frees the writer and removes the unfinished file; an existing file at `path` stays.  Accepts
// NULL.
void npy_abandon(struct npy_writer *writer);

#endif
