// Forgetting rows, with the ledger knowing.
#ifndef INFERSTAT_STORE_CLEAR_H
#define INFERSTAT_STORE_CLEAR_H

#include <stdint.h>

#include "common/core/error.h"
#include "common/core/query.h"

struct sqlite3;

// Deletes the rows of all kinds but runs that the filter covers, counts them as
// cleared in their runs' ledgers, in one transaction of its own, and gives the
// room back to the file system.  `*cleared`: rows.
MUST_CHECK enum status clear_rows(struct sqlite3 *db, const struct query_filter *filter,
                                  uint64_t *cleared, struct error *err);

#endif
