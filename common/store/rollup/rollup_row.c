#include "common/store/rollup/rollup_row.h"

#include <assert.h>
#include <endian.h>
#include <math.h>
#include <stdlib.h>

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

_Static_assert(PLACE_SKETCH + 1 == ROLLUP_ROW_COLUMN_COUNT, "a place for each column");

__extension__ typedef __int128 wide;

// A column before the sketch; of null the integer is 0.
struct number {
    int type; // SQLITE_INTEGER, SQLITE_FLOAT or SQLITE_NULL
    union {
        int64_t integer;
        double real;
    };
};

_Static_assert(sizeof(double) == sizeof(int64_t), "reals have the bits of an integer");

// ---- The checksum ----------------------------------------------------------------------

enum { CHECKSUM_SIZE = 4 };

// Of the key and the numbers before the sketch: integers as they are, reals by their bits, which
// are the same on every machine.
static uint32_t checksum_of(const struct rollup_row_key *key,
                            const struct number numbers[PLACE_SKETCH])
{
    const int64_t keys[] = {key->metric, (int64_t)key->grouping, (int64_t)key->level,
                            key->started_ns, key->series};
    enum { KEYS = sizeof keys / sizeof *keys };
    uint64_t words[KEYS + PLACE_SKETCH];
    for (int i = 0; i < KEYS; i++)
        words[i] = htole64((uint64_t)keys[i]);
    for (int place = PLACE_COUNT; place < PLACE_SKETCH; place++)
        words[KEYS + place] = htole64((uint64_t)numbers[place].integer);
    return crc32c(0, words, sizeof words);
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

// SQLite checks the statement's state at each sqlite3_column_ call: each value is fetched once.
// The connection has no mutexes, so that values may be read in place
// (https://www.sqlite.org/c3ref/value.html, "unprotected").
static struct number number_of(sqlite3_value *value)
{
    struct number number = {.type = sqlite3_value_type(value)};
    if (number.type == SQLITE_INTEGER)
        number.integer = sqlite3_value_int64(value);
    else if (number.type == SQLITE_FLOAT)
        number.real = sqlite3_value_double(value);
    return number;
}

static bool types_are_sound(const struct number numbers[PLACE_SKETCH])
{
    const int type = numbers[PLACE_SUM].type, rate = numbers[PLACE_NUMERATOR].type;
    return numbers[PLACE_COUNT].type == SQLITE_INTEGER &&
           (type == SQLITE_INTEGER || type == SQLITE_FLOAT) &&
           numbers[PLACE_CARRY].type == SQLITE_INTEGER && numbers[PLACE_MIN].type == type &&
           numbers[PLACE_MAX].type == type && (rate == SQLITE_FLOAT || rate == SQLITE_NULL) &&
           numbers[PLACE_DENOMINATOR].type == rate;
}

static bool checksum_is_right(uint32_t numbers, const unsigned char *blob, size_t size)
{
    unsigned char right[CHECKSUM_SIZE];
    if (!blob || size < CHECKSUM_SIZE)
        return false;
    put_checksum(right, crc32c(numbers, blob + CHECKSUM_SIZE, size - CHECKSUM_SIZE));
    return memcmp(right, blob, CHECKSUM_SIZE) == 0;
}

// The cell's values without their sketch; false where no values have such a sum or extremes.
// The sum of `count` integers lies between `count` times their bounds: so sums of fewer than
// 2^63 of them never overflow.
static bool values_of(struct ratio *out, const struct number numbers[PLACE_SKETCH])
{
    struct aggregate *values = &out->values;
    const int64_t count = numbers[PLACE_COUNT].integer;
    *out = (struct ratio){.values = {.count = (uint64_t)count}};
    if (numbers[PLACE_NUMERATOR].type == SQLITE_FLOAT) {
        out->numerator.sum = numbers[PLACE_NUMERATOR].real;
        out->denominator.sum = numbers[PLACE_DENOMINATOR].real;
    }
    if (numbers[PLACE_SUM].type == SQLITE_FLOAT) {
        values->has_reals = true;
        values->reals.sum = numbers[PLACE_SUM].real;
        values->min = numbers[PLACE_MIN].real;
        values->max = numbers[PLACE_MAX].real;
        return values->min <= values->max;
    }
    values->integers =
        (wide)numbers[PLACE_CARRY].integer * ((wide)1 << 64) + (uint64_t)numbers[PLACE_SUM].integer;
    values->min_integer = numbers[PLACE_MIN].integer;
    values->max_integer = numbers[PLACE_MAX].integer;
    values->min = (double)values->min_integer;
    values->max = (double)values->max_integer;
    return values->min_integer <= values->max_integer &&
           values->integers >= (wide)count * values->min_integer &&
           values->integers <= (wide)count * values->max_integer;
}

static bool is_one_value(const struct aggregate *values)
{
    return values->has_reals ? !(values->min < values->max)
                             : values->min_integer == values->max_integer;
}

static enum status add_sketch(struct sketch *into, const struct aggregate *values, int metric,
                              const unsigned char *bytes, size_t size, struct error *err)
{
    if (size == 0) {
        if (!is_one_value(values))
            return rollup_has_sketches((enum record_kind)(metric / 256))
                       ? damaged(err, "it has no sketch")
                       : STATUS_OK;
        sketch_add(into, values->min, values->count);
        return STATUS_OK;
    }
    const uint64_t before = sketch_count(into);
    const enum status status = sketch_decode_once(into, bytes, size);
    if (status == STATUS_NOMEM)
        return error_no_memory(err, "store");
    if (status != STATUS_OK || sketch_count(into) - before != values->count)
        return damaged(err, "its sketch is none of its values");
    return STATUS_OK;
}

enum status rollup_row_add(struct ratio *into, const struct rollup_row_key *key, sqlite3_stmt *stmt,
                           int first, struct error *err)
{
    struct number numbers[PLACE_SKETCH];
    struct ratio from;
    for (int place = PLACE_COUNT; place < PLACE_SKETCH; place++)
        numbers[place] = number_of(sqlite3_column_value(stmt, first + place));
    sqlite3_value *sketch = sqlite3_column_value(stmt, first + PLACE_SKETCH);
    if (!types_are_sound(numbers) || sqlite3_value_type(sketch) != SQLITE_BLOB)
        return damaged(err, "a column of the wrong type");
    const unsigned char *blob = sqlite3_value_blob(sketch);
    const size_t size = (size_t)sqlite3_value_bytes(sketch);
    if (!checksum_is_right(checksum_of(key, numbers), blob, size))
        return damaged(err, "its checksum is wrong");
    const int64_t count = numbers[PLACE_COUNT].integer;
    if (count <= 0 || into->values.count > (uint64_t)(INT64_MAX - count))
        return damaged(err, "an impossible count");
    if (!values_of(&from, numbers))
        return damaged(err, "its sum or extremes are of no values");
    if (into->values.sketch) {
        const enum status status = add_sketch(into->values.sketch, &from.values, key->metric,
                                              blob + CHECKSUM_SIZE, size - CHECKSUM_SIZE, err);
        if (status != STATUS_OK)
            return status;
    }
    ratio_merge(into, &from);
    return STATUS_OK;
}

// ---- Writing ---------------------------------------------------------------------------

// Usual sketches are a few hundred bytes.
enum { USUAL_SIZE = 4096 };

// Binds one blob: the checksum, followed by the encoded sketch if there is one.
static enum status bind_sketch(sqlite3_stmt *stmt, int place, uint32_t checksum,
                               const struct sketch *sketch, struct error *err)
{
    unsigned char usual[USUAL_SIZE];
    unsigned char *large = NULL;
    unsigned char *bytes = usual;
    size_t size =
        sketch ? sketch_encode_whole(sketch, usual + CHECKSUM_SIZE, USUAL_SIZE - CHECKSUM_SIZE) : 0;
    if (sketch && size == 0) {
        bytes = large = malloc(CHECKSUM_SIZE + SKETCH_SIZE_MAX);
        size = large ? sketch_encode_whole(sketch, large + CHECKSUM_SIZE, SKETCH_SIZE_MAX) : 0;
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
static struct number real(double value)
{
    return (struct number){.type = SQLITE_FLOAT,
                           .real = isnan(value) ? (double)INFINITY : value + 0.0};
}

static struct number integer(int64_t value)
{
    return (struct number){.type = SQLITE_INTEGER, .integer = value};
}

static void numbers_of(struct number out[PLACE_SKETCH], const struct ratio *cell, bool derived)
{
    const struct aggregate *values = &cell->values;
    const bool reals = values->has_reals;
    out[PLACE_COUNT] = integer((int64_t)values->count);
    out[PLACE_SUM] = reals ? real((double)values->integers + real_sum_total(&values->reals))
                           : integer((int64_t)(uint64_t)values->integers);
    out[PLACE_CARRY] = integer(reals ? 0 : (int64_t)(values->integers >> 64));
    out[PLACE_MIN] = reals ? real(values->min) : integer(values->min_integer);
    out[PLACE_MAX] = reals ? real(values->max) : integer(values->max_integer);
    out[PLACE_NUMERATOR] = out[PLACE_DENOMINATOR] = (struct number){.type = SQLITE_NULL};
    if (derived) {
        out[PLACE_NUMERATOR] = real(real_sum_total(&cell->numerator));
        out[PLACE_DENOMINATOR] = real(real_sum_total(&cell->denominator));
    }
}

enum status rollup_row_bind(sqlite3_stmt *stmt, int first, const struct rollup_row_key *key,
                            const struct ratio *cell, bool derived, struct error *err)
{
    const struct aggregate *values = &cell->values;
    struct number numbers[PLACE_SKETCH];
    assert(values->count > 0);
    assert(values->sketch || !rollup_has_sketches((enum record_kind)(key->metric / 256)));
    numbers_of(numbers, cell, derived);
    for (int place = PLACE_COUNT; place < PLACE_SKETCH; place++)
        if (numbers[place].type == SQLITE_INTEGER)
            (void)sqlite3_bind_int64(stmt, first + place, numbers[place].integer);
        else if (numbers[place].type == SQLITE_FLOAT)
            (void)sqlite3_bind_double(stmt, first + place, numbers[place].real);
        else
            (void)sqlite3_bind_null(stmt, first + place);
    return bind_sketch(stmt, first + PLACE_SKETCH, checksum_of(key, numbers),
                       is_one_value(values) ? NULL : values->sketch, err);
}
