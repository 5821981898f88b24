// STAGES: the waterfall of model loads, averaged over many of them.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/core/base/saturate.h"
#include "common/store/read/filter.h"
#include "common/store/read/reader.h"
#include "common/store/schema/schema_select.h"
#include "common/store/read/answer_cells.h"
#include "common/store/query/query_list.h"
#include "common/store/read/session_state.h"

enum {
    LOADS_MAX = 200000, // the newest, where there are more
    STAGES_MAX = 64,    // different ones of a group
};

// How much of its file a load found in the page cache: cold loads have read nearly all
// of it from storage, warm ones nearly nothing.
#define COLD_MOST  0.1
#define WARM_LEAST 0.9

enum cache { CACHE_ALL, CACHE_COLD, CACHE_MIXED, CACHE_WARM, CACHE_UNKNOWN, CACHE_COUNT };

static const char *const cache_names[CACHE_COUNT] = {
    [CACHE_ALL] = "all",   [CACHE_COLD] = "cold",       [CACHE_MIXED] = "mixed",
    [CACHE_WARM] = "warm", [CACHE_UNKNOWN] = "unknown",
};

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

// One stage of all loads of a group.
struct stage {
    int64_t name;
    struct real_sum ordinals; // where it stands: on average
    struct aggregate duration;
};

// The loads of a group that found as much in the page cache.
struct waterfall {
    int64_t failed;
    struct aggregate total, other, storage, cached;
    struct real_sum bytes;
    struct stage *stages;
    size_t stage_count;
};

struct group_data {
    struct waterfall by_cache[CACHE_COUNT];
};

// A load that was read, for its stages to find it.
struct load {
    int64_t run, stream, number;
    int64_t rest_ns; // that no stage accounts for
    size_t group;
    enum cache cache;
    bool has_stages;
};

struct reading {
    struct store *store;
    const struct query *query;
    struct groups *groups;
    struct sketch_budget budget;
    struct load *loads;
    size_t load_count, load_room;
    bool is_cut;               // there are more than LOADS_MAX
    int64_t first_ns, last_ns; // between which stages may have begun
};

static void deinit_group(void *data)
{
    struct group_data *group = data;
    for (unsigned i = 0; i < CACHE_COUNT; i++) {
        struct waterfall *waterfall = &group->by_cache[i];
        for (size_t k = 0; k < waterfall->stage_count; k++)
            aggregate_deinit(&waterfall->stages[k].duration);
        free(waterfall->stages);
        aggregate_deinit(&waterfall->total);
        aggregate_deinit(&waterfall->other);
    }
}

// ---- Reading loads ------------------------------------------------------------------

static enum cache cache_of(sqlite3_stmt *row, int place)
{
    if (sqlite3_column_type(row, place) == SQLITE_NULL)
        return CACHE_UNKNOWN;
    const double ratio = sqlite3_column_double(row, place);
    if (ratio <= COLD_MOST)
        return CACHE_COLD;
    return ratio >= WARM_LEAST ? CACHE_WARM : CACHE_MIXED;
}

static enum status add_duration(struct reading *reading, struct aggregate *aggregate, int64_t ns,
                                struct error *err)
{
    if (!aggregate->sketch && aggregate_want_quantiles(aggregate, &reading->budget) != STATUS_OK)
        return error_no_memory(err, "store");
    aggregate_add_int(aggregate, ns);
    return reader_budget(&reading->budget, err);
}

enum load_place {
    PLACE_RUN,
    PLACE_STREAM,
    PLACE_NUMBER,
    PLACE_STARTED,
    PLACE_DURATION,
    PLACE_STATUS,
    PLACE_BYTES,
    PLACE_CACHED,
    PLACE_STORAGE,
    PLACE_KEYS
};

static enum status add_figures(struct reading *reading, struct waterfall *waterfall,
                               sqlite3_stmt *row, struct error *err)
{
    real_sum_add(&waterfall->bytes, sqlite3_column_double(row, PLACE_BYTES));
    if (sqlite3_column_type(row, PLACE_CACHED) != SQLITE_NULL)
        aggregate_add_real(&waterfall->cached, sqlite3_column_double(row, PLACE_CACHED));
    if (sqlite3_column_type(row, PLACE_STORAGE) != SQLITE_NULL)
        aggregate_add_real(&waterfall->storage, sqlite3_column_double(row, PLACE_STORAGE));
    return add_duration(reading, &waterfall->total, sqlite3_column_int64(row, PLACE_DURATION), err);
}

static enum status keep_load(struct reading *reading, sqlite3_stmt *row, size_t group,
                             enum cache cache, struct error *err)
{
    if (!ARRAY_RESERVE(&reading->loads, &reading->load_room, reading->load_count + 1))
        return error_no_memory(err, "store");
    const int64_t started = sqlite3_column_int64(row, PLACE_STARTED);
    const int64_t duration = sqlite3_column_int64(row, PLACE_DURATION);
    const int64_t end = saturate_add(started, duration);
    reading->loads[reading->load_count++] = (struct load){
        .run = sqlite3_column_int64(row, PLACE_RUN),
        .stream = sqlite3_column_int64(row, PLACE_STREAM),
        .number = sqlite3_column_int64(row, PLACE_NUMBER),
        .rest_ns = duration,
        .group = group,
        .cache = cache,
    };
    reading->first_ns = started < reading->first_ns ? started : reading->first_ns;
    reading->last_ns = end > reading->last_ns ? end : reading->last_ns;
    return STATUS_OK;
}

static enum status take_load(void *context, sqlite3_stmt *row, struct error *err)
{
    struct reading *reading = context;
    if (reading->load_count == LOADS_MAX) {
        reading->is_cut = true;
        return STATUS_OK; // the last row there is
    }
    int64_t keys[GROUP_KEYS_MAX] = {0};
    for (unsigned i = 0; i < reading->query->group_count; i++)
        keys[i] = sqlite3_column_int64(row, PLACE_KEYS + (int)i);
    struct group *group = NULL;
    enum status status = reader_group(reading->groups, keys, &group, err);
    if (status != STATUS_OK)
        return status;
    struct group_data *data = group->data;
    const enum cache cache = cache_of(row, PLACE_CACHED);
    if (sqlite3_column_int64(row, PLACE_STATUS) != RECORD_STATUS_OK) {
        data->by_cache[CACHE_ALL].failed++;
        return STATUS_OK;
    }
    size_t place = groups_count(reading->groups) - 1;
    while (groups_at(reading->groups, place) != group)
        place--;
    status = add_figures(reading, &data->by_cache[CACHE_ALL], row, err);
    if (status == STATUS_OK)
        status = add_figures(reading, &data->by_cache[cache], row, err);
    return status == STATUS_OK ? keep_load(reading, row, place, cache, err) : status;
}

static enum status read_loads(struct reading *reading, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(reading->store->db);
    sqlite3_str_appendall(sql, "SELECT t.run, t.stream, t.number, t.started_ns, t.duration_ns,"
                               " t.status, t.model_bytes, t.page_cache_ratio,"
                               " t.storage_bytes_per_second");
    for (unsigned i = 0; i < reading->query->group_count; i++)
        sqlite3_str_appendf(sql, ", %s",
                            schema_dimension(RECORD_KIND_LOAD, reading->query->group_by[i]));
    sqlite3_str_appendall(sql, " FROM load t");
    filter_where(sql, RECORD_KIND_LOAD, &reading->query->filter);
    sqlite3_str_appendf(sql, " ORDER BY t.started_ns DESC LIMIT %d", LOADS_MAX + 1);
    return reader_scan(reading->store, sql, &reading->query->filter, take_load, reading, err);
}

// ---- Reading stages ------------------------------------------------------------------

static int by_identity(const void *left, const void *right)
{
    const struct load *a = left, *b = right;
    if (a->run != b->run)
        return a->run < b->run ? -1 : 1;
    if (a->stream != b->stream)
        return a->stream < b->stream ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

static enum status find_stage(struct waterfall *waterfall, int64_t name, struct stage **out,
                              struct error *err)
{
    for (size_t i = 0; i < waterfall->stage_count; i++) {
        *out = &waterfall->stages[i];
        if ((*out)->name == name)
            return STATUS_OK;
    }
    if (!waterfall->stages)
        waterfall->stages = calloc(STAGES_MAX, sizeof *waterfall->stages);
    if (!waterfall->stages)
        return error_no_memory(err, "store");
    if (waterfall->stage_count == STAGES_MAX)
        return error_set(err, STATUS_FULL,
                         "store: loads of a group have more than %d different stages", STAGES_MAX);
    *out = &waterfall->stages[waterfall->stage_count++];
    (*out)->name = name;
    return STATUS_OK;
}

static enum status add_stage(struct reading *reading, struct waterfall *waterfall,
                             sqlite3_stmt *row, struct error *err)
{
    struct stage *stage = NULL;
    enum status status = find_stage(waterfall, sqlite3_column_int64(row, 4), &stage, err);
    if (status != STATUS_OK)
        return status;
    real_sum_add(&stage->ordinals, sqlite3_column_double(row, 3));
    return add_duration(reading, &stage->duration, sqlite3_column_int64(row, 5), err);
}

static enum status take_stage(void *context, sqlite3_stmt *row, struct error *err)
{
    struct reading *reading = context;
    const struct load key = {.run = sqlite3_column_int64(row, 0),
                             .stream = sqlite3_column_int64(row, 1),
                             .number = sqlite3_column_int64(row, 2)};
    struct load *load = bsearch(&key, reading->loads, reading->load_count, sizeof key, by_identity);
    if (!load)
        return STATUS_OK; // of a startup, or of a load that is not asked for
    const int64_t duration = sqlite3_column_int64(row, 5);
    load->has_stages = true;
    load->rest_ns = duration < load->rest_ns ? load->rest_ns - (duration > 0 ? duration : 0) : 0;
    struct group_data *data = groups_at(reading->groups, load->group)->data;
    enum status status = add_stage(reading, &data->by_cache[CACHE_ALL], row, err);
    return status == STATUS_OK ? add_stage(reading, &data->by_cache[load->cache], row, err)
                               : status;
}

static enum status read_stages(struct reading *reading, struct error *err)
{
    if (reading->load_count == 0)
        return STATUS_OK;
    qsort(reading->loads, reading->load_count, sizeof *reading->loads, by_identity);
    sqlite3_str *sql = sqlite3_str_new(reading->store->db);
    sqlite3_str_appendf(sql,
                        "SELECT t.run, t.stream, t.parent, t.ordinal, t.stage, t.duration_ns"
                        " FROM load_stage t WHERE t.started_ns >= %lld AND t.started_ns <= %lld",
                        (long long)reading->first_ns, (long long)reading->last_ns);
    enum status status = reader_scan(reading->store, sql, NULL, take_stage, reading, err);
    for (size_t i = 0; i < reading->load_count && status == STATUS_OK; i++) {
        const struct load *load = &reading->loads[i];
        struct group_data *data = groups_at(reading->groups, load->group)->data;
        if (!load->has_stages)
            continue;
        status = add_duration(reading, &data->by_cache[CACHE_ALL].other, load->rest_ns, err);
        if (status == STATUS_OK)
            status = add_duration(reading, &data->by_cache[load->cache].other, load->rest_ns, err);
    }
    return status;
}

// ---- The answer -----------------------------------------------------------------------

// One row that is being added.
struct line {
    const struct group *group;
    enum cache cache;
    const char *part;
    const struct aggregate *duration;
};

static double sum_of(const struct aggregate *aggregate)
{
    return aggregate->count ? aggregate_mean(aggregate) * (double)aggregate->count : 0;
}

static enum status add_line(const struct reading *reading, struct result *answer,
                            const struct line *line, struct error *err)
{
    if (result_row_count(answer) >= QUERY_ROWS_MAX)
        return error_set(err, STATUS_FULL,
                         "store: the answer has more than %d rows (narrow it with --since or a "
                         "filter, or group by less)",
                         QUERY_ROWS_MAX);
    if (result_add_row(answer) != STATUS_OK)
        return error_no_memory(err, "store");
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < reading->query->group_count && status == STATUS_OK; i++)
        status = answer_key(reading->store, answer, i, reading->query->group_by[i],
                            line->group->keys[i], err);
    if (status == STATUS_OK)
        status = answer_text(answer, "cache", cache_names[line->cache], err);
    if (status == STATUS_OK)
        status = answer_text(answer, "part", line->part, err);
    if (status != STATUS_OK)
        return status;
    const struct group_data *data = line->group->data;
    const struct waterfall *waterfall = &data->by_cache[line->cache];
    answer_int(answer, "loads", (int64_t)waterfall->total.count);
    answer_int(answer, "count", (int64_t)line->duration->count);
    if (line->duration->count == 0)
        return STATUS_OK;
    answer_real(answer, "mean_ns", aggregate_mean(line->duration));
    answer_real(answer, "p50_ns", aggregate_quantile(line->duration, 0.5));
    answer_int(answer, "max_ns", line->duration->max_integer);
    answer_real(answer, "share_ratio", sum_of(line->duration) / sum_of(&waterfall->total));
    return STATUS_OK;
}

static enum status add_total(const struct reading *reading, struct result *answer,
                             const struct line *line, struct error *err)
{
    enum status status = add_line(reading, answer, line, err);
    if (status != STATUS_OK)
        return status;
    const struct group_data *data = line->group->data;
    const struct waterfall *waterfall = &data->by_cache[line->cache];
    if (line->cache == CACHE_ALL)
        answer_int(answer, "failed", waterfall->failed);
    if (waterfall->total.count > 0)
        answer_real(answer, "load_bytes_per_second",
                    real_sum_total(&waterfall->bytes) * 1e9 / sum_of(&waterfall->total));
    answer_real(answer, "storage_bytes_per_second", aggregate_mean(&waterfall->storage));
    answer_real(answer, "page_cache_ratio", aggregate_mean(&waterfall->cached));
    if (!reading->is_cut)
        return STATUS_OK;
    return answer_text(answer, "note", "of the newest 200000 loads only", err);
}

static int by_ordinal(const void *left, const void *right)
{
    const struct stage *a = left, *b = right;
    const double place_a = real_sum_total(&a->ordinals) / (double)a->duration.count;
    const double place_b = real_sum_total(&b->ordinals) / (double)b->duration.count;
    return (place_a > place_b) - (place_a < place_b);
}

static enum status add_waterfall(const struct reading *reading, struct result *answer,
                                 const struct group *group, enum cache cache, struct error *err)
{
    struct group_data *data = group->data;
    struct waterfall *waterfall = &data->by_cache[cache];
    if (waterfall->total.count == 0 && waterfall->failed == 0)
        return STATUS_OK;
    struct line line = {group, cache, "total", &waterfall->total};
    enum status status = add_total(reading, answer, &line, err);
    if (waterfall->stage_count > 1)
        qsort(waterfall->stages, waterfall->stage_count, sizeof *waterfall->stages, by_ordinal);
    line.part = "stage";
    const unsigned stage_column = reading->query->group_count + 2;
    for (size_t i = 0; i < waterfall->stage_count && status == STATUS_OK; i++) {
        line.duration = &waterfall->stages[i].duration;
        status = add_line(reading, answer, &line, err);
        if (status == STATUS_OK)
            status =
                answer_name(reading->store, answer, stage_column, waterfall->stages[i].name, err);
    }
    line.part = "other";
    line.duration = &waterfall->other;
    if (status == STATUS_OK && waterfall->other.count > 0)
        status = add_line(reading, answer, &line, err);
    return status;
}

static int by_loads(const struct group *a, const struct group *b, const void *context)
{
    const struct group_data *data_a = a->data, *data_b = b->data;
    const uint64_t count_a = data_a->by_cache[CACHE_ALL].total.count;
    const uint64_t count_b = data_b->by_cache[CACHE_ALL].total.count;
    (void)context;
    return (count_b > count_a) - (count_b < count_a);
}

static enum status add_groups(const struct reading *reading, struct result *answer,
                              struct error *err)
{
    enum status status = STATUS_OK;
    groups_sort(reading->groups, by_loads, NULL);
    for (size_t i = 0; i < groups_count(reading->groups) && status == STATUS_OK; i++)
        for (unsigned k = 0; k < CACHE_COUNT && status == STATUS_OK; k++)
            status =
                add_waterfall(reading, answer, groups_at(reading->groups, i), (enum cache)k, err);
    return status;
}

static enum status new_answer(const struct query *query, struct result **out, struct error *err)
{
    struct answer_column columns[QUERY_DIMENSION_COUNT + FIGURE_COUNT];
    for (unsigned i = 0; i < query->group_count; i++)
        columns[i] = (struct answer_column){query_dimension_name(query->group_by[i]), UNIT_NONE};
    memcpy(columns + query->group_count, figures, sizeof figures);
    return answer_new(out, columns, query->group_count + FIGURE_COUNT, err);
}

enum status query_stages(struct store *store, const struct query *query, struct result **out,
                         struct error *err)
{
    struct reading reading = {
        .store = store,
        .query = query,
        .budget = {.left = QUANTILE_BYTES_MAX},
        .first_ns = INT64_MAX,
        .last_ns = INT64_MIN,
    };
    enum status status = filter_check_query(RECORD_KIND_LOAD, query, err);
    if (status != STATUS_OK)
        return status;
    if (groups_new(&reading.groups, query->group_count, sizeof(struct group_data), deinit_group) !=
        STATUS_OK)
        return error_no_memory(err, "store");
    status = read_loads(&reading, err);
    if (status == STATUS_OK && groups_count(reading.groups) == 0)
        status = error_set(err, STATUS_NO_DATA, "no loads in the store that match");
    if (status == STATUS_OK)
        status = read_stages(&reading, err);
    if (status == STATUS_OK)
        status = new_answer(query, out, err);
    if (status == STATUS_OK)
        status = add_groups(&reading, *out, err);
    groups_free(reading.groups);
    free(reading.loads);
    return status;
}
