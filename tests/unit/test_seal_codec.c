// Rows of integers into few bytes and back, bit for bit; and bytes that are wrong.
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "common/store/seal_codec.h"

enum { COLUMNS = 8, ROUNDS = 60, FLIPS = 400 };

static uint64_t seed = 11;

static int64_t pick(int64_t room)
{
    return (int64_t)(test_random(&seed) % (uint64_t)room);
}

struct table {
    struct seal_rows rows;
    unsigned char *absent[COLUMNS];
};

static const char *const names[COLUMNS] = {"run",   "id",     "started", "after",
                                           "model", "prompt", "first",   "whole"};

static const struct seal_guess guesses[] = {
    {3, SEAL_ARRIVAL, 2, SEAL_NONE, SEAL_NONE, SEAL_NONE},
    {6, SEAL_LINE, SEAL_NONE, 5, SEAL_NONE, SEAL_NONE},
    {7, SEAL_LINE, 6, 5, 4, SEAL_NONE},
    {7, SEAL_LINE, SEAL_NONE, 6, 5, 4},
};

static void make_table(struct table *table, uint32_t count)
{
    *table = (struct table){.rows = {.count = count, .columns = COLUMNS, .group = 4}};
    for (unsigned i = 0; i < COLUMNS; i++) {
        table->rows.names[i] = names[i];
        table->rows.values[i] = calloc(count, sizeof(int64_t));
        table->absent[i] = calloc(count, 1);
        assert_non_null(table->rows.values[i]);
        assert_non_null(table->absent[i]);
    }
}

static void drop_table(struct table *table)
{
    for (unsigned i = 0; i < COLUMNS; i++) {
        free(table->rows.values[i]);
        free(table->absent[i]);
    }
}

// Of a column: constants, steps, lines, noise, the ends of 64 bits.
static int64_t pick_value(unsigned sort, uint32_t row, int64_t before)
{
    static const int64_t ends[] = {INT64_MIN, INT64_MAX, 0, -1, 1, INT64_MIN + 1};
    switch (sort) {
    case 0:
        return 7;
    case 1:
        return (int64_t)row + 1000;
    case 2:
        return (int64_t)(3 * (uint64_t)before + 11);
    case 3:
        return pick(100000) - 50000;
    case 4:
        return ends[pick(COUNT_OF(ends))];
    case 5:
        return pick(5);
    default:
        return (int64_t)(test_random(&seed) >> pick(64));
    }
}

static void fill(struct table *table)
{
    for (unsigned c = 0; c < COLUMNS; c++) {
        const unsigned sort = (unsigned)pick(7);
        const bool has_absent = pick(3) == 0;
        for (uint32_t row = 0; row < table->rows.count; row++) {
            const int64_t before = c ? table->rows.values[c - 1][row] : (int64_t)row;
            table->rows.values[c][row] = pick_value(sort, row, before);
            table->absent[c][row] = has_absent && pick(4) == 0;
            if (table->absent[c][row])
                table->rows.is_absent[c] = table->absent[c];
        }
    }
}

static struct seal_writer *encode(const struct table *table)
{
    struct seal_writer *writer = NULL;
    bool is_done = false;
    assert_int_equal(seal_writer_new(&writer, &table->rows, guesses, COUNT_OF(guesses)), STATUS_OK);
    while (!is_done)
        assert_int_equal(seal_writer_step(writer, &is_done), STATUS_OK);
    return writer;
}

static void check_column(const struct table *table, struct seal_reader *reader, unsigned c)
{
    struct seal_column column;
    const int place = seal_reader_find(reader, names[c]);
    assert_int_equal(place, c);
    assert_int_equal(seal_reader_column(reader, (unsigned)place, &column), STATUS_OK);
    for (uint32_t row = 0; row < table->rows.count; row++) {
        const bool is_absent = table->absent[c][row];
        assert_int_equal(column.is_absent && column.is_absent[row], is_absent);
        if (!is_absent)
            assert_true(column.values[row] == table->rows.values[c][row]);
    }
}

// In any order of the columns.
static void test_round_trip(void **state)
{
    (void)state;
    static const uint32_t counts[] = {1, 2, 17, 300, 2000};
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct table table;
        struct seal_reader *reader = NULL;
        size_t size = 0;
        make_table(&table, counts[round % COUNT_OF(counts)]);
        fill(&table);
        struct seal_writer *writer = encode(&table);
        const void *bytes = seal_writer_bytes(writer, &size);
        assert_int_equal(seal_reader_new(&reader, bytes, size), STATUS_OK);
        assert_int_equal(seal_reader_count(reader), table.rows.count);
        for (unsigned c = 0; c < COLUMNS; c++)
            check_column(&table, reader, round % 2 ? COLUMNS - 1 - c : c);
        assert_int_equal(seal_reader_find(reader, "other"), -1);
        seal_reader_free(reader);
        seal_writer_free(writer);
        drop_table(&table);
    }
}

static void test_largest(void **state)
{
    (void)state;
    struct table table;
    struct seal_reader *reader = NULL;
    size_t size = 0;
    make_table(&table, SEAL_ROWS_MAX);
    fill(&table);
    for (uint32_t row = 0; row < SEAL_ROWS_MAX; row++) // each its own
        table.rows.values[0][row] = (int64_t)row * 1000003;
    table.rows.is_absent[0] = NULL;
    memset(table.absent[0], 0, SEAL_ROWS_MAX);
    struct seal_writer *writer = encode(&table);
    const void *bytes = seal_writer_bytes(writer, &size);
    assert_int_equal(seal_reader_new(&reader, bytes, size), STATUS_OK);
    for (unsigned c = 0; c < COLUMNS; c++)
        check_column(&table, reader, c);
    seal_reader_free(reader);
    seal_writer_free(writer);
    drop_table(&table);
}

// What lies on a line, or comes in steps, takes next to nothing.
static void test_what_is_known_is_free(void **state)
{
    (void)state;
    struct table table;
    size_t size = 0;
    make_table(&table, 4096);
    for (uint32_t row = 0; row < 4096; row++) {
        const int64_t values[COLUMNS] = {row / 512,
                                         row + 1,
                                         row * INT64_C(2),
                                         5000 - (row % 64) * INT64_C(2),
                                         row / 1024,
                                         pick(1000),
                                         0,
                                         0};
        for (unsigned c = 0; c < COLUMNS; c++)
            table.rows.values[c][row] = values[c];
        table.rows.values[6][row] = 3000000 + 25000 * (1 + values[4]) * values[5];
        table.rows.values[7][row] = table.rows.values[6][row];
    }
    struct seal_writer *writer = encode(&table);
    (void)seal_writer_bytes(writer, &size);
    // Ten bits a row for what is left to chance, and the heads of eight columns.
    assert_in_range(size, 1, 4096 * 11 / 8 + 600);
    seal_writer_free(writer);
    drop_table(&table);
}

// Whatever the bytes are, there are rows or a refusal.
static void read_all(const void *bytes, size_t size)
{
    struct seal_reader *reader = NULL;
    if (seal_reader_new(&reader, bytes, size) != STATUS_OK)
        return;
    for (unsigned c = 0; c < COLUMNS; c++) {
        struct seal_column column;
        const int place = seal_reader_find(reader, names[c]);
        if (place >= 0 && seal_reader_column(reader, (unsigned)place, &column) == STATUS_OK)
            assert_non_null(column.values);
    }
    seal_reader_free(reader);
}

static void test_damage(void **state)
{
    (void)state;
    struct table table;
    size_t size = 0;
    make_table(&table, 200);
    fill(&table);
    struct seal_writer *writer = encode(&table);
    const unsigned char *bytes = seal_writer_bytes(writer, &size);
    unsigned char *copy = malloc(size);
    assert_non_null(copy);
    for (unsigned i = 0; i < FLIPS; i++) {
        memcpy(copy, bytes, size);
        for (int64_t flips = 1 + pick(3); flips > 0; flips--)
            copy[pick((int64_t)size)] ^= (unsigned char)(1U << pick(8));
        read_all(copy, size);
    }
    free(copy);
    for (size_t part = 0; part < size; part += 7) {
        copy = malloc(part + 1); // so that reading behind the end is seen
        assert_non_null(copy);
        memcpy(copy, bytes, part);
        read_all(copy, part);
        free(copy);
    }
    seal_writer_free(writer);
    drop_table(&table);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        unsigned char bytes[8];
        size_t size;
        enum status status;
    } cases[] = {
        {{0}, 0, STATUS_CORRUPT},
        {{SEAL_FORMAT + 1, 1, 1, 0}, 4, STATUS_UNSUPPORTED},
        {{SEAL_FORMAT, 0, 1, 0}, 4, STATUS_CORRUPT},                // no rows
        {{SEAL_FORMAT, 0x81, 0x80, 0x01, 1, 0}, 6, STATUS_CORRUPT}, // too many
        {{SEAL_FORMAT, 1, 65, 0}, 4, STATUS_CORRUPT},               // too many columns
        {{SEAL_FORMAT, 1, 1, 1}, 4, STATUS_CORRUPT},                // no such group
        {{SEAL_FORMAT, 1, 1, 0, 64}, 5, STATUS_CORRUPT},            // too long a name
        {{SEAL_FORMAT, 1, 1, 0, 0, 9}, 6, STATUS_CORRUPT},          // ends too soon
        {{SEAL_FORMAT, 1, 1, 0, 0, 2, 2, SEAL_WAYS}, 8, STATUS_CORRUPT},
        {{SEAL_FORMAT, 1, 1, 0, 0, 2, 2, SEAL_SAME}, 8, STATUS_CORRUPT},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct seal_reader *reader = NULL;
        assert_int_equal(seal_reader_new(&reader, cases[i].bytes, cases[i].size), cases[i].status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_largest),
        cmocka_unit_test(test_what_is_known_is_free),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
