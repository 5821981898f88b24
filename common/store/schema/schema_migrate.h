// Schema migration: creates the tables of a new store and upgrades stores of older versions.
#ifndef INFERSTAT_STORE_SCHEMA_SCHEMA_MIGRATE_H
#define INFERSTAT_STORE_SCHEMA_SCHEMA_MIGRATE_H

#include <stdint.h>

#include "common/core/base/error.h"

struct sqlite3;

// Verifies that the file is a store of this version: STATUS_CORRUPT (not SQLite, or another
// application's), STATUS_TOO_NEW, STATUS_UNSUPPORTED (an older version, which the collector
// migrates).  Errors name both versions.
MUST_CHECK enum status schema_check(struct sqlite3 *db, const char *path, struct error *err);

// Creates the tables in an empty file, or migrates an older store to this version, in one
// transaction; sealed rows are unpacked before it (unseal.h).  STATUS_CORRUPT and STATUS_TOO_NEW as
// schema_check; STATUS_FULL if the disk has too little space.
MUST_CHECK enum status schema_migrate(struct sqlite3 *db, const char *path, struct error *err);

// Sets `*needed` to the bytes that a migration may write: the rows of sealed segments (unseal.h),
// and rewritten tables, which go through the write-ahead log.  STATUS_FULL, with both numbers, if
// it exceeds `free_bytes`.
MUST_CHECK enum status schema_check_space(struct sqlite3 *db, int64_t free_bytes, int64_t *needed,
                                          struct error *err);

#endif
