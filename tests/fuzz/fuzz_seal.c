// Sealed rows under libFuzzer: first rows made of the bytes, packed and read again; then
// the bytes themselves as a segment.
#include "common/store/seal_codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { COLUMNS = 5, ROWS = 200 };

static const char *const names[COLUMNS] = {"run", "started", "model", "x", "y"};

// The first ones are made from column 3.
enum { GUESSES_FROM_3 = 3 };

static const struct seal_guess guesses[] = {
    {4, SEAL_LINE, 1, 3, SEAL_NONE, SEAL_NONE},
    {4, SEAL_LINE, SEAL_NONE, 3, 1, 2},
    {4, SEAL_RATE, 3, 1, SEAL_NONE, 2},
    {3, SEAL_ARRIVAL, 1, SEAL_NONE, SEAL_NONE, SEAL_NONE},
    {3, SEAL_BATCH, 1, SEAL_NONE, SEAL_NONE, 0},
    {3, SEAL_SEEN, SEAL_NONE, 2, 1, SEAL_NONE},
    {1, SEAL_NEXT, SEAL_NONE, SEAL_NONE, SEAL_NONE, SEAL_NONE},
    {4, SEAL_SAME_NEXT, SEAL_NONE, SEAL_NONE, SEAL_NONE, SEAL_NONE},
    {4, SEAL_RATE, SEAL_NONE, 1, SEAL_NONE, 2},
};

// A property that does not hold ends the program.
static void check_line(bool holds, int line)
{
    if (holds)
        return;
    (void)fprintf(stderr, "fuzz_seal.c:%d: the property does not hold\n", line);
    abort();
}

#define check(holds) check_line(holds, __LINE__)

struct bytes {
    const uint8_t *next;
    size_t left;
};

static unsigned take(struct bytes *bytes)
{
    if (bytes->left == 0)
        return 0;
    bytes->left--;
    return *bytes->next++;
}

// As many bytes as the first of them says.
static int64_t take_value(struct bytes *bytes)
{
    uint64_t value = 0;
    for (unsigned count = take(bytes) % 9; count > 0; count--)
        value = value << 8 | take(bytes);
    return (int64_t)value;
}

static void check_same(const struct seal_rows *rows, const void *packed, size_t size)
{
    struct seal_reader *reader = NULL;
    check(seal_reader_new(&reader, packed, size) == STATUS_OK);
    for (unsigned c = 0; c < COLUMNS; c++) {
        struct seal_column column;
        const int place = seal_reader_find(reader, names[c]);
        check(place >= 0);
        check(seal_reader_column(reader, (unsigned)place, &column) == STATUS_OK);
        for (uint32_t row = 0; row < rows->count; row++) {
            const bool is_absent = rows->is_absent[c] && rows->is_absent[c][row];
            check((column.is_absent && column.is_absent[row]) == is_absent);
            check(is_absent || column.values[row] == rows->values[c][row]);
        }
    }
    seal_reader_free(reader);
}

static void pack(struct bytes bytes)
{
    static int64_t values[COLUMNS][ROWS];
    static unsigned char absent[COLUMNS][ROWS];
    struct seal_rows rows = {.count = 1 + take(&bytes) % ROWS, .columns = COLUMNS, .group = 2};
    const unsigned with_absent = take(&bytes);
    rows.behind = with_absent & 0x80 ? 3 : 0;
    for (unsigned c = 0; c < COLUMNS; c++) {
        rows.names[c] = names[c];
        rows.values[c] = values[c];
        rows.is_absent[c] = with_absent >> c & 1 ? absent[c] : NULL;
        for (uint32_t row = 0; row < rows.count; row++) {
            values[c][row] = take_value(&bytes);
            absent[c][row] = take(&bytes) & 1;
        }
    }
    struct seal_writer *writer = NULL;
    bool is_done = false;
    const unsigned first = rows.behind ? GUESSES_FROM_3 : 0;
    check(seal_writer_new(&writer, &rows, guesses + first,
                          (unsigned)(sizeof guesses / sizeof *guesses) - first) == STATUS_OK);
    while (!is_done)
        check(seal_writer_step(writer, &is_done) == STATUS_OK);
    size_t size = 0;
    const void *packed = seal_writer_bytes(writer, &size);
    check_same(&rows, packed, size);
    seal_writer_free(writer);
}

static void read_bytes(const uint8_t *data, size_t size)
{
    struct seal_reader *reader = NULL;
    if (seal_reader_new(&reader, data, size) != STATUS_OK)
        return;
    for (unsigned c = 0; c < COLUMNS; c++) {
        struct seal_column column;
        const int place = seal_reader_find(reader, names[c]);
        if (place >= 0 && seal_reader_column(reader, (unsigned)place, &column) == STATUS_OK)
            check(column.values != NULL);
    }
    seal_reader_free(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pack((struct bytes){data, size});
    read_bytes(data, size);
    return 0;
}
