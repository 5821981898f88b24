// What the writer and the reader of sealed rows (seal_codec.h) do in one way: guesses,
// and the bits of what is left.
#ifndef INFERSTAT_STORE_SEAL_GUESS_H
#define INFERSTAT_STORE_SEAL_GUESS_H

#include "common/store/seal_codec.h"

// Columns as far as they are known: those before the one at hand, and of that the rows
// before the one at hand.
struct seal_table {
    uint32_t count;
    unsigned columns;
    const int64_t *values[SEAL_COLUMNS_MAX];
    const unsigned char *is_absent[SEAL_COLUMNS_MAX];
    const uint16_t *same;  // per row: which distinct value of column 0
    const uint16_t *group; // per row: which distinct value of the group's column
};

// A line in fixed point: (slope * x + base) / 2^SEAL_POINT, rounded.
enum { SEAL_POINT = 20 };
struct seal_line {
    int64_t slope, base;
};

// Guesses at one column, from its first row on.
struct seal_guesser {
    const struct seal_table *table;
    const struct seal_guess *guess;
    const struct seal_line *lines;
    int64_t *last_same; // per distinct value of column 0
    unsigned char *has_same;
    int64_t last;   // of the column
    unsigned scale; // of the last guess: what its error depends on
};

enum { SEAL_SCALES = 66 };

// Room for SEAL_SAME's memory; STATUS_NOMEM.
MUST_CHECK enum status seal_guesser_init(struct seal_guesser *guesser,
                                         const struct seal_table *table,
                                         const struct seal_guess *guess,
                                         const struct seal_line *lines);
void seal_guesser_deinit(struct seal_guesser *guesser);

// The guess at a row that is there, then what it was.
int64_t seal_guess_at(struct seal_guesser *guesser, uint32_t row);
void seal_guess_was(struct seal_guesser *guesser, uint32_t row, int64_t value);

// What lines go over, for a row.
int64_t seal_operand(const struct seal_table *table, const struct seal_guess *guess, uint32_t row);
// A column's value; 0 where it is absent or SEAL_NONE.
int64_t seal_value(const struct seal_table *table, unsigned char column, uint32_t row);

// Numbers the distinct values of a column by their first row; those beyond `most`
// share the last number.  `out` has a place per row.  STATUS_NOMEM.
MUST_CHECK enum status seal_number(const int64_t *values, const unsigned char *is_absent,
                                   uint32_t count, unsigned most, uint16_t *out);

unsigned seal_bits(uint64_t value); // that it takes; 0 for 0
// a + b and a - b in 64 bits, whatever they are.
int64_t seal_add(int64_t a, int64_t b);
int64_t seal_subtract(int64_t a, int64_t b);

// ---- What is left ---------------------------------------------------------------------

enum { SEAL_HEAD_BITS = 2, SEAL_WIDTHS = 128 };

// What has been learnt of one column.
struct seal_models {
    struct bit_model width[SEAL_SCALES][SEAL_WIDTHS]; // a tree of seven decisions
    struct bit_model sign[65];
    struct bit_model head[65][1 << SEAL_HEAD_BITS]; // the highest bits below the first
    struct bit_model absent[2];
};

#endif
