// Open marker: a flag in the store's file while a collector has it open.  It exposes incomplete
// copies: the last commits of an open store are in its write-ahead log (FILE-wal), and a copy of
// the file alone silently lacks them.
//
// The marker is the row `open` of the table meta.  Its value is the file's PRAGMA schema_version,
// which SQLite increments in the copies that it makes itself (VACUUM INTO, the backup interface):
// those copies are complete, and their marker does not match.
#ifndef INFERSTAT_STORE_SCHEMA_OPEN_MARKER_H
#define INFERSTAT_STORE_SCHEMA_OPEN_MARKER_H

#include <stdbool.h>

#include "common/core/base/error.h"

struct sqlite3;

// Sets the marker and checkpoints it into the file, before the first other commit.  Called by the
// writer, which holds the store's lock, outside of a transaction.
MUST_CHECK enum status open_marker_set(struct sqlite3 *db, struct error *err);

// Removes the marker; to be called before closing the last connection, which checkpoints all
// commits into the file.
MUST_CHECK enum status open_marker_clear(struct sqlite3 *db, struct error *err);

// Whether the file at `path`, open in `db`, was copied from an open store without its log: it has
// the marker, but neither a non-empty log nor the store's lock file lies beside it.
MUST_CHECK enum status open_marker_lacks_log(struct sqlite3 *db, const char *path, bool *lacks,
                                             struct error *err);

#endif
