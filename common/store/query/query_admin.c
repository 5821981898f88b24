// ADMIN_LOG and BASELINES: what administrators did, and the baselines that they keep.
#include <sqlite3.h>

#include "common/store/query/query_list.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"

enum status query_admin_log(struct store *store, const struct query *query, struct result **out,
                            struct error *err)
{
    static const struct answer_column columns[] = {
        {"at_ns", UNIT_TIME},  {"actor", UNIT_NONE},   {"action", UNIT_NONE},
        {"detail", UNIT_NONE}, {"outcome", UNIT_NONE}, {"rows", UNIT_COUNT},
    };
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
                        query_rows_most(query));
    return reader_scan(store, sql, NULL, answer_on_new_row, *out, err);
}

// A sample's blob (baseline.h) has 8 bytes a value, or 10 with its source, then a checksum.
enum status query_baselines(struct store *store, const struct query *query, struct result **out,
                            struct error *err)
{
    static const struct answer_column columns[] = {
        {"baseline", UNIT_NONE},    {"created_ns", UNIT_TIME}, {"filter", UNIT_NONE},
        {"since_ns", UNIT_TIME},    {"until_ns", UNIT_TIME},   {"coverage_ratio", UNIT_RATIO},
        {"runs", UNIT_COUNT},       {"samples", UNIT_COUNT},   {"values", UNIT_COUNT},
        {"fingerprint", UNIT_NONE},
    };
    enum status status = answer_new(out, columns, sizeof columns / sizeof *columns, err);
    if (status != STATUS_OK)
        return status;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(
        sql,
        "SELECT b.name AS baseline, b.created_ns, b.filter, b.since_ns, b.until_ns,"
        " b.coverage_ratio, CASE WHEN json_valid(b.fingerprint)"
        " THEN json_extract(b.fingerprint, '$.runs') END AS runs, count(s.metric) AS samples,"
        " CAST(total((length(s.samples) - 4) / iif(length(s.samples) & 1, 10, 8)) AS INTEGER)"
        " AS \"values\", b.fingerprint FROM baseline b LEFT JOIN baseline_sample s"
        " ON s.baseline = b.id GROUP BY b.id ORDER BY b.name LIMIT %u",
        query_rows_most(query));
    return reader_scan(store, sql, NULL, answer_on_new_row, *out, err);
}
