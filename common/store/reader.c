#include "common/store/reader.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/saturate.h"
#include "common/store/database.h"
#include "common/store/filter.h"

static void bind_numbers(sqlite3_stmt *stmt, const int64_t *numbers, unsigned count)
{
    static const char *const names[READER_NUMBERS_MAX] = {"$1", "$2", "$3", "$4", "$5", "$6"};
    assert(count <= READER_NUMBERS_MAX);
    for (unsigned i = 0; i < count; i++)
        (void)sqlite3_bind_int64(stmt, sqlite3_bind_parameter_index(stmt, names[i]), numbers[i]);
}

enum status reader_scan_with(struct store *store, sqlite3_str *sql,
                             const struct query_filter *filter, const int64_t *numbers,
                             unsigned count, row_take *take, void *context, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status = statements_take(&store->statements, store->db, sql, &stmt, err);
    if (status != STATUS_OK)
        return status;
    if (filter)
        filter_bind(stmt, filter);
    bind_numbers(stmt, numbers, count);
    int rc = sqlite3_step(stmt);
    while (rc == SQLITE_ROW && status == STATUS_OK) {
        status = take(context, stmt, err);
        if (status == STATUS_OK)
            rc = sqlite3_step(stmt);
    }
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(store->db, "store", err);
    statements_release(&store->statements, stmt);
    return status;
}

enum status reader_scan_bound(struct store *store, sqlite3_str *sql, const int64_t *numbers,
                              unsigned count, row_take *take, void *context, struct error *err)
{
    return reader_scan_with(store, sql, NULL, numbers, count, take, context, err);
}

enum status reader_scan(struct store *store, sqlite3_str *sql, const struct query_filter *filter,
                        row_take *take, void *context, struct error *err)
{
    return reader_scan_with(store, sql, filter, NULL, 0, take, context, err);
}

// ---- Answers -----------------------------------------------------------------

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NOMEM, "store: out of memory");
}

enum status answer_new(struct result **out, const struct answer_column *columns, unsigned count,
                       struct error *err)
{
    struct result *answer = NULL;
    enum status status = result_new(&answer);
    for (unsigned i = 0; i < count && status == STATUS_OK; i++)
        status = result_add_column(answer, columns[i].key, columns[i].unit);
    if (status != STATUS_OK) {
        result_free(answer);
        return out_of_memory(err);
    }
    *out = answer;
    return STATUS_OK;
}

static unsigned column_of(const struct result *answer, const char *key)
{
    const int column = result_find(answer, key);
    assert(column >= 0);
    return (unsigned)column;
}

void answer_int(struct result *answer, const char *key, int64_t value)
{
    result_set_int(answer, column_of(answer, key), value);
}

void answer_real(struct result *answer, const char *key, double value)
{
    result_set_real(answer, column_of(answer, key), value);
}

enum status answer_text(struct result *answer, const char *key, const char *text, struct error *err)
{
    if (result_set_text(answer, column_of(answer, key), text, strlen(text)) != STATUS_OK)
        return out_of_memory(err);
    return STATUS_OK;
}

enum status answer_cell(struct result *answer, unsigned column, sqlite3_stmt *row, int place,
                        struct error *err)
{
    switch (sqlite3_column_type(row, place)) {
    case SQLITE_INTEGER:
        result_set_int(answer, column, sqlite3_column_int64(row, place));
        return STATUS_OK;
    case SQLITE_FLOAT:
        result_set_real(answer, column, sqlite3_column_double(row, place));
        return STATUS_OK;
    case SQLITE_TEXT: {
        const char *text = (const char *)sqlite3_column_text(row, place);
        const int size = sqlite3_column_bytes(row, place);
        if (!text || result_set_text(answer, column, text, (size_t)size) != STATUS_OK)
            return out_of_memory(err);
        return STATUS_OK;
    }
    default:
        return STATUS_OK;
    }
}

static enum status answer_lookup(struct store *store, sqlite3_stmt *stmt, struct result *answer,
                                 unsigned column, int64_t id, struct error *err)
{
    if (id == GROUP_KEY_NONE)
        return STATUS_OK;
    (void)sqlite3_bind_int64(stmt, 1, id);
    const int rc = sqlite3_step(stmt);
    enum status status = STATUS_OK;
    if (rc == SQLITE_ROW)
        status = answer_cell(answer, column, stmt, 0, err);
    else if (rc != SQLITE_DONE)
        status = database_error(store->db, "store", err);
    (void)sqlite3_reset(stmt);
    return status;
}

enum status answer_name(struct store *store, struct result *answer, unsigned column, int64_t id,
                        struct error *err)
{
    return answer_lookup(store, store->name, answer, column, id, err);
}

enum status answer_run(struct store *store, struct result *answer, unsigned column, int64_t run,
                       struct error *err)
{
    return answer_lookup(store, store->uuid, answer, column, run, err);
}

enum status reader_group(struct groups *groups, const int64_t *keys, struct group **out,
                         struct error *err)
{
    enum status status = groups_find(groups, keys, out);
    if (status == STATUS_FULL)
        return error_set(err, status,
                         "store: the answer has more than %d groups"
                         " (narrow it with --since or a filter, or group by less)",
                         GROUPS_MAX);
    return status == STATUS_OK ? status : out_of_memory(err);
}

enum status reader_budget(const struct sketch_budget *budget, struct error *err)
{
    if (!budget->spent)
        return STATUS_OK;
    return error_set(err, STATUS_FULL,
                     "store: the answer's quantiles take more than %d MiB of memory"
                     " (narrow it with --since or a filter, or group by less)",
                     QUANTILE_BYTES_MAX / (1024 * 1024));
}

// ---- Coverage --------------------------------------------------------------------

static enum status take_coverage(void *context, sqlite3_stmt *row, struct error *err)
{
    struct coverage *coverage = context;
    if ((coverage->count & (coverage->count - 1)) == 0) { // full at each power of two
        const size_t room = coverage->count ? 2 * coverage->count : 1;
        struct coverage_run *runs = realloc(coverage->runs, room * sizeof *runs);
        if (!runs)
            return out_of_memory(err);
        coverage->runs = runs;
    }
    const bool open = sqlite3_column_int64(row, 2) == RECORD_RUN_END_OPEN;
    coverage->runs[coverage->count++] = (struct coverage_run){
        .run = sqlite3_column_int64(row, 0),
        .host = sqlite3_column_int64(row, 1),
        .open = open,
        .stored = sqlite3_column_int64(row, 3),
    };
    return STATUS_OK;
}

static int by_run(const void *left, const void *right)
{
    const struct coverage_run *a = left, *b = right;
    return (a->run > b->run) - (a->run < b->run);
}

// Not left to SQLite, which reads all runs there are where it is to give them in this order.
static void sort_coverage(struct coverage *coverage)
{
    if (coverage->count > 0)
        qsort(coverage->runs, coverage->count, sizeof *coverage->runs, by_run);
    for (size_t i = 0; i < coverage->count; i++) {
        coverage->runs[i].open_place = coverage->open_count;
        coverage->open_count += coverage->runs[i].open;
    }
}

static size_t place_of(const struct coverage *coverage, int64_t run)
{
    size_t low = 0, high = coverage->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (coverage->runs[middle].run < run)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static enum status take_loss(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)err;
    struct coverage *coverage = context;
    const int64_t run = sqlite3_column_int64(row, 0);
    const size_t place = place_of(coverage, run);
    if (place < coverage->count && coverage->runs[place].run == run)
        coverage->runs[place].lost =
            saturate_add(coverage->runs[place].lost, sqlite3_column_int64(row, 1));
    return STATUS_OK;
}

// As v_ledger has it, of the few runs that lost anything (schema.h): small indexes hold
// them, so that nothing is asked of each run.
static enum status read_losses(struct coverage *coverage, struct store *store, struct error *err)
{
    static const char *const texts[] = {
        "SELECT run, CAST(total(last - first + 1) AS INTEGER) FROM range INDEXED BY range_dropped"
        " WHERE state = 1 AND run BETWEEN $1 AND $2 GROUP BY run",
        "SELECT run, CAST(total(unnumbered) AS INTEGER) FROM stream INDEXED BY stream_unnumbered"
        " WHERE unnumbered > 0 AND run BETWEEN $1 AND $2 GROUP BY run"};
    const int64_t of[] = {coverage->runs[0].run, coverage->runs[coverage->count - 1].run};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof texts / sizeof *texts && status == STATUS_OK; i++) {
        sqlite3_str *sql = sqlite3_str_new(store->db);
        sqlite3_str_appendall(sql, texts[i]);
        status = reader_scan_bound(store, sql, of, 2, take_loss, coverage, err);
    }
    return status;
}

enum status coverage_read(struct coverage *coverage, struct store *store,
                          const struct query_filter *filter, struct error *err)
{
    *coverage = (struct coverage){0};
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "SELECT t.run, t.host, t.\"end\", t.stored FROM run t");
    filter_where_run(sql, filter);
    enum status status = reader_scan(store, sql, filter, take_coverage, coverage, err);
    sort_coverage(coverage);
    if (status == STATUS_OK && coverage->count > 0)
        status = read_losses(coverage, store, err);
    if (status != STATUS_OK)
        coverage_deinit(coverage);
    return status;
}

void coverage_deinit(struct coverage *coverage)
{
    free(coverage->runs);
    *coverage = (struct coverage){0};
}

void coverage_sum(const struct coverage *coverage, int64_t host, int64_t run, int64_t *stored,
                  int64_t *lost)
{
    *stored = 0;
    *lost = 0;
    for (size_t i = 0; i < coverage->count; i++) {
        const struct coverage_run *one = &coverage->runs[i];
        if ((host != GROUP_KEY_NONE && one->host != host) ||
            (run != GROUP_KEY_NONE && one->run != run))
            continue;
        *stored = saturate_add(*stored, one->stored);
        *lost = saturate_add(*lost, one->lost);
    }
}

double coverage_ratio(int64_t stored, int64_t lost)
{
    const double all = (double)stored + (double)lost;
    return all > 0 ? (double)stored / all : (double)NAN;
}

const struct coverage_run *coverage_find(const struct coverage *coverage, int64_t run)
{
    const size_t place = place_of(coverage, run);
    if (place < coverage->count && coverage->runs[place].run == run)
        return &coverage->runs[place];
    return NULL;
}

// ---- Losses -----------------------------------------------------------------------

const char *drop_key(enum delivery_reason reason)
{
    static const char *const keys[DELIVERY_REASON_COUNT] = {
#define DROP_KEY(name, text) [DELIVERY_##name] = "dropped_" text,
        DELIVERY_REASONS(DROP_KEY)
#undef DROP_KEY
    };
    return keys[reason];
}

// ---- Derived metrics ---------------------------------------------------------------

void append_derived(sqlite3_str *sql, const struct record_derived *derived)
{
    sqlite3_str_appendf(sql, "(%s), (%s)", derived->numerator, derived->denominator);
}

const struct record_derived *derived_find(enum record_kind kind, const char *name)
{
    unsigned count = 0;
    const struct record_derived *derived = record_derived(&count);
    for (unsigned i = 0; i < count; i++)
        if (derived[i].kind == kind && strcmp(derived[i].name, name) == 0)
            return &derived[i];
    assert(!"the record table has the metric");
    return NULL;
}

void ratio_add_columns(struct ratio *ratio, sqlite3_stmt *row, int place)
{
    if (sqlite3_column_type(row, place) == SQLITE_NULL ||
        sqlite3_column_type(row, place + 1) == SQLITE_NULL)
        return;
    ratio_add(ratio, sqlite3_column_double(row, place), sqlite3_column_double(row, place + 1));
}
