// Which columns sealed rows of a kind keep, and what is known of them.
#ifndef INFERSTAT_STORE_SEAL_COLUMNS_H
#define INFERSTAT_STORE_SEAL_COLUMNS_H

#include <stdbool.h>

#include "common/core/record.h"
#include "common/store/seal_codec.h"

// Kinds whose rows can be sealed: they are many, and all integers.
bool seal_has_kind(enum record_kind kind);

enum { SEAL_RUN, SEAL_ID, SEAL_STREAM, SEAL_NUMBER, SEAL_STARTED, SEAL_RECEIVED, SEAL_FIRST };

// The column and the value of rows that stay where they are, since they are few and
// looked for: an index of their own finds what failed.
bool seal_stays(enum record_kind kind, unsigned *column, int64_t *value);

// What a kind's rows keep: run, id, stream, number, started_ns, what is kept of
// received_ns, then the record table's columns as they are kept (excess.h), from
// SEAL_FIRST on.
unsigned seal_columns(enum record_kind kind, const char *names[SEAL_COLUMNS_MAX]);

// The place among them of what lines go by.
unsigned seal_group(enum record_kind kind);

// The column that stands behind all others: it is made from some of them.
unsigned seal_behind(enum record_kind kind);

unsigned seal_guesses(enum record_kind kind, struct seal_guess guesses[SEAL_GUESSES_MAX]);

#endif
