// ADMIN_LOG: what administrators did.
#include <sqlite3.h>

#include "common/store/query/query_list.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/reader.h"
#include "common/store/read/session_state.h"

static const struct answer_column columns[] = {
    {"at_ns", UNIT_TIME},  {"actor", UNIT_NONE},   {"action", UNIT_NONE},
    {"detail", UNIT_NONE}, {"outcome", UNIT_NONE}, {"rows", UNIT_COUNT},
};

static enum status on_act(void *context, sqlite3_stmt *row, struct error *err)
{
    struct result *answer = context;
    answer_row(answer);
    return answer_on_row(answer, row, err);
}

enum status query_admin_log(struct store *store, const struct query *query, struct result **out,
                            struct error *err)
{
    const struct query_filter *filter = &query->filter;
    enum status status = answer_new(out, columns, sizeof columns / sizeof *columns, err);
    if (status != STATUS_OK)
        return status;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql,
                        "SELECT at_ns, actor, action, detail, outcome, rows FROM main.admin"
                        " WHERE at_ns >= %lld AND at_ns < %lld ORDER BY id DESC LIMIT %u",
                        (long long)filter->since_ns,
                        (long long)(filter->until_ns ? filter->until_ns : INT64_MAX),
                        query->limit ? query->limit : (unsigned)QUERY_ROWS_MAX);
    return reader_scan(store, sql, NULL, on_act, *out, err);
}
