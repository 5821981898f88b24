#include "common/store/seal_guess.h"

#include <stdlib.h>
#include <string.h>

unsigned seal_bits(uint64_t value)
{
    return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
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

int64_t seal_operand(const struct seal_table *table, const struct seal_guess *guess, uint32_t row)
{
    const int64_t x =
        seal_subtract(seal_value(table, guess->x, row), seal_value(table, guess->minus, row));
    if (guess->over == SEAL_NONE)
        return x;
    const int64_t over = seal_value(table, guess->over, row);
    return over > 1 ? x / (over - 1) : 0;
}

enum status seal_guesser_init(struct seal_guesser *guesser, const struct seal_table *table,
                              const struct seal_guess *guess, const struct seal_line *lines)
{
    *guesser = (struct seal_guesser){.table = table, .guess = guess, .lines = lines};
    if (guess->way != SEAL_SAME)
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
    guesser->last_same = NULL;
    guesser->has_same = NULL;
}

static int64_t guess_line(struct seal_guesser *guesser, uint32_t row)
{
    const struct seal_table *table = guesser->table;
    const struct seal_line *line = &guesser->lines[table->group[row]];
    const int64_t x = seal_operand(table, guesser->guess, row);
    const int64_t half = INT64_C(1) << (SEAL_POINT - 1);
    const int64_t whole = seal_add(multiply(line->slope, x), seal_add(line->base, half));
    const int64_t at = whole >> SEAL_POINT;
    guesser->scale = seal_bits((uint64_t)(at < 0 ? ~at : at));
    return seal_add(seal_value(table, guesser->guess->plus, row), at);
}

int64_t seal_guess_at(struct seal_guesser *guesser, uint32_t row)
{
    const struct seal_table *table = guesser->table;
    const struct seal_guess *guess = guesser->guess;
    switch ((enum seal_way)guess->way) {
    case SEAL_BEFORE:
        return guesser->last;
    case SEAL_SAME:
        return guesser->has_same[table->same[row]] ? guesser->last_same[table->same[row]]
                                                   : guesser->last;
    case SEAL_ARRIVAL:
        if (row == 0)
            return 0;
        return seal_subtract(seal_add(seal_value(table, guess->plus, row - 1), guesser->last),
                             seal_value(table, guess->plus, row));
    case SEAL_LINE:
        return guess_line(guesser, row);
    case SEAL_ZERO:
    case SEAL_WAYS:
        break;
    }
    return 0;
}

void seal_guess_was(struct seal_guesser *guesser, uint32_t row, int64_t value)
{
    if (guesser->guess->way == SEAL_SAME) {
        guesser->last_same[guesser->table->same[row]] = value;
        guesser->has_same[guesser->table->same[row]] = 1;
    }
    guesser->last = value;
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
