// Integrity check of a store's file: SQLite's own check, then the rollups' checksums.
#ifndef INFERSTAT_STORE_AUDIT_INTEGRITY_CHECK_H
#define INFERSTAT_STORE_AUDIT_INTEGRITY_CHECK_H

#include "common/core/base/error.h"

struct store;

// Reads every page of the file and compares tables with their indexes; then verifies each rollup's
// checksum (rollup_row.h).  STATUS_CORRUPT names the first damage found; STATUS_TIMEOUT over the
// store's budget.
MUST_CHECK enum status integrity_check(struct store *store, struct error *err);

// Extracts the first finding of SQLite's integrity check, without the heading line, as one line of
// at most 199 bytes.
enum { INTEGRITY_FINDING_SIZE = 200 };
const char *integrity_finding(char out[INTEGRITY_FINDING_SIZE], const char *text);

#endif
