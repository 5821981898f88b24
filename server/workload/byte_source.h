// Random-access byte source (vtable): reads ranges of bytes from a file, from several as if they
// were one, or from memory in tests.  Used by the readers of model and array files.  Any number of
// threads may read concurrently.
//
// Files are read, not mapped, so that a truncated file gives an error instead of SIGBUS.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "common/core/base/error.h"

struct byte_source {
    // Reads exactly `size` bytes from `offset` on.  Fails with STATUS_CORRUPT if the file ends
    // before, or with STATUS_IO.
    enum status (*read)(const struct byte_source *source, uint64_t offset, void *to, size_t size,
                        struct error *err);
    uint64_t size;           // bytes of the file when it was opened, or of `memory`
    int fd;                  // the file; -1 for others
    struct timespec changed; // when the file was last written, as of its opening
    const void *memory;      // NULL for others
    // Of a joined source: its parts, one behind the other.
    struct byte_source *parts;
    size_t part_count;
    char *name; // path of a part, for messages
};

// Opens a regular file for reading.  Fails with STATUS_NOT_FOUND, STATUS_DENIED, or STATUS_IO,
// which includes files that are not regular.
MUST_CHECK enum status byte_source_open(struct byte_source *out, const char *path,
                                        struct error *err);

// Makes `*out` a source over `size` bytes of memory, borrowed until it is closed.
void byte_source_from_memory(struct byte_source *out, const void *memory, uint64_t size);

// Makes `*out` the source of all bytes of `parts`, in this order.  Takes ownership of the array,
// which was allocated by malloc, of its files and of their names.
void byte_source_join(struct byte_source *out, struct byte_source *parts, size_t count);

// Accepts a zeroed source.
void byte_source_close(struct byte_source *source);

MUST_CHECK enum status byte_source_read(const struct byte_source *source, uint64_t offset, void *to,
                                        size_t size, struct error *err);

// Fails with STATUS_CORRUPT if a file of the source has been written to since it was opened.
MUST_CHECK enum status byte_source_check_unchanged(const struct byte_source *source,
                                                   struct error *err);

// Returns the fraction of the file's pages that are in the page cache, 0..1; negative: unknown.  Of
// a file of more than 16 GiB it looks at 256 evenly spaced parts of 64 MiB.  The kernel reports it
// only to the file's owner and to users with write permission for it.
double byte_source_cached_ratio(const struct byte_source *source);

enum { SOURCE_DIGEST_SIZE = 64 };

// Computes a sampled content digest, "sampled-crc32c:CRC-SIZE".  SIZE is the file's size.  CRC is
// the CRC-32C of 256 evenly spaced pages of 4096 bytes, the first and the last included, or of the
// whole file if it is smaller.  Sampling suffices because training or quantising a model changes
// every page.
MUST_CHECK enum status byte_source_digest(const struct byte_source *source,
                                          char text[SOURCE_DIGEST_SIZE]);
