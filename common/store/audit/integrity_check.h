// Checks a store's file for damage: SQLite's own integrity check, then the store's checksums.
#ifndef INFERSTAT_STORE_AUDIT_INTEGRITY_CHECK_H
#define INFERSTAT_STORE_AUDIT_INTEGRITY_CHECK_H

#include "common/core/base/error.h"

struct store;

// Reads every page of the file, compares tables with their indexes, then every rollup
// with its checksum (rollup_row.h).  STATUS_CORRUPT names the first damage found;
// STATUS_TIMEOUT over the store's budget.
MUST_CHECK enum status integrity_check(struct store *store, struct error *err);

// What SQLite's checks have found, as one line of at most 199 bytes: the first finding
// without the heading above it.
enum { INTEGRITY_FINDING_SIZE = 200 };
const char *integrity_finding(char out[INTEGRITY_FINDING_SIZE], const char *text);

#endif
