// Codec of a spool's segment files: the format of the write-ahead log (spool.h).  No I/O.  A spool
// has the records of one run.  The records of each thread are a stream, numbered from 1.
//
// A segment is a header, then entries at multiples of 8 bytes, in the byte order of the
// machine (a spool never leaves its host).
//
//   header  struct segment_header, then the run's description (numbers, then texts with
//           a 2-byte length prefix), zero-padded to a multiple of 8.  The checksum
//           covers all of it, with the checksum field as 0.
//   entry   struct segment_entry, then its body; each has a checksum (CRC-32C).  The initial
//           value of both checksums is the segment's seed, computed from the run's UUID and
//           the segment's number, so that an entry of another segment does not match.
//
// Later versions keep the positions of magic, version, size and checksum in the header.
//
// The body of an entry, by kind:
//
//   RECORDS  records first .. first + count - 1 of `stream`, each as in its ring, cut
//            after its last used byte and padded to 8 bytes.  A column's position is its
//            number on the wire, so that later versions can read it.  `previous` is the
//            number of the stream's last record before this entry.
//   MARK     empty; follows the records of every append.  `previous` is the number of the
//            stream's last record.  If an entry has a number as its `previous` and no entry has
//            that record, the record is damaged.
//   NAMES    `count` names: id (4 bytes), length (1), text; padded.  They precede the
//            records that refer to them, in the same segment.
//   STATE    SEGMENT_STATE_HEAD unused bytes, then `count` struct segment_state_row with the
//            position (struct spool_position) of each stream.  Follows the MARK of a segment's
//            first append, and is written before segments are removed.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"
#include "common/core/record/record.h"
#include "common/monitor/runfile/runfile.h"

enum {
    SEGMENT_VERSION = 2, // version 1 had no records of two ring slots
    SEGMENT_HEADER_MAX = 8192,
    SEGMENT_ENTRY_HEADER = 64,
    SEGMENT_ENTRY_MAX = 128 * 1024, // bytes of an entry, with its header
    SEGMENT_ENTRY_RECORDS = 128,    // most records of an entry
    SEGMENT_STATE_HEAD = 24,        // unused bytes at the start of a STATE body
};

// ---- Header ---------------------------------------------------------------------

// Returns the initial value of the checksums of a segment's entries.
uint32_t segment_seed(const unsigned char uuid[RUNFILE_UUID_SIZE], uint32_t number);

// Writes the header of segment `number`.  Returns its size.
size_t segment_header_write(unsigned char out[SEGMENT_HEADER_MAX], const struct runfile_run *run,
                            uint32_t number);

// Decodes the header at the start of `bytes`; `size` need not be above SEGMENT_HEADER_MAX.
// Returns STATUS_CORRUPT if the header is invalid or of another segment number, STATUS_TOO_NEW
// if a later version wrote it.
MUST_CHECK enum status segment_header_read(struct runfile_run *run, size_t *header_size,
                                           const unsigned char *bytes, size_t size,
                                           uint32_t number);

// ---- Entries --------------------------------------------------------------------

enum segment_kind {
    SEGMENT_RECORDS = 1,
    SEGMENT_MARK,
    SEGMENT_NAMES,
    SEGMENT_STATE,
};

// Header of an entry, as it is in the file.
struct segment_entry {
    uint32_t magic;
    uint32_t size;     // bytes of the entry, with this header; a multiple of 8
    uint32_t kind;     // enum segment_kind
    uint32_t stream;   // RECORDS and MARK
    uint64_t first;    // RECORDS: number of the first record
    uint64_t previous; // RECORDS and MARK: a record number, see above
    uint32_t count;    // of records, names or streams
    uint32_t body_crc;
    int64_t since_ns; // RECORDS: the earliest started_ns of the records
    int64_t until_ns; // RECORDS: the latest
    uint32_t reserved;
    uint32_t crc; // of the bytes of this header before it
};

// Returns the number of the last record of a RECORDS entry.
uint64_t segment_entry_last(const struct segment_entry *entry);

// Finds the first entry at or after `*offset` (a multiple of 8), in a segment of `size` bytes,
// with a header of the right checksum and valid members.  Copies the header to `entry` and sets
// `*offset` to its position.  Does not check the body.  False if there is no such entry.
bool segment_next_entry(struct segment_entry *entry, const unsigned char *segment, size_t size,
                        size_t *offset, uint32_t seed);

// True if the body of the entry at `bytes` (entry->size bytes, with the header) matches its
// checksum and is valid.
bool segment_body_is_sound(const struct segment_entry *entry, const unsigned char *bytes,
                           uint32_t seed);

// Writes the header of an entry to `bytes`, where its padded body already follows.  Sets magic
// and checksums in `entry`.
void segment_entry_write(unsigned char *bytes, struct segment_entry *entry, uint32_t seed);

// ---- Bodies ---------------------------------------------------------------------

// Return the encoded size of a valid record, and encode it at `out`.
size_t segment_record_size(const struct record *record);
void segment_record_write(unsigned char *out, const struct record *record);

// Decodes the record at the start of `bytes`; the unused bytes of `out` become zero.  Returns
// the encoded size, or 0 if the record is invalid.
size_t segment_record_read(struct record *out, const unsigned char *bytes, size_t size);

struct segment_name {
    uint32_t name; // its id
    uint8_t size;
    const char *text; // not terminated
};

size_t segment_name_size(const struct segment_name *name);
void segment_name_write(unsigned char *out, const struct segment_name *name);
// Decodes the name at the start of `bytes`; out->text is borrowed from `bytes`.  Returns the
// encoded size, or 0 if the name is invalid.
size_t segment_name_read(struct segment_name *out, const unsigned char *bytes, size_t size);

struct segment_state_row {
    uint32_t stream;
    uint32_t reserved;
    uint64_t spooled, released; // as in struct spool_position
    // The range of records that were evicted before they were acknowledged; 0, 0: none.
    uint64_t evicted_first, evicted_last;
    int64_t evicted_since_ns, evicted_until_ns;
};
