// Schema migration: creates the tables of a new store and upgrades stores of older versions.
// Connections that write call schema_migrate; those that only read call schema_check.
#pragma once

#include <stdint.h>

#include "common/core/base/error.h"

struct sqlite3;

// Verifies that the file at `path`, open in `db`, is a store of this version; `path` is only for
// messages.  Returns
//   STATUS_CORRUPT      not SQLite, another application's file, or a table of a store is missing or
//                       is a view or a virtual table
//   STATUS_TOO_NEW      a newer version; `err` names both versions
//   STATUS_UNSUPPORTED  an older version (the collector migrates it); `err` names both versions
MUST_CHECK enum status schema_check(struct sqlite3 *db, const char *path, struct error *err);

// Creates a temporary view v_ledger: this connection then uses it instead of the file's v_ledger.
MUST_CHECK enum status schema_make_ledger(struct sqlite3 *db, struct error *err);

// Creates the tables in an empty file, or migrates an older store to this version, in one
// transaction; does nothing for a store of this version.  Before this transaction, calls
// schema_check_space with the disk's free bytes, and unpacks sealed rows (compressed blocks of old
// rows; schema_rebuild.h) in separate transactions.  Returns STATUS_CORRUPT or STATUS_TOO_NEW as
// schema_check does, STATUS_FULL if the disk has too little space.
MUST_CHECK enum status schema_migrate(struct sqlite3 *db, const char *path, struct error *err);

// Sets `*needed` to the bytes that a migration may write: unpacked rows of sealed segments
// (schema_rebuild.h), and rewritten tables, which go through the write-ahead log.  Returns
// STATUS_FULL if that exceeds `free_bytes`; `err` names both sizes.
MUST_CHECK enum status schema_check_space(struct sqlite3 *db, int64_t free_bytes, int64_t *needed,
                                          struct error *err);
