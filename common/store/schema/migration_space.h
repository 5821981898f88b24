// The disk space that migrating a store needs, checked before anything is changed.
#ifndef INFERSTAT_STORE_SCHEMA_MIGRATION_SPACE_H
#define INFERSTAT_STORE_SCHEMA_MIGRATION_SPACE_H

#include <stdint.h>

#include "common/core/base/error.h"

struct sqlite3;

// `*needed`: the rows of sealed segments (unseal.h) become rows of a table, and the log grows
// as large as the tables that are rewritten.  STATUS_FULL, with both numbers, where
// `free_bytes` are less.
MUST_CHECK enum status migration_check_space(struct sqlite3 *db, int64_t free_bytes,
                                             int64_t *needed, struct error *err);

#endif
