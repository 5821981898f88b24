#include "common/store/compare/baseline.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/parse.h"
#include "common/store/aggregate/coverage.h"
#include "common/store/sqlite/database.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/reader.h"
#include "common/sys/clock.h"
#include "common/store/read/session.h"

void baseline_free(struct baseline *baseline)
{
    if (!baseline)
        return;
    free(baseline->filter);
    environment_deinit(&baseline->environment);
    samples_deinit(&baseline->samples);
    free(baseline);
}

// A metric's name as the table has it: "load.duration_ns"; of batches of a size with that
// behind it: "pipeline.items_per_second@64".
enum { METRIC_SIZE = 96 };

static const char *metric_name(char text[METRIC_SIZE], unsigned place, int64_t batch_items)
{
    const struct sampled *metric = samples_sampled(place);
    char batch[32] = "";
    if (batch_items)
        (void)snprintf(batch, sizeof batch, "@%" PRId64, batch_items);
    (void)snprintf(text, METRIC_SIZE, "%s.%s%s", record_kind_info(metric->kind)->name, metric->name,
                   batch);
    return text;
}

// The other way round; -1: the metric is of another version.
static int read_metric_name(const char *text, int64_t *batch_items)
{
    char name[METRIC_SIZE];
    const size_t size = strcspn(text, "@");
    *batch_items = 0;
    if (size >= sizeof name)
        return -1;
    if (text[size] == '@' &&
        parse_int(batch_items, text + size + 1, 1, INT64_MAX, "batch_items", NULL) != STATUS_OK)
        return -1;
    memcpy(name, text, size);
    name[size] = '\0';
    return samples_find_metric(name);
}

// ---- Collecting ---------------------------------------------------------------------

// The filter but for its times, which have columns of their own.
static char *filter_words(const struct query_filter *filter)
{
    sqlite3_str *words = sqlite3_str_new(NULL);
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (filter->by[i][0])
            sqlite3_str_appendf(words, "%s%s=%s", sqlite3_str_length(words) > 0 ? ", " : "",
                                query_dimension_name((enum query_dimension)i), filter->by[i]);
    const bool failed = sqlite3_str_errcode(words) != SQLITE_OK;
    char *text = sqlite3_str_finish(words); // NULL also where it is empty
    char *copy = failed ? NULL : strdup(text ? text : "");
    sqlite3_free(text);
    return copy;
}

static enum status read_coverage(struct baseline *baseline, struct store *store,
                                 const struct query_filter *filter, struct error *err)
{
    struct coverage coverage;
    const struct query query = {.filter = *filter};
    int64_t lost;
    enum status status = coverage_read(&coverage, store, &query, err);
    coverage_of(&coverage, GROUP_KEY_NONE, GROUP_KEY_NONE, 0, &baseline->coverage_ratio, &lost);
    coverage_deinit(&coverage);
    return status;
}

static enum status read_expired(struct baseline *baseline, struct store *store,
                                const struct query_filter *filter, struct error *err)
{
    const struct sampled *sampled;
    enum status status = STATUS_OK;
    for (unsigned i = 0; (sampled = samples_sampled(i)) && status == STATUS_OK; i++)
        if (i == 0 || sampled->kind != samples_sampled(i - 1)->kind)
            status = expiry_info_until(store, sampled->kind, filter,
                                       &baseline->expired_ns[sampled->kind], err);
    return status;
}

// The latest time before which records of it have expired, apart from samples of devices, which are
// kept for less time; 0: none.
static int64_t last_expired_ns(const struct baseline *baseline)
{
    int64_t last_ns = 0;
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++)
        if (kind != RECORD_KIND_DEVICE_SAMPLE && baseline->expired_ns[kind] > last_ns)
            last_ns = baseline->expired_ns[kind];
    return last_ns;
}

// STATUS_NO_DATA, with the nearest model where the store does not know the filter's.
static enum status say_nothing_matches(const struct baseline *baseline, struct store *store,
                                       const struct query_filter *filter, struct error *err)
{
    const int64_t expired_ns = last_expired_ns(baseline);
    const char *model = filter->by[QUERY_BY_MODEL];
    char text[EXPIRY_TEXT_SIZE];
    int64_t known = 1;
    enum status status = STATUS_OK;
    if (model[0] && !query_is_pattern(model) && !expired_ns)
        status = database_integerf(store->db, &known, err,
                                   "SELECT count(*) FROM name WHERE text = %Q", model);
    if (status != STATUS_OK)
        return status;
    if (known == 0)
        return reader_unknown_name(store->db,
                                   "SELECT text FROM name WHERE id IN (SELECT name FROM model)",
                                   "model", model, "inferstat models lists them", err);
    return error_set(err, STATUS_NO_DATA,
                     "no requests, loads, operations or pipelines in the store that match%s%s",
                     expired_ns ? ": " : "", expired_ns ? expiry_info_text(text, expired_ns) : "");
}

static enum status collect(struct baseline *baseline, struct store *store,
                           const struct query_filter *filter, bool by_host, struct error *err)
{
    enum status status = samples_collect(&baseline->samples, store, filter, by_host, err);
    if (status == STATUS_OK)
        status = read_expired(baseline, store, filter, err);
    if (status == STATUS_OK && samples_count(&baseline->samples) == 0)
        return say_nothing_matches(baseline, store, filter, err);
    if (status == STATUS_OK)
        status =
            environment_collect(&baseline->environment, store, &baseline->samples, filter, err);
    if (status == STATUS_OK)
        status = read_coverage(baseline, store, filter, err);
    baseline->filter = filter_words(filter);
    if (status == STATUS_OK && !baseline->filter)
        status = error_no_memory(err, "store");
    return status;
}

enum status baseline_collect(struct baseline **out, struct store *store,
                             const struct query_filter *filter, bool by_host, struct error *err)
{
    struct baseline *baseline = calloc(1, sizeof *baseline);
    if (!baseline)
        return error_no_memory(err, "store");
    enum status status = collect(baseline, store, filter, by_host, err);
    if (status != STATUS_OK) {
        baseline_free(baseline);
        return status;
    }
    baseline->created_ns = clock_wall_ns();
    baseline->since_ns = filter->since_ns > baseline->samples.first_ns ? filter->since_ns
                                                                       : baseline->samples.first_ns;
    const int64_t last_ns = baseline->samples.last_ns; // of any clock
    baseline->until_ns = filter->until_ns      ? filter->until_ns
                         : last_ns < INT64_MAX ? last_ns + 1
                                               : last_ns;
    *out = baseline;
    return STATUS_OK;
}

static enum status prepare(struct store *store, const struct query *query, void *out,
                           struct error *err)
{
    return baseline_collect(out, store, &query->filter, false, err);
}

enum status baseline_prepare(struct baseline **out, struct store *store, const struct query *query,
                             struct error *err)
{
    struct baseline *baseline = NULL;
    enum status status = session_run(store, prepare, query, &baseline, err);
    if (status != STATUS_OK)
        return status;
    memcpy(baseline->name, query->baseline.name, sizeof baseline->name);
    *out = baseline;
    return STATUS_OK;
}

// ---- Reading what is kept -------------------------------------------------------------

// STATUS_NO_DATA with the nearest name there is.
static enum status unknown_name(sqlite3 *db, const char *name, struct error *err)
{
    return reader_unknown_name(db, "SELECT name FROM baseline", "baseline", name,
                               "inferstat baseline list names them", err);
}

// The id of a baseline; 0: there is none.
static enum status find(sqlite3 *db, const char *name, int64_t *id, struct error *err)
{
    return database_integerf(db, id, err, "SELECT id FROM baseline WHERE name = %Q", name);
}

// What is read, and of which store: its fingerprint is JSON, which SQLite takes apart.
struct reading {
    struct baseline *baseline;
    struct store *store;
};

static enum status on_about(void *context, sqlite3_stmt *row, struct error *err)
{
    const struct reading *reading = context;
    struct baseline *baseline = reading->baseline;
    const char *filter = (const char *)sqlite3_column_text(row, 1);
    const char *json = (const char *)sqlite3_column_text(row, 5);
    baseline->created_ns = sqlite3_column_int64(row, 0);
    baseline->filter = strdup(filter ? filter : "");
    baseline->since_ns = sqlite3_column_int64(row, 2);
    baseline->until_ns = sqlite3_column_int64(row, 3);
    baseline->coverage_ratio = reader_real(row, 4);
    if (!baseline->filter)
        return error_no_memory(err, "store");
    if (!json || !sqlite3_column_int(row, 6))
        return error_set(err, STATUS_CORRUPT, "store: the fingerprint of baseline %s is damaged",
                         baseline->name);
    return environment_read_json(&baseline->environment, reading->store, json, err);
}

static enum status on_sample(void *context, sqlite3_stmt *row, struct error *err)
{
    const struct reading *reading = context;
    const char *metric = (const char *)sqlite3_column_text(row, 0);
    int64_t batch_items = 0;
    const int place = metric ? read_metric_name(metric, &batch_items) : -1;
    if (place < 0)
        return STATUS_OK; // of another version
    const struct sample_key key = {samples_sampled((unsigned)place)->kind,
                                   sqlite3_column_int64(row, 1), sqlite3_column_int64(row, 2),
                                   batch_items, 0};
    struct sample_group *group;
    enum status status = samples_group(&reading->baseline->samples, &key, &group, err);
    if (status != STATUS_OK)
        return status;
    const void *blob = sqlite3_column_blob(row, 4);
    const int size = sqlite3_column_bytes(row, 4);
    struct sample *sample = &group->samples[place];
    status = baseline_decode(sample, metric, (uint64_t)sqlite3_column_int64(row, 3), blob,
                             (size_t)size, err);
    const bool is_total = samples_sampled((unsigned)place)->form > SAMPLED_MEAN;
    if (status == STATUS_OK && is_total && sample->kept % TOTAL_COLUMNS != 0)
        return error_set(err, STATUS_CORRUPT, "store: the baseline's sample of %.64s is damaged",
                         metric);
    return status;
}

static enum status load(struct baseline *baseline, struct store *store, int64_t id,
                        struct error *err)
{
    struct reading reading = {baseline, store};
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql,
                        "SELECT created_ns, filter, since_ns, until_ns, coverage_ratio,"
                        " fingerprint, json_valid(fingerprint) FROM baseline WHERE id = %lld",
                        (long long)id);
    enum status status = reader_scan(store, sql, NULL, on_about, &reading, err);
    if (status != STATUS_OK)
        return status;
    sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql,
                        "SELECT metric, model, device, count, samples FROM baseline_sample"
                        " WHERE baseline = %lld ORDER BY metric GLOB 'device_sample.*', metric,"
                        " model, device",
                        (long long)id);
    return reader_scan(store, sql, NULL, on_sample, &reading, err);
}

enum status baseline_load(struct baseline **out, struct store *store, const char *name,
                          struct error *err)
{
    int64_t id = 0;
    enum status status = find(store->db, name, &id, err);
    if (status == STATUS_OK && id == 0)
        status = unknown_name(store->db, name, err);
    if (status != STATUS_OK)
        return status;
    struct baseline *baseline = calloc(1, sizeof *baseline);
    if (!baseline)
        return error_no_memory(err, "store");
    (void)snprintf(baseline->name, sizeof baseline->name, "%s", name);
    status = load(baseline, store, id, err);
    if (status != STATUS_OK) {
        baseline_free(baseline);
        return status;
    }
    *out = baseline;
    return STATUS_OK;
}

// ---- Keeping and forgetting -------------------------------------------------------------

static enum status delete_rows(sqlite3 *db, int64_t id, struct error *err)
{
    return database_execf(db, err,
                          "DELETE FROM baseline_sample WHERE baseline = %lld;"
                          "DELETE FROM baseline WHERE id = %lld",
                          (long long)id, (long long)id);
}

static enum status insert_about(sqlite3 *db, const struct baseline *baseline, int64_t *id,
                                struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status =
        database_prepare(db, &stmt,
                         "INSERT INTO baseline(name, created_ns, filter, since_ns, until_ns,"
                         " coverage_ratio, fingerprint) VALUES(?, ?, ?, ?, ?, ?, ?)",
                         false, err);
    if (status == STATUS_OK) {
        (void)sqlite3_bind_text(stmt, 1, baseline->name, -1, SQLITE_STATIC);
        (void)sqlite3_bind_int64(stmt, 2, baseline->created_ns);
        (void)sqlite3_bind_text(stmt, 3, baseline->filter, -1, SQLITE_STATIC);
        (void)sqlite3_bind_int64(stmt, 4, baseline->since_ns);
        (void)sqlite3_bind_int64(stmt, 5, baseline->until_ns);
        (void)sqlite3_bind_double(stmt, 6, baseline->coverage_ratio); // NaN becomes NULL
        (void)sqlite3_bind_text(stmt, 7, baseline->environment.json, -1, SQLITE_STATIC);
        status = database_run(db, stmt, err);
    }
    *id = sqlite3_last_insert_rowid(db);
    (void)sqlite3_finalize(stmt);
    return status;
}

static enum status insert_sample(sqlite3 *db, sqlite3_stmt *stmt, int64_t id,
                                 const struct sample_group *group, unsigned place,
                                 struct error *err)
{
    char metric[METRIC_SIZE];
    const struct sample *sample = &group->samples[place];
    if (sample->kept == 0)
        return STATUS_OK;
    size_t size = 0;
    unsigned char *blob =
        baseline_encode(metric_name(metric, place, group->key.batch_items), sample, &size);
    if (!blob)
        return error_no_memory(err, "store");
    (void)sqlite3_bind_int64(stmt, 1, id);
    (void)sqlite3_bind_text(stmt, 2, metric, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(stmt, 3, group->key.subject);
    (void)sqlite3_bind_int64(stmt, 4, group->key.device);
    (void)sqlite3_bind_int64(stmt, 5, (int64_t)sample->count);
    (void)sqlite3_bind_blob(stmt, 6, blob, (int)size, SQLITE_STATIC);
    enum status status = database_run(db, stmt, err);
    free(blob);
    return status;
}

static enum status insert_samples(sqlite3 *db, const struct baseline *baseline, int64_t id,
                                  struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status =
        database_prepare(db, &stmt,
                         "INSERT INTO baseline_sample(baseline, metric, model, device, count,"
                         " samples) VALUES(?, ?, ?, ?, ?, ?)",
                         false, err);
    for (size_t i = 0; i < samples_count(&baseline->samples); i++)
        for (unsigned place = 0; samples_sampled(place) && status == STATUS_OK; place++)
            status = insert_sample(db, stmt, id, samples_at(&baseline->samples, i), place, err);
    (void)sqlite3_finalize(stmt);
    return status;
}

enum status baseline_insert(sqlite3 *db, const struct baseline *baseline, bool replace,
                            struct error *err)
{
    int64_t id = 0;
    enum status status = find(db, baseline->name, &id, err);
    if (status == STATUS_OK && id != 0 && !replace)
        return error_set(err, STATUS_BUSY,
                         "a baseline is called \"%s\" already (--force replaces it)",
                         baseline->name);
    if (status == STATUS_OK && id != 0)
        status = delete_rows(db, id, err);
    if (status == STATUS_OK)
        status = insert_about(db, baseline, &id, err);
    return status == STATUS_OK ? insert_samples(db, baseline, id, err) : status;
}

static enum status delete_named(sqlite3 *db, const char *name, struct error *err)
{
    int64_t id = 0;
    enum status status = find(db, name, &id, err);
    if (status == STATUS_OK && id == 0)
        return unknown_name(db, name, err);
    return status == STATUS_OK ? delete_rows(db, id, err) : status;
}

// ---- Queries that change baselines ---------------------------------------------------

static enum status answer_saved(struct result **out, const struct baseline *baseline,
                                struct error *err)
{
    static const struct answer_column columns[] = {
        {"baseline", UNIT_NONE},   {"values", UNIT_COUNT},  {"runs", UNIT_COUNT},
        {"since_ns", UNIT_TIME},   {"until_ns", UNIT_TIME}, {"coverage_ratio", UNIT_RATIO},
        {"expired_ns", UNIT_TIME}, // records before are gone; null: none
    };
    enum status status = answer_new(out, columns, sizeof columns / sizeof *columns, err);
    if (status != STATUS_OK)
        return status;
    answer_row(*out);
    answer_text(*out, "baseline", baseline->name);
    size_t values = 0;
    for (size_t i = 0; i < samples_count(&baseline->samples); i++)
        for (unsigned place = 0; place < SAMPLED_MAX; place++)
            values += samples_at(&baseline->samples, i)->samples[place].kept;
    answer_int(*out, "values", (int64_t)values);
    answer_int(*out, "runs", baseline->environment.runs);
    answer_int(*out, "since_ns", baseline->since_ns);
    answer_int(*out, "until_ns", baseline->until_ns);
    answer_real(*out, "coverage_ratio", baseline->coverage_ratio);
    if (last_expired_ns(baseline))
        answer_int(*out, "expired_ns", last_expired_ns(baseline));
    return answer_check(*out, err);
}

static enum status answer_deleted(struct result **out, const char *name, struct error *err)
{
    static const struct answer_column columns[] = {{"baseline", UNIT_NONE},
                                                   {"deleted", UNIT_COUNT}};
    enum status status = answer_new(out, columns, sizeof columns / sizeof *columns, err);
    if (status != STATUS_OK)
        return status;
    answer_row(*out);
    answer_text(*out, "baseline", name);
    answer_int(*out, "deleted", 1);
    return answer_check(*out, err);
}

enum status baseline_write(struct sqlite3 *db, const struct query *query,
                           const struct baseline *baseline, struct result **out, struct error *err)
{
    const bool saves = query->kind == QUERY_BASELINE_SAVE;
    struct result *answer = NULL;
    // What can fail comes before what cannot be taken back.
    enum status status = saves ? answer_saved(&answer, baseline, err)
                               : answer_deleted(&answer, query->baseline.name, err);
    if (status == STATUS_OK)
        status = database_exec(db, "BEGIN IMMEDIATE", err);
    if (status == STATUS_OK) {
        status = saves ? baseline_insert(db, baseline, query->baseline.force, err)
                       : delete_named(db, query->baseline.name, err);
        status = database_end(db, status, err);
    }
    if (status != STATUS_OK) {
        result_free(answer);
        return status;
    }
    *out = answer;
    return STATUS_OK;
}

static enum status change_file(struct store *store, struct sqlite3 *db, const struct query *query,
                               void *out, int64_t *rows, struct error *err)
{
    struct baseline *baseline = NULL;
    enum status status = query->kind == QUERY_BASELINE_SAVE
                             ? baseline_prepare(&baseline, store, query, err)
                             : STATUS_OK;
    if (status == STATUS_OK)
        status = baseline_write(db, query, baseline, out, err);
    *rows = status == STATUS_OK;
    baseline_free(baseline);
    return status;
}

enum status baseline_write_file(const char *path, const struct query *query, struct result **out,
                                struct error *err)
{
    return session_change_file(path, query, change_file, out, err);
}
