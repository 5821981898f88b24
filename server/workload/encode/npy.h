// NumPy's array files (.npy): inputs read from one, states written to one.
//
// Read are versions 1.0 to 3.0 with little-endian f8 or f4 in C order, one or two
// dimensions.  Written is version 1.0 with little-endian c16 or c8, two dimensions.
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
    NPY_PREFIX_SIZE = 12,         // what tells the header's length, of any version
    NPY_HEADER_MAX = 64 * 1024,   // bytes before the numbers that are looked at
    NPY_WRITTEN_HEADER_SIZE = 128 // of files written here
};

struct npy_header {
    enum encode_type type;
    unsigned int dimensions; // 1 or 2
    uint64_t shape[2];       // the second is 1 where there is but one
    uint64_t data_offset;    // of the first number
    uint64_t data_size;      // bytes of all numbers; not zero
};

// How many bytes come before the numbers, told from the first `size` bytes, at least
// NPY_PREFIX_SIZE of them.  Fails with STATUS_CORRUPT on what is no .npy file,
// STATUS_UNSUPPORTED on a version or a header that is not read here.
MUST_CHECK enum status npy_header_size(size_t *out, const unsigned char *bytes, size_t size,
                                       struct error *err);

// Reads a header of exactly `size` bytes.  Pure.  Fails with STATUS_CORRUPT on what
// makes no sense, STATUS_UNSUPPORTED on another type, order or number of dimensions.
MUST_CHECK enum status npy_parse(struct npy_header *out, const unsigned char *bytes, size_t size,
                                 struct error *err);

// ---- Reading --------------------------------------------------------------

struct npy_reader;

// Opens a file and checks that all its shape promises is there.
MUST_CHECK enum status npy_open(struct npy_reader **out, const char *path, struct error *err);
void npy_close(struct npy_reader *reader); // accepts NULL

const struct npy_header *npy_get_header(const struct npy_reader *reader);

// Reads `size` bytes of the numbers from byte `offset` on.  Any thread, several at
// once.
MUST_CHECK enum status npy_read(const struct npy_reader *reader, uint64_t offset, void *to,
                                size_t size, struct error *err);

// ---- Writing --------------------------------------------------------------

struct npy_writer;

// Begins a file of `rows` complex rows.  Until npy_finish it is called `path`.part, or
// .part1 and so on where that is there, and what is at `path` stays; pipes and devices are
// written as they are.  A regular file that is there is to be replaced with `replace`, else
// refused with STATUS_BUSY.  Fails with STATUS_IO where the disk has no room for all rows, and
// on what is known not to be replaced later: a link to nothing, a mount point, a file that may
// not be written.
MUST_CHECK enum status npy_create(struct npy_writer **out, const char *path, enum encode_type type,
                                  uint64_t rows, uint64_t columns, bool replace, struct error *err);

// Appends rows: `size` bytes, a multiple of a row's.
MUST_CHECK enum status npy_append(struct npy_writer *writer, const void *rows, size_t size,
                                  struct error *err);

// Says in the header how many rows there are, stores the file and puts it in its place: after
// a power cut it is whole or as it was, too.  The writer is gone then in any case, and after a
// failure what it wrote too, but for a whole file that could not go to its place: it stays
// beside it, and the error names it.
MUST_CHECK enum status npy_finish(struct npy_writer *writer, struct error *err);

// Gives up: removes what was written, except to a pipe or a device.  What was there before
// stays.  Accepts NULL.
void npy_abandon(struct npy_writer *writer);

#endif
