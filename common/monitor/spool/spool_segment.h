// Codec of a spool's segment files (write-ahead log format).  Pure: no I/O.
//
// A segment is a header, then entries at multiples of 8 bytes, in the byte order of the
// machine (a spool never leaves its host).
//
//   header  struct segment_header, then the run's description (numbers, then texts with
//           a 2-byte length prefix), zero-padded to a multiple of 8.  The checksum
//           covers all of it, with the checksum field as 0.
//   entry   struct segment_entry, then its body, with a checksum (CRC-32C) each.
//           Their initial value is the segment's seed, computed from the run's UUID and the
//           segment's number, so that an entry of another segment does not match.
//
// The positions of magic, version, size and checksum in the header are the same in all
// later versions.
//
//   RECORDS  records first .. first + count - 1 of `stream`, each as in its ring, cut
//            after its last used byte and padded to 8 bytes.  A column's position is its
//            number on the wire, so that later versions can read it.  `previous` is the
//            number of the stream's last record before this entry.
//   MARK     ends every append: `previous` is the stream's last number.  A record whose
//            number is the `previous` of an entry, but is in no entry, is damaged.
//   NAMES    `count` names: id (4 bytes), length (1), text; padded.  They precede the
//            records that refer to them, in the same segment.
//   STATE    the positions of `count` streams, after SEGMENT_STATE_HEAD unused bytes.  The
//            first append of every segment ends with one; also written before segments are
//            removed.
#ifndef INFERSTAT_MONITOR_SPOOL_SEGMENT_H
#define INFERSTAT_MONITOR_SPOOL_SEGMENT_H

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
    SEGMENT_ENTRY_MAX = 128 * 1024, // header included
    SEGMENT_ENTRY_RECORDS = 128,    // most records of an entry
    SEGMENT_STATE_HEAD = 24,
};

// ---- Header ---------------------------------------------------------------------

// The initial value of the checksums of a segment's entries.
uint32_t segment_seed(const unsigned char uuid[RUNFILE_UUID_SIZE], uint32_t number);

// Writes the header of segment `number`.  Returns its size.
size_t segment_header_write(unsigned char out[SEGMENT_HEADER_MAX], const struct runfile_run *run,
                            uint32_t number);

// Decodes the header at the start of `size` bytes (SEGMENT_HEADER_MAX are enough).
// STATUS_CORRUPT: invalid, or of another segment number.  STATUS_TOO_NEW.
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

// As it is in the file.
struct segment_entry {
    uint32_t magic;
    uint32_t size;     // with this header; a multiple of 8
    uint32_t kind;     // enum segment_kind
    uint32_t stream;   // RECORDS and MARK
    uint64_t first;    // RECORDS: the first of `count` numbers
    uint64_t previous; // RECORDS and MARK
    uint32_t count;
    uint32_t body_crc;
    int64_t since_ns; // the earliest and the latest started_ns of the records
    int64_t until_ns;
    uint32_t reserved;
    uint32_t crc; // of the bytes before it
};

// The number of the last record of a RECORDS entry.
uint64_t segment_entry_last(const struct segment_entry *entry);

// Finds the first entry at or after `*offset` (a multiple of 8) in a segment of `size` bytes:
// its header has the right checksum and valid fields.  Decodes that and sets `*offset`.  Does
// not check the body.  False: there is none.
bool segment_next_entry(struct segment_entry *entry, const unsigned char *segment, size_t size,
                        size_t *offset, uint32_t seed);

// Whether the body of the entry at `bytes` (entry->size bytes) matches its checksum and
// is valid.
bool segment_body_is_sound(const struct segment_entry *entry, const unsigned char *bytes,
                           uint32_t seed);

// Writes the header of an entry before its body, which is already there, padded.  Sets magic
// and checksums.
void segment_entry_write(unsigned char *bytes, struct segment_entry *entry, uint32_t seed);

// ---- Bodies ---------------------------------------------------------------------

// The encoded size of a valid record; encodes it at `out`.
size_t segment_record_size(const struct record *record);
void segment_record_write(unsigned char *out, const struct record *record);

// Decodes the record at the start of `size` bytes; its unused bytes become zero.  Returns
// its encoded size, or 0 if it is invalid.
size_t segment_record_read(struct record *out, const unsigned char *bytes, size_t size);

struct segment_name {
    uint32_t name;
    uint8_t size;
    const char *text; // not terminated
};

size_t segment_name_size(const struct segment_name *name);
void segment_name_write(unsigned char *out, const struct segment_name *name);
// As segment_record_read; the text is borrowed from `bytes`.
size_t segment_name_read(struct segment_name *out, const unsigned char *bytes, size_t size);

struct segment_state_row {
    uint32_t stream;
    uint32_t reserved;
    uint64_t spooled, released;
    uint64_t evicted_first, evicted_last; // unacknowledged when evicted; 0, 0: none
    int64_t evicted_since_ns, evicted_until_ns;
};

#endif
