// Columns of records that are kept as what they exceed others by.
//
// The time to the first token is the time in the queue and the prefill, nearly always to
// the nanosecond: what prefill_ns is beyond ttft_ns - queue_ns is 0, which takes no room
// in a row of SQLite.  So a row keeps that excess in a column of its own ("kept"), and
// the column that everybody reads is a virtual generated one, worked out when it is read.
//
// What is kept is exact for every 64-bit integer:
//   an integer    value - (base - less), where neither difference leaves 64 bits.
//                 SQLite's own arithmetic becomes real where integers overflow; here it
//                 does not, on the way in (typeof says so) nor on the way out:
//                 base - less is the same integer, and with what is kept it is the value
//   a text        the value's digits, where one of them would overflow; what is read has
//                 the affinity INTEGER, which makes an integer of them again
//   NULL          NULL: the value is absent
// `base` and `less` count as 0 where they are absent.  The column that is kept has no
// type, and so keeps what it is given.
#ifndef INFERSTAT_STORE_EXCESS_H
#define INFERSTAT_STORE_EXCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/record/record.h"

struct sqlite3_str;

// Columns that are no kind's own, where they stand: before column 0.
enum { EXCESS_NONE = -3, EXCESS_STARTED, EXCESS_RECEIVED };

struct excess {
    const char *kept;      // the column in the row
    const char *meaning;   // of that
    int column;            // that is read: of the kind, or EXCESS_RECEIVED
    int base, less;        // the same, or EXCESS_STARTED; `less` may be EXCESS_NONE
    enum record_kind kind; // RECORD_KIND_COUNT: all but RECORD_KIND_RUN
};

// How the column (of the kind, or EXCESS_RECEIVED) is kept; NULL: as it is.
const struct excess *excess_find(enum record_kind kind, int column);

// The one whose kept column has that name in the kind's table, or NULL.
const struct excess *excess_of_kept(enum record_kind kind, const char *name);

// A column's name, for one of the numbers in struct excess.
const char *excess_name(enum record_kind kind, int column);

// value - (base - less); false where 64 bits do not hold one of the differences, and the
// value's digits are kept.
bool excess_of(int64_t *out, int64_t value, int64_t base, int64_t less);

// Appends the type and the expression of the column that is read, as a table's
// definition has it.
void excess_append_generated(struct sqlite3_str *sql, enum record_kind kind,
                             const struct excess *excess);

// Appends the expression of what is kept: over the parameters of schema_insert_sql, which
// are integers or null, and over a row that has the columns that are read, whatever
// somebody may have put there.
void excess_append_kept_bound(struct sqlite3_str *sql, enum record_kind kind,
                              const struct excess *excess);
void excess_append_kept_of(struct sqlite3_str *sql, enum record_kind kind,
                           const struct excess *excess);

#endif
