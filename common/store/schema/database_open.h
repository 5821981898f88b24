// Opens store files: as a reader, as the source of a copy, or as the writer, which creates new
// stores and migrates older ones.
#ifndef INFERSTAT_STORE_SCHEMA_DATABASE_OPEN_H
#define INFERSTAT_STORE_SCHEMA_DATABASE_OPEN_H

#include "common/core/base/error.h"

struct sqlite3;

// Opens an existing store read-only and verifies that it is a store of this version (schema_check);
// other database files can be attached and written to.  A store in a read-only folder (a copy) is
// opened as immutable, or with its existing write-ahead log.
MUST_CHECK enum status database_open_reader(struct sqlite3 **out, const char *path,
                                            struct error *err);

// Opens the store for writing, in WAL mode with synchronous=FULL.  A missing or empty file becomes
// a new store; an older store is migrated.  The caller holds the store's lock (lock.h).
MUST_CHECK enum status database_open_writer(struct sqlite3 **out, const char *path,
                                            struct error *err);

#endif
