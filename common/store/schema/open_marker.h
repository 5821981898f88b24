// Open marker (a dirty flag): set in the store's file while a collector has the store open.  The
// marker reveals incomplete copies: the last commits of an open store are in its write-ahead log
// (FILE-wal), and a copy of FILE alone lacks them.
//
// The marker is the row with the key `open` in the table meta.  Its value is the file's PRAGMA
// schema_version.  SQLite increments schema_version in the complete copies that SQLite itself makes
// (VACUUM INTO, the backup interface), so the marker does not match there.
#ifndef INFERSTAT_STORE_SCHEMA_OPEN_MARKER_H
#define INFERSTAT_STORE_SCHEMA_OPEN_MARKER_H

#include <stdbool.h>

#include "common/core/base/error.h"

struct sqlite3;

// Sets the marker and checkpoints it into the file.  The writer calls it outside of a transaction,
// before any other commit; it holds the store's lock.
MUST_CHECK enum status open_marker_set(struct sqlite3 *db, struct error *err);

// Removes the marker.  To be called before the last connection is closed, since closing it
// checkpoints all commits into the file.
MUST_CHECK enum status open_marker_clear(struct sqlite3 *db, struct error *err);

// Sets `*lacks` to true if the file at `path`, open in `db`, was copied from an open store without
// its log: it has a matching marker, but neither a non-empty log nor the lock file (FILE.lock) that
// a collector holds lies beside it.  Otherwise sets `*lacks` to false.
MUST_CHECK enum status open_marker_lacks_log(struct sqlite3 *db, const char *path, bool *lacks,
                                             struct error *err);

#endif
