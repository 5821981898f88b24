// Integrity check of a store's file: SQLite's own check, then the checksums of the rollups.  It
// finds damage to the file; audit.h finds missing records.
#ifndef INFERSTAT_STORE_AUDIT_INTEGRITY_CHECK_H
#define INFERSTAT_STORE_AUDIT_INTEGRITY_CHECK_H

#include "common/core/base/error.h"

struct sqlite3;
struct store;

// Reads every page of the file and compares tables with their indexes, then verifies the checksum
// of each rollup (rollup_row.h).  Returns STATUS_CORRUPT if there is damage, and `err` names the
// first; STATUS_TIMEOUT if it exceeds the store's time budget.
MUST_CHECK enum status integrity_check(struct store *store, struct error *err);

// Runs one of SQLite's own checks; `pragma` is "PRAGMA integrity_check(1)" or "PRAGMA
// quick_check(1)".  Sets `finding` to what is damaged, in one line, or to "".
enum { INTEGRITY_FINDING_SIZE = 200 };
MUST_CHECK enum status integrity_pragma(char finding[INTEGRITY_FINDING_SIZE], struct sqlite3 *db,
                                        const char *pragma, struct error *err);

#endif
