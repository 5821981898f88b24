// OVERVIEW: a row per host, device and model.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/rollup/rollup_row.h"
#include "common/store/aggregate/coverage.h"
#include "common/store/read/filter.h"
#include "common/store/aggregate/aggregate_scan.h"
#include "common/store/read/reader.h"
#include "common/store/read/run_list.h"
#include "common/store/read/answer_cells.h"
#include "common/store/query/query_list.h"
#include "common/store/read/session_state.h"

static const struct answer_column columns[] = {
    {"host", UNIT_NONE},
    {"device", UNIT_NONE},
    {"model", UNIT_NONE},
    {"runs_open", UNIT_COUNT},
    {"inferences", UNIT_COUNT},
    {"prompt_tokens", UNIT_TOKENS},
    {"generated_tokens", UNIT_TOKENS},
    {"tokens_per_second", UNIT_TOKENS_PER_SECOND},
    {"mean_tokens_per_second", UNIT_TOKENS_PER_SECOND},
    {"ttft_mean_ns", UNIT_DURATION},
    {"ttft_p95_ns", UNIT_DURATION},
    {"e2e_mean_ns", UNIT_DURATION},
    {"loads", UNIT_COUNT},
    {"load_mean_ns", UNIT_DURATION},
    {"host_memory_bytes", UNIT_BYTES},
    {"device_memory_bytes", UNIT_BYTES},
    {"last_ns", UNIT_TIME},
    {"lost", UNIT_COUNT},
    {"coverage_ratio", UNIT_RATIO},
};

enum { COLUMN_HOST, COLUMN_DEVICE, COLUMN_MODEL }; // keys of a group, places in the answer
enum { LOAD_DURATION, LOAD_SPEED, LOAD_METRICS };
enum { NEWEST_RECORDS = 4000 };

struct figures {
    int64_t runs_open;
    unsigned char *counted; // bit i: the i-th open run is in runs_open
    struct ratio inference[INFERENCE_METRICS], load[LOAD_METRICS];
    int64_t last_ns;
    int64_t device_memory_bytes, device_memory_ns; // and when that was
};

struct overview {
    struct store *store;
    struct run_list runs;     // whatever the window: a row's run is always among them
    struct run_list touching; // those whose life touches the window
    struct coverage coverage; // of the window, by host
    struct groups *groups;    // by host, device, model: struct figures
    struct sketch_budget budget;
    unsigned char *busy;           // bit i: the i-th open run has loaded or answered
    const struct listed_run *last; // the run of the row before
};

static void deinit_figures(void *data)
{
    struct figures *figures = data;
    free(figures->counted);
    aggregate_deinit(&figures->inference[INFERENCE_TTFT].values);
}

// The group's figures; a new one wants quantiles.
static enum status find_figures(struct overview *overview, const int64_t *keys,
                                struct figures **out, struct error *err)
{
    struct group *group = NULL;
    enum status status = reader_group(overview->groups, keys, &group, err);
    if (status != STATUS_OK)
        return status;
    struct figures *figures = group->data;
    struct aggregate *ttft = &figures->inference[INFERENCE_TTFT].values;
    if (!ttft->sketch && aggregate_want_quantiles(ttft, &overview->budget) != STATUS_OK)
        return error_no_memory(err, "store");
    *out = figures;
    return STATUS_OK;
}

// Sets the bit; whether it was clear.
static bool set_bit(unsigned char *bits, size_t place)
{
    const unsigned char mask = (unsigned char)(1U << place % 8);
    const bool was_clear = !(bits[place / 8] & mask);
    bits[place / 8] |= mask;
    return was_clear;
}

static size_t bits_size(const struct overview *overview)
{
    return overview->runs.open_count / 8 + 1;
}

// An open run counts once in a group, however many rows it has there.
static enum status count_open(struct overview *overview, struct figures *figures,
                              const struct listed_run *run, struct error *err)
{
    if (!run->open)
        return STATUS_OK;
    if (!figures->counted)
        figures->counted = calloc(1, bits_size(overview));
    if (!figures->counted)
        return error_no_memory(err, "store");
    figures->runs_open += set_bit(figures->counted, run->open_place);
    (void)set_bit(overview->busy, run->open_place);
    return STATUS_OK;
}

// The figures that a run's records of a device and a model go to; NULL for a row
// of a missing run, and where there are none yet and `proof` is false: what only failed
// to load is no model, its name may be a slip of the hand.
static enum status find_member(struct overview *overview, int64_t run, int64_t device,
                               int64_t model, bool proof, struct figures **out, struct error *err)
{
    *out = NULL;
    if (!overview->last || overview->last->run != run)
        overview->last = run_list_find(&overview->runs, run);
    if (!overview->last)
        return STATUS_OK;
    const int64_t keys[GROUP_KEYS_MAX] = {overview->last->host, device, model};
    if (!proof && !groups_get(overview->groups, keys))
        return STATUS_OK;
    enum status status = find_figures(overview, keys, out, err);
    if (status == STATUS_OK)
        status = count_open(overview, *out, overview->last, err);
    return status;
}

// ---- Sums of all records ----------------------------------------------------------------

static enum status add_sums(struct overview *overview, const struct aggregate_scan *scan,
                            bool of_loads, struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < groups_count(scan->groups) && status == STATUS_OK; i++) {
        const struct group *group = groups_at(scan->groups, i);
        struct figures *figures = NULL;
        if (aggregate_scan_ratio(group, 0)->values.count == 0)
            continue;
        if (of_loads && aggregate_scan_ratio(group, LOAD_SPEED)->values.count == 0 &&
            !groups_get(overview->groups, group->keys))
            continue; // as with find_member
        status = find_figures(overview, group->keys, &figures, err);
        for (unsigned metric = 0; metric < scan->metric_count && status == STATUS_OK; metric++)
            ratio_merge(of_loads ? &figures->load[metric] : &figures->inference[metric],
                        aggregate_scan_ratio(group, metric));
        if (status == STATUS_OK)
            status = reader_budget(&overview->budget, err);
        if (status == STATUS_OK && aggregate_scan_last_ns(group) > figures->last_ns)
            figures->last_ns = aggregate_scan_last_ns(group);
    }
    return status;
}

static enum status sum_inferences(struct overview *overview, const struct query *query,
                                  struct error *err)
{
    struct aggregate_scan scan = {.query = query, .kind = RECORD_KIND_INFERENCE};
    aggregate_scan_want_inferences(&scan);
    enum status status = aggregate_scan_run(&scan, overview->store, err);
    if (status == STATUS_OK)
        status = add_sums(overview, &scan, false, err);
    aggregate_scan_deinit(&scan);
    return status;
}

static enum status sum_loads(struct overview *overview, const struct query *query,
                             struct error *err)
{
    struct aggregate_scan scan = {.query = query, .kind = RECORD_KIND_LOAD};
    aggregate_scan_want(&scan, "duration_ns", false);
    aggregate_scan_want(&scan, "load_bytes_per_second", false);
    enum status status = aggregate_scan_run(&scan, overview->store, err);
    if (status == STATUS_OK)
        status = add_sums(overview, &scan, true, err);
    aggregate_scan_deinit(&scan);
    return status;
}

// ---- The newest records -----------------------------------------------------------------

static int64_t key_at(sqlite3_stmt *row, int place)
{
    return sqlite3_column_type(row, place) == SQLITE_NULL ? GROUP_KEY_NONE
                                                          : sqlite3_column_int64(row, place);
}

// A row: run, device, model, started_ns, device memory, whether it shows that there is such a
// model.
static enum status take_newest(void *context, sqlite3_stmt *row, struct error *err)
{
    struct figures *figures = NULL;
    enum status status = find_member(context, key_at(row, 0), key_at(row, 1), key_at(row, 2),
                                     sqlite3_column_int(row, 5) != 0, &figures, err);
    if (status != STATUS_OK || !figures)
        return status;
    const int64_t started_ns = sqlite3_column_int64(row, 3);
    if (started_ns > figures->last_ns)
        figures->last_ns = started_ns;
    if (sqlite3_column_type(row, 4) != SQLITE_NULL && started_ns >= figures->device_memory_ns) {
        figures->device_memory_ns = started_ns;
        figures->device_memory_bytes = sqlite3_column_int64(row, 4);
    }
    return STATUS_OK;
}

// What only single records say (active requests, device memory in use)
// is read from the newest ones of the kind.
static enum status read_newest(struct overview *overview, enum record_kind kind, const char *memory,
                               const struct query_filter *filter, struct error *err)
{
    const struct store *store = overview->store;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    const char *table = record_kind_info(kind)->name;
    sqlite3_str_appendf(
        sql, "SELECT t.run, t.device, t.model, t.started_ns, t.\"%w\", %s FROM main.\"%w\" t",
        memory, kind == RECORD_KIND_LOAD ? "t.status = 0" : "1", table);
    filter_where(sql, kind, filter);
    sqlite3_str_appendf(sql, " AND t.id > coalesce((SELECT max(id) FROM main.\"%w\"), 0) - %d",
                        table, NEWEST_RECORDS);
    return reader_scan(overview->store, sql, filter, take_newest, overview, err);
}

static enum status read_records(struct overview *overview, const struct query_filter *filter,
                                struct error *err)
{
    struct query query = {.kind = QUERY_OVERVIEW, .filter = *filter, .group_count = 3};
    query.group_by[COLUMN_HOST] = QUERY_BY_HOST;
    query.group_by[COLUMN_DEVICE] = QUERY_BY_DEVICE;
    query.group_by[COLUMN_MODEL] = QUERY_BY_MODEL;
    enum query_dimension missing;
    enum status status = STATUS_OK;
    if (filter_applies(RECORD_KIND_INFERENCE, filter, &missing)) {
        status = sum_inferences(overview, &query, err);
        if (status == STATUS_OK)
            status =
                read_newest(overview, RECORD_KIND_INFERENCE, "device_memory_bytes", filter, err);
    }
    if (status == STATUS_OK && filter_applies(RECORD_KIND_LOAD, filter, &missing)) {
        status = sum_loads(overview, &query, err);
        if (status == STATUS_OK)
            status =
                read_newest(overview, RECORD_KIND_LOAD, "device_memory_after_bytes", filter, err);
    }
    return status;
}

// Open runs that have neither loaded nor answered yet stand in a row of their
// host without device and model, unless the filter asks for these.
static enum status add_idle_runs(struct overview *overview, const struct query_filter *filter,
                                 struct error *err)
{
    if (filter->by[QUERY_BY_MODEL][0] || filter->by[QUERY_BY_DEVICE][0])
        return STATUS_OK;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < overview->touching.count && status == STATUS_OK; i++) {
        const struct listed_run *run =
            run_list_find(&overview->runs, overview->touching.list[i].run);
        struct figures *figures = NULL;
        if (run && run->open && set_bit(overview->busy, run->open_place))
            status = find_member(overview, run->run, GROUP_KEY_NONE, GROUP_KEY_NONE, true, &figures,
                                 err);
    }
    return status;
}

// ---- The answer ---------------------------------------------------------------------

// The last samples of the host's open runs, summed.
static enum status add_host_memory(struct store *store, struct result *answer, int64_t host,
                                   struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql,
                        "SELECT CASE WHEN count(memory) THEN CAST(total(memory) AS INTEGER) END"
                        " AS host_memory_bytes"
                        " FROM (SELECT (SELECT s.host_memory_bytes FROM process_sample s"
                        "  WHERE s.run = t.run ORDER BY s.id DESC LIMIT 1) AS memory"
                        "  FROM run t WHERE t.\"end\" = 0 AND t.host = %lld)",
                        (long long)host);
    return reader_scan(store, sql, NULL, answer_take_row, answer, err);
}

static void set_figures(struct result *answer, const struct figures *figures)
{
    answer_int(answer, "runs_open", figures->runs_open);
    answer_inferences(answer, figures->inference);
    answer_int(answer, "loads", (int64_t)figures->load[LOAD_DURATION].values.count);
    answer_real(answer, "load_mean_ns", ratio_mean_denominator(&figures->load[LOAD_SPEED]));
    if (figures->device_memory_ns != 0)
        answer_int(answer, "device_memory_bytes", figures->device_memory_bytes);
    if (figures->last_ns != 0)
        answer_int(answer, "last_ns", figures->last_ns);
}

// Whether there is anything that a coverage could be of.
static bool has_stored(const struct overview *overview, int64_t host)
{
    for (size_t i = 0; i < overview->touching.count; i++)
        if (overview->touching.list[i].host == host && overview->touching.list[i].stored > 0)
            return true;
    return false;
}

static enum status add_row(struct overview *overview, struct result *answer,
                           const struct group *group, struct error *err)
{
    if (result_add_row(answer) != STATUS_OK)
        return error_no_memory(err, "store");
    enum status status = STATUS_OK;
    for (unsigned i = COLUMN_HOST; i <= COLUMN_MODEL && status == STATUS_OK; i++)
        status = answer_name(overview->store, answer, i, group->keys[i], err);
    if (status == STATUS_OK)
        status = add_host_memory(overview->store, answer, group->keys[COLUMN_HOST], err);
    set_figures(answer, group->data);
    int64_t lost;
    double ratio;
    coverage_of(&overview->coverage, group->keys[COLUMN_HOST], GROUP_KEY_NONE, 0, &ratio, &lost);
    answer_int(answer, "lost", lost);
    if (lost > 0 || has_stored(overview, group->keys[COLUMN_HOST]))
        answer_real(answer, "coverage_ratio", ratio);
    return status;
}

static enum status read_overview(struct overview *overview, const struct query_filter *filter,
                                 struct error *err)
{
    if (groups_new(&overview->groups, 3, sizeof(struct figures), deinit_figures) != STATUS_OK)
        return error_no_memory(err, "store");
    struct query_filter any_time = *filter;
    any_time.since_ns = 0;
    any_time.until_ns = 0;
    const struct query by_host = {.filter = *filter, .group_by = {QUERY_BY_HOST}, .group_count = 1};
    enum status status = coverage_read(&overview->coverage, overview->store, &by_host, err);
    if (status == STATUS_OK)
        status = run_list_read(&overview->touching, overview->store, filter, err);
    if (status == STATUS_OK)
        status = run_list_read(&overview->runs, overview->store, &any_time, err);
    if (status == STATUS_OK) {
        overview->busy = calloc(1, bits_size(overview));
        if (!overview->busy)
            status = error_no_memory(err, "store");
    }
    if (status == STATUS_OK)
        status = read_records(overview, filter, err);
    if (status == STATUS_OK)
        status = add_idle_runs(overview, filter, err);
    return status;
}

// By the ids of host, device and model; who is idle behind the others.
static int by_keys(const void *left, const void *right)
{
    const struct group *const *a = left, *const *b = right;
    const bool idle_a = (*a)->keys[COLUMN_DEVICE] == GROUP_KEY_NONE;
    const bool idle_b = (*b)->keys[COLUMN_DEVICE] == GROUP_KEY_NONE;
    if (idle_a != idle_b)
        return idle_a ? 1 : -1;
    for (unsigned i = COLUMN_HOST; i <= COLUMN_MODEL; i++)
        if ((*a)->keys[i] != (*b)->keys[i])
            return (*a)->keys[i] < (*b)->keys[i] ? -1 : 1;
    return 0;
}

static enum status add_rows(struct overview *overview, struct result *answer, uint32_t limit,
                            struct error *err)
{
    const size_t count = groups_count(overview->groups);
    struct group **list = calloc(count ? count : 1, sizeof *list);
    if (!list)
        return error_no_memory(err, "store");
    for (size_t i = 0; i < count; i++)
        list[i] = groups_at(overview->groups, i);
    qsort(list, count, sizeof *list, by_keys);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK && result_row_count(answer) < limit; i++)
        status = add_row(overview, answer, list[i], err);
    free(list);
    return status;
}

enum status query_overview(struct store *store, const struct query *query, struct result **out,
                           struct error *err)
{
    struct overview overview = {.store = store, .budget = {.left = QUANTILE_BYTES_MAX}};
    const uint32_t limit = query->limit ? query->limit : QUERY_ROWS_MAX;
    enum status status = read_overview(&overview, &query->filter, err);
    if (status == STATUS_OK)
        status = answer_new(out, columns, sizeof columns / sizeof *columns, err);
    if (status == STATUS_OK)
        status = add_rows(&overview, *out, limit, err);
    groups_free(overview.groups);
    free(overview.busy);
    coverage_deinit(&overview.coverage);
    run_list_deinit(&overview.touching);
    run_list_deinit(&overview.runs);
    return status;
}
