// NOW: a row per model and host with its state, and the figures of the last minutes, or of then.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/core/base/later.h"
#include "common/core/base/saturate.h"
#include "common/core/base/text.h"
#include "common/store/aggregate/aggregate_scan.h"
#include "common/store/aggregate/throughput.h"
#include "common/store/query/now_devices.h"
#include "common/store/query/now_parts.h"
#include "common/store/query/now_usual.h"
#include "common/store/query/query_list.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/filter.h"
#include "common/store/read/reader.h"
#include "common/store/read/recent.h"
#include "common/store/read/session.h"
#include "common/store/sqlite/database.h"

#define SECOND_NS INT64_C(1000000000)
#define MINUTE_NS (60 * SECOND_NS)
#define HOUR_NS   (3600 * SECOND_NS)
#define DAY_NS    (24 * HOUR_NS)
#define WINDOW_NS (300 * SECOND_NS) // without `since`

#define KEPT_NS_MAX (10 * MINUTE_NS) // of a window whose requests the session keeps

// The model and host whose processes are being read.
struct now_current {
    struct now_row row;
    char model[QUERY_TEXT_SIZE];
    char doing[QUERY_TEXT_SIZE], last[QUERY_TEXT_SIZE];
    struct now_facts facts;
    int64_t began_ns;
    int64_t load_run; // as in struct now_figures
    int load_is;      // state of the process that failed to load; -1: it is none of these
    bool is_set;
};

// ---- Time ---------------------------------------------------------------------------------

// Without a collector the state is that of the store's last message, if the window does not end
// before it.  The window does not begin before the records of a bundle, and runs that went on after
// its end were open.
static enum status find_time(struct now *now, struct error *err)
{
    const int64_t since_ns = now->query->filter.since_ns;
    const int64_t until_ns = now->query->filter.until_ns;
    int64_t begun_ns = 0, ended_ns = 0;
    enum status status = reader_as_of(now->store, &now->present_ns, err);
    if (status == STATUS_OK)
        status = database_integer(now->store->db, "SELECT " READER_BUNDLE_SINCE, &begun_ns, err);
    if (status == STATUS_OK)
        status = database_integer(now->store->db, "SELECT " READER_BUNDLE_UNTIL, &ended_ns, err);
    now->filter = now->query->filter;
    now->filter.until_ns = until_ns < now->present_ns ? until_ns : 0;
    now->as_of_ns = now->filter.until_ns ? until_ns : now->present_ns;
    if (ended_ns == now->as_of_ns)
        now->filter.until_ns = ended_ns;
    if (since_ns > 0)
        now->window_ns = reader_window_ns(since_ns, now->as_of_ns, DAY_NS);
    if (begun_ns > now->as_of_ns - now->window_ns && begun_ns < now->as_of_ns - SECOND_NS)
        now->window_ns = now->as_of_ns - begun_ns;
    return status != STATUS_OK || now->window_ns > 0
               ? status
               : error_set(err, STATUS_INVALID,
                           "now: the window begins at most 24 hours before now, or before its end");
}

// ---- Failures -----------------------------------------------------------------------------

static void deinit_figures(void *data)
{
    struct now_figures *figures = data;
    free(figures->error);
    free(figures->load_error);
}

static enum status find_figures(struct now *now, const int64_t *keys, struct now_figures **out,
                                struct error *err)
{
    struct group *group = NULL;
    enum status status = reader_group(now->figures, keys, &group, err);
    if (status == STATUS_OK)
        *out = group->data;
    return status;
}

enum { FAILED_MODEL, FAILED_HOST, FAILED_STARTED, FAILED_ERROR, FAILED_IS_LOAD, FAILED_RUN };

static enum status on_failed(void *context, sqlite3_stmt *row, struct error *err)
{
    struct now *now = context;
    const int64_t keys[] = {sqlite3_column_int64(row, FAILED_MODEL),
                            sqlite3_column_int64(row, FAILED_HOST)};
    const bool is_load = sqlite3_column_int(row, FAILED_IS_LOAD);
    const int64_t started_ns = sqlite3_column_int64(row, FAILED_STARTED);
    struct now_figures *figures = NULL;
    enum status status = find_figures(now, keys, &figures, err);
    if (status != STATUS_OK)
        return status;
    struct now_facts *facts = &figures->facts;
    char **error = is_load ? &figures->load_error : &figures->error;
    if (is_load) {
        facts->load_failed_ns = started_ns;
        figures->load_run = sqlite3_column_int64(row, FAILED_RUN);
    } else if (facts->failed_ns == 0) {
        facts->failed_ns = started_ns;
    }
    const char *text = (const char *)sqlite3_column_text(row, FAILED_ERROR);
    if (!text)
        return STATUS_OK;
    free(*error);
    *error = strdup(text);
    facts->error = figures->error;
    facts->load_error = figures->load_error;
    return *error ? STATUS_OK : error_no_memory(err, "store");
}

// Failed requests and loads, in order of time.  CROSS JOIN keeps the order: what failed, then its
// run.
static enum status read_failures(struct now *now, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(now->store->db);
    for (int is_load = 0; is_load < 2; is_load++) {
        const enum record_kind kind = is_load ? RECORD_KIND_LOAD : RECORD_KIND_INFERENCE;
        sqlite3_str_appendf(sql,
                            "%s SELECT t.model, r.host, t.started_ns, t.error, %d, t.run"
                            " FROM main.\"%w\" t CROSS JOIN main.run r ON r.run = t.run",
                            is_load ? " UNION ALL" : "", is_load, record_kind_info(kind)->name);
        filter_where(sql, kind, &now->filter);
        sqlite3_str_appendall(sql, is_load ? " AND t.status = 1 ORDER BY 3" : " AND t.finish = 3");
    }
    return reader_scan(now->store, sql, &now->filter, on_failed, now, err);
}

// ---- Figures ------------------------------------------------------------------------------

const char *const now_metrics[NOW_METRICS] = {[NOW_TTFT] = "ttft_ns",
                                              [NOW_SPEED] = "tokens_per_second",
                                              [NOW_E2E] = "e2e_ns",
                                              [NOW_TPOT] = "tpot_ns"};

static struct now_level *level_of(struct now_figures *figures, unsigned metric)
{
    struct now_level *const levels[] = {[NOW_TTFT] = &figures->facts.ttft,
                                        [NOW_SPEED] = &figures->facts.speed,
                                        [NOW_E2E] =
                                            figures->has_items ? &figures->facts.e2e : NULL};
    return metric < sizeof levels / sizeof *levels ? levels[metric] : NULL;
}

static void set_level(struct now *now, struct now_figures *figures, unsigned metric,
                      const struct aggregate *values)
{
    struct now_level *level = level_of(figures, metric);
    figures->count[metric] = values->count;
    figures->p50[metric] = aggregate_quantile(values, 0.5);
    figures->p95[metric] = aggregate_quantile(values, 0.95);
    if (!level)
        return;
    level->count = values->count;
    level->now = figures->p50[metric];
    now->has_enough =
        now->has_enough || (metric != NOW_SPEED && values->count >= NOW_REQUESTS_LEAST);
}

void now_whole_deinit(void *whole)
{
    for (unsigned i = 0; i < NOW_METRICS; i++)
        aggregate_deinit(&((struct now_whole *)whole)->ratios[i].values);
}

enum status now_whole_add(struct now *now, struct now_whole *whole, const struct ratio *more,
                          struct error *err)
{
    for (unsigned i = 0; i < NOW_METRICS; i++) {
        struct aggregate *values = &whole->ratios[i].values;
        if (!values->sketch && sketch_new_within(&values->sketch, &now->budget) != STATUS_OK)
            return error_no_memory(err, "store");
        ratio_merge(&whole->ratios[i], &more[i]);
    }
    return reader_budget(&now->budget, err);
}

static enum status add_medians(struct now *now, const int64_t *keys, const struct ratio *ratios,
                               struct error *err)
{
    struct now_figures *figures = NULL;
    enum status status = find_figures(now, keys, &figures, err);
    for (unsigned i = 0; status == STATUS_OK && i < NOW_METRICS; i++)
        set_level(now, figures, i, &ratios[i].values);
    if (status != STATUS_OK || now->by < 0)
        return status;
    struct group *whole = NULL;
    status = reader_group(now->wholes, &keys[now->by], &whole, err);
    return status == STATUS_OK ? now_whole_add(now, whole->data, ratios, err) : status;
}

static enum status scan_medians(struct now *now, const struct query *query, struct error *err)
{
    struct aggregate_scan scan = {.query = query, .kind = RECORD_KIND_INFERENCE};
    for (unsigned i = 0; i < NOW_METRICS; i++)
        aggregate_scan_want(&scan, now_metrics[i], i != NOW_E2E || now->has_items);
    enum status status = aggregate_scan_run(&scan, now->store, err);
    for (size_t i = 0; status == STATUS_OK && i < groups_count(scan.groups); i++) {
        const struct group *group = groups_at(scan.groups, i);
        status = add_medians(now, group->keys, aggregate_scan_ratio(group, 0), err);
    }
    aggregate_scan_deinit(&scan);
    return status;
}

static void add_real(struct aggregate *values, double value)
{
    if (!isnan(value))
        aggregate_add_real(values, value);
}

static enum status add_recent(const struct now *now, struct groups *groups,
                              struct sketch_budget *budget, const struct recent_request *request,
                              struct error *err)
{
    struct group *group = NULL;
    enum status status =
        reader_group(groups, (int64_t[]){request->model, request->host}, &group, err);
    if (status != STATUS_OK)
        return status;
    struct ratio *ratios = ((struct now_whole *)group->data)->ratios;
    for (unsigned i = 0; i < NOW_METRICS; i++) {
        struct sketch **sketch = &ratios[i].values.sketch;
        if (!*sketch && (i != NOW_E2E || now->has_items) &&
            sketch_new_within(sketch, budget) != STATUS_OK)
            return error_no_memory(err, "store");
    }
    if (request->ttft_ns != RECENT_NONE)
        aggregate_add_int(&ratios[NOW_TTFT].values, request->ttft_ns);
    aggregate_add_int(&ratios[NOW_E2E].values, request->e2e_ns);
    add_real(&ratios[NOW_SPEED].values, request->tokens_per_second);
    add_real(&ratios[NOW_TPOT].values, request->tpot_ns);
    return reader_budget(budget, err);
}

static enum status add_recents(struct now *now, const struct recent *recent, struct error *err)
{
    struct sketch_budget budget = {.left = QUANTILE_BYTES_MAX};
    struct groups *groups = NULL;
    if (groups_new(&groups, 2, sizeof(struct now_whole), now_whole_deinit) != STATUS_OK)
        return error_no_memory(err, "store");
    enum status status = STATUS_OK;
    for (size_t i = 0; i < recent->count && status == STATUS_OK; i++)
        if (recent->requests[i].started_ns >= now->filter.since_ns)
            status = add_recent(now, groups, &budget, &recent->requests[i], err);
    for (size_t i = 0; i < groups_count(groups) && status == STATUS_OK; i++) {
        const struct group *group = groups_at(groups, i);
        const struct now_whole *whole = group->data;
        status = add_medians(now, group->keys, whole->ratios, err);
    }
    groups_free(groups);
    return status;
}

static enum status read_medians(struct now *now, const struct query *query, struct error *err)
{
    const struct recent *recent = NULL;
    enum status status = now->filter.until_ns
                             ? STATUS_OK
                             : recent_find(&recent, now->store, RECENT_REQUESTS, query, err);
    if (status != STATUS_OK)
        return status;
    return recent ? add_recents(now, recent, err) : scan_medians(now, query, err);
}

// The usual of models and hosts that have requests now.
static enum status read_usual(struct now *now, struct error *err)
{
    const int64_t middle_ns =
        now->as_of_ns - (now->window_ns < HOUR_NS ? now->window_ns : HOUR_NS) / 2;
    const struct groups *usual = NULL;
    enum status status =
        now_usual_read(&usual, now->store, &now->filter, middle_ns - middle_ns % HOUR_NS, err);
    for (size_t i = 0; status == STATUS_OK && i < groups_count(now->figures); i++) {
        struct now_figures *figures = groups_at(now->figures, i)->data;
        const struct group *group = groups_get(usual, groups_at(now->figures, i)->keys);
        const struct now_usual *of = group ? group->data : NULL;
        for (unsigned k = 0; of && k < NOW_TPOT; k++) {
            struct now_level *level = level_of(figures, k);
            if (!level)
                continue;
            memcpy(level->days, of->days[k], sizeof level->days);
            level->day_count = of->day_count[k];
        }
    }
    return status;
}

static enum status add_throughput(struct now *now, const struct group *group, struct error *err)
{
    const double *sums = throughput_sums(group);
    struct now_figures *figures = NULL;
    enum status status = find_figures(now, group->keys, &figures, err);
    if (status != STATUS_OK)
        return status;
    for (unsigned i = 0; i < THROUGHPUT_SUM_COUNT; i++)
        figures->sums[i] += sums[i];
    const int64_t back = now->has_parts ? (now->as_of_ns - group->keys[2]) / now->part_ns : -1;
    if (back < 0 || back >= NOW_PARTS)
        return STATUS_OK;
    figures->tokens[NOW_PARTS - 1 - back] += sums[THROUGHPUT_OUTPUT_TOKENS];
    figures->items[NOW_PARTS - 1 - back] += sums[THROUGHPUT_ITEMS];
    return STATUS_OK;
}

// By parts of the window, unless there are too many models and hosts for that.
static enum status read_throughput(struct now *now, struct query *query, struct error *err)
{
    struct throughput throughput;
    query->step_ns = now->part_ns;
    enum status status =
        throughput_read(&throughput, now->store, query, NULL, now->present_ns, err);
    now->has_parts = status == STATUS_OK;
    query->step_ns = 0;
    if (status == STATUS_FULL) {
        throughput_deinit(&throughput);
        status = throughput_read(&throughput, now->store, query, NULL, now->present_ns, err);
    }
    for (size_t i = 0; status == STATUS_OK && i < groups_count(throughput.groups); i++)
        status = add_throughput(now, groups_at(throughput.groups, i), err);
    throughput_deinit(&throughput);
    for (size_t i = 0; status == STATUS_OK && i < groups_count(now->figures); i++) {
        struct now_figures *figures = groups_at(now->figures, i)->data;
        figures->facts.requests = (uint64_t)(figures->sums[THROUGHPUT_REQUESTS] + 0.5);
        figures->facts.failed = (uint64_t)(figures->sums[THROUGHPUT_FAILED] + 0.5);
        figures->facts.is_busy = figures->sums[THROUGHPUT_OUTPUT_TOKENS] > 1e-6;
        figures->has_items = figures->sums[THROUGHPUT_ITEMS] > 0;
        now->has_items |= figures->has_items;
    }
    return status;
}

// Former days are read only if the window has enough requests to compare.
static enum status read_figures(struct now *now, struct error *err)
{
    struct query query = {.kind = QUERY_AVERAGE,
                          .filter = now->filter,
                          .group_by = {QUERY_BY_MODEL, QUERY_BY_HOST},
                          .group_count = 2};
    enum status status = read_throughput(now, &query, err);
    if (status == STATUS_OK)
        status = read_medians(now, &query, err);
    return status == STATUS_OK && now->has_enough ? read_usual(now, err) : status;
}

// ---- States -------------------------------------------------------------------------------

enum {
    PROCESS_MODEL,
    PROCESS_HOST,
    PROCESS_IS, // enum now_state: NOW_OK (it is live), NOW_ENDED, NOW_DOWN or NOW_SILENT
    PROCESS_RECEIVED,
    PROCESS_ENDED,
    PROCESS_DOING,
    PROCESS_REQUESTED,
    PROCESS_RUNNING,
    PROCESS_WAITING,
    PROCESS_RUN,
    PROCESS_IMPORTED,
};

static void earliest(int64_t *at, int64_t time_ns)
{
    if (*at == 0 || time_ns < *at)
        *at = time_ns;
}

static bool begins_with(const char *text, const char *word, const char *name)
{
    const size_t size = strlen(word), name_size = strlen(name);
    if (strncmp(text, word, size) != 0)
        return false;
    if (name_size == 0)
        return text[size] == ' ' || text[size] == '\0';
    return text[size] == ' ' && strncmp(text + size + 1, name, name_size) == 0 &&
           text[size + 1 + name_size] == ' ';
}

// What a live process does, by the words of its activity: "load STAGE", "decode MODEL request N".
static void add_activity(struct now_current *current, const char *doing)
{
    struct now_facts *facts = &current->facts;
    const char *model = current->model;
    const bool loads = begins_with(doing, "load", "") || begins_with(doing, "startup", "");
    const bool works = *model ? begins_with(doing, "prefill", model) ||
                                    begins_with(doing, "decode", model) ||
                                    begins_with(doing, "inference", model)
                              : *doing && !loads && !begins_with(doing, "idle", "");
    if (works || (loads && !facts->is_busy))
        (void)text_copy(current->doing, sizeof current->doing, doing);
    facts->is_busy = facts->is_busy || works;
    facts->is_loading = facts->is_loading || loads;
}

static void add_sample(int64_t *sum, sqlite3_stmt *row, int place)
{
    if (sqlite3_column_type(row, place) != SQLITE_NULL)
        *sum = saturate_add(later(*sum, 0), sqlite3_column_int64(row, place));
}

static void add_process(const struct now *now, sqlite3_stmt *row)
{
    struct now_current *current = now->current;
    struct now_facts *facts = &current->facts;
    const int state = sqlite3_column_int(row, PROCESS_IS);
    const int64_t ended_ns = sqlite3_column_int64(row, PROCESS_ENDED);
    const char *text = (const char *)sqlite3_column_text(row, PROCESS_DOING);
    const char *doing = text ? text : "";
    const int64_t requested_ns = sqlite3_column_int64(row, PROCESS_REQUESTED);
    if (now->filter.until_ns && requested_ns > now->as_of_ns)
        facts->is_busy = true;
    else
        facts->idle_ns = later(facts->idle_ns, requested_ns);
    earliest(&current->began_ns, sqlite3_column_int64(row, PROCESS_RECEIVED));
    if (sqlite3_column_int64(row, PROCESS_RUN) == current->load_run)
        current->load_is = state;
    if (state == NOW_OK) {
        facts->live++;
        earliest(&facts->live_ns, sqlite3_column_int64(row, PROCESS_RECEIVED));
        add_activity(current, doing);
        add_sample(&current->row.running, row, PROCESS_RUNNING);
        add_sample(&current->row.waiting, row, PROCESS_WAITING);
    } else if (state == NOW_ENDED) {
        if (ended_ns >= facts->ended_ns)
            facts->is_imported = sqlite3_column_int(row, PROCESS_IMPORTED);
        facts->ended_ns = later(facts->ended_ns, ended_ns);
    } else if (state == NOW_DOWN) {
        facts->down++;
        earliest(&facts->down_ns, ended_ns);
        add_sample(&facts->lost_requests, row, PROCESS_RUNNING);
        (void)text_copy(current->last, sizeof current->last, doing);
    } else {
        facts->silent++;
        earliest(&facts->silent_ns, ended_ns);
    }
}

// What lasts on a host.
static const char *trouble_of(const struct now *now, int64_t host, char text[NOW_REASON_SIZE])
{
    text[0] = '\0';
    for (size_t i = 0; i < now->lasting.count; i++) {
        const struct lasting_event *event = &now->lasting.list[i];
        char one[NOW_REASON_SIZE] = "";
        if (event->host != host)
            continue;
        record_event_words(one, sizeof one, event->name, NULL);
        lasting_append(one, sizeof one, event);
        (void)text_append(text, NOW_REASON_SIZE, "; ", "%s", one);
    }
    return text;
}

// Judges the model and host whose processes have been read.
static enum status end_current(struct now *now, struct error *err)
{
    struct now_current *current = now->current;
    struct now_facts *facts = &current->facts;
    const char *wanted = now->query->filter.by[QUERY_BY_MODEL];
    if (!current->is_set || (*wanted && !query_name_matches(wanted, current->model)))
        return STATUS_OK;
    if (!*current->model && facts->live + facts->down + facts->silent == 0)
        return STATUS_OK;
    // Of a past window, the figures have all requests since its start.
    const int64_t covered_ns =
        now->filter.until_ns ? now->filter.since_ns : recent_covered_ns(now->store);
    if (facts->idle_ns == 0 && facts->live_ns >= later(covered_ns, now->as_of_ns - DAY_NS))
        facts->idle_ns = facts->live_ns;
    const int is = facts->live > 0     ? NOW_OK
                   : facts->down > 0   ? NOW_DOWN
                   : facts->silent > 0 ? NOW_SILENT
                                       : NOW_ENDED;
    if (current->load_is != is) // another process failed to load
        facts->load_failed_ns = 0;
    char trouble[NOW_REASON_SIZE];
    facts->trouble = trouble_of(now, current->row.keys[1], trouble);
    current->row.has_trouble = trouble[0] != '\0';
    facts->doing = current->doing;
    facts->last = current->last;
    facts->window_ns = now->window_ns;
    facts->since_ns = now->as_of_ns - now->window_ns;
    if (!ARRAY_RESERVE(&now->rows, &now->row_room, now->row_count + 1))
        return error_no_memory(err, "store");
    current->row.window_ns = now->as_of_ns - later(facts->since_ns, current->began_ns);
    if (current->row.window_ns < SECOND_NS)
        current->row.window_ns = SECOND_NS;
    current->row.is_live = facts->live > 0;
    current->row.has_figures = facts->live > 0 || facts->down + facts->silent == 0;
    now_judge(facts, &current->row.verdict);
    now->rows[now->row_count++] = current->row;
    return STATUS_OK;
}

static enum status on_process(void *context, sqlite3_stmt *row, struct error *err)
{
    struct now *now = context;
    struct now_current *current = now->current;
    const bool has_model = sqlite3_column_type(row, PROCESS_MODEL) != SQLITE_NULL;
    const int64_t keys[] = {has_model ? sqlite3_column_int64(row, PROCESS_MODEL) : GROUP_KEY_NONE,
                            sqlite3_column_int64(row, PROCESS_HOST)};
    enum status status = STATUS_OK;
    if (!current->is_set || memcmp(current->row.keys, keys, sizeof keys) != 0) {
        status = end_current(now, err);
        *current =
            (struct now_current){.row = {.keys = {keys[0], keys[1]}, .running = -1, .waiting = -1},
                                 .load_is = -1,
                                 .is_set = true};
        const struct group *group = groups_get(now->figures, keys);
        if (group) {
            const struct now_figures *figures = group->data;
            current->facts = figures->facts;
            current->load_run = figures->load_run;
        }
        if (has_model)
            (void)answer_name_text(now->store, keys[0], current->model);
    }
    add_process(now, row);
    return status;
}

// The newest rows of process_sample among which a run's last sample is looked for, and that are
// read of it: enough for a sample of 64 models that is whole and one that is not.
enum { SAMPLE_ROWS = 2 * (64 + 1) };

// The last samples of runs in the half minute before the end of a window.
static const char last_samples_sql[] =
    " LEFT JOIN (SELECT run, max(id) AS id FROM main.process_sample WHERE model IS NULL"
    "  AND started_ns >= :until - 30000000000 AND started_ns < :until GROUP BY +run) p"
    " ON p.run = t.run";

// Models that a run has named and its host has answered with: the newest requests before the end of
// a window may lack them.
static const char named_sql[] =
    "  UNION ALL SELECT n.run, n.name, 0 FROM recent r"
    "   CROSS JOIN main.run_name n ON n.run = r.run"
    "   WHERE n.name IN (SELECT model FROM main.series WHERE host = r.host)";

// A count of the process' last sample: the model's or, if the sample has rows of no model, that of
// the process.
#define SAMPLED(column)                                                                            \
    "iif(t.model IS NULL OR t.run NOT IN (SELECT run FROM by_model), s." column                    \
    ", coalesce(o." column ", 0))"

// Reads runs that are open or were heard of in the last 24 h, with the models that each described,
// loaded, or answered with lately.  A model's processes follow each other.  A process has been
// replaced, and counts as ended, if another one of the same model and host (without a model: of the
// host) began after its end, by the clock that timed the end: the host's if it was killed and
// replayed, else the collector's.  So does an imported run that is not closed, which has no owner:
// this collector never heard of it; of a file, one that was killed counts as such.  A process that
// only samples a host with models is left out while it runs.
static enum status read_processes(struct now *now, struct error *err)
{
    struct query_filter of_host = {.since_ns = 0};
    const bool is_past = now->filter.until_ns != 0;
    memcpy(of_host.by[QUERY_BY_HOST], now->filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE);
    of_host.until_ns = now->filter.until_ns;
    sqlite3_str *sql = sqlite3_str_new(now->store->db);
    sqlite3_str_appendf(
        sql,
        "WITH recent AS MATERIALIZED (SELECT t.run, t.host, t.\"end\", t.owner, t.received_ns,"
        " t.started_ns, t.ended_ns, t.heard_ns, t.last_activity, CASE t.\"end\" WHEN 1 THEN NULL"
        "  %s ELSE (SELECT id FROM (SELECT id, model FROM main.process_sample WHERE run = t.run"
        "   ORDER BY id DESC LIMIT %d) WHERE model IS NULL LIMIT 1) END AS sampled"
        " FROM %s t%s",
        is_past ? "WHEN 0 THEN p.id" : "", SAMPLE_ROWS, reader_runs(&of_host),
        is_past ? last_samples_sql : "");
    filter_where(sql, RECORD_KIND_RUN, &of_host);
    sqlite3_str_appendf(
        sql,
        "  AND t.run IN (SELECT run FROM main.run WHERE \"end\" = 0"
        "   UNION SELECT run FROM main.run WHERE heard_ns >= $1)),"
        " used(run, model, at) AS (SELECT m.run, m.name, 0 FROM recent r"
        "   CROSS JOIN main.model m ON m.run = r.run%s"
        "  UNION ALL SELECT l.run, l.model, 0 FROM recent r CROSS JOIN main.load l"
        "   ON l.run = r.run AND (l.status = 0 OR l.started_ns >= $2)%s%s"
        "  UNION ALL SELECT value ->> 0, value ->> 1, value ->> 4 FROM %s"
        "   WHERE value ->> 3 >= $1),"
        " process AS (SELECT r.*, m.model, m.at, r.owner = 0 AND r.\"end\" >= $3 AS imported,"
        "  iif(m.model IS NULL, max(received_ns) OVER host, max(received_ns) OVER model)"
        "   AS came_ns, iif(m.model IS NULL, max(started_ns) OVER host,"
        "   max(started_ns) OVER model) AS began_ns, max(m.model) OVER host AS served"
        "  FROM recent r LEFT JOIN (SELECT run, model, max(at) AS at FROM used GROUP BY run, model)"
        "   m ON m.run = r.run"
        "  WINDOW host AS (PARTITION BY r.host), model AS (PARTITION BY m.model, r.host)),"
        " by_model AS MATERIALIZED (SELECT s.run, s.model,"
        "  max(s.running_requests) AS running_requests, max(s.waiting_requests) AS waiting_requests"
        "  FROM recent r CROSS JOIN main.process_sample l ON l.id = r.sampled"
        "  CROSS JOIN main.process_sample s ON s.id IN"
        "   (SELECT id FROM main.process_sample WHERE +run = l.run AND started_ns = l.started_ns"
        "    ORDER BY id DESC LIMIT %d)"
        "  WHERE s.model IS NOT NULL GROUP BY s.run, s.model)"
        " SELECT t.model, t.host, CASE WHEN t.\"end\" = 0 THEN %d WHEN t.\"end\" = 1"
        "   OR t.imported OR CASE WHEN t.\"end\" = 2 THEN began_ns > t.ended_ns"
        "   WHEN t.ended_ns THEN came_ns > min(t.ended_ns, t.heard_ns)"
        "   ELSE max(came_ns, began_ns) > t.heard_ns END THEN %d WHEN t.ended_ns THEN %d ELSE %d"
        "  END, t.received_ns, coalesce(t.ended_ns, t.heard_ns), t.last_activity, t.at,"
        "  %s, %s, t.run, t.imported"
        " FROM process t LEFT JOIN main.process_sample s ON s.id = t.sampled"
        "  LEFT JOIN by_model o ON o.run = t.run AND o.model = t.model"
        " WHERE t.model IS NOT NULL OR t.served IS NULL OR t.\"end\" <> 0"
        "  OR coalesce(t.last_activity, 'idle') <> 'idle' OR NOT EXISTS"
        "   (SELECT 1 FROM main.ledger g WHERE g.run = t.run AND g.kind = %d AND g.stored > 0)"
        " ORDER BY t.model, t.host",
        is_past ? " AND m.started_ns < :until" : "", is_past ? " AND l.started_ns < :until" : "",
        is_past ? named_sql : "", recent_answers(&of_host), SAMPLE_ROWS, NOW_OK, NOW_ENDED,
        NOW_DOWN, NOW_SILENT, SAMPLED("running_requests"), SAMPLED("waiting_requests"),
        RECORD_KIND_HOST_SAMPLE);
    const int64_t numbers[] = {now->as_of_ns - DAY_NS, now->filter.since_ns,
                               now->store->is_live ? 2 : 3};
    enum status status =
        reader_scan_with(now->store, sql, &of_host, numbers, 3, on_process, now, err);
    return status == STATUS_OK ? end_current(now, err) : status;
}

// ---- All together -------------------------------------------------------------------------

static enum status read_all(struct now *now, struct error *err)
{
    enum status status = find_time(now, err);
    now->filter.since_ns = now->as_of_ns - now->window_ns;
    now->part_ns = now->window_ns / NOW_PARTS;
    // Of parts of minutes there are no rollups; what has a filter is not kept.
    const bool is_kept = now->part_ns % MINUTE_NS != 0 && now->window_ns <= KEPT_NS_MAX &&
                         !*now->filter.by[QUERY_BY_MODEL] && !*now->filter.by[QUERY_BY_HOST];
    if (groups_new(&now->figures, 2, sizeof(struct now_figures), deinit_figures) != STATUS_OK ||
        groups_new(&now->wholes, 1, sizeof(struct now_whole), now_whole_deinit) != STATUS_OK)
        return error_no_memory(err, "store");
    if (status == STATUS_OK && now->filter.until_ns == 0)
        status = recent_keep(now->store, now->as_of_ns, is_kept ? now->window_ns : 0, err);
    if (status == STATUS_OK)
        status = read_failures(now, err);
    if (status == STATUS_OK)
        status = read_figures(now, err);
    if (status == STATUS_OK)
        status = now_devices_read(&now->devices, now->store, &now->filter, err);
    if (status == STATUS_OK)
        status = lasting_read(&now->lasting, now->store, 0, now->filter.until_ns, err);
    return status == STATUS_OK ? read_processes(now, err) : status;
}

static enum status check(const struct query *query, struct error *err)
{
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (query->filter.by[i][0] && i != QUERY_BY_MODEL && i != QUERY_BY_HOST)
            return error_set(err, STATUS_INVALID, "now: filters are model and host, not %s",
                             query_dimension_name((enum query_dimension)i));
    if (query->group_count > 1 ||
        (query->group_count == 1 && query->group_by[0] != QUERY_BY_MODEL &&
         query->group_by[0] != QUERY_BY_HOST))
        return error_set(err, STATUS_INVALID, "now: rows are grouped by model or by host");
    return STATUS_OK;
}

enum status query_now(struct store *store, const struct query *query, struct result **out,
                      struct error *err)
{
    struct now_current current = {.is_set = false};
    struct now now = {.store = store,
                      .query = query,
                      .window_ns = WINDOW_NS,
                      .by = query->group_count == 0                ? -1
                            : query->group_by[0] == QUERY_BY_MODEL ? 0
                                                                   : 1,
                      .budget.left = QUANTILE_BYTES_MAX,
                      .current = &current};
    enum status status = check(query, err);
    if (status == STATUS_OK)
        status = read_all(&now, err);
    if (status == STATUS_OK)
        status = now_answer(&now, out, err);
    free(now.rows);
    groups_free(now.figures);
    groups_free(now.wholes);
    groups_free(now.devices);
    lasting_deinit(&now.lasting);
    return status;
}
