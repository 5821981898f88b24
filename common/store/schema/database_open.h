// SQLite connections to store files: database_open_reader opens a store for queries and copies,
// database_open_writer opens it for changes, and creates or migrates it if necessary.  The caller
// uses a connection on one thread at a time, and closes it with database_close.
#pragma once

#include <stdbool.h>

#include "common/core/base/error.h"

struct sqlite3;

// Opens an existing store read-only and verifies that it is a store of this version; the errors are
// those of file_probe_look and schema_check.  The connection may attach other database files and
// write to them.  If that fails since the directory is read-only, and there is no FILE-shm,
// the store is opened without locks: with its write-ahead log if one exists, else as immutable
// (SQLite ignores changes).
MUST_CHECK enum status database_open_reader(struct sqlite3 **out, const char *path,
                                            struct error *err);

// Opens the store for writing, in WAL mode with synchronous=FULL.  A missing or empty file becomes
// a new store; an older store is migrated.  The caller holds the store's lock (lock.h).
MUST_CHECK enum status database_open_writer(struct sqlite3 **out, const char *path,
                                            struct error *err);

// ---- Open marker -------------------------------------------------------------------------
//
// A dirty flag, set in the store's file while a collector has the store open.  It reveals
// incomplete copies: the last commits of an open store are in its write-ahead log (FILE-wal), and a
// copy of FILE alone lacks them.  The marker is the row with the key `open` in the table meta.  Its
// value is the file's PRAGMA schema_version, which SQLite increments in the complete copies that it
// makes itself (VACUUM INTO, the backup interface), so the marker does not match there.

// Sets the marker and checkpoints it into the file; if a reader blocks that, the next checkpoint
// does.  The writer calls it outside of a transaction,
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
