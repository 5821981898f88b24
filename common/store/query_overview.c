// OVERVIEW: a row per host, device and model.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/saturate.h"
#include "common/store/filter.h"
#include "common/store/reader.h"
#include "common/store/schema.h"

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

struct figures {
    int64_t runs_open, inferences, prompt_tokens, generated_tokens, loads;
    unsigned char *counted; // bit i: the i-th open run is in runs_open
    struct ratio speed;
    struct aggregate ttft, e2e, load;
    int64_t last_ns;
    int64_t device_memory_bytes, device_memory_ns; // and when that was
};

struct overview {
    struct store *store;
    struct coverage runs;     // whatever the window: a row's run is always among them
    struct coverage coverage; // of the window
    struct groups *groups;    // by host, device, model: struct figures
    struct sketch_budget budget;
    unsigned char *busy;             // bit i: the i-th open run has loaded or answered
    const struct coverage_run *last; // the run of the row before
};

static void deinit_figures(void *data)
{
    struct figures *figures = data;
    free(figures->counted);
    aggregate_deinit(&figures->ttft);
}

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NOMEM, "store: out of memory");
}

// The group's figures; a new one wants quantiles.
static enum status find_figures(struct overview *overview, int64_t host, int64_t device,
                                int64_t model, struct figures **out, struct error *err)
{
    const int64_t keys[GROUP_KEYS_MAX] = {host, device, model};
    struct group *group = NULL;
    enum status status = reader_group(overview->groups, keys, &group, err);
    if (status != STATUS_OK)
        return status;
    struct figures *figures = group->data;
    if (!figures->ttft.sketch &&
        aggregate_want_quantiles(&figures->ttft, &overview->budget) != STATUS_OK)
        return out_of_memory(err);
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
                              const struct coverage_run *run, struct error *err)
{
    if (!run->open)
        return STATUS_OK;
    if (!figures->counted)
        figures->counted = calloc(1, bits_size(overview));
    if (!figures->counted)
        return out_of_memory(err);
    figures->runs_open += set_bit(figures->counted, run->open_place);
    (void)set_bit(overview->busy, run->open_place);
    return STATUS_OK;
}

// The figures that a run's records of a device and a model go to; NULL for a row
// whose run is missing.
static enum status find_member(struct overview *overview, int64_t run, int64_t device,
                               int64_t model, struct figures **out, struct error *err)
{
    *out = NULL;
    if (!overview->last || overview->last->run != run)
        overview->last = coverage_find(&overview->runs, run);
    if (!overview->last)
        return STATUS_OK;
    enum status status = find_figures(overview, overview->last->host, device, model, out, err);
    if (status == STATUS_OK)
        status = count_open(overview, *out, overview->last, err);
    return status;
}

static int64_t key_at(sqlite3_stmt *row, int place)
{
    return sqlite3_column_type(row, place) == SQLITE_NULL ? GROUP_KEY_NONE
                                                          : sqlite3_column_int64(row, place);
}

// Every row: run, device, model, started_ns, device memory, then the kind's own.
static enum status take_common(struct overview *overview, sqlite3_stmt *row, struct figures **out,
                               struct error *err)
{
    enum status status =
        find_member(overview, key_at(row, 0), key_at(row, 1), key_at(row, 2), out, err);
    struct figures *figures = *out;
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

static enum status take_inference(void *context, sqlite3_stmt *row, struct error *err)
{
    struct figures *figures = NULL;
    enum status status = take_common(context, row, &figures, err);
    if (status != STATUS_OK || !figures)
        return status;
    figures->inferences++;
    figures->prompt_tokens = saturate_add(figures->prompt_tokens, sqlite3_column_int64(row, 5));
    figures->generated_tokens =
        saturate_add(figures->generated_tokens, sqlite3_column_int64(row, 6));
    aggregate_add_int(&figures->e2e, sqlite3_column_int64(row, 7));
    if (sqlite3_column_type(row, 8) != SQLITE_NULL)
        aggregate_add_int(&figures->ttft, sqlite3_column_int64(row, 8));
    ratio_add_columns(&figures->speed, row, 9);
    return reader_budget(&((struct overview *)context)->budget, err);
}

static enum status take_load(void *context, sqlite3_stmt *row, struct error *err)
{
    struct figures *figures = NULL;
    enum status status = take_common(context, row, &figures, err);
    if (status != STATUS_OK || !figures)
        return status;
    figures->loads++;
    if (sqlite3_column_int64(row, 5) == RECORD_STATUS_OK)
        aggregate_add_int(&figures->load, sqlite3_column_int64(row, 6));
    return STATUS_OK;
}

static enum status scan(struct overview *overview, enum record_kind kind, const char *own,
                        const struct record_derived *derived, const struct query_filter *filter,
                        row_take *take, struct error *err)
{
    enum query_dimension missing;
    if (!filter_applies(kind, filter, &missing))
        return STATUS_OK;
    sqlite3_str *sql = sqlite3_str_new(overview->store->db);
    sqlite3_str_appendf(sql, "SELECT t.run, t.device, t.model, t.started_ns, %s", own);
    if (derived) {
        sqlite3_str_appendall(sql, ", ");
        append_derived(sql, derived);
    }
    sqlite3_str_appendf(sql, " FROM \"%w\" t", record_kind_info(kind)->name);
    filter_where(sql, kind, filter);
    return reader_scan(overview->store, sql, filter, take, overview, err);
}

// Open runs that have neither loaded nor answered yet stand in a row of their
// host without device and model, unless the filter asks for these.
static enum status add_idle_runs(struct overview *overview, const struct query_filter *filter,
                                 struct error *err)
{
    if (filter->by[QUERY_BY_MODEL][0] || filter->by[QUERY_BY_DEVICE][0])
        return STATUS_OK;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < overview->coverage.count && status == STATUS_OK; i++) {
        const struct coverage_run *run =
            coverage_find(&overview->runs, overview->coverage.runs[i].run);
        struct figures *figures = NULL;
        if (run && run->open && set_bit(overview->busy, run->open_place))
            status = find_member(overview, run->run, GROUP_KEY_NONE, GROUP_KEY_NONE, &figures, err);
    }
    return status;
}

// ---- The answer ---------------------------------------------------------------------

static enum status take_memory(void *context, sqlite3_stmt *row, struct error *err)
{
    struct result *answer = context;
    return answer_cell(answer, (unsigned)result_find(answer, "host_memory_bytes"), row, 0, err);
}

// The last samples of the host's open runs, summed.
static enum status add_host_memory(struct store *store, struct result *answer, int64_t host,
                                   struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql,
                        "SELECT CASE WHEN count(memory) THEN CAST(total(memory) AS INTEGER) END"
                        " FROM (SELECT (SELECT s.host_memory_bytes FROM process_sample s"
                        "  WHERE s.run = t.run ORDER BY s.id DESC LIMIT 1) AS memory"
                        "  FROM run t WHERE t.\"end\" = 0 AND t.host = %lld)",
                        (long long)host);
    return reader_scan(store, sql, NULL, take_memory, answer, err);
}

static void set_figures(struct result *answer, const struct figures *figures)
{
    answer_int(answer, "runs_open", figures->runs_open);
    answer_int(answer, "inferences", figures->inferences);
    answer_int(answer, "prompt_tokens", figures->prompt_tokens);
    answer_int(answer, "generated_tokens", figures->generated_tokens);
    answer_real(answer, "tokens_per_second", ratio_total(&figures->speed));
    answer_real(answer, "mean_tokens_per_second", aggregate_mean(&figures->speed.values));
    answer_real(answer, "ttft_mean_ns", aggregate_mean(&figures->ttft));
    answer_real(answer, "ttft_p95_ns", aggregate_quantile(&figures->ttft, 0.95));
    answer_real(answer, "e2e_mean_ns", aggregate_mean(&figures->e2e));
    answer_int(answer, "loads", figures->loads);
    answer_real(answer, "load_mean_ns", aggregate_mean(&figures->load));
    if (figures->device_memory_ns != 0)
        answer_int(answer, "device_memory_bytes", figures->device_memory_bytes);
    if (figures->last_ns != 0)
        answer_int(answer, "last_ns", figures->last_ns);
}

static enum status add_row(struct overview *overview, struct result *answer,
                           const struct group *group, struct error *err)
{
    if (result_add_row(answer) != STATUS_OK)
        return out_of_memory(err);
    enum status status = STATUS_OK;
    for (unsigned i = COLUMN_HOST; i <= COLUMN_MODEL && status == STATUS_OK; i++)
        status = answer_name(overview->store, answer, i, group->keys[i], err);
    if (status == STATUS_OK)
        status = add_host_memory(overview->store, answer, group->keys[COLUMN_HOST], err);
    set_figures(answer, group->data);
    int64_t stored = 0, lost = 0;
    coverage_sum(&overview->coverage, group->keys[COLUMN_HOST], GROUP_KEY_NONE, &stored, &lost);
    answer_int(answer, "lost", lost);
    answer_real(answer, "coverage_ratio", coverage_ratio(stored, lost));
    return status;
}

static enum status read_overview(struct overview *overview, const struct query_filter *filter,
                                 struct error *err)
{
    if (groups_new(&overview->groups, 3, sizeof(struct figures), deinit_figures) != STATUS_OK)
        return out_of_memory(err);
    struct query_filter any_time = *filter;
    any_time.since_ns = 0;
    any_time.until_ns = 0;
    enum status status = coverage_read(&overview->coverage, overview->store, filter, err);
    if (status == STATUS_OK)
        status = coverage_read(&overview->runs, overview->store, &any_time, err);
    if (status == STATUS_OK) {
        overview->busy = calloc(1, bits_size(overview));
        if (!overview->busy)
            status = out_of_memory(err);
    }
    if (status == STATUS_OK)
        status = scan(overview, RECORD_KIND_INFERENCE,
                      "t.device_memory_bytes, t.prompt_tokens, t.generated_tokens, t.e2e_ns,"
                      " t.ttft_ns",
                      derived_find(RECORD_KIND_INFERENCE, "tokens_per_second"), filter,
                      take_inference, err);
    if (status == STATUS_OK)
        status =
            scan(overview, RECORD_KIND_LOAD, "t.device_memory_after_bytes, t.status, t.duration_ns",
                 NULL, filter, take_load, err);
    if (status == STATUS_OK)
        status = add_idle_runs(overview, filter, err);
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
    const size_t count = overview.groups ? groups_count(overview.groups) : 0;
    for (size_t i = 0; i < count && status == STATUS_OK && result_row_count(*out) < limit; i++)
        status = add_row(&overview, *out, groups_at(overview.groups, i), err);
    groups_free(overview.groups);
    free(overview.busy);
    coverage_deinit(&overview.coverage);
    coverage_deinit(&overview.runs);
    return status;
}
