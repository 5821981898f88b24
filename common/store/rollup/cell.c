#include "common/store/rollup/cell.h"

#include <assert.h>
#include <endian.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/crc32c.h"

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

// A cell as its columns have it.
struct bound {
    bool is_real, is_derived;
    int64_t count, sum, carry, min, max;
    double real_sum, real_min, real_max, numerator, denominator;
};

// ---- The checksum ----------------------------------------------------------------------

enum { CHECKSUM_SIZE = 4 };

// Integers as they are, reals by their bits: the same on every machine.
struct summed {
    unsigned char bytes[(5 + CELL_COLUMN_COUNT) * 8];
    size_t size;
};

static void put_integer(struct summed *summed, int64_t value)
{
    const uint64_t bits = htole64((uint64_t)value);
    memcpy(summed->bytes + summed->size, &bits, sizeof bits);
    summed->size += sizeof bits;
}

static void put_real(struct summed *summed, double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_integer(summed, bits);
}

static void put_key(struct summed *summed, const struct cell_key *key)
{
    put_integer(summed, key->metric);
    put_integer(summed, (int64_t)key->grouping);
    put_integer(summed, (int64_t)key->level);
    put_integer(summed, key->started_ns);
    put_integer(summed, key->series);
}

// The columns of a positioned row: asked for once, since SQLite looks at the statement's
// state each time.  They are of a connection without mutexes, so that they may be looked at
// (https://www.sqlite.org/c3ref/value.html, "unprotected").
struct columns {
    sqlite3_value *values[CELL_COLUMN_COUNT];
};

static struct columns columns_of(sqlite3_stmt *row, int first)
{
    struct columns columns;
    for (int place = 0; place < CELL_COLUMN_COUNT; place++)
        columns.values[place] = sqlite3_column_value(row, first + place);
    return columns;
}

static int type_of(const struct columns *columns, int place)
{
    return sqlite3_value_type(columns->values[place]);
}

static int64_t integer_of(const struct columns *columns, int place)
{
    return sqlite3_value_int64(columns->values[place]);
}

static double real_of(const struct columns *columns, int place)
{
    return sqlite3_value_double(columns->values[place]);
}

static uint32_t checksum_of_row(const struct cell_key *key, const struct columns *row)
{
    struct summed summed = {.size = 0};
    put_key(&summed, key);
    for (int place = PLACE_COUNT; place < PLACE_SKETCH; place++) {
        const int type = type_of(row, place);
        if (type == SQLITE_FLOAT)
            put_real(&summed, real_of(row, place));
        else
            put_integer(&summed, type == SQLITE_INTEGER ? integer_of(row, place) : 0);
    }
    return crc32c(0, summed.bytes, summed.size);
}

// What is summed of a cell that is about to be bound: the same as of its row.
static uint32_t checksum_of_cell(const struct cell_key *key, const struct bound *bound)
{
    struct summed summed = {.size = 0};
    put_key(&summed, key);
    put_integer(&summed, bound->count);
    if (bound->is_real) {
        put_real(&summed, bound->real_sum);
        put_integer(&summed, 0);
        put_real(&summed, bound->real_min);
        put_real(&summed, bound->real_max);
    } else {
        put_integer(&summed, bound->sum);
        put_integer(&summed, bound->carry);
        put_integer(&summed, bound->min);
        put_integer(&summed, bound->max);
    }
    put_real(&summed, bound->is_derived ? bound->numerator : 0);
    put_real(&summed, bound->is_derived ? bound->denominator : 0);
    return crc32c(0, summed.bytes, summed.size);
}

static void put_checksum(unsigned char out[CHECKSUM_SIZE], uint32_t checksum)
{
    for (unsigned i = 0; i < CHECKSUM_SIZE; i++)
        out[i] = (unsigned char)(checksum >> 8 * i);
}

// ---- Reading ---------------------------------------------------------------------------

static enum status damaged(struct error *err, const char *why)
{
    return error_set(
        err, STATUS_CORRUPT,
        "store: a damaged rollup: %s (inferstat audit says whether more is; restore a backup)",
        why);
}

// The sum of `count` integers between two bounds, which it must lie between, too.
static bool sum_is_possible(wide sum, int64_t count, int64_t min, int64_t max)
{
    return min <= max && sum >= (wide)count * min && sum <= (wide)count * max;
}

static enum status add_integers(struct aggregate *into, const struct columns *row, int64_t count,
                                struct error *err)
{
    const int64_t min = integer_of(row, PLACE_MIN);
    const int64_t max = integer_of(row, PLACE_MAX);
    const wide sum =
        (wide)integer_of(row, PLACE_CARRY) * ((wide)1 << 64) + (uint64_t)integer_of(row, PLACE_SUM);
    if (!sum_is_possible(sum, count, min, max))
        return damaged(err, "its sum does not fit its values");
    if (__builtin_add_overflow(into->integers, sum, &into->integers))
        return damaged(err, "its sum is out of all bounds");
    merge_extremes(into, (double)min, (double)max);
    merge_integer_extremes(into, min, max);
    return STATUS_OK;
}

static enum status add_reals(struct aggregate *into, const struct columns *row, struct error *err)
{
    const double min = real_of(row, PLACE_MIN);
    const double max = real_of(row, PLACE_MAX);
    if (!(min <= max))
        return damaged(err, "its least value is above its largest");
    merge_extremes(into, min, max);
    real_sum_add(&into->reals, real_of(row, PLACE_SUM));
    into->has_reals = true;
    return STATUS_OK;
}

static bool types_are_sound(const struct columns *row)
{
    const int type = type_of(row, PLACE_SUM);
    const int rate = type_of(row, PLACE_NUMERATOR);
    return type_of(row, PLACE_COUNT) == SQLITE_INTEGER &&
           (type == SQLITE_INTEGER || type == SQLITE_FLOAT) &&
           type_of(row, PLACE_CARRY) == SQLITE_INTEGER && type_of(row, PLACE_MIN) == type &&
           type_of(row, PLACE_MAX) == type && (rate == SQLITE_FLOAT || rate == SQLITE_NULL) &&
           type_of(row, PLACE_DENOMINATOR) == rate && type_of(row, PLACE_SKETCH) == SQLITE_BLOB;
}

// Whether the least and the largest value are the same.
static bool is_of_one_value(const struct columns *row)
{
    if (type_of(row, PLACE_SUM) == SQLITE_INTEGER)
        return integer_of(row, PLACE_MIN) == integer_of(row, PLACE_MAX);
    return real_of(row, PLACE_MIN) >= real_of(row, PLACE_MAX);
}

static enum status add_sketch(struct sketch *into, const struct columns *row, uint64_t count,
                              const unsigned char *bytes, size_t size, struct error *err)
{
    if (size == 0) {
        if (!is_of_one_value(row))
            return damaged(err, "it has no sketch");
        sketch_add(into, real_of(row, PLACE_MIN), count);
        return STATUS_OK;
    }
    const uint64_t before = sketch_count(into);
    const enum status status = sketch_decode_once(into, bytes, size);
    if (status == STATUS_NOMEM)
        return error_set(err, status, "store: out of memory");
    if (status != STATUS_OK || sketch_count(into) - before != count)
        return damaged(err, "its sketch is none of its values");
    return STATUS_OK;
}

static bool checksum_is_right(const struct cell_key *key, const struct columns *row,
                              const unsigned char *blob, size_t size)
{
    unsigned char right[CHECKSUM_SIZE];
    if (!blob || size < CHECKSUM_SIZE)
        return false;
    put_checksum(right,
                 crc32c(checksum_of_row(key, row), blob + CHECKSUM_SIZE, size - CHECKSUM_SIZE));
    return memcmp(right, blob, CHECKSUM_SIZE) == 0;
}

enum status cell_add(struct ratio *into, const struct cell_key *key, sqlite3_stmt *stmt, int first,
                     struct error *err)
{
    struct aggregate *values = &into->values;
    const struct columns columns = columns_of(stmt, first), *row = &columns;
    if (!types_are_sound(row))
        return damaged(err, "a column of the wrong type");
    const int64_t count = integer_of(row, PLACE_COUNT);
    const unsigned char *blob = sqlite3_value_blob(row->values[PLACE_SKETCH]);
    const size_t size = (size_t)sqlite3_value_bytes(row->values[PLACE_SKETCH]);
    if (!checksum_is_right(key, row, blob, size))
        return damaged(err, "its checksum is wrong");
    if (count <= 0 || values->count > (uint64_t)(INT64_MAX - count))
        return damaged(err, "an impossible count");
    enum status status = type_of(row, PLACE_SUM) == SQLITE_INTEGER
                             ? add_integers(values, row, count, err)
                             : add_reals(values, row, err);
    if (status == STATUS_OK && values->sketch)
        status = add_sketch(values->sketch, row, (uint64_t)count, blob + CHECKSUM_SIZE,
                            size - CHECKSUM_SIZE, err);
    if (status != STATUS_OK)
        return status;
    values->count += (uint64_t)count;
    if (type_of(row, PLACE_NUMERATOR) == SQLITE_FLOAT) {
        real_sum_add(&into->numerator, real_of(row, PLACE_NUMERATOR));
        real_sum_add(&into->denominator, real_of(row, PLACE_DENOMINATOR));
    }
    return STATUS_OK;
}

// ---- Writing ---------------------------------------------------------------------------

// Usual sketches are a few hundred bytes; the largest has all buckets of both signs.
enum { USUAL_SIZE = 4096, SIZE_MAX_EVER = 64 + 2 * SKETCH_BUCKETS * 11 };

// Binds the checksum and, where there is one, the sketch behind it.
static enum status bind_sketch(sqlite3_stmt *stmt, int place, uint32_t checksum,
                               const struct sketch *sketch, struct error *err)
{
    unsigned char usual[USUAL_SIZE];
    unsigned char *large = NULL;
    unsigned char *bytes = usual;
    size_t size =
        sketch ? sketch_encode_whole(sketch, usual + CHECKSUM_SIZE, USUAL_SIZE - CHECKSUM_SIZE) : 0;
    if (sketch && size == 0) {
        bytes = large = malloc(CHECKSUM_SIZE + SIZE_MAX_EVER);
        size = large ? sketch_encode_whole(sketch, large + CHECKSUM_SIZE, SIZE_MAX_EVER) : 0;
    }
    enum status status = STATUS_OK;
    if (sketch && size == 0)
        status = error_no_memory(err, "store");
    if (status == STATUS_OK) {
        put_checksum(bytes, crc32c(checksum, bytes + CHECKSUM_SIZE, size));
        if (sqlite3_bind_blob64(stmt, place, bytes, CHECKSUM_SIZE + size, SQLITE_TRANSIENT) !=
            SQLITE_OK)
            status = error_no_memory(err, "store");
    }
    free(large);
    return status;
}

// A sum beyond what doubles hold is infinite, never "not a number", which SQLite
// takes for null; and zero has no sign, which SQLite does not always keep.
static double number(double value)
{
    return isnan(value) ? (double)INFINITY : value + 0.0;
}

static struct bound bound_of(const struct ratio *cell, bool derived)
{
    const struct aggregate *values = &cell->values;
    return (struct bound){
        .is_real = values->has_reals,
        .is_derived = derived,
        .count = (int64_t)values->count,
        .sum = (int64_t)(uint64_t)values->integers,
        .carry = (int64_t)(values->integers >> 64),
        .min = values->min_integer,
        .max = values->max_integer,
        .real_sum = number((double)values->integers + real_sum_total(&values->reals)),
        .real_min = values->min,
        .real_max = values->max,
        .numerator = number(real_sum_total(&cell->numerator)),
        .denominator = number(real_sum_total(&cell->denominator)),
    };
}

static void bind_numbers(sqlite3_stmt *stmt, int first, const struct bound *bound)
{
    (void)sqlite3_bind_int64(stmt, first + PLACE_COUNT, bound->count);
    if (bound->is_real) {
        (void)sqlite3_bind_double(stmt, first + PLACE_SUM, bound->real_sum);
        (void)sqlite3_bind_int64(stmt, first + PLACE_CARRY, 0);
        (void)sqlite3_bind_double(stmt, first + PLACE_MIN, bound->real_min);
        (void)sqlite3_bind_double(stmt, first + PLACE_MAX, bound->real_max);
    } else {
        (void)sqlite3_bind_int64(stmt, first + PLACE_SUM, bound->sum);
        (void)sqlite3_bind_int64(stmt, first + PLACE_CARRY, bound->carry);
        (void)sqlite3_bind_int64(stmt, first + PLACE_MIN, bound->min);
        (void)sqlite3_bind_int64(stmt, first + PLACE_MAX, bound->max);
    }
    if (bound->is_derived) {
        (void)sqlite3_bind_double(stmt, first + PLACE_NUMERATOR, bound->numerator);
        (void)sqlite3_bind_double(stmt, first + PLACE_DENOMINATOR, bound->denominator);
    } else {
        (void)sqlite3_bind_null(stmt, first + PLACE_NUMERATOR);
        (void)sqlite3_bind_null(stmt, first + PLACE_DENOMINATOR);
    }
}

enum status cell_bind(sqlite3_stmt *stmt, int first, const struct cell_key *key,
                      const struct ratio *cell, bool derived, struct error *err)
{
    const struct aggregate *values = &cell->values;
    assert(values->count > 0 && values->sketch);
    const struct bound bound = bound_of(cell, derived);
    bind_numbers(stmt, first, &bound);
    const bool one_value =
        bound.is_real ? !(values->min < values->max) : values->min_integer == values->max_integer;
    return bind_sketch(stmt, first + PLACE_SKETCH, checksum_of_cell(key, &bound),
                       one_value ? NULL : values->sketch, err);
}
