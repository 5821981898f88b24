// A rollup's row and the numbers it stands for: there and back, merged, damaged.
#include <math.h>

#include <sqlite3.h>

#include "common/store/rollup/rollup_row.h"
#include "tests/support/test.h"

__extension__ typedef __int128 wide;

static sqlite3 *db;
static sqlite3_stmt *insert, *row;

TEST_FIXTURE(set_up)
{
    static const char table[] = "CREATE TABLE cell(count INTEGER NOT NULL, sum NOT NULL, carry"
                                " INTEGER NOT NULL, min NOT NULL, max NOT NULL, numerator REAL,"
                                " denominator REAL, sketch BLOB)";
    if (sqlite3_open(":memory:", &db) != SQLITE_OK ||
        sqlite3_exec(db, table, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db, "INSERT INTO cell VALUES(?, ?, ?, ?, ?, ?, ?, ?)", -1, &insert,
                           NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db, "SELECT " ROLLUP_ROW_COLUMNS " FROM cell", -1, &row, NULL) !=
            SQLITE_OK)
        return -1;
    return 0;
}

TEST_FIXTURE(tear_down)
{
    (void)sqlite3_finalize(insert);
    (void)sqlite3_finalize(row);
    (void)sqlite3_close(db);
    return 0;
}

static void exec(const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
}

static const struct rollup_row_key some_key = {1536, ROLLUP_MODEL, ROLLUP_HOUR, INT64_MIN, 12};

static struct ratio new_ratio(void)
{
    struct ratio ratio = {0};
    assert_int_equal(sketch_new(&ratio.values.sketch), STATUS_OK);
    return ratio;
}

static void write_cell(const struct ratio *ratio, bool derived)
{
    struct error err = {0};
    (void)sqlite3_reset(insert);
    assert_int_equal(rollup_row_bind(insert, 1, &some_key, ratio, derived, &err), STATUS_OK);
    assert_int_equal(sqlite3_step(insert), SQLITE_DONE);
}

// All rows of the table, merged.
static enum status read_cells(struct ratio *into, struct error *err)
{
    enum status status = STATUS_OK;
    (void)sqlite3_reset(row);
    while (status == STATUS_OK && sqlite3_step(row) == SQLITE_ROW)
        status = rollup_row_add(into, &some_key, row, 0, err);
    (void)sqlite3_reset(row);
    return status;
}

// Writes a cell of a metric that is not derived, and reads it.
static struct ratio write_and_read(const struct ratio *cell)
{
    struct ratio read = new_ratio();
    struct error err = {0};
    exec("DELETE FROM cell");
    write_cell(cell, false);
    assert_int_equal(read_cells(&read, &err), STATUS_OK);
    return read;
}

static void assert_same_sketch(const struct sketch *a, const struct sketch *b)
{
    static unsigned char left[1 << 18], right[1 << 18];
    const size_t size = sketch_encode_whole(a, left, sizeof left);
    assert_true(size > 0);
    assert_int_equal(sketch_encode_whole(b, right, sizeof right), size);
    assert_memory_equal(left, right, size);
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fmax(fabs(a), fabs(b));
}

static void assert_same(const struct ratio *a, const struct ratio *b)
{
    assert_int_equal(a->values.count, b->values.count);
    assert_int_equal(a->values.has_reals, b->values.has_reals);
    assert_true(a->values.integers == b->values.integers);
    assert_true(is_near(real_sum_total(&a->values.reals), real_sum_total(&b->values.reals)));
    assert_true(is_near(real_sum_total(&a->numerator), real_sum_total(&b->numerator)));
    assert_true(is_near(real_sum_total(&a->denominator), real_sum_total(&b->denominator)));
    assert_true(a->values.min <= b->values.min && a->values.min >= b->values.min);
    assert_true(a->values.max <= b->values.max && a->values.max >= b->values.max);
    if (!a->values.has_reals) {
        assert_int_equal(a->values.min_integer, b->values.min_integer);
        assert_int_equal(a->values.max_integer, b->values.max_integer);
    }
    assert_same_sketch(a->values.sketch, b->values.sketch);
}

static int64_t any_integer(uint64_t *seed)
{
    static const int64_t edges[] = {0, 1, -1, INT64_MAX, INT64_MIN, INT64_MIN + 1, 1 << 20, 42};
    const uint64_t pick = test_random(seed);
    if (pick % 4 == 0)
        return edges[pick / 4 % COUNT_OF(edges)];
    return (int64_t)(test_random(seed)) >> (pick / 4 % 64);
}

static void add_any(struct ratio *ratio, unsigned what, uint64_t *seed)
{
    const double real = (double)any_integer(seed) / 1024;
    if (what == 0)
        aggregate_add_int(&ratio->values, any_integer(seed));
    else if (what == 1)
        aggregate_add_real(&ratio->values, fabs(real));
    else
        ratio_add(ratio, fabs(real), (double)(1 + test_random(seed) % 1000));
}

TEST_CASE(cells_are_what_was_added_however_it_was_cut)
{
    uint64_t seed = 7;
    for (unsigned round = 0; round < 300; round++) {
        const unsigned what = round % 3;
        struct ratio whole = new_ratio(), merged = new_ratio(), read = new_ratio();
        exec("DELETE FROM cell");
        const uint64_t parts = 1 + test_random(&seed) % 4;
        for (uint64_t part = 0; part < parts; part++) {
            struct ratio one = new_ratio();
            const uint64_t count = 1 + test_random(&seed) % (round % 5 ? 40 : 2);
            for (uint64_t i = 0; i < count; i++) {
                uint64_t twice = seed;
                add_any(&whole, what, &twice);
                add_any(&one, what, &seed);
            }
            write_cell(&one, what == 2);
            ratio_merge(&merged, &one);
            aggregate_deinit(&one.values);
        }
        struct error err = {0};
        assert_int_equal(read_cells(&read, &err), STATUS_OK);
        assert_same(&merged, &whole);
        assert_same(&read, &whole);
        aggregate_deinit(&whole.values);
        aggregate_deinit(&merged.values);
        aggregate_deinit(&read.values);
    }
}

TEST_CASE(sums_are_exact_beyond_64_bits)
{
    static const struct {
        int64_t value;
        uint64_t times;
    } cases[] = {{INT64_MAX, 1}, {INT64_MAX, 5}, {INT64_MIN, 1}, {INT64_MIN, 7}, {-1, 3}, {0, 2}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct ratio cell = new_ratio();
        for (uint64_t n = 0; n < cases[i].times; n++)
            aggregate_add_int(&cell.values, cases[i].value);
        struct ratio read = write_and_read(&cell);
        assert_true(read.values.integers == (wide)cases[i].value * (wide)cases[i].times);
        assert_same(&read, &cell);
        aggregate_deinit(&cell.values);
        aggregate_deinit(&read.values);
    }
}

TEST_CASE(one_value_needs_no_sketch)
{
    struct ratio cell = new_ratio();
    aggregate_add_int(&cell.values, 77);
    aggregate_add_int(&cell.values, 77);
    exec("DELETE FROM cell");
    write_cell(&cell, false);
    exec("DELETE FROM cell WHERE length(sketch) > 4");
    assert_int_equal(sqlite3_changes(db), 0);
    aggregate_deinit(&cell.values);
}

// Of samples nobody knows the quantiles, unless all values are one.
TEST_CASE(cells_of_samples_have_no_sketch)
{
    const struct rollup_row_key key = {256 * RECORD_KIND_DEVICE_SAMPLE + DEVICE_SAMPLE_POWER,
                                       ROLLUP_FULL, ROLLUP_MINUTE, 0, 1};
    for (int step = 0; step < 2; step++) {
        struct ratio cell = {0}, read = new_ratio();
        struct error err = {0};
        for (int i = 0; i < 60; i++)
            aggregate_add_real(&cell.values, 300 + step * i);
        exec("DELETE FROM cell");
        (void)sqlite3_reset(insert);
        assert_int_equal(rollup_row_bind(insert, 1, &key, &cell, false, &err), STATUS_OK);
        assert_int_equal(sqlite3_step(insert), SQLITE_DONE);
        (void)sqlite3_reset(row);
        assert_int_equal(sqlite3_step(row), SQLITE_ROW);
        assert_int_equal(rollup_row_add(&read, &key, row, 0, &err), STATUS_OK);
        (void)sqlite3_reset(row);
        assert_int_equal(read.values.count, 60);
        assert_true(aggregate_mean(&read.values) == (step ? 329.5 : 300));
        assert_int_equal(isnan(aggregate_quantile(&read.values, 0.5)), step);
        aggregate_add_real(&read.values, 1); // a record beside the rollup
        assert_int_equal(isnan(aggregate_quantile(&read.values, 0.5)), step);
        aggregate_deinit(&read.values);
    }
}

TEST_CASE(sums_of_reals_are_never_nan)
{
    struct ratio cell = new_ratio();
    for (unsigned i = 0; i < 4; i++)
        aggregate_add_real(&cell.values, i < 2 ? 1.7e308 : -1.7e308);
    struct ratio read = write_and_read(&cell);
    assert_int_equal(read.values.count, 4);
    aggregate_deinit(&cell.values);
    aggregate_deinit(&read.values);
}

TEST_CASE(the_largest_sketch_fits)
{
    struct ratio cell = new_ratio();
    for (uint32_t bucket = 0; bucket < SKETCH_BUCKETS; bucket++) {
        const double value = sketch_bucket_value(bucket);
        sketch_add(cell.values.sketch, value, UINT64_C(1) << 44);
        sketch_add(cell.values.sketch, -value, UINT64_C(1) << 44);
    }
    cell.values.count = sketch_count(cell.values.sketch);
    cell.values.has_reals = true;
    cell.values.min = -sketch_bucket_value(SKETCH_BUCKETS - 1);
    cell.values.max = sketch_bucket_value(SKETCH_BUCKETS - 1);
    struct ratio read = write_and_read(&cell);
    assert_same(&read, &cell);
    aggregate_deinit(&cell.values);
    aggregate_deinit(&read.values);
}

TEST_CASE(damaged_cells_are_said)
{
    static const char *const damages[] = {
        "count = 0",
        "count = -3",
        "count = 'many'",
        "count = 4",
        "count = 9223372036854775807",
        "sum = 'x'",
        "sum = 6.0",
        "sum = sum + 1000000",
        "carry = 1",
        "carry = 'x'",
        "min = 9",
        "min = x'00'",
        "max = 2.5",
        "max = 1",
        "numerator = 'x'",
        "numerator = 1.5",
        "denominator = 1.0",
        "sketch = NULL",
        "sketch = 'text'",
        "sketch = x''",
        "sketch = x'02'",
        "sketch = substr(sketch, 1, length(sketch) - 1)",
        "sketch = substr(sketch, 1, 4)",
        "sketch = substr(sketch, 1, 4) || x'0100' || substr(sketch, 7)",
        "sketch = x'00000000' || substr(sketch, 5)",
        "max = 4",
        "count = 2, sum = 5",
    };
    for (size_t i = 0; i < COUNT_OF(damages); i++) {
        struct ratio cell = new_ratio(), read = new_ratio();
        struct error err = {0};
        for (int64_t value = 1; value <= 3; value++)
            aggregate_add_int(&cell.values, value);
        exec("DELETE FROM cell");
        write_cell(&cell, false);
        char sql[128];
        (void)snprintf(sql, sizeof sql, "UPDATE cell SET %s", damages[i]);
        exec(sql);
        if (read_cells(&read, &err) != STATUS_CORRUPT)
            fail_msg("%s", sql);
        assert_non_null(strstr(err.text, "damaged rollup"));
        aggregate_deinit(&cell.values);
        aggregate_deinit(&read.values);
    }
}

TEST_CASE(a_cell_of_another_row_is_damaged)
{
    struct rollup_row_key others[5];
    for (size_t i = 0; i < COUNT_OF(others); i++)
        others[i] = some_key;
    others[0].metric++;
    others[1].grouping = ROLLUP_FULL;
    others[2].level = ROLLUP_DAY;
    others[3].started_ns++;
    others[4].series = 13;
    struct ratio cell = new_ratio();
    aggregate_add_int(&cell.values, 5);
    exec("DELETE FROM cell");
    write_cell(&cell, false);
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        struct ratio read = new_ratio();
        struct error err = {0};
        (void)sqlite3_reset(row);
        assert_int_equal(sqlite3_step(row), SQLITE_ROW);
        assert_int_equal(rollup_row_add(&read, &others[i], row, 0, &err), STATUS_CORRUPT);
        aggregate_deinit(&read.values);
    }
    aggregate_deinit(&cell.values);
}

TEST_CASE(counts_do_not_wrap)
{
    struct ratio cell = new_ratio(), read = {0};
    struct error err = {0};
    aggregate_add_int(&cell.values, 0);
    cell.values.count = INT64_MAX;
    exec("DELETE FROM cell");
    for (unsigned i = 0; i < 2; i++)
        write_cell(&cell, false);
    assert_int_equal(read_cells(&read, &err), STATUS_CORRUPT);
    assert_non_null(strstr(err.text, "impossible count"));
    aggregate_deinit(&cell.values);
}

TEST_MAIN_ONCE(set_up, tear_down, cells_of_samples_have_no_sketch,
               cells_are_what_was_added_however_it_was_cut, sums_are_exact_beyond_64_bits,
               one_value_needs_no_sketch, sums_of_reals_are_never_nan, the_largest_sketch_fits,
               damaged_cells_are_said, a_cell_of_another_row_is_damaged, counts_do_not_wrap)
