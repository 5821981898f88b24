// What the writer and the reader of sealed rows (seal_codec.h) do in one way: guesses,
// and the bits of what is left.
#ifndef INFERSTAT_STORE_SEAL_GUESS_H
#define INFERSTAT_STORE_SEAL_GUESS_H

#include "common/store/seal_codec.h"

// Columns as far as they are known: those before the one at hand, and of that the rows
// before the one at hand.
struct seal_table {
    unsigned format;
    uint32_t count;
    unsigned columns;
    const int64_t *values[SEAL_COLUMNS_MAX];
    const unsigned char *is_absent[SEAL_COLUMNS_MAX];
    const uint16_t *same;  // per row: which distinct value of column 0
    const uint16_t *group; // per row: which distinct value of the group's column
};

// A line in fixed point: (slope * x + base) / 2^point, rounded.
enum { SEAL_POINT = 20, SEAL_RATE_POINT = 30 };
struct seal_line {
    int64_t slope, base;
};

bool seal_is_line(const struct seal_guess *guess);
bool seal_is_same(const struct seal_guess *guess); // it goes by what column 0 was last
unsigned seal_point(const struct seal_guess *guess);

// Guesses at one column, row by row.
struct seal_guesser {
    const struct seal_table *table;
    const struct seal_guess *guess;
    const struct seal_line *lines;
    int64_t *last_same; // per distinct value of column 0
    unsigned char *has_same;
    int64_t *seen;          // by a digest of what SEAL_SEEN goes by
    int64_t last;           // of the column
    int64_t beyond;         // SEAL_BATCH
    unsigned scale;         // of a line
    unsigned width, streak; // of what was left last, and how often it was nothing
};

enum { SEAL_SCALES = 70 };

// Room for what was seen; STATUS_NOMEM.
MUST_CHECK enum status seal_guesser_init(struct seal_guesser *guesser,
                                         const struct seal_table *table,
                                         const struct seal_guess *guess,
                                         const struct seal_line *lines);
void seal_guesser_deinit(struct seal_guesser *guesser);

// The row that comes after so many others.
uint32_t seal_guess_row(const struct seal_guesser *guesser, uint32_t place);

// A guess at a row that is there, of which a bit says whether it is right; false: there is
// none.  `*is_likely`: what that bit depends on.
bool seal_guess_whole(const struct seal_guesser *guesser, uint32_t row, int64_t *guess,
                      bool *is_likely);
// Where there is none, or it is wrong: the guess of which something may be left.
int64_t seal_guess_at(struct seal_guesser *guesser, uint32_t row);
// What the width of that depends on.
unsigned seal_guess_scale(const struct seal_guesser *guesser);
// What it was: right as a whole, or with so much left.
void seal_guess_was_whole(struct seal_guesser *guesser, int64_t value);
void seal_guess_was(struct seal_guesser *guesser, uint32_t row, int64_t value, int64_t left);

// What lines go over, for a row: a whole number and, of SEAL_RATE, `rest` / `parts`.
struct seal_operand {
    int64_t whole, rest, parts;
};
struct seal_operand seal_operand(const struct seal_table *table, const struct seal_guess *guess,
                                 uint32_t row);
// A column's value; 0 where it is absent or SEAL_NONE.
int64_t seal_value(const struct seal_table *table, unsigned char column, uint32_t row);

// Numbers the distinct values of a column by their first row; those beyond `most`
// share the last number.  `out` has a place per row.  STATUS_NOMEM.
MUST_CHECK enum status seal_number(const int64_t *values, const unsigned char *is_absent,
                                   uint32_t count, unsigned most, uint16_t *out);

unsigned seal_bits(uint64_t value); // that it takes; 0 for 0
unsigned seal_width(int64_t value); // that it takes without its sign
// a + b and a - b in 64 bits, whatever they are.
int64_t seal_add(int64_t a, int64_t b);
int64_t seal_subtract(int64_t a, int64_t b);

// ---- What is left ---------------------------------------------------------------------

enum { SEAL_HEAD_BITS_FIRST = 2, SEAL_HEAD_BITS = 3, SEAL_WIDTHS = 128 };

// What stays as it is, as the noise about a line, is learnt for long; the rest follows.
enum bit_learning seal_learning(const struct seal_table *table, const struct seal_guess *guess);

// What has been learnt of one column.
struct seal_models {
    struct bit_model nothing[SEAL_SCALES];            // is left; the first format's tree says so
    struct bit_model width[SEAL_SCALES][SEAL_WIDTHS]; // a tree of six decisions; there of seven
    struct bit_model sign[65];
    struct bit_model head[65][1 << SEAL_HEAD_BITS]; // the highest bits below the first
    struct bit_model absent[2];
    struct bit_model whole[2]; // by whether it is likely
};

#endif
