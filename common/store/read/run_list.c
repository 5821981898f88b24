#include "common/store/read/run_list.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/store/read/filter.h"
#include "common/store/read/reader.h"
#include "common/store/read/session_state.h"

static enum status take_run(void *context, sqlite3_stmt *row, struct error *err)
{
    struct run_list *runs = context;
    if (!ARRAY_RESERVE(&runs->list, &runs->room, runs->count + 1))
        return error_no_memory(err, "store");
    runs->list[runs->count++] = (struct listed_run){
        .run = sqlite3_column_int64(row, 0),
        .host = sqlite3_column_int64(row, 1),
        .open = sqlite3_column_int64(row, 2) == RECORD_RUN_END_OPEN,
        .stored = sqlite3_column_int64(row, 3),
        .started_ns = sqlite3_column_int64(row, 4),
        .heard_ns = sqlite3_column_int64(row, 5),
        .has_suspects = sqlite3_column_int64(row, 6) != 0,
    };
    return STATUS_OK;
}

enum status run_list_read(struct run_list *runs, struct store *store,
                          const struct query_filter *filter, struct error *err)
{
    *runs = (struct run_list){0};
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "SELECT t.run, t.host, t.\"end\", t.stored, t.started_ns,"
                               " t.heard_ns, t.clock_suspects FROM run t");
    filter_where_run(sql, filter);
    enum status status = reader_scan(store, sql, filter, take_run, runs, err);
    if (status != STATUS_OK) {
        run_list_deinit(runs);
        return status;
    }
    // Not left to SQLite, which reads all runs there are where it is to give them in order.
    if (runs->count > 0)
        qsort(runs->list, runs->count, sizeof *runs->list, array_compare_first);
    return STATUS_OK;
}

void run_list_deinit(struct run_list *runs)
{
    free(runs->list);
    *runs = (struct run_list){0};
}

const struct listed_run *run_list_find(const struct run_list *runs, int64_t run)
{
    return array_find(runs->list, runs->count, sizeof *runs->list, run);
}
