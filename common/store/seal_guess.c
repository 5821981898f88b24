#include "common/store/seal_guess.h"

#include <stdlib.h>
#include <string.h>

enum {
    SEEN_BITS = 12, // of a digest
    STREAK_MOST = 3,
};

unsigned seal_bits(uint64_t value)
{
    return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

unsigned seal_width(int64_t value)
{
    return seal_bits(value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

bool seal_is_line(const struct seal_guess *guess)
{
    return guess->way == SEAL_LINE || guess->way == SEAL_RATE;
}

bool seal_is_same(const struct seal_guess *guess)
{
    return guess->way == SEAL_SAME || guess->way == SEAL_SAME_NEXT;
}

unsigned seal_point(const struct seal_guess *guess)
{
    return guess->way == SEAL_RATE ? SEAL_RATE_POINT : SEAL_POINT;
}

enum bit_learning seal_learning(const struct seal_table *table, const struct seal_guess *guess)
{
    if (table->format == SEAL_FORMAT_FIRST)
        return BIT_LEARN_TWICE;
    return guess->way == SEAL_ZERO || seal_is_line(guess) ? BIT_LEARN_LONG : BIT_LEARN_LATELY;
}

// Unsigned arithmetic wraps where signed must not.
int64_t seal_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

int64_t seal_subtract(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static int64_t multiply(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

int64_t seal_value(const struct seal_table *table, unsigned char column, uint32_t row)
{
    if (column == SEAL_NONE || (table->is_absent[column] && table->is_absent[column][row]))
        return 0;
    return table->values[column][row];
}

struct seal_operand seal_operand(const struct seal_table *table, const struct seal_guess *guess,
                                 uint32_t row)
{
    const int64_t x =
        seal_subtract(seal_value(table, guess->x, row), seal_value(table, guess->minus, row));
    if (guess->over == SEAL_NONE)
        return (struct seal_operand){x, 0, 1};
    const int64_t over = seal_value(table, guess->over, row);
    if (over <= 1)
        return (struct seal_operand){0, 0, 1};
    const int64_t parts = over - 1;
    return (struct seal_operand){x / parts, guess->way == SEAL_RATE ? x % parts : 0, parts};
}

enum status seal_guesser_init(struct seal_guesser *guesser, const struct seal_table *table,
                              const struct seal_guess *guess, const struct seal_line *lines)
{
    *guesser = (struct seal_guesser){.table = table, .guess = guess, .lines = lines};
    if (guess->way == SEAL_SEEN) {
        guesser->seen = calloc((size_t)1 << SEEN_BITS, sizeof *guesser->seen);
        return guesser->seen ? STATUS_OK : STATUS_NOMEM;
    }
    if (!seal_is_same(guess))
        return STATUS_OK;
    guesser->last_same = calloc(table->count, sizeof *guesser->last_same);
    guesser->has_same = calloc(table->count, 1);
    if (guesser->last_same && guesser->has_same)
        return STATUS_OK;
    seal_guesser_deinit(guesser);
    return STATUS_NOMEM;
}

void seal_guesser_deinit(struct seal_guesser *guesser)
{
    free(guesser->last_same);
    free(guesser->has_same);
    free(guesser->seen);
    guesser->last_same = NULL;
    guesser->has_same = NULL;
    guesser->seen = NULL;
}

uint32_t seal_guess_row(const struct seal_guesser *guesser, uint32_t place)
{
    return guesser->guess->way == SEAL_BATCH ? guesser->table->count - 1 - place : place;
}

static int64_t guess_line(struct seal_guesser *guesser, uint32_t row)
{
    const struct seal_table *table = guesser->table;
    const struct seal_line *line = &guesser->lines[table->group[row]];
    const struct seal_operand x = seal_operand(table, guesser->guess, row);
    const unsigned point = seal_point(guesser->guess);
    const int64_t half = INT64_C(1) << (point - 1);
    int64_t sum = seal_add(multiply(line->slope, x.whole), seal_add(line->base, half));
    if (x.rest != 0)
        sum = seal_add(sum, multiply(line->slope, x.rest) / x.parts);
    const int64_t at = sum >> point;
    guesser->scale = seal_bits((uint64_t)(at < 0 ? ~at : at));
    return seal_add(seal_value(table, guesser->guess->plus, row), at);
}

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    return value ^ value >> 29;
}

// Those with the same digest have the same place: they make a guess worse, not wrong.
static int64_t *seen_place(const struct seal_guesser *guesser, uint32_t row)
{
    const uint64_t x = (uint64_t)seal_value(guesser->table, guesser->guess->x, row);
    const uint64_t minus = (uint64_t)seal_value(guesser->table, guesser->guess->minus, row);
    return &guesser->seen[mix(x + mix(minus)) >> (64 - SEEN_BITS)];
}

// What makes a sum of columns the same as in another row, whose value was the last.
static int64_t same_sum(const struct seal_guesser *guesser, uint32_t row, uint32_t other)
{
    const unsigned char plus = guesser->guess->plus;
    return seal_subtract(seal_add(seal_value(guesser->table, plus, other), guesser->last),
                         seal_value(guesser->table, plus, row));
}

bool seal_guess_whole(const struct seal_guesser *guesser, uint32_t row, int64_t *guess,
                      bool *is_likely)
{
    const unsigned char over = guesser->guess->over;
    if (guesser->guess->way != SEAL_BATCH || row + 1 == guesser->table->count)
        return false;
    *guess = same_sum(guesser, row, row + 1);
    *is_likely = seal_value(guesser->table, over, row) == seal_value(guesser->table, over, row + 1);
    return true;
}

static int64_t last_same(const struct seal_guesser *guesser, uint32_t row)
{
    const uint16_t same = guesser->table->same[row];
    return guesser->has_same[same] ? guesser->last_same[same] : guesser->last;
}

int64_t seal_guess_at(struct seal_guesser *guesser, uint32_t row)
{
    const struct seal_table *table = guesser->table;
    const struct seal_guess *guess = guesser->guess;
    switch ((enum seal_way)guess->way) {
    case SEAL_BEFORE:
        return guesser->last;
    case SEAL_NEXT:
        return seal_add(guesser->last, 1);
    case SEAL_SAME:
        return last_same(guesser, row);
    case SEAL_SAME_NEXT:
        return seal_add(last_same(guesser, row), 1);
    case SEAL_ARRIVAL:
        return row == 0 ? 0 : same_sum(guesser, row, row - 1);
    case SEAL_LINE:
    case SEAL_RATE:
        return guess_line(guesser, row);
    case SEAL_SEEN:
        return *seen_place(guesser, row);
    case SEAL_BATCH:
        return seal_add(seal_value(table, guess->x, row), guesser->beyond);
    case SEAL_ZERO:
    case SEAL_WAYS:
        break;
    }
    return 0;
}

unsigned seal_guess_scale(const struct seal_guesser *guesser)
{
    if (seal_is_line(guesser->guess))
        return guesser->scale;
    if (guesser->table->format == SEAL_FORMAT_FIRST || guesser->guess->way == SEAL_ZERO)
        return guesser->width != 0;
    return guesser->width ? STREAK_MOST + guesser->width : guesser->streak;
}

void seal_guess_was_whole(struct seal_guesser *guesser, int64_t value)
{
    guesser->last = value;
}

void seal_guess_was(struct seal_guesser *guesser, uint32_t row, int64_t value, int64_t left)
{
    const struct seal_guess *guess = guesser->guess;
    if (seal_is_same(guess)) {
        guesser->last_same[guesser->table->same[row]] = value;
        guesser->has_same[guesser->table->same[row]] = 1;
    } else if (guess->way == SEAL_SEEN) {
        *seen_place(guesser, row) = value;
    } else if (guess->way == SEAL_BATCH) {
        guesser->beyond = seal_subtract(value, seal_value(guesser->table, guess->x, row));
    }
    guesser->last = value;
    guesser->width = seal_width(left);
    if (guesser->width != 0)
        guesser->streak = 0;
    else if (guesser->streak < STREAK_MOST)
        guesser->streak++;
}

// ---- Distinct values ------------------------------------------------------------------

static uint32_t place_of(int64_t value, uint32_t mask)
{
    return (uint32_t)(((uint64_t)value * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & mask;
}

enum status seal_number(const int64_t *values, const unsigned char *is_absent, uint32_t count,
                        unsigned most, uint16_t *out)
{
    uint32_t room = 64;
    while (room < 2 * count)
        room *= 2;
    uint16_t *numbers = malloc(room * sizeof *numbers); // by place; UINT16_MAX: free
    int64_t *keys = malloc(room * sizeof *keys);
    unsigned next = 0;
    for (uint32_t i = 0; numbers && i < room; i++)
        numbers[i] = UINT16_MAX;
    for (uint32_t i = 0; numbers && keys && i < count; i++) {
        const int64_t value = is_absent && is_absent[i] ? 0 : values[i];
        uint32_t place = place_of(value, room - 1);
        while (numbers[place] != UINT16_MAX && keys[place] != value)
            place = (place + 1) & (room - 1);
        if (numbers[place] == UINT16_MAX) {
            numbers[place] = (uint16_t)(next < most ? next : most - 1);
            keys[place] = value;
            next++;
        }
        out[i] = numbers[place];
    }
    const bool done = numbers && keys;
    free(numbers);
    free(keys);
    return done ? STATUS_OK : STATUS_NOMEM;
}
