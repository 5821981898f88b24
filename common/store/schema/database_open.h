// Opening store files: for reading, as a source to copy from, or for writing, which makes
// new stores and migrates older ones.
#ifndef INFERSTAT_STORE_SCHEMA_DATABASE_OPEN_H
#define INFERSTAT_STORE_SCHEMA_DATABASE_OPEN_H

#include "common/core/base/error.h"

struct sqlite3;

// Opens an existing store for reading only and checks that it is one (schema_migrate.h).
// A store in a read-only folder (a copy) is opened as immutable, or with its existing
// write-ahead log.
MUST_CHECK enum status database_open_reader(struct sqlite3 **out, const char *path,
                                            struct error *err);

// The same, to be copied from: other files can be attached and written to.
MUST_CHECK enum status database_open_source(struct sqlite3 **out, const char *path,
                                            struct error *err);

// Opens the store for writing, in WAL mode with synchronous=FULL; a file that is
// missing or empty becomes a new store, an older one is migrated.  The caller
// holds the store's lock.
MUST_CHECK enum status database_open_writer(struct sqlite3 **out, const char *path,
                                            struct error *err);

#endif
