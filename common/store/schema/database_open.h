// SQLite connections to store files: database_open_reader opens a store for queries and copies,
// database_open_writer opens it for changes, and creates or migrates it if necessary.  The caller
// uses a connection on one thread at a time, and closes it with database_close.
#ifndef INFERSTAT_STORE_SCHEMA_DATABASE_OPEN_H
#define INFERSTAT_STORE_SCHEMA_DATABASE_OPEN_H

#include "common/core/base/error.h"

struct sqlite3;

// Opens an existing store read-only and verifies that it is a store of this version; the errors are
// those of file_probe_look and schema_check.  The connection may attach other database files and
// write to them.  A store in a read-only directory is opened as immutable (SQLite takes no locks
// and ignores changes), unless a write-ahead log lies beside it.
MUST_CHECK enum status database_open_reader(struct sqlite3 **out, const char *path,
                                            struct error *err);

// Opens the store for writing, in WAL mode with synchronous=FULL.  A missing or empty file becomes
// a new store; an older store is migrated.  The caller holds the store's lock (lock.h).
MUST_CHECK enum status database_open_writer(struct sqlite3 **out, const char *path,
                                            struct error *err);

#endif
