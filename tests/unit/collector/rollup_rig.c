#include "tests/unit/collector/rollup_rig.h"

#include <math.h>

#include <sqlite3.h>

#include "common/store/rollup/rollup_row.h"
#include "common/store/sqlite/database.h"
#include "common/store/rollup/gap_table.h"
#include "common/store/read/reader.h"
#include "common/store/rollup/rollup.h"
#include "common/sys/clock.h"
#include "common/store/schema/database_open.h"
#include "common/store/schema/schema_select.h"
#include "server/collector/rollup/rollup_metrics.h"
#include "tests/support/test.h"

struct rollup_rig rollup_rig;

static const int64_t name_ids[ROLLUP_RIG_NAMES] = {11, 12, 13, 14};

static void open_parts(void)
{
    struct error err = {0};
    if (database_open_writer(&rollup_rig.db, rollup_rig.path, &err) != STATUS_OK ||
        inserter_new(&rollup_rig.inserter, rollup_rig.db, &err) != STATUS_OK ||
        rollups_new(&rollup_rig.rollups, rollup_rig.db, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    inserter_set_rollups(rollup_rig.inserter, rollup_rig.rollups);
    if (rollup_rig.by_metrics)
        rollups_set_pass(rollup_rig.rollups, 0, 1);
    rollup_rig_exec("PRAGMA synchronous = OFF"); // nothing here asks what a disk keeps
}

static void close_parts(void)
{
    rollups_free(rollup_rig.rollups);
    inserter_free(rollup_rig.inserter);
    database_close(rollup_rig.db);
    rollup_rig.rollups = NULL;
    rollup_rig.inserter = NULL;
    rollup_rig.db = NULL;
}

int rollup_rig_set_up(__attribute__((unused)) void **state)
{
    // An hour on nothing has come in for a while: what is to be done is done at once.
    const uint64_t hour_ns = UINT64_C(3600000000000);
    rollup_rig = (struct rollup_rig){.random = 1, .now_ns = clock_monotonic_ns() + hour_ns};
    folder_make(rollup_rig.folder);
    (void)folder_path(rollup_rig.path, rollup_rig.folder, "s.db");
    assert_int_equal(table_builder_new(&rollup_rig.builder), STATUS_OK);
    open_parts();
    rollup_rig_exec("INSERT INTO name(id, text) VALUES(11, 'a'), (12, 'b'), (13, 'c'), (14, 'd'),"
                    " (21, 'host-1'), (22, 'host-2')");
    for (int run = 1; run <= ROLLUP_RIG_RUNS; run++) {
        rollup_rig_exec(
            format_text("INSERT INTO run(run, started_ns, received_ns, uuid, host, pid, \"end\","
                        " worker_version, protocol, os, kernel, cpu, cpu_count, host_memory_bytes,"
                        " device_count, produced, stored, duplicates, heard_ns)"
                        " VALUES(%d, 1, 1, 'run-%d', %d, 1, 0, 'v', 1, 'o', 'k', 'c', 1, 1, 1, 0,"
                        " 0, 0, 1)",
                        run, run, 21 + run % 2));
        for (int kind = 1; kind < RECORD_KIND_COUNT; kind++) {
            rollup_rig_exec(
                format_text("INSERT INTO ledger(run, kind, stored) VALUES(%d, %d, 0)", run, kind));
        }
    }
    return 0;
}

int rollup_rig_tear_down(__attribute__((unused)) void **state)
{
    close_parts();
    table_builder_free(rollup_rig.builder);
    folder_remove(rollup_rig.folder);
    return 0;
}

void rollup_rig_by_metrics(void)
{
    rollup_rig.by_metrics = true;
    rollups_set_pass(rollup_rig.rollups, 0, 1);
}

void rollup_rig_restart(void)
{
    close_parts();
    open_parts();
}

int64_t rollup_rig_integer(const char *sql)
{
    struct error err = {0};
    int64_t value = 0;
    if (database_integer(rollup_rig.db, sql, &value, &err) != STATUS_OK)
        fail_msg("%s: %s", sql, err.text);
    return value;
}

void rollup_rig_exec(const char *sql)
{
    struct error err = {0};
    if (database_exec(rollup_rig.db, sql, &err) != STATUS_OK)
        fail_msg("%s: %s", sql, err.text);
}

// ---- Records ----------------------------------------------------------------------------

static uint64_t random_below(uint64_t limit)
{
    return test_random(&rollup_rig.random) % limit;
}

static int64_t random_time(int64_t base_ns)
{
    static const int64_t absurd[] = {
        0, -1, INT64_MIN, INT64_MAX, -999999999, INT64_MIN / 2, 60000000000};
    const int64_t hour_ns = INT64_C(3600000000000);
    const uint64_t pick = random_below(40);
    if (pick == 0)
        return absurd[random_below(COUNT_OF(absurd))];
    if (pick < 4) // late, up to two months
        return base_ns - (int64_t)random_below(60 * 24) * hour_ns;
    return base_ns + (int64_t)random_below(3 * 60) * (hour_ns / 60) + (int64_t)random_below(9);
}

static int64_t random_integer(void)
{
    const uint64_t pick = random_below(20);
    if (pick == 0)
        return 0;
    if (pick == 1)
        return INT64_C(1) << 53;
    return (int64_t)(test_random(&rollup_rig.random) >> (12 + random_below(50)));
}

static double random_real(void)
{
    const uint64_t pick = random_below(10);
    if (pick == 0)
        return 0;
    return (pick < 3 ? -1.0 : 1.0) * (double)random_integer() / 4096;
}

static void set_sketch(struct record *record, unsigned column)
{
    struct sketch *sketch = NULL;
    unsigned char bytes[200];
    assert_int_equal(sketch_new(&sketch), STATUS_OK);
    for (uint64_t i = random_below(8); i > 0; i--)
        sketch_add(sketch, (double)random_below(1000000), 1 + random_below(5));
    const size_t size = sketch_encode_whole(sketch, bytes, sizeof bytes);
    sketch_free(sketch);
    if (random_below(9) == 0)
        bytes[0] ^= 5; // no sketch at all
    (void)record_set_blob(record, column, bytes, size);
}

static void set_column(struct record *record, const struct record_column *column, unsigned c)
{
    switch ((int)column->type) {
    case COLUMN_REAL:
        record_set_real(record, c, random_real());
        break;
    case COLUMN_NAME:
        record_set_name(record, c, 1 + (uint32_t)random_below(ROLLUP_RIG_NAMES));
        break;
    case COLUMN_TEXT:
        (void)record_set_text(record, c, "t", 1);
        break;
    case COLUMN_BLOB:
        set_sketch(record, c);
        break;
    case COLUMN_INT:
        record_set_int(record, c, random_integer());
        break;
    default:
        record_set_int(record, c, (int64_t)random_below(2));
    }
}

void rollup_rig_record(struct record *record, enum record_kind kind, int64_t base_ns)
{
    const struct record_kind_info *info = record_kind_info(kind);
    record_init(record, kind, random_time(base_ns));
    for (unsigned c = 0; c < info->column_count; c++)
        if (!info->columns[c].maybe || random_below(4) > 0)
            set_column(record, &info->columns[c], c);
}

void rollup_rig_insert(const struct record *records, unsigned count, int64_t run)
{
    struct error err = {0};
    const struct batch_run owner = {
        .run = run, .stream = 0, .received_ns = INT64_C(1790000000000000000), .names = name_ids};
    table_builder_reset(rollup_rig.builder);
    const uint64_t first = rollup_rig.number + 1;
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(table_builder_add(rollup_rig.builder, ++rollup_rig.number, &records[i]),
                         STATUS_OK);
    size_t tables = 0;
    const struct wire_table *table = table_builder_tables(rollup_rig.builder, &tables);
    // The first of each table may be known already.
    for (size_t t = 0; t < tables; t++) {
        int64_t stored = 0, suspects = 0;
        expect_ok(insert_table(rollup_rig.inserter, &owner, &table[t], first + random_below(2),
                               &stored, &suspects, &err),
                  &err);
    }
}

void rollup_rig_insert_hours(int64_t base_ns)
{
    struct record record;
    rollup_rig_exec("BEGIN IMMEDIATE");
    for (int64_t minute = 0; minute < 180; minute++) {
        rollup_rig_record(&record, RECORD_KIND_STARTUP, base_ns);
        record.started_ns = base_ns + minute * INT64_C(60000000000);
        const struct record twice[] = {record, record, record};
        rollup_rig_insert(twice, COUNT_OF(twice), 1);
    }
    rollup_rig_exec("COMMIT");
}

void rollup_rig_fold(enum rollups_pace pace)
{
    struct error err = {0};
    bool left = true;
    while (left) {
        rollup_rig_exec("BEGIN IMMEDIATE");
        expect_ok(rollups_flush(rollup_rig.rollups, pace, rollup_rig.now_ns, &left, &err), &err);
        rollup_rig_exec("COMMIT");
        if (pace == ROLLUPS_ONE)
            break;
    }
}

void rollup_rig_catch_up(void)
{
    for (unsigned i = 0; rollups_are_behind(rollup_rig.rollups, rollup_rig.now_ns); i++) {
        assert_true(i < 10000);
        rollups_catch_up(rollup_rig.rollups, rollup_rig.now_ns, false);
    }
}

void rollup_rig_fold_all(void)
{
    rollup_rig_catch_up();
    rollup_rig_fold(ROLLUPS_ALL);
}

void rollup_rig_rebuild(void)
{
    unsigned steps = 0;
    while (rollups_rebuild(rollup_rig.rollups, rollup_rig.now_ns))
        assert_true(++steps < 100000);
}

// ---- What must be ---------------------------------------------------------------------------

struct expected {
    enum rollup_grouping grouping;
    enum rollup_level level;
    int64_t bucket;
    struct rollup_series series;
    struct ratio cell;
    bool seen;
};

struct expectation {
    enum record_kind kind;
    const struct rollup_metric *metric;
    struct expected *list;
    size_t count, room;
    struct gap_set gaps[ROLLUP_GROUPING_COUNT];
};

static struct expected *find_expected(struct expectation *all, enum rollup_grouping grouping,
                                      enum rollup_level level, int64_t bucket,
                                      const struct rollup_series *series, bool make)
{
    for (size_t i = 0; i < all->count; i++) {
        struct expected *one = &all->list[i];
        if (one->grouping == grouping && one->level == level && one->bucket == bucket &&
            memcmp(&one->series, series, sizeof *series) == 0)
            return one;
    }
    if (!make)
        return NULL;
    if (all->count == all->room) {
        all->room = all->room ? 2 * all->room : 256;
        all->list = realloc(all->list, all->room * sizeof *all->list);
        assert_non_null(all->list);
    }
    struct expected *one = &all->list[all->count++];
    *one = (struct expected){
        .grouping = grouping, .level = level, .bucket = bucket, .series = *series};
    assert_int_equal(sketch_new(&one->cell.values.sketch), STATUS_OK);
    return one;
}

static void take_bucket(void *context, double value, uint64_t count)
{
    struct ratio *cell = context;
    for (uint64_t i = 0; i < count; i++)
        aggregate_add_real(&cell->values, value);
}

static void add_value(struct ratio *cell, const struct rollup_metric *metric, sqlite3_stmt *row,
                      int place)
{
    struct sketch *sketch = NULL;
    switch (metric->source) {
    case ROLLUP_INTEGERS:
        aggregate_add_int(&cell->values, sqlite3_column_int64(row, place));
        break;
    case ROLLUP_REALS:
        aggregate_add_real(&cell->values, sqlite3_column_double(row, place));
        break;
    case ROLLUP_RATIOS:
        ratio_add(cell, sqlite3_column_double(row, place), sqlite3_column_double(row, place + 1));
        break;
    case ROLLUP_SKETCHES:
        assert_int_equal(sketch_new(&sketch), STATUS_OK);
        if (sketch_decode(sketch, sqlite3_column_blob(row, place),
                          (size_t)sqlite3_column_bytes(row, place)) == STATUS_OK)
            sketch_each(sketch, take_bucket, cell);
        sketch_free(sketch);
        break;
    }
}

static bool has_value(const struct rollup_metric *metric, sqlite3_stmt *row, int place)
{
    if (sqlite3_column_type(row, place) == SQLITE_NULL)
        return false;
    return metric->source != ROLLUP_RATIOS || (sqlite3_column_type(row, place + 1) != SQLITE_NULL &&
                                               sqlite3_column_double(row, place + 1) > 0);
}

static const struct record_derived *derived_of(enum record_kind kind, int number)
{
    const struct query_metric *metrics[ROLLUP_METRICS_MAX];
    const unsigned count = rollup_metrics(kind, metrics);
    for (unsigned i = 0; i < count; i++)
        if (metrics[i]->derived && rollup_metric_number(metrics[i]) == number)
            return metrics[i]->derived;
    fail_msg("metric %d is not derived", number);
    return NULL;
}

// The records that the rollups of the metric have.
static sqlite3_stmt *prepare_records(const struct expectation *all)
{
    const struct record_kind_info *info = record_kind_info(all->kind);
    static const enum query_dimension dimensions[] = {QUERY_BY_MODEL, QUERY_BY_HOST,
                                                      QUERY_BY_DEVICE, QUERY_BY_OPERATION};
    sqlite3_str *sql = sqlite3_str_new(rollup_rig.db);
    // An implausible time counts on 2019-12-01.
    sqlite3_str_appendall(sql, "SELECT CASE WHEN t.started_ns < 1577836800000000000 OR"
                               " t.started_ns > t.received_ns + 86400000000000"
                               " THEN 1575158400000000000 ELSE t.started_ns END");
    for (size_t d = 0; d < COUNT_OF(dimensions); d++) {
        const char *expression = schema_dimension(all->kind, dimensions[d]);
        sqlite3_str_appendf(sql, ", %s", expression ? expression : "NULL");
    }
    sqlite3_str_appendall(sql, ", ");
    if (all->metric->source == ROLLUP_RATIOS) {
        append_derived(sql, derived_of(all->kind, all->metric->number));
    } else {
        sqlite3_str_appendf(sql, "t.\"%w\"", info->columns[all->metric->columns[0]].name);
    }
    sqlite3_str_appendf(sql,
                        " FROM \"%w\" t JOIN rollup_state s ON s.metric = %d WHERE t.id <="
                        " iif(%s <= s.ahead_host, s.ahead_id, s.watermark) ORDER BY t.id",
                        info->name, all->metric->number,
                        schema_dimension(all->kind, QUERY_BY_HOST));
    char *text = sqlite3_str_finish(sql);
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(rollup_rig.db, text, -1, &stmt, NULL) != SQLITE_OK)
        fail_msg("%s: %s", text, sqlite3_errmsg(rollup_rig.db));
    sqlite3_free(text);
    return stmt;
}

static bool is_in_gap(const struct expectation *all, enum rollup_grouping grouping,
                      enum rollup_level level, int64_t bucket)
{
    return gap_set_touches(&all->gaps[grouping], level, bucket, rollup_next(level, bucket));
}

static void expect_row(struct expectation *all, sqlite3_stmt *row)
{
    const struct rollup_series full = {sqlite3_column_int64(row, 1), sqlite3_column_int64(row, 2),
                                       sqlite3_column_int64(row, 3), sqlite3_column_int64(row, 4)};
    if (!has_value(all->metric, row, 5))
        return;
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++) {
        const struct rollup_series series = rollup_series_in((enum rollup_grouping)g, full);
        for (unsigned level = 0; level < ROLLUP_LEVEL_COUNT; level++) {
            const int64_t bucket =
                rollup_bucket((enum rollup_level)level, sqlite3_column_int64(row, 0));
            if (is_in_gap(all, (enum rollup_grouping)g, (enum rollup_level)level, bucket))
                continue;
            struct expected *one = find_expected(all, (enum rollup_grouping)g,
                                                 (enum rollup_level)level, bucket, &series, true);
            if (one)
                add_value(&one->cell, all->metric, row, 5);
        }
    }
}

// Sums of values of both signs are as near as the size of their parts allows.
static bool is_near(const struct real_sum *a, const struct real_sum *b, double size)
{
    return fabs(real_sum_total(a) - real_sum_total(b)) <= 1e-12 * size;
}

static bool same_sums(const struct ratio *a, const struct ratio *b)
{
    const double largest = fmax(fabs(a->values.min), fabs(a->values.max));
    const double below = real_sum_total(&a->denominator);
    return a->values.integers == b->values.integers &&
           is_near(&a->values.reals, &b->values.reals, largest * (double)a->values.count) &&
           is_near(&a->numerator, &b->numerator, largest * below) &&
           is_near(&a->denominator, &b->denominator, below);
}

static bool same_sketch(const struct sketch *a, const struct sketch *b)
{
    static unsigned char left[1 << 18], right[1 << 18];
    const size_t size = sketch_encode_whole(a, left, sizeof left);
    return size > 0 && sketch_encode_whole(b, right, sizeof right) == size &&
           memcmp(left, right, size) == 0;
}

static bool same_cell(const struct ratio *a, const struct ratio *b, bool has_sketches)
{
    const struct aggregate *left = &a->values, *right = &b->values;
    if (left->count != right->count || left->has_reals != right->has_reals || !same_sums(a, b))
        return false;
    if (left->min < right->min || left->min > right->min || left->max < right->max ||
        left->max > right->max)
        return false;
    return !has_sketches || same_sketch(left->sketch, right->sketch);
}

static void check_rollup(struct expectation *all, sqlite3_stmt *row)
{
    const struct rollup_row_key key = {all->metric->number,
                                       (enum rollup_grouping)sqlite3_column_int(row, 0),
                                       (enum rollup_level)sqlite3_column_int(row, 1),
                                       sqlite3_column_int64(row, 2), sqlite3_column_int64(row, 3)};
    const struct rollup_series series = {sqlite3_column_int64(row, 4), sqlite3_column_int64(row, 5),
                                         sqlite3_column_int64(row, 6),
                                         sqlite3_column_int64(row, 7)};
    if (is_in_gap(all, key.grouping, key.level, key.started_ns))
        return;
    struct expected *one =
        find_expected(all, key.grouping, key.level, key.started_ns, &series, false);
    if (!one) {
        fail_msg("metric %d, %s, %s at %lld: a rollup of nothing", key.metric,
                 key.grouping == ROLLUP_FULL ? "full" : "model", rollup_level_name(key.level),
                 (long long)key.started_ns);
        return;
    }
    struct ratio cell = {0};
    struct error err = {0};
    assert_int_equal(sketch_new(&cell.values.sketch), STATUS_OK);
    expect_ok(rollup_row_add(&cell, &key, row, 8, &err), &err);
    if (!same_cell(&one->cell, &cell, rollup_has_sketches(all->kind)))
        fail_msg("metric %d, %s, %s at %lld: %llu values where SQL finds %llu, or others",
                 key.metric, key.grouping == ROLLUP_FULL ? "full" : "model",
                 rollup_level_name(key.level), (long long)key.started_ns,
                 (unsigned long long)cell.values.count, (unsigned long long)one->cell.values.count);
    aggregate_deinit(&cell.values);
    one->seen = true;
}

static void check_metric(struct expectation *all)
{
    sqlite3_stmt *row = prepare_records(all);
    while (sqlite3_step(row) == SQLITE_ROW)
        expect_row(all, row);
    (void)sqlite3_finalize(row);
    if (sqlite3_prepare_v2(
            rollup_rig.db,
            format_text(
                "SELECT r.grouping, r.level, r.started_ns, r.series, s.model, s.host, s.device,"
                " s.operation, r.count, r.sum, r.carry, r.min, r.max, r.numerator,"
                " r.denominator, r.sketch FROM rollup r JOIN series s ON s.id = r.series"
                " AND s.grouping = r.grouping WHERE r.metric = %d",
                all->metric->number),
            -1, &row, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(rollup_rig.db));
    while (sqlite3_step(row) == SQLITE_ROW)
        check_rollup(all, row);
    (void)sqlite3_finalize(row);
    for (size_t i = 0; i < all->count; i++) {
        const struct expected *one = &all->list[i];
        if (!one->seen && one->cell.values.count > 0) // records of no value at all
            fail_msg("metric %d, %s, %s at %lld: no rollup of %llu values", all->metric->number,
                     one->grouping == ROLLUP_FULL ? "full" : "model", rollup_level_name(one->level),
                     (long long)one->bucket, (unsigned long long)one->cell.values.count);
    }
}

void rollup_rig_check(enum record_kind kind, unsigned one_in)
{
    const struct rollup_metrics *metrics = rollup_metrics_of(kind);
    struct error err = {0};
    for (unsigned m = 0; m < metrics->count; m++) {
        if (random_below(one_in) != 0)
            continue;
        struct expectation all = {.kind = kind, .metric = &metrics->list[m]};
        for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++)
            assert_int_equal(gap_set_read(&all.gaps[g], rollup_rig.db, kind,
                                          (enum rollup_grouping)g, GAP_NO_SPAN, &err),
                             STATUS_OK);
        check_metric(&all);
        for (size_t i = 0; i < all.count; i++)
            aggregate_deinit(&all.list[i].cell.values);
        for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++)
            gap_set_deinit(&all.gaps[g]);
        free(all.list);
    }
}
