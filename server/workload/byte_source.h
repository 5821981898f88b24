// Random-access byte source for model files: a file, or memory in tests.
//
// Files are read, never mapped, so that a truncated file gives an error, not SIGBUS.
#ifndef INFERSTAT_SERVER_WORKLOAD_BYTE_SOURCE_H
#define INFERSTAT_SERVER_WORKLOAD_BYTE_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"

struct byte_source {
    // Reads exactly `size` bytes from `offset` on.  Fails with STATUS_IO, or with
    // STATUS_CORRUPT when the file ends before.
    enum status (*read)(const struct byte_source *source, uint64_t offset, void *to, size_t size,
                        struct error *err);
    uint64_t size;      // when the source was opened
    int fd;             // of a file; -1 otherwise
    const void *memory; // of a source in memory
};

// Opens a regular file for reading.  Fails with STATUS_NOT_FOUND, STATUS_DENIED or STATUS_IO,
// the last also when it is not a regular file.
MUST_CHECK enum status byte_source_open(struct byte_source *out, const char *path,
                                        struct error *err);

// Makes `*out` a source over `size` bytes of memory, borrowed until it is closed.
void byte_source_from_memory(struct byte_source *out, const void *memory, uint64_t size);

// Accepts a zeroed source.
void byte_source_close(struct byte_source *source);

MUST_CHECK enum status byte_source_read(const struct byte_source *source, uint64_t offset, void *to,
                                        size_t size, struct error *err);

// The fraction of the file's pages that are in the page cache, 0..1; negative: unknown (the
// kernel reports it only to users with write permission for the file).
double byte_source_cached_ratio(const struct byte_source *source);

enum { SOURCE_DIGEST_SIZE = 64 };

// Sampled content digest, "sampled-crc32c:CRC-SIZE": the file's size, and the CRC-32C of 256 pages
// of 4096 bytes, evenly spaced and including the last one; of all bytes of a smaller file.
// Sampling suffices, since further training or quantisation of a model changes every page.
MUST_CHECK enum status byte_source_digest(const struct byte_source *source,
                                          char text[SOURCE_DIGEST_SIZE], struct error *err);

#endif
