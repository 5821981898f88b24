// Saves the reject counters in the store's table `refusal`.  Writer thread only.
#ifndef INFERSTAT_COLLECTOR_WRITER_WRITER_REFUSALS_H
#define INFERSTAT_COLLECTOR_WRITER_WRITER_REFUSALS_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "server/collector/threads/reject_counters.h"

struct sqlite3;

// Adds the unsaved counts to the table in the current transaction.  Call reject_counters_saved
// once that has ended.  Accepts NULL.
MUST_CHECK enum status writer_save_refusals(struct reject_counters *reject_counters,
                                            struct sqlite3 *db, int64_t now_ns, struct error *err);

#endif
