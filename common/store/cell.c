#include "common/store/cell.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include <sqlite3.h>

enum {
    PLACE_COUNT,
    PLACE_SUM,
    PLACE_CARRY,
    PLACE_MIN,
    PLACE_MAX,
    PLACE_NUMERATOR,
    PLACE_DENOMINATOR,
    PLACE_SKETCH,
};

_Static_assert(PLACE_SKETCH + 1 == CELL_COLUMN_COUNT, "a place for each column");

__extension__ typedef __int128 wide;

// What both kinds of sums share; `count` is not that of `into` yet.
static void merge_extremes(struct aggregate *into, double min, double max)
{
    if (into->count == 0 || min < into->min)
        into->min = min;
    if (into->count == 0 || max > into->max)
        into->max = max;
}

static void merge_integer_extremes(struct aggregate *into, int64_t min, int64_t max)
{
    if (into->count == 0 || min < into->min_integer)
        into->min_integer = min;
    if (into->count == 0 || max > into->max_integer)
        into->max_integer = max;
}

static void merge_real_sum(struct real_sum *into, const struct real_sum *from)
{
    real_sum_add(into, from->sum);
    real_sum_add(into, from->lost);
}

void ratio_merge(struct ratio *into, const struct ratio *from)
{
    struct aggregate *values = &into->values;
    if (from->values.count == 0)
        return;
    merge_extremes(values, from->values.min, from->values.max);
    if (!from->values.has_reals)
        merge_integer_extremes(values, from->values.min_integer, from->values.max_integer);
    values->integers += from->values.integers;
    merge_real_sum(&values->reals, &from->values.reals);
    values->has_reals |= from->values.has_reals;
    if (values->sketch && from->values.sketch)
        sketch_merge(values->sketch, from->values.sketch);
    values->count += from->values.count;
    merge_real_sum(&into->numerator, &from->numerator);
    merge_real_sum(&into->denominator, &from->denominator);
}

// ---- Reading ---------------------------------------------------------------------------

static enum status damaged(struct error *err, const char *why)
{
    return error_set(err, STATUS_CORRUPT, "store: a damaged rollup: %s", why);
}

// The sum of `count` integers between two bounds, which it must lie between, too.
static bool sum_is_possible(wide sum, int64_t count, int64_t min, int64_t max)
{
    return min <= max && sum >= (wide)count * min && sum <= (wide)count * max;
}

static enum status add_integers(struct aggregate *into, sqlite3_stmt *row, int first, int64_t count,
                                struct error *err)
{
    const int64_t min = sqlite3_column_int64(row, first + PLACE_MIN);
    const int64_t max = sqlite3_column_int64(row, first + PLACE_MAX);
    const wide sum = (wide)sqlite3_column_int64(row, first + PLACE_CARRY) * ((wide)1 << 64) +
                     (uint64_t)sqlite3_column_int64(row, first + PLACE_SUM);
    if (!sum_is_possible(sum, count, min, max))
        return damaged(err, "its sum does not fit its values");
    if (__builtin_add_overflow(into->integers, sum, &into->integers))
        return damaged(err, "its sum is out of all bounds");
    merge_extremes(into, (double)min, (double)max);
    merge_integer_extremes(into, min, max);
    return STATUS_OK;
}

static enum status add_reals(struct aggregate *into, sqlite3_stmt *row, int first,
                             struct error *err)
{
    const double min = sqlite3_column_double(row, first + PLACE_MIN);
    const double max = sqlite3_column_double(row, first + PLACE_MAX);
    if (!(min <= max))
        return damaged(err, "its least value is above its largest");
    merge_extremes(into, min, max);
    real_sum_add(&into->reals, sqlite3_column_double(row, first + PLACE_SUM));
    into->has_reals = true;
    return STATUS_OK;
}

static bool has_type(sqlite3_stmt *row, int first, int place, int type)
{
    return sqlite3_column_type(row, first + place) == type;
}

static bool types_are_sound(sqlite3_stmt *row, int first)
{
    const int type = sqlite3_column_type(row, first + PLACE_SUM);
    const int rate = sqlite3_column_type(row, first + PLACE_NUMERATOR);
    return has_type(row, first, PLACE_COUNT, SQLITE_INTEGER) &&
           (type == SQLITE_INTEGER || type == SQLITE_FLOAT) &&
           has_type(row, first, PLACE_CARRY, SQLITE_INTEGER) &&
           has_type(row, first, PLACE_MIN, type) && has_type(row, first, PLACE_MAX, type) &&
           (rate == SQLITE_FLOAT || rate == SQLITE_NULL) &&
           has_type(row, first, PLACE_DENOMINATOR, rate) &&
           (has_type(row, first, PLACE_SKETCH, SQLITE_BLOB) ||
            has_type(row, first, PLACE_SKETCH, SQLITE_NULL));
}

// Whether the least and the largest value are the same.
static bool is_of_one_value(sqlite3_stmt *row, int first)
{
    if (has_type(row, first, PLACE_SUM, SQLITE_INTEGER))
        return sqlite3_column_int64(row, first + PLACE_MIN) ==
               sqlite3_column_int64(row, first + PLACE_MAX);
    return sqlite3_column_double(row, first + PLACE_MIN) >=
           sqlite3_column_double(row, first + PLACE_MAX);
}

static enum status add_sketch(struct sketch *into, sqlite3_stmt *row, int first, uint64_t count,
                              struct error *err)
{
    if (has_type(row, first, PLACE_SKETCH, SQLITE_NULL)) {
        if (!is_of_one_value(row, first))
            return damaged(err, "it has no sketch");
        sketch_add(into, sqlite3_column_double(row, first + PLACE_MIN), count);
        return STATUS_OK;
    }
    const uint64_t before = sketch_count(into);
    const void *bytes = sqlite3_column_blob(row, first + PLACE_SKETCH);
    const int size = sqlite3_column_bytes(row, first + PLACE_SKETCH);
    const enum status status = sketch_decode(into, bytes, (size_t)size);
    if (status == STATUS_NOMEM)
        return error_set(err, status, "store: out of memory");
    if (status != STATUS_OK || sketch_count(into) - before != count)
        return damaged(err, "its sketch is none of its values");
    return STATUS_OK;
}

enum status cell_add(struct ratio *into, sqlite3_stmt *row, int first, struct error *err)
{
    struct aggregate *values = &into->values;
    const int64_t count = sqlite3_column_int64(row, first + PLACE_COUNT);
    if (!types_are_sound(row, first))
        return damaged(err, "a column of the wrong type");
    if (count <= 0 || values->count > (uint64_t)(INT64_MAX - count))
        return damaged(err, "an impossible count");
    enum status status = has_type(row, first, PLACE_SUM, SQLITE_INTEGER)
                             ? add_integers(values, row, first, count, err)
                             : add_reals(values, row, first, err);
    if (status == STATUS_OK && values->sketch)
        status = add_sketch(values->sketch, row, first, (uint64_t)count, err);
    if (status != STATUS_OK)
        return status;
    values->count += (uint64_t)count;
    real_sum_add(&into->numerator, sqlite3_column_double(row, first + PLACE_NUMERATOR));
    real_sum_add(&into->denominator, sqlite3_column_double(row, first + PLACE_DENOMINATOR));
    return STATUS_OK;
}

// ---- Writing ---------------------------------------------------------------------------

// Usual sketches are a few hundred bytes; the largest has all buckets of both signs.
enum { USUAL_SIZE = 4096, SIZE_MAX_EVER = 64 + 2 * SKETCH_BUCKETS * 11 };

static enum status bind_sketch(sqlite3_stmt *stmt, int place, const struct sketch *sketch,
                               struct error *err)
{
    unsigned char usual[USUAL_SIZE];
    unsigned char *large = NULL;
    const unsigned char *bytes = usual;
    size_t size = sketch_encode_whole(sketch, usual, sizeof usual);
    if (size == 0) {
        bytes = large = malloc(SIZE_MAX_EVER);
        size = large ? sketch_encode_whole(sketch, large, SIZE_MAX_EVER) : 0;
    }
    enum status status = STATUS_OK;
    if (size == 0 || sqlite3_bind_blob64(stmt, place, bytes, size, SQLITE_TRANSIENT) != SQLITE_OK)
        status = error_set(err, STATUS_NOMEM, "store: out of memory");
    free(large);
    return status;
}

// A sum beyond what doubles hold is infinite, never "not a number", which SQLite
// takes for null.
static void bind_real(sqlite3_stmt *stmt, int place, double value)
{
    (void)sqlite3_bind_double(stmt, place, isnan(value) ? (double)INFINITY : value);
}

static void bind_integers(sqlite3_stmt *stmt, int first, const struct aggregate *values)
{
    (void)sqlite3_bind_int64(stmt, first + PLACE_SUM, (int64_t)(uint64_t)values->integers);
    (void)sqlite3_bind_int64(stmt, first + PLACE_CARRY, (int64_t)(values->integers >> 64));
    (void)sqlite3_bind_int64(stmt, first + PLACE_MIN, values->min_integer);
    (void)sqlite3_bind_int64(stmt, first + PLACE_MAX, values->max_integer);
}

static void bind_reals(sqlite3_stmt *stmt, int first, const struct aggregate *values)
{
    bind_real(stmt, first + PLACE_SUM, (double)values->integers + real_sum_total(&values->reals));
    (void)sqlite3_bind_int64(stmt, first + PLACE_CARRY, 0);
    bind_real(stmt, first + PLACE_MIN, values->min);
    bind_real(stmt, first + PLACE_MAX, values->max);
}

enum status cell_bind(sqlite3_stmt *stmt, int first, const struct ratio *cell, bool derived,
                      struct error *err)
{
    const struct aggregate *values = &cell->values;
    assert(values->count > 0 && values->sketch);
    (void)sqlite3_bind_int64(stmt, first + PLACE_COUNT, (int64_t)values->count);
    if (values->has_reals)
        bind_reals(stmt, first, values);
    else
        bind_integers(stmt, first, values);
    for (int place = PLACE_NUMERATOR; place <= PLACE_SKETCH; place++)
        (void)sqlite3_bind_null(stmt, first + place);
    if (derived) {
        bind_real(stmt, first + PLACE_NUMERATOR, real_sum_total(&cell->numerator));
        bind_real(stmt, first + PLACE_DENOMINATOR, real_sum_total(&cell->denominator));
    }
    const bool one_value = values->has_reals ? !(values->min < values->max)
                                             : values->min_integer == values->max_integer;
    return one_value ? STATUS_OK : bind_sketch(stmt, first + PLACE_SKETCH, values->sketch, err);
}
