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
    {1, SEAL_NEXT, SEAL_NONE, SEAL_NONE, SEAL_NONE, SEAL_NONE},
    {5, SEAL_SAME_NEXT, SEAL_NONE, SEAL_NONE, SEAL_NONE, SEAL_NONE},
    {6, SEAL_SEEN, SEAL_NONE, 4, 0, SEAL_NONE},
    {7, SEAL_RATE, 6, 2, 4, 5},
    {3, SEAL_BATCH, 2, SEAL_NONE, SEAL_NONE, 0},
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

// How each guess does on rows that are made for it: `column` of `rows`, by no other one.
static size_t size_by(const struct table *table, const struct seal_guess *guess)
{
    struct seal_writer *writer = NULL;
    struct seal_reader *reader = NULL;
    bool is_done = false;
    size_t size = 0;
    assert_int_equal(seal_writer_new(&writer, &table->rows, guess, guess != NULL), STATUS_OK);
    while (!is_done)
        assert_int_equal(seal_writer_step(writer, &is_done), STATUS_OK);
    const void *bytes = seal_writer_bytes(writer, &size);
    assert_int_equal(seal_reader_new(&reader, bytes, size), STATUS_OK);
    for (unsigned c = 0; c < COLUMNS; c++) {
        struct seal_column column;
        const int place = seal_reader_find(reader, names[c]);
        assert_true(place >= 0);
        assert_int_equal(seal_reader_column(reader, (unsigned)place, &column), STATUS_OK);
        for (uint32_t row = 0; row < table->rows.count; row++)
            assert_true(column.values[row] == table->rows.values[c][row]);
    }
    seal_reader_free(reader);
    seal_writer_free(writer);
    return size;
}

// Rows of fleets that report now and then: batches, each of a run, that arrive as a whole
// some time after the last of them ended; gaps that are the decoding over its tokens.
static void fill_batches(struct table *table)
{
    int64_t at = 0, arrived = 0;
    for (uint32_t row = table->rows.count; row-- > 0;) {
        const bool is_new = row + 1 == table->rows.count || pick(3) == 0;
        const int64_t run = is_new ? pick(50) : table->rows.values[0][row + 1];
        at -= pick(1000000000);
        const int64_t tokens = 2 + pick(500), whole = 100000000 + pick(1000000000);
        if (is_new)
            arrived = at + whole + 50000000;
        const int64_t values[COLUMNS] = {run,     row,    at,    arrived - at,
                                         run % 7, tokens, whole, whole * 8 / 5 / (tokens - 1)};
        for (unsigned c = 0; c < COLUMNS; c++)
            table->rows.values[c][row] = values[c];
    }
}

static void test_guesses_pay(void **state)
{
    (void)state;
    static const struct {
        struct seal_guess guess;
        double bits; // a row that it saves
    } cases[] = {
        {{1, SEAL_NEXT, SEAL_NONE, SEAL_NONE, SEAL_NONE, SEAL_NONE}, -0.05},
        {{3, SEAL_BATCH, 2, 6, SEAL_NONE, 0}, 15},
        {{7, SEAL_RATE, SEAL_NONE, 6, SEAL_NONE, 5}, 20},
    };
    struct table table;
    make_table(&table, 6000);
    fill_batches(&table);
    table.rows.behind = 3;
    const size_t before = size_by(&table, NULL);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const double saved = ((double)before - (double)size_by(&table, &cases[i].guess)) * 8 / 6000;
        assert_true(saved >= cases[i].bits);
    }
    // Host memory goes by the model, wherever that runs.
    static const struct seal_guess seen = {7, SEAL_SEEN, SEAL_NONE, 4, SEAL_NONE, SEAL_NONE};
    for (uint32_t row = 0; row < 6000; row++) {
        table.rows.values[4][row] = pick(7);
        table.rows.values[7][row] = INT64_C(987654321) << table.rows.values[4][row];
    }
    const size_t unseen = size_by(&table, NULL);
    assert_in_range(size_by(&table, &seen), 1, unseen - 6000);
    drop_table(&table);
}

// The column that stands behind all others is found by its name, as ever.
static void test_behind(void **state)
{
    (void)state;
    struct table table;
    struct seal_reader *reader = NULL;
    size_t size = 0;
    make_table(&table, 100);
    fill_batches(&table);
    table.rows.behind = 3;
    struct seal_writer *writer = encode(&table);
    const void *bytes = seal_writer_bytes(writer, &size);
    assert_int_equal(seal_reader_new(&reader, bytes, size), STATUS_OK);
    assert_int_equal(seal_reader_find(reader, "after"), COLUMNS - 1);
    assert_int_equal(seal_reader_find(reader, "model"), 3);
    assert_int_equal(seal_reader_find(reader, "run"), 0);
    seal_reader_free(reader);
    seal_writer_free(writer);
    drop_table(&table);
}

// ---- The first format -----------------------------------------------------------------

enum { FIRST_ROWS = 48 };

static uint64_t mixed(uint64_t value)
{
    value = (value ^ value >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    return value ^ value >> 29;
}

static int64_t first_value(unsigned column, uint32_t row)
{
    const int64_t chance = (int64_t)(mixed(row + 1) >> 44);
    const int64_t started = row * INT64_C(1000000) + chance % 1000;
    const int64_t prompt = 1 + chance % 700;
    const int64_t model = 1 + row / 4 % 3;
    const int64_t first = 3000000 + 25000 * model * prompt;
    switch (column) {
    case 0:
        return 1 + row % 5;
    case 1:
        return 100 + row;
    case 2:
        return started;
    case 3:
        return (row / 8 + 1) * INT64_C(8000000) - started;
    case 4:
        return model;
    case 5:
        return prompt;
    case 6:
        return row == FIRST_ROWS - 1 ? INT64_MIN : first + chance % 7;
    default:
        return row % 11 ? (first + chance % 7 - prompt) / (model > 1 ? model - 1 : 1) + chance % 5
                        : -chance;
    }
}

// What the first writer made of those rows: without the sixth column's value in each ninth
// row, by the row before, the last one of the same run, arrivals and lines.
static const unsigned char first_bytes[] = {
    0x01, 0x30, 0x08, 0x04, 0x03, 0x72, 0x75, 0x6e, 0x02, 0x69, 0x64, 0x07, 0x73, 0x74, 0x61, 0x72,
    0x74, 0x65, 0x64, 0x05, 0x61, 0x66, 0x74, 0x65, 0x72, 0x05, 0x6d, 0x6f, 0x64, 0x65, 0x6c, 0x06,
    0x70, 0x72, 0x6f, 0x6d, 0x70, 0x74, 0x05, 0x66, 0x69, 0x72, 0x73, 0x74, 0x05, 0x77, 0x68, 0x6f,
    0x6c, 0x65, 0x23, 0x00, 0x01, 0x1f, 0x00, 0x02, 0x01, 0x82, 0x84, 0xab, 0x08, 0x49, 0x5d, 0x34,
    0xc5, 0x0b, 0x33, 0xd7, 0xa9, 0xbd, 0x17, 0x58, 0x46, 0xed, 0xa3, 0xa2, 0x43, 0x33, 0xe4, 0x34,
    0xeb, 0x85, 0xac, 0xb7, 0xa8, 0xc1, 0x1f, 0x00, 0x01, 0x1a, 0x01, 0x0e, 0x80, 0x00, 0x9b, 0x36,
    0x10, 0x01, 0x88, 0xdd, 0xce, 0x0c, 0x5e, 0x57, 0x76, 0xdf, 0xa7, 0x1e, 0x6e, 0x07, 0xf0, 0x02,
    0x96, 0xad, 0xdd, 0x1b, 0xb3, 0x40, 0x88, 0x01, 0x00, 0x01, 0x1f, 0x65, 0x0c, 0x89, 0xb2, 0xb3,
    0x01, 0xa8, 0xba, 0x44, 0x9b, 0x14, 0xd6, 0x3b, 0xc1, 0xec, 0xe4, 0x5a, 0xf5, 0x81, 0x62, 0x44,
    0x0b, 0x94, 0x2c, 0x61, 0x36, 0x85, 0x60, 0x66, 0xe4, 0x37, 0x76, 0xf4, 0x42, 0x0a, 0x13, 0xbd,
    0x00, 0xe2, 0x88, 0x41, 0x42, 0x77, 0xa0, 0x1c, 0x50, 0x9d, 0xe8, 0x84, 0x14, 0x03, 0x8a, 0x13,
    0xbd, 0x10, 0x82, 0x80, 0x6f, 0x42, 0x78, 0xa2, 0x10, 0x50, 0x9d, 0xe8, 0x07, 0x14, 0x41, 0xfa,
    0x13, 0xc5, 0x00, 0xe2, 0x84, 0xef, 0x44, 0x20, 0xa0, 0x1b, 0xd0, 0x9e, 0x28, 0x84, 0x14, 0x03,
    0x7a, 0x13, 0xc5, 0x10, 0x82, 0x84, 0xef, 0x40, 0x38, 0xa2, 0x0f, 0xd0, 0x9e, 0x28, 0x07, 0x14,
    0x41, 0xfa, 0x13, 0xc5, 0x00, 0xde, 0x84, 0xf1, 0x44, 0x20, 0xa0, 0x1b, 0xd0, 0x9e, 0x28, 0x83,
    0xf4, 0x27, 0x8a, 0x01, 0xc5, 0x10, 0x7e, 0x84, 0xf1, 0x40, 0x37, 0xa2, 0x10, 0x50, 0x9e, 0x00,
    0x34, 0x00, 0x03, 0x02, 0xff, 0xff, 0xff, 0x1d, 0x0f, 0x2e, 0xbf, 0x80, 0x00, 0x00, 0x00, 0x01,
    0x9a, 0xd9, 0xbd, 0x00, 0x00, 0x3b, 0x85, 0xcc, 0xe0, 0x2f, 0x28, 0x66, 0x55, 0xd4, 0x04, 0xea,
    0x3f, 0x24, 0xd8, 0x0c, 0xdb, 0x93, 0xa1, 0x1c, 0x9a, 0x12, 0x00, 0xa1, 0x20, 0x0a, 0x12, 0x00,
    0xa1, 0x20, 0x0a, 0x12, 0x00, 0x23, 0x00, 0x01, 0x1f, 0x00, 0x01, 0xff, 0x80, 0x00, 0x3a, 0x4d,
    0xba, 0x64, 0x0e, 0x80, 0x43, 0xf8, 0x5a, 0x68, 0x66, 0x20, 0xa5, 0xf0, 0x6c, 0x00, 0xd8, 0x04,
    0xce, 0xdc, 0x31, 0x02, 0x29, 0x42, 0xa8, 0x46, 0xdc, 0x42, 0x01, 0x02, 0x2a, 0x14, 0x0a, 0x00,
    0x85, 0x84, 0x13, 0x0e, 0xf1, 0x5a, 0x79, 0x08, 0x8c, 0x04, 0xea, 0xcd, 0x02, 0x73, 0xce, 0x25,
    0x9b, 0x32, 0xa3, 0x51, 0x12, 0x92, 0x83, 0x9b, 0xed, 0xf4, 0x54, 0xdd, 0x24, 0x6f, 0xe6, 0x8c,
    0x89, 0x3f, 0xd8, 0x8a, 0xa9, 0x83, 0x89, 0xba, 0x59, 0x11, 0x84, 0x92, 0x84, 0xa9, 0x0a, 0x49,
    0x12, 0x49, 0x52, 0x54, 0x92, 0xa4, 0xac, 0x24, 0x90, 0xa4, 0x92, 0x90, 0xd3, 0x01, 0x00, 0x04,
    0xff, 0x05, 0xff, 0xff, 0x03, 0xc4, 0xd6, 0x86, 0x80, 0xad, 0x01, 0xa0, 0xe4, 0xbc, 0xff, 0xa7,
    0x8b, 0x02, 0xee, 0xa8, 0xf9, 0xaf, 0xce, 0x02, 0xbc, 0xd8, 0xa7, 0xeb, 0xfa, 0xfc, 0x02, 0x00,
    0x00, 0x38, 0x76, 0x24, 0x89, 0x50, 0x03, 0x7c, 0xdb, 0x09, 0x27, 0xe8, 0x83, 0xd8, 0xf7, 0x7f,
    0xbd, 0xdd, 0xff, 0xc5, 0x29, 0xbb, 0x5f, 0xbf, 0xa1, 0x0e, 0x88, 0x93, 0x86, 0x11, 0x4f, 0x1c,
    0x0c, 0xc8, 0xd2, 0x03, 0x60, 0xda, 0x8f, 0x47, 0x34, 0x8b, 0xfe, 0x27, 0xb0, 0xc4, 0x8a, 0xbc,
    0x8d, 0xf5, 0xdf, 0xb4, 0xc7, 0x9b, 0x85, 0xeb, 0xab, 0x56, 0x5e, 0x5b, 0x0c, 0x34, 0xd4, 0xbd,
    0xa9, 0x99, 0x8e, 0x46, 0xdd, 0x23, 0xa6, 0xfb, 0x8c, 0x3f, 0xfe, 0xd5, 0x58, 0x6d, 0x85, 0x72,
    0x68, 0xe4, 0x12, 0x21, 0x32, 0xe0, 0x3e, 0xef, 0x84, 0xa7, 0x3a, 0x78, 0xac, 0x32, 0x92, 0xdd,
    0x56, 0xef, 0xc7, 0x8c, 0x9d, 0xb6, 0x17, 0xdd, 0xdd, 0x06, 0x0b, 0x3d, 0xcb, 0xec, 0x96, 0xad,
    0x65, 0xa2, 0xe0, 0xe8, 0x85, 0x8b, 0xcd, 0xaf, 0xa6, 0x74, 0x61, 0xaf, 0xa8, 0xc9, 0xec, 0xd8,
    0x0f, 0x3f, 0xed, 0x7b, 0xae, 0xe1, 0xb2, 0x21, 0x26, 0x7e, 0xed, 0x91, 0xa7, 0xec, 0xaa, 0x9b,
    0xa7, 0xf1, 0x5c, 0xcb, 0x44, 0x9d, 0x59, 0x0a, 0x36, 0xd4, 0x2d, 0x17, 0xb4, 0xa9, 0xf3, 0xed,
    0x31, 0xe7, 0xaa, 0x9d, 0xb9, 0xc1, 0xe1, 0xa3, 0x60, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0xaa, 0x01, 0x00, 0x04, 0xff, 0x06, 0x05, 0x04, 0x03, 0x00, 0x80, 0x80, 0x90, 0xeb, 0xef,
    0x8c, 0x05, 0x82, 0x80, 0x80, 0x01, 0xab, 0xf5, 0xe1, 0x27, 0x00, 0x80, 0x80, 0xe8, 0xbc, 0xdc,
    0xe4, 0x04, 0x37, 0x52, 0x31, 0x4b, 0x2d, 0x10, 0xfd, 0x14, 0xa5, 0x30, 0x48, 0x7d, 0xf0, 0xb3,
    0x7d, 0x77, 0x86, 0x18, 0x43, 0x6f, 0x0c, 0x3d, 0x8b, 0x84, 0x2b, 0x0f, 0x5d, 0x50, 0xde, 0xa4,
    0x5e, 0x70, 0x73, 0x25, 0x43, 0x3e, 0x95, 0x09, 0xfb, 0x1d, 0x26, 0x7b, 0xd7, 0x93, 0x8e, 0xd1,
    0x97, 0x2c, 0xf9, 0x01, 0xb6, 0xb0, 0xe0, 0x35, 0x84, 0x2b, 0x27, 0x68, 0xdb, 0x10, 0xdf, 0x42,
    0x70, 0x53, 0x86, 0xd3, 0x88, 0xd6, 0x3e, 0x88, 0x02, 0x3a, 0x88, 0xce, 0xff, 0x5f, 0x60, 0x6e,
    0x49, 0x84, 0x57, 0x9e, 0xbd, 0x39, 0x93, 0x9e, 0x7b, 0x23, 0xfd, 0x64, 0xcf, 0xfb, 0xf2, 0x77,
    0xec, 0x7f, 0x88, 0x1b, 0x26, 0x93, 0xda, 0x56, 0x81, 0xe2, 0xe9, 0x3b, 0x0a, 0x38, 0xf1, 0x72,
    0x96, 0x59, 0x07, 0xda, 0x31, 0xdd, 0x01, 0xe4, 0xa3, 0x10, 0x44, 0xda, 0x5d, 0x39, 0xb2, 0xb8,
    0x56, 0xde, 0x52, 0x62, 0xa4, 0x35, 0x10, 0xb4, 0x21, 0x87, 0xc8, 0x70, 0x50};

static void test_first_format(void **state)
{
    (void)state;
    struct seal_reader *reader = NULL;
    assert_int_equal(first_bytes[0], SEAL_FORMAT_FIRST);
    assert_int_equal(seal_reader_new(&reader, first_bytes, sizeof first_bytes), STATUS_OK);
    assert_int_equal(seal_reader_count(reader), FIRST_ROWS);
    for (unsigned c = 0; c < COLUMNS; c++) {
        struct seal_column column;
        const int place = seal_reader_find(reader, names[c]);
        assert_int_equal(place, c);
        assert_int_equal(seal_reader_column(reader, (unsigned)place, &column), STATUS_OK);
        for (uint32_t row = 0; row < FIRST_ROWS; row++) {
            const bool is_absent = c == 5 && row % 9 == 4;
            assert_int_equal(column.is_absent && column.is_absent[row], is_absent);
            assert_true(is_absent || column.values[row] == first_value(c, row));
        }
    }
    seal_reader_free(reader);
}

// ---- Damage ---------------------------------------------------------------------------

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

static void damage(const unsigned char *bytes, size_t size)
{
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
}

static void test_damage(void **state)
{
    (void)state;
    struct table table;
    size_t size = 0;
    for (unsigned i = 0; i < 8; i++) {
        make_table(&table, 200);
        if (i % 2)
            fill_batches(&table);
        else
            fill(&table);
        struct seal_writer *writer = encode(&table);
        const unsigned char *bytes = seal_writer_bytes(writer, &size);
        damage(bytes, size);
        seal_writer_free(writer);
        drop_table(&table);
    }
}

static void test_first_damage(void **state)
{
    (void)state;
    damage(first_bytes, sizeof first_bytes);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        unsigned char bytes[12];
        size_t size;
        enum status status;
    } cases[] = {
        {{0}, 0, STATUS_CORRUPT},
        {{SEAL_FORMAT + 1, 1, 1, 0}, 4, STATUS_UNSUPPORTED},
        {{0, 1, 1, 0}, 4, STATUS_UNSUPPORTED},
        {{SEAL_FORMAT, 0, 1, 0}, 4, STATUS_CORRUPT},                // no rows
        {{SEAL_FORMAT, 0x81, 0x80, 0x01, 1, 0}, 6, STATUS_CORRUPT}, // too many
        {{SEAL_FORMAT, 1, 65, 0}, 4, STATUS_CORRUPT},               // too many columns
        {{SEAL_FORMAT, 1, 1, 1}, 4, STATUS_CORRUPT},                // no such group
        {{SEAL_FORMAT, 1, 1, 0, 64}, 5, STATUS_CORRUPT},            // too long a name
        {{SEAL_FORMAT, 1, 1, 0, 0, 9}, 6, STATUS_CORRUPT},          // ends too soon
        {{SEAL_FORMAT, 1, 1, 0, 0, 2, 2, SEAL_WAYS}, 8, STATUS_CORRUPT},
        {{SEAL_FORMAT, 1, 1, 0, 0, 2, 2, SEAL_SAME}, 8, STATUS_CORRUPT},
        {{SEAL_FORMAT, 1, 1, 0, 0, 6, 2, SEAL_SAME_NEXT, 255, 255, 255, 255}, 12, STATUS_CORRUPT},
        {{SEAL_FORMAT, 1, 1, 0, 0, 6, 2, SEAL_SEEN, 255, 0, 255, 255}, 12, STATUS_CORRUPT},
        {{SEAL_FORMAT, 1, 1, 0, 0, 6, 2, SEAL_RATE, 255, 255, 255, 255}, 12, STATUS_CORRUPT},
        {{SEAL_FORMAT_FIRST, 1, 1, 0, 0, 6, 2, SEAL_SEEN, 255, 255, 255, 255}, 12, STATUS_CORRUPT},
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
        cmocka_unit_test(test_guesses_pay),
        cmocka_unit_test(test_behind),
        cmocka_unit_test(test_first_format),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_first_damage),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
