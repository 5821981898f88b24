#include "tests/support/store/rollup_builder.h"

#include <sqlite3.h>

#include "common/store/rollup/rollup_row.h"
#include "common/store/rollup/rollup.h"
#include "common/store/schema/schema.h"
#include "common/store/schema/schema_select.h"
#include "tests/support/test.h"

struct row {
    struct rollup_series series;
    int64_t started_ns;
    bool is_real;
    int64_t integer;
    double value, numerator, denominator;
};

// A row in one grouping and level.
struct place {
    int64_t bucket, series;
    const struct row *row;
};

struct builder {
    sqlite3 *db;
    const struct query_metric *metric;
    bool poison;
    struct row *rows;
    size_t count;
};

static sqlite3_stmt *prepare(sqlite3 *db, sqlite3_str *text)
{
    char *sql = sqlite3_str_finish(text);
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_free(sql);
    return stmt;
}

static void run(sqlite3_stmt *stmt)
{
    assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
    (void)sqlite3_reset(stmt);
}

static sqlite3_stmt *select_rows(const struct builder *builder, int64_t watermark)
{
    static const enum query_dimension names[] = {QUERY_BY_MODEL, QUERY_BY_HOST, QUERY_BY_DEVICE,
                                                 QUERY_BY_OPERATION};
    const struct query_metric *metric = builder->metric;
    sqlite3_str *sql = sqlite3_str_new(builder->db);
    sqlite3_str_appendall(sql, "SELECT " SCHEMA_PLACED_TIME);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const char *name = schema_dimension(metric->kind, names[i]);
        sqlite3_str_appendf(sql, ", %s", name ? name : "NULL");
    }
    if (metric->derived)
        sqlite3_str_appendf(sql, ", (%s), (%s)", metric->derived->numerator,
                            metric->derived->denominator);
    else
        sqlite3_str_appendf(sql, ", t.\"%w\", 1", metric->name);
    sqlite3_str_appendf(sql, " FROM \"%w\" t WHERE t.id <= %lld ORDER BY t.id",
                        record_kind_info(metric->kind)->name, (long long)watermark);
    return prepare(builder->db, sql);
}

enum { PLACE_NAMES = 1, PLACE_VALUE = 5 };

static void add_row(struct builder *builder, sqlite3_stmt *stmt)
{
    if (sqlite3_column_type(stmt, PLACE_VALUE) == SQLITE_NULL ||
        sqlite3_column_type(stmt, PLACE_VALUE + 1) == SQLITE_NULL ||
        sqlite3_column_double(stmt, PLACE_VALUE + 1) <= 0)
        return;
    builder->rows = realloc(builder->rows, (builder->count + 1) * sizeof *builder->rows);
    assert_non_null(builder->rows);
    struct row *row = &builder->rows[builder->count++];
    *row = (struct row){
        .series = {sqlite3_column_int64(stmt, PLACE_NAMES),
                   sqlite3_column_int64(stmt, PLACE_NAMES + 1),
                   sqlite3_column_int64(stmt, PLACE_NAMES + 2),
                   sqlite3_column_int64(stmt, PLACE_NAMES + 3)},
        .started_ns = sqlite3_column_int64(stmt, 0),
        .is_real =
            builder->metric->derived || sqlite3_column_type(stmt, PLACE_VALUE) == SQLITE_FLOAT,
        .integer = sqlite3_column_int64(stmt, PLACE_VALUE),
        .value = sqlite3_column_double(stmt, PLACE_VALUE),
    };
    if (builder->metric->derived) {
        row->numerator = row->value;
        row->denominator = sqlite3_column_double(stmt, PLACE_VALUE + 1);
        row->value = row->numerator / row->denominator;
    }
}

static int64_t series_id(sqlite3 *db, enum rollup_grouping grouping, struct rollup_series series)
{
    static const char *const texts[] = {
        "INSERT OR IGNORE INTO series(grouping, model, host, device, operation)"
        " VALUES(%d, %lld, %lld, %lld, %lld)",
        "SELECT id FROM series WHERE grouping = %d AND model = %lld AND host = %lld"
        " AND device = %lld AND operation = %lld",
    };
    int64_t id = 0;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        sqlite3_str *sql = sqlite3_str_new(db);
        sqlite3_str_appendf(sql, texts[i], (int)grouping, (long long)series.model,
                            (long long)series.host, (long long)series.device,
                            (long long)series.operation);
        sqlite3_stmt *stmt = prepare(db, sql);
        if (sqlite3_step(stmt) == SQLITE_ROW)
            id = sqlite3_column_int64(stmt, 0);
        (void)sqlite3_finalize(stmt);
    }
    assert_true(id > 0);
    return id;
}

static bool is_forbidden(const struct builder *builder, enum rollup_grouping grouping,
                         enum rollup_level level, int64_t bucket)
{
    sqlite3_str *sql = sqlite3_str_new(builder->db);
    sqlite3_str_appendf(sql,
                        "SELECT 1 FROM rollup_gap WHERE kind = %d AND grouping = %d"
                        " AND level >= %d AND since_ns < %lld AND until_ns > %lld",
                        (int)builder->metric->kind, (int)grouping, (int)level,
                        (long long)rollup_next(level, bucket), (long long)bucket);
    sqlite3_stmt *stmt = prepare(builder->db, sql);
    const bool is = sqlite3_step(stmt) == SQLITE_ROW;
    (void)sqlite3_finalize(stmt);
    return is;
}

static int by_place(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    if (a->bucket != b->bucket)
        return a->bucket < b->bucket ? -1 : 1;
    return (a->series > b->series) - (a->series < b->series);
}

static void add_to_cell(struct ratio *cell, const struct query_metric *metric,
                        const struct row *row)
{
    if (metric->derived)
        ratio_add(cell, row->numerator, row->denominator);
    else if (row->is_real)
        aggregate_add_real(&cell->values, row->value);
    else
        aggregate_add_int(&cell->values, row->integer);
}

static void insert_cell(const struct builder *builder, sqlite3_stmt *insert,
                        const struct rollup_row_key *key, const struct ratio *cell)
{
    struct error err = {0};
    const int64_t numbers[] = {key->metric, key->grouping, key->level, key->started_ns,
                               key->series};
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        (void)sqlite3_bind_int64(insert, (int)i + 1, numbers[i]);
    if (rollup_row_bind(insert, (int)COUNT_OF(numbers) + 1, key, cell, builder->metric->derived,
                        &err) != STATUS_OK)
        fail_msg("%s", err.text);
    run(insert);
}

// The cell of the places from `first` up to `end`, which are of one bucket and series.
static void write_cell(const struct builder *builder, sqlite3_stmt *insert,
                       struct rollup_row_key key, const struct place *first,
                       const struct place *end)
{
    const bool forbidden = is_forbidden(builder, key.grouping, key.level, key.started_ns);
    if (forbidden && !builder->poison)
        return;
    struct ratio cell = {0};
    assert_int_equal(sketch_new(&cell.values.sketch), STATUS_OK);
    for (const struct place *place = first; place < end; place++)
        for (int times = forbidden ? 3 : 1; times > 0; times--)
            add_to_cell(&cell, builder->metric, place->row);
    insert_cell(builder, insert, &key, &cell);
    aggregate_deinit(&cell.values);
}

static void fill_level(const struct builder *builder, sqlite3_stmt *insert,
                       enum rollup_grouping grouping, enum rollup_level level)
{
    struct place *places = calloc(builder->count + 1, sizeof *places);
    assert_non_null(places);
    for (size_t i = 0; i < builder->count; i++)
        places[i] = (struct place){
            rollup_bucket(level, builder->rows[i].started_ns),
            series_id(builder->db, grouping, rollup_series_in(grouping, builder->rows[i].series)),
            &builder->rows[i]};
    qsort(places, builder->count, sizeof *places, by_place);
    for (size_t first = 0, end = 0; first < builder->count; first = end) {
        while (end < builder->count && by_place(&places[first], &places[end]) == 0)
            end++;
        const struct rollup_row_key key = {rollup_metric_number(builder->metric), grouping, level,
                                           places[first].bucket, places[first].series};
        write_cell(builder, insert, key, &places[first], &places[end]);
    }
    free(places);
}

void rollup_builder_fill(sqlite3 *db, const struct query_metric *metric, int64_t watermark,
                         bool poison)
{
    struct builder builder = {.db = db, .metric = metric, .poison = poison};
    sqlite3_stmt *stmt = select_rows(&builder, watermark);
    while (sqlite3_step(stmt) == SQLITE_ROW)
        add_row(&builder, stmt);
    (void)sqlite3_finalize(stmt);
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendall(sql,
                          "INSERT OR REPLACE INTO rollup(metric, grouping, level, started_ns,"
                          " series, " ROLLUP_ROW_COLUMNS ") VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
                          " ?, ?)");
    stmt = prepare(db, sql);
    for (unsigned grouping = 0; grouping < ROLLUP_GROUPING_COUNT; grouping++)
        for (unsigned level = 0; level < ROLLUP_LEVEL_COUNT; level++)
            fill_level(&builder, stmt, (enum rollup_grouping)grouping, (enum rollup_level)level);
    (void)sqlite3_finalize(stmt);
    sql = sqlite3_str_new(db);
    sqlite3_str_appendf(sql,
                        "INSERT OR REPLACE INTO rollup_state(metric, watermark) VALUES(%d, %lld)",
                        rollup_metric_number(metric), (long long)watermark);
    stmt = prepare(db, sql);
    run(stmt);
    (void)sqlite3_finalize(stmt);
    free(builder.rows);
}
