// A mark in the store's file that says a collector has it open, so that a copy of
// the file alone can be told from a whole store: the last commits of an open one
// are in its log (FILE-wal), and a copy without that lacks them without a trace.
//
// The mark is the row `open` of the table meta; its value is the number of the
// file's schema (PRAGMA schema_version), which SQLite counts on wherever it makes a
// copy itself (VACUUM INTO, the backup interface): those copies are whole, and the
// mark in them is not theirs.
#ifndef INFERSTAT_STORE_OPEN_MARKER_H
#define INFERSTAT_STORE_OPEN_MARKER_H

#include <stdbool.h>

#include "common/core/base/error.h"

struct sqlite3;

// Sets the mark and folds it into the file, before anything else is committed.  The
// writer, which holds the store's lock; outside of a transaction.
MUST_CHECK enum status open_marker_set(struct sqlite3 *db, struct error *err);

// Takes it away: all that was committed will be in the file once this connection,
// the last one, is closed.
MUST_CHECK enum status open_marker_clear(struct sqlite3 *db, struct error *err);

// Whether the file at `path`, open in `db`, was copied from an open store without its
// log: it has the mark, and neither a log with anything in it nor the store's lock
// file lies beside it.
MUST_CHECK enum status open_marker_lacks_log(struct sqlite3 *db, const char *path, bool *lacks,
                                             struct error *err);

#endif
