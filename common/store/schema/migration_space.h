// Disk space check of a migration, made before anything is changed.
#ifndef INFERSTAT_STORE_SCHEMA_MIGRATION_SPACE_H
#define INFERSTAT_STORE_SCHEMA_MIGRATION_SPACE_H

#include <stdint.h>

#include "common/core/base/error.h"

struct sqlite3;

// Sets `*needed` to the bytes that the migration may write: the rows of sealed segments (unseal.h),
// and rewritten tables, which go through the write-ahead log.  STATUS_FULL, with both numbers, if
// it exceeds `free_bytes`.
MUST_CHECK enum status migration_check_space(struct sqlite3 *db, int64_t free_bytes,
                                             int64_t *needed, struct error *err);

#endif
