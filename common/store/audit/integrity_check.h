// Integrity check of a store's file: SQLite's own check, then the rollups' checksums.
#ifndef INFERSTAT_STORE_AUDIT_INTEGRITY_CHECK_H
#define INFERSTAT_STORE_AUDIT_INTEGRITY_CHECK_H

#include "common/core/base/error.h"

struct sqlite3;
struct store;

// Reads every page of the file and compares tables with their indexes; then verifies each rollup's
// checksum (rollup_row.h).  STATUS_CORRUPT names the first damage found; STATUS_TIMEOUT over the
// store's budget.
MUST_CHECK enum status integrity_check(struct store *store, struct error *err);

// Runs one of SQLite's own checks, "PRAGMA integrity_check(1)" or "PRAGMA quick_check(1)".
// `finding`: what is damaged, on one line; "": nothing.
enum { INTEGRITY_FINDING_SIZE = 200 };
MUST_CHECK enum status integrity_pragma(char finding[INTEGRITY_FINDING_SIZE], struct sqlite3 *db,
                                        const char *pragma, struct error *err);

#endif
