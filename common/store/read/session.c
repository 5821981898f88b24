#include "common/store/read/session.h"

#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/sqlite/admin_log.h"
#include "common/store/sqlite/database.h"
#include "common/store/sqlite/lock.h"
#include "common/store/rollup/aggregate.h"
#include "common/sys/clock.h"
#include "common/store/schema/database_open.h"

// A busy store's average over a month reads 2,500 rollups, which are some 400 pages: with
// SQLite's default of 2 MB each average would read all of them again.
#define PAGE_CACHE "PRAGMA cache_size=-6144" // KB

// Virtual-machine steps of SQLite between two looks at the clock.
enum { STEPS_PER_LOOK = 20000 };

// Max. duration of opening a store, and of a query without a budget: a hostile file must not occupy
// a program without end.
#define OPENING_NS_MAX UINT64_C(10000000000)
#define QUERY_NS_MAX   (UINT64_C(12) * 3600 * 1000000000)

static int64_t log_bytes(const struct store *store)
{
    return database_file_bytes(sqlite3_filename_wal(sqlite3_db_filename(store->db, "main")));
}

int64_t store_log_growth(const struct store *store)
{
    const int64_t bytes = log_bytes(store) - store->log_before;
    return bytes > 0 ? bytes : 0;
}

static bool log_is_long(const struct store *store)
{
    return store->log_limit > 0 && store_log_growth(store) > store->log_limit;
}

bool store_is_over_budget(const struct store *store)
{
    return (store->limits && store_is_over_budget(store->limits)) || log_is_long(store) ||
           atomic_load_explicit(&store->cancelled, memory_order_relaxed) ||
           (store->deadline_ns != 0 && clock_monotonic_ns() > store->deadline_ns);
}

static int over_budget(void *context)
{
    return store_is_over_budget(context);
}

void store_watch(struct store *store, struct sqlite3 *db)
{
    sqlite3_progress_handler(db, STEPS_PER_LOOK, over_budget, store);
}

// ---- SQL functions ----------------------------------------------------------------------

// The memory that SQLite keeps for a group is not aligned for struct aggregate: it has a pointer.
static void median_step(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    struct aggregate **sum = sqlite3_aggregate_context(context, sizeof *sum);
    if (sqlite3_value_type(values[0]) == SQLITE_NULL)
        return;
    if (sum && !*sum)
        *sum = calloc(1, sizeof **sum);
    if (sum && *sum && ((*sum)->sketch || sketch_new(&(*sum)->sketch) == STATUS_OK))
        aggregate_add_int(*sum, sqlite3_value_int64(values[0]));
    else
        sqlite3_result_error_nomem(context);
}

static void median_end(sqlite3_context *context)
{
    struct aggregate **sum = sqlite3_aggregate_context(context, 0);
    if (!sum || !*sum)
        return;
    sqlite3_result_double(context, aggregate_quantile(*sum, 0.5));
    aggregate_deinit(*sum);
    free(*sum);
}

// Registers median(x): the median of integers, within 1 % (sketch.h).
static enum status register_functions(sqlite3 *db, struct error *err)
{
    return sqlite3_create_function(db, "median", 1, SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL, NULL,
                                   median_step, median_end) == SQLITE_OK
               ? STATUS_OK
               : database_error(db, "store", err);
}

// ---- Opening ----------------------------------------------------------------------------

static enum status prepare_lookups(struct store *store, struct error *err)
{
    enum status status =
        database_prepare(store->db, &store->name, "SELECT text FROM name WHERE id = ?", true, err);
    if (status == STATUS_OK)
        status = database_prepare(store->db, &store->uuid, "SELECT uuid FROM run WHERE run = ?",
                                  true, err);
    return status;
}

// Says what cannot be seen in the answers.
static enum status look_for_log(struct store *store, struct error *err)
{
    static const char text[] = "store %s: copied from a store that was open, without its log "
                               "(%s-wal), or opened under another name: records committed shortly "
                               "before the copy may be missing "
                               "(copy it with: inferstat backup)";
    bool lacks = false;
    enum status status = open_marker_lacks_log(store->db, store->path, &lacks, err);
    if (status != STATUS_OK || !lacks)
        return status;
    store->warning = sqlite3_mprintf(text, store->path, store->path);
    return store->warning ? STATUS_OK : error_no_memory(err, "store");
}

enum status store_open(struct store **out, const char *path, struct error *err)
{
    struct store *store = calloc(1, sizeof *store);
    if (store)
        store->path = strdup(path);
    if (!store || !store->path) {
        store_close(store);
        return error_no_memory(err, "store");
    }
    enum status status = database_open_reader(&store->db, path, err);
    if (status == STATUS_OK) {
        store->deadline_ns = clock_monotonic_ns() + OPENING_NS_MAX;
        store_watch(store, store->db);
        status = database_exec(store->db, PAGE_CACHE, err);
    }
    if (status == STATUS_OK)
        status = register_functions(store->db, err);
    if (status == STATUS_OK)
        status = look_for_log(store, err);
    if (status == STATUS_OK)
        status = prepare_lookups(store, err);
    if (status != STATUS_OK) {
        store_close(store);
        return status;
    }
    store->deadline_ns = 0;
    *out = store;
    return STATUS_OK;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    (void)sqlite3_finalize(store->name);
    (void)sqlite3_finalize(store->uuid);
    statement_cache_end(&store->statements);
    groups_free(store->usual[0].medians);
    groups_free(store->usual[1].medians);
    if (store->recent)
        store->free_recent(store->recent);
    database_close(store->db);
    sqlite3_free(store->warning);
    free(store->path);
    free(store);
}

const char *store_warning(const struct store *store)
{
    return store->warning ? store->warning : "";
}

void store_set_budget(struct store *store, uint64_t budget_ns)
{
    store->budget_ns = budget_ns;
}

void store_set_live(struct store *store)
{
    store->is_live = true;
}

void store_set_log_limit(struct store *store, int64_t bytes)
{
    store->log_limit = bytes;
}

void store_cancel(struct store *store)
{
    atomic_store_explicit(&store->cancelled, true, memory_order_relaxed);
}

// All statements of one piece of work see one state of the store.
static enum status work_in_transaction(struct store *store, session_work *work,
                                       const struct query *query, void *out, struct error *err)
{
    enum status status = database_exec(store->db, "BEGIN", err);
    if (status != STATUS_OK)
        return status;
    store->log_before = log_bytes(store);
    status = work(store, query, out, err);
    if (status == STATUS_TIMEOUT && log_is_long(store))
        status = error_set(err, STATUS_FULL,
                           "store: its log grew by more than %lld MB while this was read"
                           " (try it when less is coming in, on less, or on a copy: inferstat"
                           " backup)",
                           (long long)(store->log_limit >> 20));
    store->deadline_ns = 0; // the budget must not interrupt the rollback
    database_rollback(store->db);
    return status;
}

enum status session_run(struct store *store, session_work *work, const struct query *query,
                        void *out, struct error *err)
{
    enum status status = query_check(query, err);
    if (status != STATUS_OK)
        return status;
    store->deadline_ns =
        clock_monotonic_ns() + (store->budget_ns ? store->budget_ns : QUERY_NS_MAX);
    status = work_in_transaction(store, work, query, out, err);
    store->deadline_ns = 0;
    if (status == STATUS_TIMEOUT && atomic_load_explicit(&store->cancelled, memory_order_relaxed))
        return error_set(err, STATUS_CANCELLED, "store: the query was cancelled");
    if (status == STATUS_TIMEOUT)
        return error_set(err, status,
                         "store: the query takes too long (narrow it with --since or a filter)");
    return status;
}

// The reading connection is opened before the lock is taken: no lock file is created beside a
// file that is not a store.
enum status session_change_file(const char *path, const struct query *query, session_change *change,
                                void *out, struct error *err)
{
    struct store *store = NULL;
    struct lock lock = LOCK_NONE;
    struct admin_act act = {.action = NULL};
    sqlite3 *db = NULL;
    int64_t rows = 0;
    enum status status = query_check(query, err);
    if (status == STATUS_OK)
        status = store_open(&store, path, err);
    if (status == STATUS_OK)
        status = lock_acquire_store(&lock, path, err);
    if (status == STATUS_OK)
        status = database_open_writer(&db, path, err);
    if (status == STATUS_OK)
        status = change(store, db, query, out, &rows, err);
    store_close(store);
    if (db) {
        admin_act_of_query(&act, query);
        admin_log_add_own(db, &act, status, err, rows);
    }
    database_close(db);
    lock_withdraw(&lock);
    return status;
}
