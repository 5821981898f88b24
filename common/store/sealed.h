// Sealed history: old rows of a kind, some thousand in a segment, packed by column
// (seal_codec.h) into a row of the table `sealed`.  All programs read them through the
// virtual table sealed_KIND, which has the columns of KIND (sealed_table.h).
//
// A row is either in its kind's table or sealed, under the same id.  Segments of a kind
// hold disjoint spans of ids; between them, and within them where a row could not be
// sealed, may be rows of the table.  Rollups, ledgers and names know nothing of it.
// A checksum covers a segment's numbers and bytes; what is damaged is said, not guessed.
#ifndef INFERSTAT_STORE_SEALED_H
#define INFERSTAT_STORE_SEALED_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/error.h"
#include "common/core/record.h"
#include "common/store/seal_codec.h"

struct sqlite3;
struct sqlite3_str;

struct sealed_segment {
    int64_t id; // in the table; 0: none
    int64_t kind;
    int64_t first_id, last_id;
    int64_t first_started_ns, last_started_ns; // the least and the greatest
    int64_t rows;
};

// The statements that make the table, for a schema's migration.
extern const char sealed_tables[];

// Adds a segment of these rows, packed into those bytes, in the caller's transaction; its
// id does not matter.
MUST_CHECK enum status sealed_add(struct sqlite3 *db, const struct sealed_segment *segment,
                                  const struct seal_rows *rows, const void *bytes, size_t size,
                                  struct error *err);

// Whether they say the same of a segment.
bool sealed_is_same(const struct sealed_segment *a, const struct sealed_segment *b);

// Reads a segment that was found (below).  STATUS_CORRUPT where its checksum, or what is in
// it, or what it was found by, does not fit; STATUS_NO_DATA: there is none.  So what is
// said of a segment that was read can be believed.
MUST_CHECK enum status sealed_load(struct sqlite3 *db, const struct sealed_segment *segment,
                                   struct seal_reader **reader, struct error *err);

// Its checksum alone: what a reader that was kept is known by.
uint32_t sealed_checksum(const struct sealed_segment *segment, const void *bytes, size_t size);

// STATUS_CORRUPT with a text that names the segment, `what` is wrong with it, and the way
// out.
enum status sealed_is_damaged(const struct sealed_segment *segment, const char *what,
                              struct error *err);

// ---- Finding segments -----------------------------------------------------------------
//
// By indexes: their numbers are not checked against anything, nor against limits.

// The kind's first segment with an id beyond `after_id`, by ids; id 0 where there is none.
MUST_CHECK enum status sealed_next(struct sqlite3 *db, enum record_kind kind, int64_t after_id,
                                   struct sealed_segment *out, struct error *err);

// The one with the oldest row, or, behind `after`, the next by that order; id 0 where there
// is none.
MUST_CHECK enum status sealed_oldest(struct sqlite3 *db, enum record_kind kind,
                                     const struct sealed_segment *after, struct sealed_segment *out,
                                     struct error *err);

// The highest id and the last start of a sealed row; 0 and INT64_MIN where there is none.
MUST_CHECK enum status sealed_last(struct sqlite3 *db, enum record_kind kind, int64_t *last_id,
                                   int64_t *last_ns, struct error *err);

// How many rows of all kinds are sealed, as their segments say, and what those take.
MUST_CHECK enum status sealed_room(struct sqlite3 *db, int64_t *rows, int64_t *bytes,
                                   struct error *err);

// ---- Changes --------------------------------------------------------------------------

// Takes a segment out, with its rows, in the caller's transaction.
MUST_CHECK enum status sealed_remove(struct sqlite3 *db, const struct sealed_segment *segment,
                                     struct error *err);

// ---- Sources --------------------------------------------------------------------------

// How the rows of a kind are read.
enum sealed_source {
    SEALED_NOT = 0,       // those of its table alone
    SEALED_TOO = 1,       // all of them
    SEALED_UNINDEXED = 2, // a flag: from the first to the last, without an index
};

// Appends what stands behind FROM, with the alias t: `"inference" t`, or both as one.
void sealed_append_from(struct sqlite3_str *sql, enum record_kind kind, unsigned source);

// Appends an expression for the first (or last) start of the kind's rows.
void sealed_append_bound(struct sqlite3_str *sql, enum record_kind kind, bool is_last,
                         bool with_sealed);

// As sealed_append_from, reading sealed rows where there are any that started at or after a time.
MUST_CHECK enum status sealed_find_from(struct sqlite3 *db, struct sqlite3_str *sql,
                                        enum record_kind kind, int64_t since_ns, unsigned flags,
                                        struct error *err);

#endif
