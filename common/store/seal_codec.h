// Rows of integers into few bytes, column by column, and back bit for bit.
//
// Each column is written as what it is beyond a guess that both sides can make: the row
// before, the last row of the same run, what arrived with it, or a straight line over
// columns that stand before it, one line a group (prefill grows with the prompt, at each
// model's own pace) or one for all.  The writer tries all guesses and takes the cheapest.
// What is left is written by its number of bits, its sign and its highest bits, each as
// likely as it has been (bit_coder.h), and the rest as it is.
//
// The bytes say all that a reader needs to know: how many rows, the columns by name,
// and of each its guess, so that a later version may know more columns or other guesses.
// Bytes of the first format, which had fewer guesses, are read as ever.
// Columns are read one by one, each with those that its guess needs.  Bytes from outside
// cannot harm a reader: whatever they are, it gives rows or STATUS_CORRUPT.
#ifndef INFERSTAT_STORE_SEAL_CODEC_H
#define INFERSTAT_STORE_SEAL_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/bit_coder.h"
#include "common/core/status.h"

enum {
    SEAL_COLUMNS_MAX = 64,
    SEAL_ROWS_MAX = 16384,
    SEAL_NAME_MAX = 63, // bytes
    SEAL_NONE = 255,    // no column
    SEAL_GROUPS_MAX = 64,
    SEAL_FORMAT_FIRST = 1,
    SEAL_FORMAT = 2, // that is written
};

enum seal_way {
    SEAL_ZERO,    // 0
    SEAL_BEFORE,  // the row before
    SEAL_SAME,    // the last row with the same column 0; the row before where there is none
    SEAL_ARRIVAL, // what makes plus + value the same as in the row before
    SEAL_LINE,    // plus + line(group, x - minus), or of (x - minus) / (over - 1)
    SEAL_WAYS_FIRST,
    // Not in the first format:
    SEAL_RATE = SEAL_WAYS_FIRST, // as SEAL_LINE, the quotient to its fraction
    SEAL_NEXT,                   // one more than SEAL_BEFORE
    SEAL_SAME_NEXT,              // one more than SEAL_SAME
    SEAL_SEEN,                   // what it was when x and minus were last what they are, about
    SEAL_BATCH,                  // from the last row to the first: where a bit says so, what makes
                // plus + value the same as in the row behind, which is likely where `over`
                // is that of the row behind; else x, and as much beyond as it was then
    SEAL_WAYS,
};

// A guess at a column; the columns it is made from stand before that.
struct seal_guess {
    unsigned char column, way;
    unsigned char plus, x, minus, over; // SEAL_NONE: 0, and not divided
};

// What is written.
struct seal_rows {
    uint32_t count;   // 1 to SEAL_ROWS_MAX
    unsigned columns; // 1 to SEAL_COLUMNS_MAX
    unsigned group;   // the column that lines go by
    unsigned behind;  // the column that stands behind all others; 0: as they come
    const char *names[SEAL_COLUMNS_MAX];
    int64_t *values[SEAL_COLUMNS_MAX];          // those of absent ones do not matter
    unsigned char *is_absent[SEAL_COLUMNS_MAX]; // 0 or 1 a row; NULL: none is
};

enum { SEAL_GUESSES_MAX = 16 };

// Writes rows, which are borrowed until it is freed, a column a step.  SEAL_ZERO,
// SEAL_BEFORE and SEAL_SAME are tried for every column, the guesses for theirs.
struct seal_writer;
MUST_CHECK enum status seal_writer_new(struct seal_writer **out, const struct seal_rows *rows,
                                       const struct seal_guess *guesses, unsigned guess_count);
// STATUS_NOMEM.  Not to be called again once it is done.
MUST_CHECK enum status seal_writer_step(struct seal_writer *writer, bool *is_done);
// What was written, when it is done; the writer's.
const void *seal_writer_bytes(const struct seal_writer *writer, size_t *size);
void seal_writer_free(struct seal_writer *writer); // NULL is fine

// ---- Reading --------------------------------------------------------------------------

struct seal_reader;

// Looks at the bytes, which it copies; columns are decoded when they are asked for.
// STATUS_CORRUPT, STATUS_UNSUPPORTED (a later format), STATUS_NOMEM.
MUST_CHECK enum status seal_reader_new(struct seal_reader **out, const void *bytes, size_t size);
void seal_reader_free(struct seal_reader *reader); // NULL is fine

uint32_t seal_reader_count(const struct seal_reader *reader);
// The column of that name, or -1.
int seal_reader_find(const struct seal_reader *reader, const char *name);

struct seal_column {
    const int64_t *values;
    const unsigned char *is_absent; // NULL: none is
};
// Borrowed from the reader, until it is freed.  STATUS_CORRUPT, STATUS_NOMEM.
MUST_CHECK enum status seal_reader_column(struct seal_reader *reader, unsigned column,
                                          struct seal_column *out);

#endif
