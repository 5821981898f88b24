#include "common/store/aggregate/crossing.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/core/base/later.h"
#include "common/core/base/saturate.h"
#include "common/store/read/filter.h"
#include "common/store/read/reader.h"
#include "common/store/read/recent.h"
#include "common/store/read/session.h"
#include "common/store/schema/schema.h"
#include "common/store/schema/schema_select.h"

#define MINUTE_NS INT64_C(60000000000)
#define REACH_NS  (31 * 24 * 60 * MINUTE_NS)

// Consecutive spans of starts, rising and disjoint.
struct spans {
    struct rollup_span *list;
    size_t count, room;
};

struct search {
    struct crossing *of;
    struct store *store;
    const struct query *query;
    struct rollup_span window;
    int64_t watermark; // of rollups of requests; 0: there are none
    struct gap_set gaps;
    enum rollup_level level;
    struct spans next;
    struct rollup_span span; // that is being narrowed
};

// The first boundary behind a time, the start of the first request included; INT64_MAX: there is
// none.
static int64_t next_boundary(const struct search *search, int64_t time_ns)
{
    const int64_t step_ns = search->query->step_ns;
    const int64_t until_ns = search->query->filter.until_ns;
    if (time_ns < search->window.first_ns)
        return search->window.first_ns;
    int64_t next = INT64_MAX;
    if (step_ns > 0)
        next = saturate_add(rollup_step(step_ns, time_ns), step_ns);
    if (until_ns && until_ns > time_ns)
        next = earlier(next, until_ns);
    return until_ns && next > until_ns ? INT64_MAX : next;
}

static const struct query_metric e2e = {
    .kind = RECORD_KIND_INFERENCE, .name = "e2e_ns", .column = INFERENCE_E2E_NS};

// ---- Where to look -----------------------------------------------------------------------

static bool add_span(struct spans *spans, int64_t first_ns, int64_t last_ns)
{
    struct rollup_span *before = spans->count ? &spans->list[spans->count - 1] : NULL;
    if (first_ns > last_ns)
        return true;
    if (before && first_ns <= before->last_ns + 1) {
        before->last_ns = later(before->last_ns, last_ns);
        return true;
    }
    if (!ARRAY_RESERVE(&spans->list, &spans->room, spans->count + 1))
        return false;
    spans->list[spans->count++] = (struct rollup_span){first_ns, last_ns};
    return true;
}

// Adds the starts from `first_ns` to `last_ns` of requests of at most `longest_ns` that cross a
// boundary.
static enum status add_crossing(struct search *search, int64_t first_ns, int64_t last_ns,
                                int64_t longest_ns, struct error *err)
{
    const int64_t step_ns = search->query->step_ns;
    int64_t at = first_ns;
    if (step_ns > 0 && longest_ns >= step_ns) {
        const int64_t from_ns = next_boundary(search, at) - longest_ns;
        return add_span(&search->next, later(from_ns, first_ns), last_ns)
                   ? STATUS_OK
                   : error_no_memory(err, "store");
    }
    while (at <= last_ns) {
        const int64_t boundary = next_boundary(search, at);
        const int64_t from_ns = boundary - later(longest_ns, 0);
        if (boundary == INT64_MAX || from_ns > last_ns)
            return STATUS_OK;
        if (!add_span(&search->next, later(from_ns, first_ns), earlier(boundary - 1, last_ns)))
            return error_no_memory(err, "store");
        if (store_is_over_budget(search->store))
            return error_set(err, STATUS_TIMEOUT, "store: out of time");
        at = boundary;
    }
    return STATUS_OK;
}

// Adds the gaps of the level between two times: what is in a gap is looked for at finer levels.
static bool add_gaps(struct search *search, int64_t first_ns, int64_t last_ns)
{
    const enum rollup_level level = search->level;
    const struct gap_set *gaps = &search->gaps;
    const struct gap_span *gap = gap_set_behind(gaps, level, rollup_bucket(level, first_ns));
    for (; gap && gap < gaps->spans[level] + gaps->count[level]; gap++) {
        const int64_t since_ns = rollup_bucket(level, gap->since_ns);
        const int64_t until_ns = rollup_next(level, rollup_bucket(level, gap->until_ns - 1));
        if (since_ns > last_ns)
            return true;
        if (!add_span(&search->next, later(since_ns, first_ns), earlier(until_ns - 1, last_ns)))
            return false;
    }
    return true;
}

// A bucket with its longest request.
static enum status on_bucket(void *context, sqlite3_stmt *row, struct error *err)
{
    struct search *search = context;
    const int64_t start = sqlite3_column_int64(row, 0), end = rollup_next(search->level, start);
    const int64_t first_ns = later(start, search->span.first_ns);
    const int64_t last_ns = earlier(end - 1, search->span.last_ns);
    if (!add_gaps(search, search->span.first_ns, last_ns))
        return error_no_memory(err, "store");
    search->span.first_ns = last_ns + 1;
    if (gap_set_touches(&search->gaps, search->level, start, end))
        return STATUS_OK;
    return add_crossing(search, first_ns, last_ns, sqlite3_column_int64(row, 1), err);
}

// Narrows the spans to where the buckets of a level have requests that are long enough.
static enum status narrow(struct search *search, struct spans *spans, struct error *err)
{
    enum status status = STATUS_OK;
    search->next = (struct spans){0};
    for (size_t i = 0; i < spans->count && status == STATUS_OK; i++) {
        search->span = spans->list[i];
        const int64_t bucket = rollup_bucket(search->level, search->span.first_ns);
        if (search->span.last_ns - search->span.first_ns >
            rollup_next(search->level, bucket) - bucket) {
            const int64_t of[] = {rollup_metric_number(&e2e), ROLLUP_MODEL, search->level, bucket,
                                  search->span.last_ns};
            sqlite3_str *sql = sqlite3_str_new(search->store->db);
            sqlite3_str_appendall(sql, "SELECT started_ns, max(max) FROM rollup WHERE metric = $1"
                                       " AND grouping = $2 AND level = $3 AND started_ns BETWEEN"
                                       " $4 AND $5 GROUP BY started_ns");
            status = reader_scan_with(search->store, sql, NULL, of, 5, on_bucket, search, err);
            if (status == STATUS_OK &&
                !add_gaps(search, search->span.first_ns, spans->list[i].last_ns))
                status = error_no_memory(err, "store");
        } else if (!add_span(&search->next, search->span.first_ns, search->span.last_ns)) {
            status = error_no_memory(err, "store");
        }
    }
    free(spans->list);
    *spans = search->next;
    return status;
}

// ---- Records -----------------------------------------------------------------------------

enum {
    PLACE_STARTED,
    PLACE_E2E,
    PLACE_TTFT,
    PLACE_FINISH,
    PLACE_PREFILL,
    PLACE_PROMPT,
    PLACE_CACHED,
    PLACE_GENERATED,
    PLACE_ITL_MAX,
    PLACE_ITEMS,
    PLACE_KEYS
};

static bool is_inside(const struct search *search, int64_t time_ns)
{
    return time_ns >= search->window.first_ns && time_ns <= search->window.last_ns;
}

static int64_t known(int64_t number)
{
    return number == RECENT_NONE ? 0 : number;
}

static bool is_looked_for(struct search *search, int64_t started_ns, int64_t e2e_ns,
                          struct crossing_request *out)
{
    search->of->rows++;
    out->started_ns = started_ns;
    out->ended_ns = saturate_add(started_ns, e2e_ns);
    out->crosses = e2e_ns >= 0 && e2e_ns <= REACH_NS && out->ended_ns <= search->of->now_ns &&
                   next_boundary(search, started_ns) <= out->ended_ns;
    out->begins_inside = is_inside(search, started_ns);
    return out->crosses || (search->of->reads_all && out->begins_inside);
}

static enum status pass_on(struct search *search, const struct recent_request *from,
                           struct crossing_request *request, struct error *err)
{
    const int64_t generated = known(from->generated_tokens);
    const bool is_computed = known(from->prefill_ns) > 0 && from->prompt_tokens != RECENT_NONE &&
                             from->cached_prompt_tokens != RECENT_NONE;
    const bool is_streamed = generated > 1 && from->itl_max_ns >= 0;
    request->first_token_ns = earlier(
        saturate_add(request->started_ns, later(known(from->ttft_ns), 0)), request->ended_ns);
    request->ends_inside = is_inside(search, request->ended_ns);
    request->failed = from->finish == RECORD_FINISH_ERROR;
    request->cancelled = from->finish == RECORD_FINISH_CANCELLED;
    request->prompt_tokens = known(is_computed ? from->prompt_tokens : from->cached_prompt_tokens);
    request->generated_tokens = generated;
    request->streamed_tokens = is_streamed ? generated - 1 : 0;
    request->gaps = 0;
    request->items = known(from->items);
    return search->of->callback(search->of->context, request, err);
}

static enum status on_request(void *context, sqlite3_stmt *row, struct error *err)
{
    struct search *search = context;
    struct crossing_request request;
    if (!is_looked_for(search, sqlite3_column_int64(row, PLACE_STARTED),
                       sqlite3_column_int64(row, PLACE_E2E), &request))
        return STATUS_OK;
    const struct recent_request from = {
        .ttft_ns = reader_integer(row, PLACE_TTFT),
        .finish = sqlite3_column_int64(row, PLACE_FINISH),
        .prefill_ns = reader_integer(row, PLACE_PREFILL),
        .prompt_tokens = reader_integer(row, PLACE_PROMPT),
        .cached_prompt_tokens = reader_integer(row, PLACE_CACHED),
        .generated_tokens = reader_integer(row, PLACE_GENERATED),
        .itl_max_ns = reader_integer(row, PLACE_ITL_MAX),
        .items = reader_integer(row, PLACE_ITEMS),
    };
    for (unsigned i = 0; i < search->query->group_count; i++)
        request.keys[i] = reader_integer(row, PLACE_KEYS + (int)i);
    return pass_on(search, &from, &request, err);
}

// Those of a span that the session keeps.
static enum status take_recent(struct search *search, const struct recent *recent,
                               const struct rollup_span *span, struct error *err)
{
    const struct query *query = search->query;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < recent->count && status == STATUS_OK; i++) {
        const struct recent_request *from = &recent->requests[i];
        struct crossing_request request;
        if (from->started_ns < span->first_ns || from->started_ns > span->last_ns ||
            !is_looked_for(search, from->started_ns, from->e2e_ns, &request))
            continue;
        for (unsigned k = 0; k < query->group_count; k++)
            request.keys[k] = query->group_by[k] == QUERY_BY_HOST ? from->host : from->model;
        status = pass_on(search, from, &request, err);
    }
    return status;
}

// Which records of a span: those in rollups, the others found by time or by id, or all.
enum part { PART_IN_ROLLUPS, PART_BY_TIME, PART_BY_ID, PART_ALL };

static enum status read_records(struct search *search, const struct rollup_span *span,
                                enum part part, struct error *err)
{
    static const char *const ids[] = {[PART_IN_ROLLUPS] = " AND +t.id <= $3",
                                      [PART_BY_TIME] = " AND +t.id > $3",
                                      [PART_BY_ID] = " AND t.id > $3",
                                      [PART_ALL] = ""};
    struct query_filter filter = search->query->filter;
    filter.since_ns = 0;
    filter.until_ns = 0;
    sqlite3_str *sql = sqlite3_str_new(search->store->db);
    sqlite3_str_appendall(sql, "SELECT t.started_ns, t.e2e_ns, t.ttft_ns, t.finish, t.prefill_ns,"
                               " t.prompt_tokens, t.cached_prompt_tokens, t.generated_tokens,"
                               " t.itl_max_ns, t.items");
    bool by_host = false;
    for (unsigned i = 0; i < search->query->group_count; i++) {
        const enum query_dimension by = search->query->group_by[i];
        by_host |= by == QUERY_BY_HOST;
        sqlite3_str_appendf(sql, ", %s",
                            by == QUERY_BY_HOST ? "o.host"
                                                : schema_dimension(RECORD_KIND_INFERENCE, by));
    }
    sqlite3_str_appendall(sql, " FROM inference t"); // a join costs less than a subquery for each
    sqlite3_str_appendall(sql, by_host ? " CROSS JOIN run o ON o.run = t.run" : "");
    filter_where(sql, RECORD_KIND_INFERENCE, &filter);
    sqlite3_str_appendf(sql, " AND %st.started_ns BETWEEN $1 AND $2 AND " SCHEMA_IS_PLACED "%s",
                        part == PART_BY_ID ? "+" : "", ids[part]);
    const int64_t of[] = {span->first_ns, span->last_ns, search->watermark};
    return reader_scan_with(search->store, sql, &filter, of, part == PART_ALL ? 2 : 3, on_request,
                            search, err);
}

// Those behind the watermark are found by id, unless far fewer began in the span.
static enum status read_tail(struct search *search, const struct rollup_span *all,
                             struct error *err)
{
    int64_t last = 0, in_span = 0;
    sqlite3_str *sql = sqlite3_str_new(search->store->db);
    sqlite3_str_appendall(sql, "SELECT coalesce(max(id), 0) FROM inference");
    enum status status = reader_scan(search->store, sql, NULL, reader_on_integer, &last, err);
    if (status != STATUS_OK || last <= search->watermark)
        return status;
    const int64_t of[] = {all->first_ns, all->last_ns, (last - search->watermark) / 4};
    sql = sqlite3_str_new(search->store->db);
    sqlite3_str_appendall(sql, "SELECT count(*) FROM (SELECT 1 FROM inference WHERE started_ns"
                               " BETWEEN $1 AND $2 LIMIT $3)");
    status = reader_scan_with(search->store, sql, NULL, of, 3, reader_on_integer, &in_span, err);
    if (status != STATUS_OK)
        return status;
    return read_records(search, all, in_span >= of[2] ? PART_BY_ID : PART_BY_TIME, err);
}

static enum status read_watermark(struct search *search, struct error *err)
{
    const int64_t of[] = {rollup_metric_number(&e2e)};
    sqlite3_str *sql = sqlite3_str_new(search->store->db);
    sqlite3_str_appendall(sql, "SELECT watermark FROM rollup_state WHERE metric = $1");
    return reader_scan_with(search->store, sql, NULL, of, 1, reader_on_integer, &search->watermark,
                            err);
}

enum status crossing_read(struct crossing *crossing, struct error *err)
{
    struct store *store = crossing->store;
    const struct query *query = crossing->query;
    const struct query_filter *filter = &query->filter;
    const struct rollup_span *starts = &crossing->starts;
    struct search search = {.of = crossing,
                            .store = store,
                            .query = query,
                            .window = {filter->since_ns     ? filter->since_ns
                                       : query->step_ns > 0 ? starts->first_ns
                                                            : INT64_MIN,
                                       filter->until_ns ? filter->until_ns - 1 : INT64_MAX}};
    struct rollup_span all = {saturate_add(search.window.first_ns, -REACH_NS),
                              search.window.last_ns};
    if (next_boundary(&search, INT64_MIN) == INT64_MAX)
        return STATUS_OK;
    if (query->step_ns == 0 && !filter->since_ns)
        all.first_ns = saturate_add(filter->until_ns, -REACH_NS);
    if (query->step_ns == 0 && !filter->until_ns)
        all.last_ns = filter->since_ns - 1;
    all.first_ns = later(all.first_ns, saturate_add(starts->first_ns, -REACH_NS));
    all.first_ns = later(all.first_ns, SCHEMA_CLOCK_FLOOR_NS);
    all.last_ns = earlier(all.last_ns, starts->last_ns);
    const struct rollup_span inside = {search.window.first_ns, all.last_ns};
    if (crossing->reads_all)
        all.last_ns = earlier(all.last_ns, inside.first_ns - 1);
    enum status status = read_watermark(&search, err);
    if (status == STATUS_OK && search.watermark > 0) {
        status = gap_set_read(&search.gaps, store->db, RECORD_KIND_INFERENCE, ROLLUP_MODEL,
                              GAP_NO_SPAN, err);
        if (status == STATUS_OK)
            status = add_crossing(&search, all.first_ns, all.last_ns, REACH_NS, err);
    }
    struct spans spans = search.next;
    for (int level = ROLLUP_DAY; level >= ROLLUP_MINUTE && status == STATUS_OK; level--) {
        search.level = (enum rollup_level)level;
        status = narrow(&search, &spans, err);
    }
    for (size_t i = 0; i < spans.count && status == STATUS_OK; i++)
        status = read_records(&search, &spans.list[i], PART_IN_ROLLUPS, err);
    if (status == STATUS_OK)
        status = read_tail(&search, &all, err);
    const struct recent *recent = NULL;
    if (status == STATUS_OK && crossing->reads_all)
        status = recent_find(&recent, store, RECENT_REQUESTS, query, err);
    if (status == STATUS_OK && crossing->reads_all)
        status = recent ? take_recent(&search, recent, &inside, err)
                        : read_records(&search, &inside, PART_ALL, err);
    free(spans.list);
    gap_set_deinit(&search.gaps);
    return status;
}
