// Turns sealed history, which schema versions 6 to 8 could keep, back into rows.
#ifndef INFERSTAT_STORE_SCHEMA_UNSEAL_H
#define INFERSTAT_STORE_SCHEMA_UNSEAL_H

#include "common/core/base/error.h"

struct sqlite3;

// Moves the rows of all segments in the table `sealed` (if there is one) back into the
// table of their kind, under the ids that they had; a transaction a segment, so that it can
// be killed at any time and continues when it is called again.
//
// A damaged segment is deleted.  Its records are counted as cleared in their runs' ledgers;
// where not even those can be told from its bytes, the audit reports the missing records.
// Both are logged as errors, with the number of records and the time that they are from.
MUST_CHECK enum status unseal(struct sqlite3 *db, struct error *err);

#endif
