// Making the tables of a new store, and turning files of older versions into files of this
// one.
#ifndef INFERSTAT_STORE_SCHEMA_SCHEMA_MIGRATE_H
#define INFERSTAT_STORE_SCHEMA_SCHEMA_MIGRATE_H

#include "common/core/base/error.h"

struct sqlite3;

// Whether the file is a store that this program can read: STATUS_CORRUPT (not
// SQLite, or another application's), STATUS_TOO_NEW and STATUS_UNSUPPORTED (an
// older version: the collector migrates it) name both versions.
MUST_CHECK enum status schema_check(struct sqlite3 *db, const char *path, struct error *err);

// Makes an empty file a store, or an older store one of this version, in one
// transaction; sealed rows are unpacked before (unseal.h).  Fails as schema_check does where
// the file is neither, and with STATUS_FULL where the disk has too little space.
MUST_CHECK enum status schema_migrate(struct sqlite3 *db, const char *path, struct error *err);

// What turns a file of any version below `to` into one of that version.
struct schema_step {
    int to;
    enum status (*apply)(struct sqlite3 *db, struct error *err);
};

// schema_migrate with the steps given, rising; for tests.
MUST_CHECK enum status schema_apply(struct sqlite3 *db, const char *path,
                                    const struct schema_step *steps, unsigned count,
                                    struct error *err);

// Adds the record table's columns that the file's tables lack.
MUST_CHECK enum status schema_add_columns(struct sqlite3 *db, struct error *err);

#endif
