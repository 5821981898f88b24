#include "common/store/aggregate/throughput_gaps.h"

#include <sqlite3.h>

#include "common/core/base/saturate.h"
#include "common/core/stats/sketch.h"
#include "common/store/aggregate/aggregate_scan.h"
#include "common/store/read/filter.h"
#include "common/store/read/reader.h"
#include "common/store/read/recent.h"
#include "common/store/read/session.h"
#include "common/store/schema/schema.h"
#include "common/store/schema/schema_select.h"

#define MINUTE_NS INT64_C(60000000000)

// A record as a request without tokens of its own.
static struct crossing_request span_of(int64_t started_ns, int64_t duration_ns)
{
    const int64_t length_ns = duration_ns < 1                    ? 1
                              : duration_ns > RECENT_GAPS_NS_MAX ? RECENT_GAPS_NS_MAX
                                                                 : duration_ns;
    return (struct crossing_request){.started_ns = started_ns,
                                     .first_token_ns = started_ns,
                                     .ended_ns = saturate_add(started_ns, length_ns)};
}

// Whether it began before the window, or reaches into another step or beyond the window.  Of steps
// that rollups have, gaps stay where they began.
static bool crosses(const struct query *query, const struct crossing_request *span)
{
    const int64_t until_ns = query->filter.until_ns;
    return span->started_ns < query->filter.since_ns || (until_ns && span->ended_ns > until_ns) ||
           (query->step_ns % MINUTE_NS != 0 && rollup_step(query->step_ns, span->started_ns) !=
                                                   rollup_step(query->step_ns, span->ended_ns - 1));
}

// ---- Records that the session keeps --------------------------------------------------------

static enum status take_recent(const struct throughput_place *place, const struct recent *recent,
                               int64_t now_ns, struct throughput_gaps *read, struct error *err)
{
    const struct query *query = place->query;
    const int64_t since_ns = query->filter.since_ns, until_ns = query->filter.until_ns;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < recent->count && status == STATUS_OK; i++) {
        const struct recent_gaps *from = &recent->gaps[i];
        if (from->started_ns < since_ns - RECENT_GAPS_NS_MAX ||
            (until_ns && from->started_ns >= until_ns))
            continue;
        struct crossing_request span = span_of(from->started_ns, from->duration_ns);
        span.gaps = from->count;
        for (unsigned k = 0; k < query->group_count; k++)
            span.keys[k] = query->group_by[k] == QUERY_BY_HOST ? from->host : from->model;
        read->rows += from->started_ns >= since_ns;
        if (crosses(query, &span) && saturate_add(from->started_ns, from->duration_ns) <= now_ns)
            status = throughput_spread_tokens(place, &span, err);
        else if (from->started_ns >= since_ns)
            status = throughput_add_tokens(place, &span, from->started_ns, 1, err);
    }
    return status;
}

// ---- Records in the store ------------------------------------------------------------------

struct moving {
    const struct throughput_place *place;
    struct sketch *scratch;
};

// Moves the gaps of a record that crosses a boundary: from its start, where they have been counted
// if it is in the window, to its whole time.
static enum status on_gaps(void *context, sqlite3_stmt *row, struct error *err)
{
    const struct moving *moving = context;
    const struct query *query = moving->place->query;
    struct crossing_request span =
        span_of(sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1));
    if (!crosses(query, &span))
        return STATUS_OK;
    struct aggregate gaps = {.count = 0};
    aggregate_add_encoded(&gaps, moving->scratch, sqlite3_column_blob(row, 2),
                          (size_t)sqlite3_column_bytes(row, 2));
    span.gaps = (int64_t)gaps.count;
    for (unsigned i = 0; i < query->group_count; i++)
        span.keys[i] = reader_integer(row, 3 + (int)i);
    enum status status = STATUS_OK;
    if (span.started_ns >= query->filter.since_ns)
        status = throughput_add_tokens(moving->place, &span, span.started_ns, -1, err);
    return status == STATUS_OK ? throughput_spread_tokens(moving->place, &span, err) : status;
}

// Looks at the records that began in a span, do not end in the future and cross a boundary.
static enum status move_gaps(struct moving *moving, struct store *store, int64_t now_ns,
                             const struct rollup_span *starts, struct error *err)
{
    const struct query *query = moving->place->query;
    struct query_filter filter = query->filter;
    filter.since_ns = filter.until_ns = 0;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "SELECT t.started_ns, t.duration_ns, t.sketch");
    for (unsigned i = 0; i < query->group_count; i++)
        sqlite3_str_appendf(sql, ", %s", schema_dimension(RECORD_KIND_ITL, query->group_by[i]));
    sqlite3_str_appendall(sql, " FROM itl t");
    filter_where(sql, RECORD_KIND_ITL, &filter);
    sqlite3_str_appendall(sql,
                          " AND t.started_ns BETWEEN $1 AND $2"
                          " AND t.started_ns + t.duration_ns <= $3 AND " SCHEMA_IS_PLACED
                          " AND (t.started_ns < $4 OR t.started_ns + t.duration_ns > $5"
                          "  OR t.started_ns / $6 <> (t.started_ns + t.duration_ns - 1) / $6)");
    const int64_t of[] = {starts->first_ns,
                          starts->last_ns,
                          now_ns,
                          query->filter.since_ns,
                          query->filter.until_ns ? query->filter.until_ns : INT64_MAX,
                          query->step_ns > 0 ? query->step_ns : INT64_MAX};
    return reader_scan_with(store, sql, &filter, of, 6, on_gaps, moving, err);
}

// Of steps that rollups have, gaps move only where the window begins and ends.
static enum status spread_gaps(const struct throughput_place *place, struct store *store,
                               int64_t now_ns, const struct aggregate_scan *scan, struct error *err)
{
    const struct query *query = scan->query;
    const int64_t since_ns = query->filter.since_ns, until_ns = query->filter.until_ns;
    const bool is_short = query->step_ns % MINUTE_NS != 0;
    const int64_t late_ns = saturate_add(until_ns, -RECENT_GAPS_NS_MAX);
    const struct rollup_span spans[] = {
        {saturate_add(is_short ? scan->window.first_ns : since_ns, -RECENT_GAPS_NS_MAX),
         is_short ? scan->window.last_ns : since_ns - 1},
        {late_ns > since_ns ? late_ns : since_ns, is_short ? 0 : until_ns - 1}};
    struct moving moving = {place, NULL};
    if (sketch_new(&moving.scratch) != STATUS_OK)
        return error_no_memory(err, "store");
    enum status status = move_gaps(&moving, store, now_ns, &spans[0], err);
    if (status == STATUS_OK)
        status = move_gaps(&moving, store, now_ns, &spans[1], err);
    sketch_free(moving.scratch);
    return status;
}

enum status throughput_gaps_add(const struct throughput_place *place, struct store *store,
                                int64_t now_ns, struct throughput_gaps *read, struct error *err)
{
    const struct recent *recent = NULL;
    *read = (struct throughput_gaps){.seen = {INT64_MAX, INT64_MIN}};
    enum status status = recent_find(&recent, store, RECENT_GAPS, place->query, err);
    if (recent)
        return take_recent(place, recent, now_ns, read, err);
    if (status != STATUS_OK)
        return status;
    struct aggregate_scan scan = {.query = place->query, .kind = RECORD_KIND_ITL};
    aggregate_scan_want(&scan, QUERY_METRIC_ITL, false);
    status = aggregate_scan_run(&scan, store, err);
    *read = (struct throughput_gaps){scan.sketches, scan.rows, scan.seen};
    for (size_t i = 0; status == STATUS_OK && i < groups_count(scan.groups); i++) {
        const struct group *group = groups_at(scan.groups, i);
        double *sums = NULL;
        status = throughput_find_sums(place->groups, group->keys, &sums, err);
        if (status == STATUS_OK)
            sums[THROUGHPUT_GAPS] += (double)aggregate_scan_ratio(group, 0)->values.count;
    }
    if (status == STATUS_OK)
        status = spread_gaps(place, store, now_ns, &scan, err);
    aggregate_scan_deinit(&scan);
    return status;
}

// What the steps of a group have together.
struct streamed {
    double tokens, gaps;
};

enum status throughput_gaps_use(const struct throughput_place *place, struct error *err)
{
    struct groups *all = NULL;
    const size_t count = groups_count(place->groups);
    if (groups_new(&all, place->query->group_count, sizeof(struct streamed), NULL) != STATUS_OK)
        return error_no_memory(err, "store");
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        struct group *group = groups_at(place->groups, i), *of = NULL;
        status = reader_group(all, group->keys, &of, err);
        if (status != STATUS_OK)
            break;
        struct streamed *streamed = of->data;
        const double *sums = group->data;
        streamed->tokens += sums[THROUGHPUT_STREAMED];
        streamed->gaps += sums[THROUGHPUT_GAPS];
    }
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        struct group *group = groups_at(place->groups, i);
        const struct streamed *streamed = groups_get(all, group->keys)->data;
        double *sums = group->data;
        if (streamed->gaps >= streamed->tokens * (1 - 1e-9)) // sums of shares are rounded
            sums[THROUGHPUT_OUTPUT_TOKENS] += sums[THROUGHPUT_GAPS] - sums[THROUGHPUT_STREAMED];
    }
    groups_free(all);
    return status;
}
