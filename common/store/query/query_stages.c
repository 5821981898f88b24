// STAGES: the waterfall of model loads, averaged over many of them.
#include <assert.h>
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

enum { LOADS_MAX = 200000 }; // the newest, where there are more

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

// The parts of a load by number; all others are stages, by the id of their name.
enum { PART_TOTAL = -2, PART_OTHER = -1 };

// A row of the answer: one part of the loads that agree in the dimensions asked for, and in what
// they found in the page cache (CACHE_ALL: of all of them).
struct part {
    const struct part *all, *total; // totals: of the same dimensions; and also of the same cache
    struct aggregate duration;
    struct real_sum ordinals; // of a stage
    // Of a total:
    int64_t failed;
    struct aggregate storage, cached;
    struct real_sum bytes;
};

// A load that was read, for its stages to find it.
struct load {
    int64_t run, stream, number;
    int64_t rest_ns;           // that no stage accounts for
    const struct group *total; // of its cache
    bool has_stages;
};

struct reading {
    struct store *store;
    const struct query *query;
    struct groups *groups; // by dimensions, cache, part: struct part
    struct sketch_budget budget;
    struct load *loads;
    size_t load_count, load_room;
    bool is_cut;               // there are more than LOADS_MAX
    int64_t first_ns, last_ns; // between which stages may have begun
};

static void deinit_part(void *data)
{
    struct part *part = data;
    aggregate_deinit(&part->duration);
}

static enum cache group_cache(const struct reading *reading, const struct group *group)
{
    return (enum cache)group->keys[reading->query->group_count];
}

static int64_t group_part(const struct reading *reading, const struct group *group)
{
    return group->keys[reading->query->group_count + 1];
}

// Finds or adds the part of the loads of these dimensions and this cache.
static enum status find_part(struct reading *reading, const int64_t *dimensions, enum cache cache,
                             int64_t part, struct group **out, struct error *err)
{
    const unsigned count = reading->query->group_count;
    int64_t keys[GROUP_KEYS_MAX];
    memcpy(keys, dimensions, count * sizeof *keys);
    keys[count] = cache;
    keys[count + 1] = part;
    enum status status = reader_group(reading->groups, keys, out, err);
    if (status != STATUS_OK)
        return status;
    struct aggregate *duration = &((struct part *)(*out)->data)->duration;
    if (!duration->sketch && aggregate_want_quantiles(duration, &reading->budget) != STATUS_OK)
        return error_no_memory(err, "store");
    return STATUS_OK;
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

static void add_figures(struct part *total, sqlite3_stmt *row)
{
    aggregate_add_int(&total->duration, sqlite3_column_int64(row, PLACE_DURATION));
    real_sum_add(&total->bytes, sqlite3_column_double(row, PLACE_BYTES));
    if (sqlite3_column_type(row, PLACE_CACHED) != SQLITE_NULL)
        aggregate_add_real(&total->cached, sqlite3_column_double(row, PLACE_CACHED));
    if (sqlite3_column_type(row, PLACE_STORAGE) != SQLITE_NULL)
        aggregate_add_real(&total->storage, sqlite3_column_double(row, PLACE_STORAGE));
}

static enum status keep_load(struct reading *reading, sqlite3_stmt *row, const struct group *total,
                             struct error *err)
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
        .total = total,
    };
    reading->first_ns = started < reading->first_ns ? started : reading->first_ns;
    reading->last_ns = end > reading->last_ns ? end : reading->last_ns;
    return STATUS_OK;
}

static enum status on_load(void *context, sqlite3_stmt *row, struct error *err)
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
    enum status status = find_part(reading, keys, CACHE_ALL, PART_TOTAL, &group, err);
    if (status != STATUS_OK)
        return status;
    if (sqlite3_column_int64(row, PLACE_STATUS) != RECORD_STATUS_OK) {
        ((struct part *)group->data)->failed++;
        return STATUS_OK;
    }
    add_figures(group->data, row);
    status = find_part(reading, keys, cache_of(row, PLACE_CACHED), PART_TOTAL, &group, err);
    if (status != STATUS_OK)
        return status;
    add_figures(group->data, row);
    status = reader_budget(&reading->budget, err);
    return status == STATUS_OK ? keep_load(reading, row, group, err) : status;
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
    return reader_scan(reading->store, sql, &reading->query->filter, on_load, reading, err);
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

// Adds a part of a load to those of its cache and of all loads.
static enum status add_part(struct reading *reading, const struct load *load, int64_t name,
                            double ordinal, int64_t duration_ns, struct error *err)
{
    const enum cache caches[] = {CACHE_ALL, group_cache(reading, load->total)};
    for (unsigned i = 0; i < 2; i++) {
        struct group *group = NULL;
        enum status status = find_part(reading, load->total->keys, caches[i], name, &group, err);
        if (status != STATUS_OK)
            return status;
        struct part *part = group->data;
        real_sum_add(&part->ordinals, ordinal);
        aggregate_add_int(&part->duration, duration_ns);
    }
    return reader_budget(&reading->budget, err);
}

static enum status on_stage(void *context, sqlite3_stmt *row, struct error *err)
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
    return add_part(reading, load, sqlite3_column_int64(row, 4), sqlite3_column_double(row, 3),
                    duration, err);
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
    enum status status = reader_scan(reading->store, sql, NULL, on_stage, reading, err);
    for (size_t i = 0; i < reading->load_count && status == STATUS_OK; i++) {
        const struct load *load = &reading->loads[i];
        if (load->has_stages)
            status = add_part(reading, load, PART_OTHER, 0, load->rest_ns, err);
    }
    return status;
}

// ---- The answer -----------------------------------------------------------------------

static double sum_of(const struct aggregate *aggregate)
{
    return aggregate->count ? aggregate_mean(aggregate) * (double)aggregate->count : 0;
}

static void set_durations(struct result *answer, const struct part *part)
{
    answer_int(answer, "loads", (int64_t)part->total->duration.count);
    answer_int(answer, "count", (int64_t)part->duration.count);
    if (part->duration.count == 0)
        return;
    answer_real(answer, "mean_ns", aggregate_mean(&part->duration));
    answer_real(answer, "p50_ns", aggregate_quantile(&part->duration, 0.5));
    answer_int(answer, "max_ns", part->duration.max_integer);
    answer_real(answer, "share_ratio", sum_of(&part->duration) / sum_of(&part->total->duration));
}

static void set_total(const struct reading *reading, struct result *answer,
                      const struct part *total)
{
    if (total == total->all)
        answer_int(answer, "failed", total->failed);
    if (total->duration.count > 0)
        answer_real(answer, "load_bytes_per_second",
                    real_sum_total(&total->bytes) * 1e9 / sum_of(&total->duration));
    answer_real(answer, "storage_bytes_per_second", aggregate_mean(&total->storage));
    answer_real(answer, "page_cache_ratio", aggregate_mean(&total->cached));
    if (reading->is_cut)
        answer_text(answer, "note", "of the newest 200000 loads only");
}

static enum status add_row(const struct reading *reading, struct result *answer,
                           const struct group *group, struct error *err)
{
    const unsigned count = reading->query->group_count;
    const int64_t name = group_part(reading, group);
    answer_row(answer);
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < count && status == STATUS_OK; i++)
        status =
            answer_key(reading->store, answer, i, reading->query->group_by[i], group->keys[i], err);
    if (status == STATUS_OK && name >= 0)
        status = answer_name(reading->store, answer, count + 2, name, err);
    answer_text(answer, "cache", cache_names[group_cache(reading, group)]);
    answer_text(answer, "part",
                name == PART_TOTAL   ? "total"
                : name == PART_OTHER ? "other"
                                     : "stage");
    set_durations(answer, group->data);
    if (name == PART_TOTAL)
        set_total(reading, answer, group->data);
    return status;
}

// Where a part stands in its load.
static double order_of(const struct reading *reading, const struct group *group)
{
    const struct part *part = group->data;
    const int64_t name = group_part(reading, group);
    if (name < 0)
        return name == PART_TOTAL ? -HUGE_VAL : HUGE_VAL;
    return real_sum_total(&part->ordinals) / (double)part->duration.count;
}

// Dimensions with most loads first, among equals by their names' ids.
static int by_loads(const struct group *a, const struct group *b, const void *context)
{
    const struct reading *reading = context;
    const struct part *part_a = a->data, *part_b = b->data;
    const uint64_t loads_a = part_a->all->duration.count, loads_b = part_b->all->duration.count;
    if (loads_a != loads_b)
        return loads_a > loads_b ? -1 : 1;
    for (unsigned i = 0; i <= reading->query->group_count; i++) // and their cache
        if (a->keys[i] != b->keys[i])
            return a->keys[i] < b->keys[i] ? -1 : 1;
    const double order_a = order_of(reading, a), order_b = order_of(reading, b);
    return (order_a > order_b) - (order_a < order_b);
}

static void find_totals(const struct reading *reading)
{
    const unsigned count = reading->query->group_count;
    for (size_t i = 0; i < groups_count(reading->groups); i++) {
        struct group key = *groups_at(reading->groups, i);
        struct part *part = key.data;
        key.keys[count + 1] = PART_TOTAL;
        part->total = groups_get(reading->groups, key.keys)->data;
        key.keys[count] = CACHE_ALL;
        part->all = groups_get(reading->groups, key.keys)->data;
    }
}

static enum status add_rows(const struct reading *reading, struct result *answer, struct error *err)
{
    enum status status = STATUS_OK;
    find_totals(reading);
    groups_sort(reading->groups, by_loads, reading);
    for (size_t i = 0; i < groups_count(reading->groups) && status == STATUS_OK; i++)
        status = add_row(reading, answer, groups_at(reading->groups, i), err);
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
    assert(query->group_count + 2 <= GROUP_KEYS_MAX); // loads have five dimensions
    if (groups_new(&reading.groups, query->group_count + 2, sizeof(struct part), deinit_part) !=
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
        status = add_rows(&reading, *out, err);
    groups_free(reading.groups);
    free(reading.loads);
    return status;
}
