// Opens store files (SQLite databases): database_open_reader for queries and copies,
// database_open_writer for changes, which also creates new stores and migrates older ones.
// The caller closes the connection with database_close and uses it on one thread at a time.
#ifndef INFERSTAT_STORE_SCHEMA_DATABASE_OPEN_H
#define INFERSTAT_STORE_SCHEMA_DATABASE_OPEN_H

#include "common/core/base/error.h"

struct sqlite3;

// Opens an existing store read-only and verifies that it is a store of this version; the errors are
// those of file_probe_look and schema_check.  The connection may attach other database files and
// write to those.  A store in a read-only directory is opened as immutable (SQLite takes no locks
// and ignores changes), unless it has a write-ahead log there.
MUST_CHECK enum status database_open_reader(struct sqlite3 **out, const char *path,
                                            struct error *err);

// Opens the store for writing, in WAL mode with synchronous=FULL.  A missing or empty file becomes
// a new store; an older store is migrated.  The caller holds the store's lock (lock.h).
MUST_CHECK enum status database_open_writer(struct sqlite3 **out, const char *path,
                                            struct error *err);

#endif
