// A store file opened for reading, and pieces of work that see one state of it.  One thread
// at a time.
#ifndef INFERSTAT_STORE_READ_SESSION_H
#define INFERSTAT_STORE_READ_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"

struct store;

// Opens an existing store file for reading; a collector may be writing to it.
// STATUS_NOT_FOUND, STATUS_DENIED, STATUS_CORRUPT (not SQLite, or not ours: says
// which), STATUS_TOO_NEW (names both versions), STATUS_IO.
MUST_CHECK enum status store_open(struct store **out, const char *path, struct error *err);
void store_close(struct store *store);

// What the user has to be told once of the file, such as that it is the copy of an
// open store without its log; "" where there is nothing.  Lives as long as the store.
const char *store_warning(const struct store *store);

// Queries that take longer than `budget_ns` fail with STATUS_TIMEOUT from now on;
// 0, as at first: no limit.
void store_set_budget(struct store *store, uint64_t budget_ns);

// Queries during which the store's log grows by more than `bytes` fail with STATUS_FULL
// from now on: as long as they read, nothing of it can be used again.  0, as at first:
// no limit.
void store_set_log_limit(struct store *store, int64_t bytes);

// Cancels the query running in another thread, and every later one (STATUS_CANCELLED).  Any thread,
// until store_close.
void store_cancel(struct store *store);

// Whether the running query has taken all its time, for loops that are not SQLite's.
bool store_is_over_budget(const struct store *store);

// What is done with one state of the store, and leaves its product in `*out`; freed by
// whoever fails.
typedef enum status session_work(struct store *store, const struct query *query, void *out,
                                 struct error *err);

// Checks the query and does the work in a transaction, within the store's budget.
MUST_CHECK enum status session_run(struct store *store, session_work *work,
                                   const struct query *query, void *out, struct error *err);

#endif
