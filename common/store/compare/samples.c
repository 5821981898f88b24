#include "common/store/compare/samples.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/store/aggregate/energy.h"
#include "common/store/rollup/aggregate.h"
#include "common/store/read/filter.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"
#include "common/store/schema/schema_select.h"

// What all samples of a side may take.
enum { SAMPLE_BYTES_MAX = 256 * 1024 * 1024, SAMPLE_KEYS = 5 };

// The samples of devices, one a second, are read at so many moments of the window, at even
// distances.  The median of 1,000 random ones is between the 47th and the 53rd percentile of all.
// Of a fleet, of which all together would be too many, fewer are read; beside more groups, or of
// more devices, none.
enum { DEVICE_MOMENTS = 1000, DEVICE_MOMENTS_MAX = 20000, EXPLAINED_MAX = 400 };

// ---- The table --------------------------------------------------------------------

enum { PROMPT = 1, GENERATED = 2, CACHED = 4, ITEMS = 8 }; // kinds of work

static const struct sampled metrics[] = {
    {.kind = RECORD_KIND_INFERENCE, .name = "ttft_ns", .depends = PROMPT},
    {.kind = RECORD_KIND_INFERENCE, .name = "tpot_ns"},
    {.kind = RECORD_KIND_INFERENCE, .name = "tokens_per_second"},
    {.kind = RECORD_KIND_INFERENCE, .name = "prefill_tokens_per_second", .depends = PROMPT},
    {.kind = RECORD_KIND_INFERENCE, .name = "e2e_ns", .depends = PROMPT | GENERATED | ITEMS},
    {.kind = RECORD_KIND_INFERENCE, .name = "items_per_second", .depends = ITEMS},
    {.kind = RECORD_KIND_INFERENCE, .name = "itl_p99_ns"},
    {.kind = RECORD_KIND_INFERENCE, .name = "prompt_tokens", .work = PROMPT},
    {.kind = RECORD_KIND_INFERENCE, .name = "generated_tokens", .work = GENERATED},
    {.kind = RECORD_KIND_INFERENCE, .name = "items", .work = ITEMS},
    {RECORD_KIND_LOAD, "duration_ns", STATS_INDEPENDENT, .depends = CACHED},
    {RECORD_KIND_LOAD, "page_cache_ratio", STATS_INDEPENDENT, .work = CACHED},
    {.kind = RECORD_KIND_OPERATION, .name = "duration_ns"},
    {.kind = RECORD_KIND_PIPELINE, .name = "items_per_second", .sampling = STATS_INDEPENDENT},
    {RECORD_KIND_PIPELINE, "overlap_ratio", STATS_INDEPENDENT, .explains = true},
    {RECORD_KIND_PIPELINE, "exposed_copy_ns", STATS_INDEPENDENT, .explains = true},
    {RECORD_KIND_PIPELINE, "copy_starved_ns", STATS_INDEPENDENT, .explains = true},
    {RECORD_KIND_PIPELINE, "duration_ns", STATS_INDEPENDENT, .explains = true},
    {RECORD_KIND_PIPELINE, "item_p50_ns", STATS_INDEPENDENT, .explains = true},
    {.kind = RECORD_KIND_DEVICE_SAMPLE, .name = "gpu_util_ratio", .explains = true},
    {.kind = RECORD_KIND_DEVICE_SAMPLE, .name = "memory_used_bytes", .explains = true},
    {.kind = RECORD_KIND_DEVICE_SAMPLE, .name = "temperature_celsius", .explains = true},
    {.kind = RECORD_KIND_DEVICE_SAMPLE, .name = "power_watts", .explains = true},
    {.kind = RECORD_KIND_DEVICE_SAMPLE, .name = "sm_clock_hz", .explains = true},
    {.kind = RECORD_KIND_DEVICE_SAMPLE, .name = "throttled_ratio", .form = SAMPLED_MEAN},
#define TOTAL_METRIC(name_, form_, ...)                                                            \
    {                                                                                              \
        .kind = RECORD_KIND_INFERENCE, .name = name_, .form = form_, __VA_ARGS__                   \
    }
    TOTAL_METRIC(QUERY_METRIC_BUSY_RATE, SAMPLED_BUSY_RATE, .depends = PROMPT | GENERATED,
                 .amount = TOTAL_TOKENS),
    TOTAL_METRIC(QUERY_METRIC_ERRORS, SAMPLED_LACK, .amount = TOTAL_SUCCEEDED),
    TOTAL_METRIC(QUERY_METRIC_REQUEST_RATE, SAMPLED_WALL_RATE, .amount = TOTAL_REQUESTS),
    TOTAL_METRIC(QUERY_METRIC_OUTPUT_RATE, SAMPLED_WALL_RATE, .amount = TOTAL_TOKENS),
    TOTAL_METRIC(QUERY_METRIC_PROMPT_RATE, SAMPLED_WALL_RATE, .amount = TOTAL_PROMPT_TOKENS),
#undef TOTAL_METRIC
    {.kind = RECORD_KIND_INFERENCE, .name = QUERY_METRIC_TOKENS_PER_JOULE, .form = SAMPLED_MEAN},
    {.kind = RECORD_KIND_INFERENCE, .name = QUERY_METRIC_JOULES_PER_REQUEST, .form = SAMPLED_MEAN},
};

enum {
    METRIC_COUNT = sizeof metrics / sizeof *metrics,
    ENERGY = METRIC_COUNT - 2, // those of energy (energy.h), each of one value
    TOTAL = ENERGY - 5,        // the first of the totals has the sample of all
};
_Static_assert(sizeof metrics / sizeof *metrics <= SAMPLED_MAX, "a group has room for all metrics");

// What records of a kind are of, and what they must be to count.
static const struct {
    const char *subject, *device, *batch_items;
    const char *condition;
    bool of_models;
} sources[RECORD_KIND_COUNT] = {
    [RECORD_KIND_INFERENCE] = {"t.model", "t.device", "0", " AND t.finish IN (0, 1)", true},
    [RECORD_KIND_LOAD] = {"t.model", "t.device", "0", " AND t.status = 0", true},
    [RECORD_KIND_OPERATION] = {"t.operation", "coalesce(t.device, 0)", "0",
                               " AND t.operation NOT IN (SELECT p.workload FROM pipeline p)",
                               false},
    [RECORD_KIND_PIPELINE] = {"coalesce(t.model, t.workload)", "t.device",
                              "coalesce(t.batch_items, 0)",
                              " AND t.status = 0 AND t.workload NOT IN (SELECT n.id FROM name n"
                              " WHERE n.text = 'model_load')",
                              true},
    [RECORD_KIND_DEVICE_SAMPLE] = {"0", "t.device", "0",
                                   " AND t.id IN (SELECT s.id FROM main.device_sample s"
                                   " WHERE s.run = k.run AND s.started_ns >= k.since"
                                   " AND s.started_ns < k.until)",
                                   false},
};
_Static_assert((int)RECORD_FINISH_STOP == 0 && (int)RECORD_FINISH_LENGTH == 1 &&
                   (int)RECORD_STATUS_OK == 0,
               "what the conditions say");

const struct sampled *samples_sampled(unsigned place)
{
    return place < METRIC_COUNT ? &metrics[place] : NULL;
}

unsigned samples_place(unsigned place)
{
    return place > TOTAL && place < ENERGY ? TOTAL : place;
}

bool samples_are_of_models(enum record_kind kind)
{
    return sources[kind].of_models;
}

const struct query_metric *samples_metric(unsigned place)
{
    assert(place < METRIC_COUNT);
    unsigned count = 0;
    const struct query_metric *all = query_metrics(&count);
    unsigned i = 0;
    while (i < count &&
           (all[i].kind != metrics[place].kind || strcmp(all[i].name, metrics[place].name) != 0))
        i++;
    assert(i < count);
    return &all[i];
}

int samples_find_metric(const char *name)
{
    const struct query_metric *found = NULL;
    if (query_metric_find(&found, name, NULL) != STATUS_OK)
        return -1;
    for (unsigned i = 0; i < METRIC_COUNT; i++)
        if (samples_metric(i) == found)
            return (int)i;
    return -1;
}

// ---- One sample -------------------------------------------------------------------

static enum status grow(struct sample *sample)
{
    size_t source_room = sample->room;
    if (!ARRAY_RESERVE(&sample->sources, &source_room, sample->kept + 1) ||
        !ARRAY_RESERVE(&sample->values, &sample->room, sample->kept + 1))
        return STATUS_NOMEM;
    return STATUS_OK;
}

static void thin_out(struct sample *sample)
{
    sample->kept = (sample->kept + 1) / 2;
    for (size_t i = 1; i < sample->kept; i++) {
        sample->values[i] = sample->values[2 * i];
        sample->sources[i] = sample->sources[2 * i];
    }
    sample->stride *= 2;
}

void sample_deinit(struct sample *sample)
{
    free(sample->values);
    free(sample->sources);
    *sample = (struct sample){0};
}

enum status sample_add(struct sample *sample, double value, uint16_t source)
{
    if (sample->stride == 0)
        sample->stride = 1;
    const uint64_t place = sample->count++;
    if (place % sample->stride != 0)
        return STATUS_OK;
    if (sample->kept == STATS_SAMPLES_MAX) {
        thin_out(sample);
        if (place % sample->stride != 0)
            return STATUS_OK;
    }
    if (sample->kept == sample->room && grow(sample) != STATUS_OK)
        return STATUS_NOMEM;
    sample->values[sample->kept] = value;
    sample->sources[sample->kept++] = source;
    return STATUS_OK;
}

// Adds a part to the one before it.
static void merge_part(double *into, const double *part)
{
    for (size_t i = 0; i < TOTAL_COLUMNS; i++)
        if (i == TOTAL_ENDED_NS)
            into[i] = fmax(into[i], part[i]);
        else if (i != TOTAL_STARTED_NS)
            into[i] += part[i];
}

// Merges parts two by two.
static void halve_parts(struct sample *sample)
{
    sample->kept /= 2;
    for (size_t i = 0; i < sample->kept; i += TOTAL_COLUMNS) {
        double *first = &sample->values[2 * i];
        merge_part(first, first + TOTAL_COLUMNS);
        memmove(&sample->values[i], first, TOTAL_COLUMNS * sizeof *first);
        memmove(&sample->sources[i], &sample->sources[2 * i],
                TOTAL_COLUMNS * sizeof *sample->sources);
    }
    sample->stride *= 2;
}

enum status sample_add_part(struct sample *sample, const double part[TOTAL_COLUMNS],
                            uint16_t source)
{
    if (sample->stride == 0)
        sample->stride = 1;
    const bool is_new = sample->count / TOTAL_COLUMNS % sample->stride == 0;
    if (is_new && sample->kept == TOTAL_PARTS_MAX * TOTAL_COLUMNS)
        halve_parts(sample);
    for (size_t i = 0; i < TOTAL_COLUMNS && is_new; i++) {
        if (sample->kept == sample->room && grow(sample) != STATUS_OK)
            return STATUS_NOMEM;
        sample->values[sample->kept] = part[i];
        sample->sources[sample->kept++] = source;
    }
    if (!is_new)
        merge_part(&sample->values[sample->kept - TOTAL_COLUMNS], part);
    sample->count += TOTAL_COLUMNS;
    return STATUS_OK;
}

// ---- All of a side ------------------------------------------------------------------

static void deinit_group(void *data)
{
    struct sample_group *group = data;
    for (unsigned i = 0; i < METRIC_COUNT; i++)
        sample_deinit(&group->samples[i]);
}

void samples_deinit(struct samples *samples)
{
    groups_free(samples->groups);
    key_index_deinit(&samples->runs);
    *samples = (struct samples){0};
}

size_t samples_count(const struct samples *samples)
{
    return samples->groups ? groups_count(samples->groups) : 0;
}

struct sample_group *samples_at(const struct samples *samples, size_t index)
{
    return groups_at(samples->groups, index)->data;
}

enum status samples_group(struct samples *samples, const struct sample_key *key,
                          struct sample_group **out, struct error *err)
{
    if (!samples->groups && groups_new(&samples->groups, SAMPLE_KEYS, sizeof(struct sample_group),
                                       deinit_group) != STATUS_OK)
        return error_no_memory(err, "store");
    const int64_t keys[SAMPLE_KEYS] = {(int64_t)key->kind, key->subject, key->device,
                                       key->batch_items, key->host};
    struct group *found;
    enum status status = reader_group(samples->groups, keys, &found, err);
    if (status != STATUS_OK)
        return status;
    *out = found->data;
    (*out)->key = *key;
    return STATUS_OK;
}

// ---- Reading ------------------------------------------------------------------------

// The rows of one kind on their way into samples.
struct collecting {
    struct samples *samples;
    enum record_kind kind;
};

enum { RUN, STARTED, SUBJECT, DEVICE, BATCH_ITEMS, HOST, FIRST_VALUE }; // columns of the rows

// Counts the memory of a sample that a value was added to; `room` is what it had before.
static enum status count_bytes(struct samples *samples, const struct sample *sample, size_t room,
                               struct error *err)
{
    samples->bytes += (sample->room - room) * (sizeof *sample->values + sizeof *sample->sources);
    if (samples->bytes > SAMPLE_BYTES_MAX)
        return error_set(err, STATUS_FULL,
                         "store: the samples take more than %d MiB of memory (narrow them with "
                         "--model, --device or another filter)",
                         SAMPLE_BYTES_MAX / (1024 * 1024));
    return STATUS_OK;
}

static enum status add_value(struct samples *samples, struct sample *sample, double value,
                             uint16_t source, struct error *err)
{
    const size_t room = sample->room;
    if (!isfinite(value))
        return STATUS_OK;
    if (sample_add(sample, value, source) != STATUS_OK)
        return error_no_memory(err, "store");
    return count_bytes(samples, sample, room, err);
}

static enum status on_row(void *context, sqlite3_stmt *row, struct error *err)
{
    const struct collecting *collecting = context;
    struct samples *samples = collecting->samples;
    const struct sample_key key = {
        collecting->kind, sqlite3_column_int64(row, SUBJECT), sqlite3_column_int64(row, DEVICE),
        sqlite3_column_int64(row, BATCH_ITEMS), sqlite3_column_int64(row, HOST)};
    const int64_t run = sqlite3_column_int64(row, RUN);
    struct sample_group *group;
    enum status status = samples_group(samples, &key, &group, err);
    const bool explains = key.kind == RECORD_KIND_DEVICE_SAMPLE; // what other runs measured
    samples->runs.width = 1;
    size_t number;
    if (status == STATUS_OK && !explains &&
        key_index_add(&samples->runs, &run, &number) != STATUS_OK)
        status = error_no_memory(err, "store");
    int place = FIRST_VALUE;
    for (unsigned i = 0; i < METRIC_COUNT && status == STATUS_OK; i++) {
        if (metrics[i].kind != collecting->kind || i >= TOTAL)
            continue;
        if (sqlite3_column_type(row, place) != SQLITE_NULL)
            status = add_value(samples, &group->samples[i], sqlite3_column_double(row, place),
                               (uint16_t)run, err);
        place++;
    }
    const int64_t started_ns = sqlite3_column_int64(row, STARTED);
    if (explains)
        return status;
    if (samples->first_ns == 0 || started_ns < samples->first_ns)
        samples->first_ns = started_ns;
    if (started_ns > samples->last_ns)
        samples->last_ns = started_ns;
    return status;
}

// A run's first and last sample in the window, and the moments of all runs: (run, since, until),
// none where their devices are too many.
// Their distance follows from the time between the first and the last sample or, where the clock of
// a host is wrong, from the time that runs of a host last together.  A run samples its devices one
// after the other, in half a second.
#define END_OF_LIFE(end)                                                                           \
    "(SELECT " end "(s.started_ns) FROM main.device_sample s WHERE s.run = t.run"                  \
    " AND s.started_ns >= %lld AND s.started_ns < %lld)"
#define MOMENTS                                                                                    \
    ") WHERE first IS NOT NULL), pick(run, at, step, last) AS (SELECT l.run, l.first, p.step,"     \
    " l.last FROM life l, (SELECT max(1, CAST(max(total(last - first) / %d, min(max(last)"         \
    " - min(first), total(last - first) / count(DISTINCT host)) / %d) AS INTEGER)) AS step"        \
    " FROM life) p WHERE (SELECT count(*) FROM (SELECT DISTINCT iif(%d, l.host, 0), s.device"      \
    " FROM life l JOIN main.device_sample s ON s.run = l.run AND s.started_ns BETWEEN l.first"     \
    " AND l.first + 500000000)) <= %d"                                                             \
    " UNION ALL SELECT run, at + step, step, last FROM pick WHERE at + step <= last),"             \
    " moment AS (SELECT p.run, p.at AS since, min(p.at + p.step, p.last + 1, 500000000 +"          \
    " (SELECT min(s.started_ns) FROM main.device_sample s WHERE s.run = p.run"                     \
    " AND s.started_ns >= p.at)) AS until FROM pick p) "

// By host only of those that measured something.
static void append_moments(sqlite3_str *sql, const struct samples *samples,
                           const struct query_filter *filter, bool by_host)
{
    const long long since_ns = filter->since_ns ? filter->since_ns : INT64_MIN;
    const long long until_ns = filter->until_ns ? filter->until_ns : INT64_MAX;
    sqlite3_str_appendf(
        sql,
        "WITH RECURSIVE life AS MATERIALIZED (SELECT * FROM (SELECT t.run, t.host,"
        " " END_OF_LIFE("min") " AS first, " END_OF_LIFE("max") " AS last FROM main.run t",
        since_ns, until_ns, since_ns, until_ns);
    filter_where(sql, RECORD_KIND_RUN, filter);
    for (size_t i = 0; i < samples_count(samples) && by_host; i++)
        sqlite3_str_appendf(sql, "%s%lld", i == 0 ? " AND t.host IN (" : ", ",
                            (long long)samples_at(samples, i)->key.host);
    sqlite3_str_appendf(sql, by_host ? ")" MOMENTS : MOMENTS, DEVICE_MOMENTS_MAX, DEVICE_MOMENTS,
                        by_host, EXPLAINED_MAX);
}

static sqlite3_str *begin_select(const struct samples *samples, struct store *store,
                                 enum record_kind kind, const struct query_filter *filter,
                                 bool by_host)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    if (kind == RECORD_KIND_DEVICE_SAMPLE)
        append_moments(sql, samples, filter, by_host);
    sqlite3_str_appendf(sql, "SELECT t.run, t.started_ns, %s, %s, %s, %s", sources[kind].subject,
                        sources[kind].device, sources[kind].batch_items,
                        by_host ? "(SELECT r.host FROM main.run r WHERE r.run = t.run)" : "0");
    return sql;
}

static enum status collect_kind(struct samples *samples, struct store *store, enum record_kind kind,
                                const struct query_filter *filter, bool by_host, struct error *err)
{
    struct collecting collecting = {.samples = samples, .kind = kind};
    sqlite3_str *sql = begin_select(samples, store, kind, filter, by_host);
    for (unsigned i = 0; i < METRIC_COUNT; i++) {
        if (metrics[i].kind != kind || i >= TOTAL)
            continue;
        sqlite3_str_appendall(sql, ", ");
        schema_select_metric(sql, samples_metric(i));
    }
    sqlite3_str_appendf(sql, " FROM %smain.\"%w\" t",
                        kind == RECORD_KIND_DEVICE_SAMPLE ? "moment k CROSS JOIN " : "",
                        record_kind_info(kind)->name);
    filter_where(sql, kind, filter);
    sqlite3_str_appendf(sql, "%s ORDER BY t.started_ns, t.id", sources[kind].condition);
    return reader_scan(store, sql, filter, on_row, &collecting, err);
}

enum status sample_group_add_request(struct sample_group *group,
                                     const struct sample_request *request)
{
    const int64_t e2e_ns = request->e2e_ns;
    int64_t from_ns = request->started_ns, ended_ns;
    if (e2e_ns < 0 || __builtin_add_overflow(from_ns, e2e_ns, &ended_ns))
        return STATUS_OK; // no time of a request
    if (group->run == request->run && group->busy_until_ns > from_ns)
        from_ns = group->busy_until_ns < ended_ns ? group->busy_until_ns : ended_ns;
    const double part[TOTAL_COLUMNS] = {
        [TOTAL_STARTED_NS] = (double)request->started_ns,
        [TOTAL_ENDED_NS] = (double)ended_ns,
        [TOTAL_TOKENS] = (double)request->tokens,
        [TOTAL_BUSY_NS] = (double)(ended_ns - from_ns),
        [TOTAL_E2E_NS] = (double)e2e_ns,
        [TOTAL_RUNNING_NS] = request->queue_ns < e2e_ns ? (double)(e2e_ns - request->queue_ns) : 0,
        [TOTAL_PROMPT_TOKENS] = (double)request->prompt_tokens,
        [TOTAL_REQUESTS] = 1,
        [TOTAL_SUCCEEDED] = !request->has_failed,
    };
    if (group->run != request->run || ended_ns > group->busy_until_ns)
        group->busy_until_ns = ended_ns;
    group->run = request->run;
    return sample_add_part(&group->samples[TOTAL], part, (uint16_t)request->run);
}

enum { TOKENS = FIRST_VALUE, E2E, QUEUE, PROMPTS, FINISH };

// The group of requests with these keys; NULL: there is none.
static struct sample_group *find_requests(const struct samples *samples, int64_t model,
                                          int64_t device, int64_t host)
{
    const int64_t keys[SAMPLE_KEYS] = {RECORD_KIND_INFERENCE, model, device, 0, host};
    const struct group *found = samples->groups ? groups_get(samples->groups, keys) : NULL;
    return found ? found->data : NULL;
}

// Groups without successful requests have no total.
static enum status on_request(void *context, sqlite3_stmt *row, struct error *err)
{
    struct samples *samples = context;
    struct sample_group *group =
        find_requests(samples, sqlite3_column_int64(row, SUBJECT),
                      sqlite3_column_int64(row, DEVICE), sqlite3_column_int64(row, HOST));
    if (!group)
        return STATUS_OK;
    const size_t room = group->samples[TOTAL].room;
    const struct sample_request request = {
        .run = sqlite3_column_int64(row, RUN),
        .started_ns = sqlite3_column_int64(row, STARTED),
        .e2e_ns = sqlite3_column_int64(row, E2E),
        .queue_ns = sqlite3_column_int64(row, QUEUE),
        .tokens = sqlite3_column_int64(row, TOKENS),
        .prompt_tokens = sqlite3_column_int64(row, PROMPTS),
        .has_failed = sqlite3_column_int(row, FINISH) == RECORD_FINISH_ERROR,
    };
    if (sample_group_add_request(group, &request) != STATUS_OK)
        return error_no_memory(err, "store");
    return count_bytes(samples, &group->samples[TOTAL], room, err);
}

static enum status collect_totals(struct samples *samples, struct store *store,
                                  const struct query_filter *filter, bool by_host,
                                  struct error *err)
{
    sqlite3_str *sql = begin_select(samples, store, RECORD_KIND_INFERENCE, filter, by_host);
    sqlite3_str_appendall(sql, ", t.generated_tokens, t.e2e_ns, t.queue_ns, iif(t.prefill_ns > 0,"
                               " t.prompt_tokens, t.cached_prompt_tokens), t.finish"
                               " FROM main.inference t");
    filter_where(sql, RECORD_KIND_INFERENCE, filter);
    sqlite3_str_appendall(sql, " ORDER BY t.run, t.started_ns, t.id");
    return reader_scan(store, sql, filter, on_request, samples, err);
}

// The energy of requests; none where the filter has dimensions, or the groups are too many, for it.
static enum status collect_energy(struct samples *samples, struct store *store,
                                  const struct query_filter *filter, bool by_host,
                                  struct error *err)
{
    const struct query query = {.kind = QUERY_AVERAGE,
                                .filter = *filter,
                                .group_by = {QUERY_BY_MODEL, QUERY_BY_DEVICE, QUERY_BY_HOST},
                                .group_count = by_host ? 3 : 2};
    struct energy energy = {.groups = NULL};
    int64_t now_ns;
    enum status status = reader_as_of(store, &now_ns, err);
    if (status == STATUS_OK)
        status = energy_read(&energy, store, &query, metrics[ENERGY].name, now_ns, err);
    for (size_t i = 0; status == STATUS_OK && i < groups_count(energy.groups); i++) {
        const struct group *of = groups_at(energy.groups, i);
        struct sample_group *group =
            find_requests(samples, of->keys[0], of->keys[1], by_host ? of->keys[2] : 0);
        for (unsigned k = ENERGY; k < METRIC_COUNT && group && status == STATUS_OK; k++) {
            const double value = energy_value(metrics[k].name, of->data);
            if (value > 0) // 0: of a model that makes no tokens
                status = add_value(samples, &group->samples[k], value, 0, err);
        }
    }
    energy_deinit(&energy);
    return status == STATUS_INVALID || status == STATUS_FULL ? STATUS_OK : status;
}

enum status samples_collect(struct samples *samples, struct store *store,
                            const struct query_filter *filter, bool by_host, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < METRIC_COUNT && status == STATUS_OK; i++) {
        const enum record_kind kind = metrics[i].kind;
        enum query_dimension missing;
        const bool is_first = i == 0 || metrics[i - 1].kind != kind;
        if (!is_first || !filter_applies(kind, filter, &missing) ||
            (kind == RECORD_KIND_DEVICE_SAMPLE && samples_count(samples) - 1 >= EXPLAINED_MAX))
            continue; // nothing, or too much, to explain
        status = i == TOTAL ? collect_totals(samples, store, filter, by_host, err)
                            : collect_kind(samples, store, kind, filter, by_host, err);
    }
    return status == STATUS_OK ? collect_energy(samples, store, filter, by_host, err) : status;
}

enum status samples_collect_requests(struct samples *samples, struct store *store,
                                     const struct query_filter *filter, struct error *err)
{
    return collect_kind(samples, store, RECORD_KIND_INFERENCE, filter, true, err);
}
