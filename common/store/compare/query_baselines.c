// BASELINES: the baselines kept, by name.
#include <sqlite3.h>

#include "common/store/compare/baseline.h"
#include "common/store/read/reader.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/session_state.h"

static const struct answer_column columns[] = {
    {"baseline", UNIT_NONE},    {"created_ns", UNIT_TIME}, {"filter", UNIT_NONE},
    {"since_ns", UNIT_TIME},    {"until_ns", UNIT_TIME},   {"coverage_ratio", UNIT_RATIO},
    {"runs", UNIT_COUNT},       {"samples", UNIT_COUNT},   {"values", UNIT_COUNT},
    {"fingerprint", UNIT_NONE},
};

enum { COLUMN_COUNT = sizeof columns / sizeof *columns };

static enum status on_baseline(void *context, sqlite3_stmt *row, struct error *err)
{
    struct result *answer = context;
    answer_row(answer);
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < COLUMN_COUNT && status == STATUS_OK; i++)
        status = answer_cell(answer, i, row, (int)i, err);
    return status;
}

enum status query_baselines(struct store *store, const struct query *query, struct result **out,
                            struct error *err)
{
    const uint32_t limit = query->limit ? query->limit : QUERY_ROWS_MAX;
    enum status status = answer_new(out, columns, COLUMN_COUNT, err);
    if (status != STATUS_OK)
        return status;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(
        sql,
        "SELECT b.name, b.created_ns, b.filter, b.since_ns, b.until_ns, b.coverage_ratio,"
        " CASE WHEN json_valid(b.fingerprint) THEN json_extract(b.fingerprint, '$.runs') END,"
        " count(s.metric), CAST(total(" BASELINE_SQL_VALUES ") AS INTEGER), b.fingerprint"
        " FROM baseline b LEFT JOIN baseline_sample s ON s.baseline = b.id"
        " GROUP BY b.id ORDER BY b.name LIMIT %lld",
        (long long)(limit < QUERY_ROWS_MAX ? limit : QUERY_ROWS_MAX));
    return reader_scan(store, sql, NULL, on_baseline, *out, err);
}
