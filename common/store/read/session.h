// Read session: a store file opened for reading, with read transactions under a time budget.  One
// thread at a time.
#ifndef INFERSTAT_STORE_READ_SESSION_H
#define INFERSTAT_STORE_READ_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"

struct store;

// Opens an existing store file for reading; a collector may be writing to it.  STATUS_NOT_FOUND,
// STATUS_DENIED, STATUS_CORRUPT (not SQLite, or another program's), STATUS_TOO_NEW (names both
// versions), STATUS_UNSUPPORTED (an older version), STATUS_IO.
MUST_CHECK enum status store_open(struct store **out, const char *path, struct error *err);
void store_close(struct store *store);

// A warning to show the user once, e.g. that the file is a copy of an open store without its log;
// "": none.  Valid until store_close.
const char *store_warning(const struct store *store);

// Sets the time budget: longer queries fail with STATUS_TIMEOUT.  0, the initial value: no limit.
void store_set_budget(struct store *store, uint64_t budget_ns);

// Sets the log limit: queries during which the store's log grows by more than `bytes` fail with
// STATUS_FULL, since a reader keeps the log from being reused.  0, the initial value: no limit.
void store_set_log_limit(struct store *store, int64_t bytes);

// Cancels the query running in another thread and all later ones (STATUS_CANCELLED).  From any
// thread, until store_close.
void store_cancel(struct store *store);

// Whether the running query must stop (budget, log limit, cancelled); for loops outside of SQLite.
bool store_is_over_budget(const struct store *store);

// Work on one snapshot of the store; its product goes to `*out`.  On failure it frees the product
// itself.
typedef enum status session_work(struct store *store, const struct query *query, void *out,
                                 struct error *err);

// Checks the query, then runs `work` in a read transaction within the store's budget.
MUST_CHECK enum status session_run(struct store *store, session_work *work,
                                   const struct query *query, void *out, struct error *err);

#endif
