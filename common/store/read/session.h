// Read session: a store file opened for reading, with read transactions (snapshots) under a time
// budget.  A collector may be writing to the file.  A session is used by one thread at a time.
#ifndef INFERSTAT_STORE_READ_SESSION_H
#define INFERSTAT_STORE_READ_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"

struct store;

// Opens an existing store file.  Returns STATUS_NOT_FOUND, STATUS_DENIED, STATUS_CORRUPT (not
// SQLite, or another program's file), STATUS_TOO_NEW (a newer version's; `err` names both
// versions), STATUS_UNSUPPORTED (an older version's) or STATUS_IO.
MUST_CHECK enum status store_open(struct store **out, const char *path, struct error *err);
void store_close(struct store *store);

// A warning to show the user once, e.g. that the file is a copy of an open store without its log;
// "": none.  Valid until store_close.
const char *store_warning(const struct store *store);

// Sets the time budget: longer queries fail with STATUS_TIMEOUT.  0, the initial value: 12 hours.
void store_set_budget(struct store *store, uint64_t budget_ns);

// Sets the log limit: a query fails with STATUS_FULL if the store's write-ahead log grows by more
// than `bytes` meanwhile.  A reader's snapshot keeps the log from being reused.  0, the initial
// value: no limit.
void store_set_log_limit(struct store *store, int64_t bytes);

// Cancels the running query and all later ones, which return STATUS_CANCELLED.  May be called by
// any thread until store_close.
void store_cancel(struct store *store);

// True if the running query must stop: it is over its budget or log limit, or cancelled.  For loops
// outside of SQLite, which checks this itself.
bool store_is_over_budget(const struct store *store);

// Reads from one snapshot of the store and sets what `out` points to.  On failure it must free its
// result itself.
typedef enum status session_work(struct store *store, const struct query *query, void *out,
                                 struct error *err);

// Validates the query, then calls `work` with `out` in a read transaction within the store's
// budget.
MUST_CHECK enum status session_run(struct store *store, session_work *work,
                                   const struct query *query, void *out, struct error *err);

#endif
