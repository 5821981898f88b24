// Read session: a store file opened for reading, with read transactions (snapshots) under a time
// budget.  A collector may be writing to the file.  Only one thread at a time uses a session; any
// other may call store_cancel.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/store/sqlite/statement_cache.h"

struct groups;
struct store_recent;

// What now_usual.c keeps of former days.
struct store_usual {
    struct groups *medians;                             // owned; NULL: none are kept
    char model[QUERY_TEXT_SIZE], host[QUERY_TEXT_SIZE]; // of the filter
    int64_t hour_ns;
    int64_t acts;     // the last act in the audit log
    uint64_t read_ns; // monotonic clock
};

// An open store.  Only the store's own modules read the members.  session.c sets them; `limits` is
// set by import_file.c, and `deadline_ns` also by that file and by coverage.c (for a while).
struct store {
    struct sqlite3 *db;
    struct sqlite3_stmt *name;         // SELECT text FROM name WHERE id = ?
    struct sqlite3_stmt *uuid;         // SELECT uuid FROM run WHERE run = ?
    struct statement_cache statements; // other statements of `db`
    struct store_usual usual[2];       // of the present, and of a window that has ended
    struct store_recent *recent;       // what recent.c keeps of requests; owned; NULL: nothing
    void (*free_recent)(struct store_recent *recent);
    char *path;    // of the file, as passed to store_open; owned
    char *warning; // text of store_warning, owned; NULL: none
    // A second store whose budget and cancellation also stop this one's queries (import); NULL:
    // none.
    const struct store *limits;
    bool is_live;          // set by store_set_live
    uint64_t budget_ns;    // max. duration of a query; 0: 12 hours
    int64_t log_limit;     // max. growth of the write-ahead log during a query, bytes; 0: no limit
    int64_t log_before;    // size of that log when the running query began
    uint64_t deadline_ns;  // of the running query, monotonic clock; 0: none
    atomic_bool cancelled; // set by store_cancel; no other data depends on it
};

// Opens an existing store file.  Returns STATUS_NOT_FOUND, STATUS_DENIED, STATUS_CORRUPT (not
// SQLite, or another program's file), STATUS_TOO_NEW (a newer version's; `err` names both
// versions), STATUS_UNSUPPORTED (an older version's) or STATUS_IO.
MUST_CHECK enum status store_open(struct store **out, const char *path, struct error *err);
void store_close(struct store *store);

// A warning to show the user once, e.g. that the file is a copy of an open store without its log;
// "": none.  Valid until store_close.
const char *store_warning(const struct store *store);

// Sets the time budget of later queries: longer ones fail with STATUS_TIMEOUT.  Initially 0, which
// is 12 hours.
void store_set_budget(struct store *store, uint64_t budget_ns);

// Declares that a collector keeps the store up to date, so that NOW may judge by the clock.
void store_set_live(struct store *store);

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

// Makes statements of another connection `db` fail, too, when the running query must stop.  The
// store is borrowed until `db` is closed.
void store_watch(struct store *store, struct sqlite3 *db);

// By how many bytes the store's write-ahead log has grown since the running query began.
int64_t store_log_growth(const struct store *store);

// Reads from one snapshot of the store and sets what `out` points to.  On failure it must free its
// result itself.
typedef enum status session_work(struct store *store, const struct query *query, void *out,
                                 struct error *err);

// Validates the query, then calls `work` with `out` in a read transaction within the store's
// budget.
MUST_CHECK enum status session_run(struct store *store, session_work *work,
                                   const struct query *query, void *out, struct error *err);

// Makes the change that the query asks for to an open store, and sets what `out` points to.  `db`
// is the connection for writing, `store` the one for reading.  Sets `*rows` to the number of rows
// changed, also where it fails in between.
typedef enum status session_change(struct store *store, struct sqlite3 *db,
                                   const struct query *query, void *out, int64_t *rows,
                                   struct error *err);

// Calls `change` with `out` and the store file at `path`, which no collector may have open: takes
// the store's lock meanwhile.  Adds the act, which `query` describes, to the store's audit log,
// even if `change` fails.  Returns STATUS_BUSY if the lock is taken, or an error of query_check,
// store_open, database_open_writer or `change`.
MUST_CHECK enum status session_change_file(const char *path, const struct query *query,
                                           session_change *change, void *out, struct error *err);
