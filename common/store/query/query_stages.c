// STAGES: the waterfall of model loads, averaged over many of them.
#include <string.h>

#include <sqlite3.h>

#include "common/store/query/query_list.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/filter.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"
#include "common/store/schema/schema_select.h"

#define LOADS_MAX "100000" // the newest, where there are more

// How much of its file a load found in the page cache: cold loads have read nearly all
// of it from storage, warm ones nearly nothing.
#define COLD_MOST  "0.1"
#define WARM_LEAST "0.9"

static const struct answer_column figures[] = {
    {"cache", UNIT_NONE},
    {"part", UNIT_NONE},
    {"stage", UNIT_NONE},
    {"loads", UNIT_COUNT},
    {"failed", UNIT_COUNT},
    {"count", UNIT_COUNT},
    {"mean_ns", UNIT_DURATION},
    {"p50_ns", UNIT_DURATION},
    {"max_ns", UNIT_DURATION},
    {"share_ratio", UNIT_RATIO},
    {"load_bytes_per_second", UNIT_BYTES_PER_SECOND},
    {"storage_bytes_per_second", UNIT_BYTES_PER_SECOND},
    {"page_cache_ratio", UNIT_RATIO},
    {"note", UNIT_NONE},
};

enum { FIGURE_COUNT = sizeof figures / sizeof *figures };

// A row of the answer is one part of the loads that agree in the dimensions asked for, k0, k1, ...,
// and in what they found in the page cache (0: of all of them).  A part is a stage, by the id of
// its name, or one of these.
#define PART_TOTAL "-2"
#define PART_OTHER "-1" // what no stage accounts for

// %s stands for the dimensions, with a comma behind each.
#define STAGES                                                                                     \
    "), stages AS MATERIALIZED (SELECT p.*, s.stage, s.ordinal, s.duration_ns AS took"             \
    " FROM load_stage s CROSS JOIN picked p ON p.run = s.run AND p.stream = s.stream"              \
    " AND p.number = s.parent WHERE NOT p.failed"                                                  \
    " AND s.started_ns BETWEEN (SELECT min(started_ns) FROM picked)"                               \
    " AND (SELECT max(started_ns + max(ns, 0)) FROM picked))"
#define PARTS                                                                                      \
    ", parts AS (SELECT %scache, " PART_TOTAL " AS part, 0 AS ordinal, failed,"                    \
    " iif(failed, NULL, ns) AS ns, iif(failed, NULL, bytes) AS bytes,"                             \
    " iif(failed, NULL, cached) AS cached, iif(failed, NULL, storage) AS storage FROM picked"      \
    " UNION ALL SELECT %scache, stage, ordinal, 0, took, NULL, NULL, NULL FROM stages"             \
    " UNION ALL SELECT %scache, " PART_OTHER ", 0, 0,"                                             \
    " max(0, ns - CAST(total(max(took, 0)) AS INTEGER)), NULL, NULL, NULL"                         \
    " FROM stages GROUP BY run, stream, number)"
// Each part counts for its cache and for all loads.
#define FIGURES                                                                                    \
    ", figures AS (SELECT %scache * own AS cache, part, avg(ordinal) AS ordinal,"                  \
    " sum(failed) AS failed, count(ns) AS count, avg(ns) AS mean, median(ns) AS p50,"              \
    " max(ns) AS most, total(ns) AS sum, total(bytes) AS bytes, avg(cached) AS cached,"            \
    " avg(storage) AS storage FROM parts, (SELECT 0 AS own UNION ALL SELECT 1)"                    \
    " WHERE NOT (failed AND own) GROUP BY %scache * own, part)"
// Dimensions with most loads first, then the stages of each load in their order.
#define ANSWER                                                                                     \
    " SELECT %sCASE cache WHEN 0 THEN 'all' WHEN 1 THEN 'cold' WHEN 2 THEN 'mixed' WHEN 3 THEN"    \
    " 'warm' ELSE 'unknown' END, CASE part WHEN " PART_TOTAL " THEN 'total' WHEN " PART_OTHER      \
    " THEN 'other' ELSE 'stage' END, (SELECT n.text FROM name n WHERE n.id = part),"               \
    " max(iif(part = " PART_TOTAL ", count, 0)) OVER of_cache,"                                    \
    " iif(cache = 0 AND part = " PART_TOTAL ", failed, NULL), count, mean, p50,"                   \
    " most, iif(count, sum / nullif(max(iif(part = " PART_TOTAL ", sum, 0)) OVER of_cache, 0),"    \
    " NULL), iif(part = " PART_TOTAL " AND count, bytes * 1e9 / nullif(sum, 0), NULL), storage,"   \
    " cached, iif(part = " PART_TOTAL " AND (SELECT count(*) FROM picked) >= " LOADS_MAX           \
    ", 'of the newest " LOADS_MAX " loads at most', NULL)"                                         \
    " FROM figures WINDOW of_cache AS (PARTITION BY %scache), of_all AS (PARTITION BY %s0)"        \
    " ORDER BY max(iif(cache = 0 AND part = " PART_TOTAL ", count, 0)) OVER of_all DESC, %scache," \
    " part = " PART_OTHER ", part <> " PART_TOTAL ", ordinal, part"

static void append_picked(sqlite3_str *sql, const struct query *query)
{
    sqlite3_str_appendall(
        sql, "WITH picked AS MATERIALIZED (SELECT t.run, t.stream, t.number, t.started_ns,"
             " t.duration_ns AS ns, t.status <> 0 AS failed, t.model_bytes AS bytes,"
             " t.page_cache_ratio AS cached, t.storage_bytes_per_second AS storage,"
             " CASE WHEN t.page_cache_ratio <= " COLD_MOST " THEN 1 WHEN t.page_cache_ratio"
             " < " WARM_LEAST " THEN 2 WHEN t.page_cache_ratio IS NULL THEN 4 ELSE 3 END AS cache");
    for (unsigned i = 0; i < query->group_count; i++)
        sqlite3_str_appendf(sql, ", %s AS k%u",
                            schema_dimension(RECORD_KIND_LOAD, query->group_by[i]), i);
    sqlite3_str_appendall(sql, " FROM load t");
    filter_where(sql, RECORD_KIND_LOAD, &query->filter);
    sqlite3_str_appendall(sql, " ORDER BY t.started_ns DESC LIMIT " LOADS_MAX);
}

_Static_assert((int)RECORD_STATUS_OK == 0, "what a failed load is");

static void append_all(sqlite3_str *sql, const struct query *query)
{
    char keys[QUERY_DIMENSION_COUNT * 8 + 1] = "";
    for (unsigned i = 0; i < query->group_count; i++)
        (void)sqlite3_snprintf(8, keys + strlen(keys), "k%u, ", i);
    append_picked(sql, query);
    sqlite3_str_appendf(sql, STAGES PARTS FIGURES, keys, keys, keys, keys, keys);
    sqlite3_str_appendf(sql, ANSWER, keys, keys, keys, keys);
}

struct listing {
    struct store *store;
    const struct query *query;
    struct result *answer;
};

static enum status on_part(void *context, sqlite3_stmt *row, struct error *err)
{
    const struct listing *listing = context;
    const unsigned keys = listing->query->group_count;
    enum status status = STATUS_OK;
    if (result_row_count(listing->answer) == GROUPS_MAX)
        return reader_too_many_groups(err);
    answer_row(listing->answer);
    for (unsigned i = 0; i < keys && status == STATUS_OK; i++)
        status = answer_key(listing->store, listing->answer, i, listing->query->group_by[i],
                            sqlite3_column_int64(row, (int)i), err);
    for (unsigned i = keys; i < keys + FIGURE_COUNT && status == STATUS_OK; i++)
        status = answer_cell(listing->answer, i, row, (int)i, err);
    return status;
}

enum status query_stages(struct store *store, const struct query *query, struct result **out,
                         struct error *err)
{
    enum status status = filter_check_query(RECORD_KIND_LOAD, query, err);
    if (status == STATUS_OK)
        status = answer_new_grouped(out, query, figures, FIGURE_COUNT, err);
    if (status != STATUS_OK)
        return status;
    struct listing listing = {store, query, *out};
    sqlite3_str *sql = sqlite3_str_new(store->db);
    append_all(sql, query);
    status = reader_scan(store, sql, &query->filter, on_part, &listing, err);
    if (status == STATUS_OK)
        status = answer_check(*out, err);
    if (status == STATUS_OK && result_row_count(*out) == 0)
        status = error_set(err, STATUS_NO_DATA, "no loads in the store that match");
    return status;
}
