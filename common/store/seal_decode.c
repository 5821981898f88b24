// Reading sealed rows (seal_codec.h).
#include <stdlib.h>
#include <string.h>

#include "common/store/seal_guess.h"

enum { HAS_ABSENT = 1, IS_GUESSED = 2, FLAGS = 3 };

// Where a column is in the bytes.
struct place {
    char name[SEAL_NAME_MAX + 1];
    const unsigned char *begin, *end;
    struct seal_guess guess;
    bool has_absent, is_guessed;
};

struct seal_reader {
    unsigned char *bytes;
    unsigned group;
    struct place places[SEAL_COLUMNS_MAX];
    struct seal_table table; // values: NULL, not decoded yet
    int64_t *values[SEAL_COLUMNS_MAX];
    unsigned char *is_absent[SEAL_COLUMNS_MAX];
    uint16_t *same, *groups;
};

// ---- The head -------------------------------------------------------------------------

static enum status read_name(struct place *place, const unsigned char **at,
                             const unsigned char *end)
{
    uint64_t size = 0;
    if (!byte_number(at, end, &size) || size > SEAL_NAME_MAX || size > (size_t)(end - *at))
        return STATUS_CORRUPT;
    memcpy(place->name, *at, size);
    *at += size;
    return STATUS_OK;
}

static bool is_before(unsigned char from, unsigned column)
{
    return from == SEAL_NONE || from < column;
}

// How a column is guessed; what it is made from stands before it.
static enum status read_guess(struct seal_reader *reader, unsigned column)
{
    struct place *place = &reader->places[column];
    struct seal_guess *guess = &place->guess;
    const unsigned ways = reader->table.format == SEAL_FORMAT_FIRST ? SEAL_WAYS_FIRST : SEAL_WAYS;
    if (place->end - place->begin < 2 || place->begin[0] & ~FLAGS || place->begin[1] >= ways)
        return STATUS_CORRUPT;
    *guess = (struct seal_guess){
        (unsigned char)column, place->begin[1], SEAL_NONE, SEAL_NONE, SEAL_NONE, SEAL_NONE};
    place->has_absent = place->begin[0] & HAS_ABSENT;
    place->is_guessed = place->begin[0] & IS_GUESSED;
    place->begin += 2;
    if (seal_is_same(guess) && column == 0)
        return STATUS_CORRUPT;
    if (guess->way < SEAL_ARRIVAL)
        return STATUS_OK;
    if (place->end - place->begin < 4)
        return STATUS_CORRUPT;
    guess->plus = place->begin[0];
    guess->x = place->begin[1];
    guess->minus = place->begin[2];
    guess->over = place->begin[3];
    place->begin += 4;
    const bool is_sound = is_before(guess->plus, column) && is_before(guess->x, column) &&
                          is_before(guess->minus, column) && is_before(guess->over, column) &&
                          (!seal_is_line(guess) || reader->group < column);
    return is_sound ? STATUS_OK : STATUS_CORRUPT;
}

static enum status read_places(struct seal_reader *reader, const unsigned char *at,
                               const unsigned char *end)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < reader->table.columns && status == STATUS_OK; i++)
        status = read_name(&reader->places[i], &at, end);
    for (unsigned i = 0; i < reader->table.columns && status == STATUS_OK; i++) {
        uint64_t size = 0;
        if (!byte_number(&at, end, &size) || size > (size_t)(end - at))
            return STATUS_CORRUPT;
        reader->places[i].begin = at;
        reader->places[i].end = at += size;
        status = read_guess(reader, i);
    }
    return status == STATUS_OK && at != end ? STATUS_CORRUPT : status;
}

static enum status read_head(struct seal_reader *reader, size_t size)
{
    const unsigned char *at = reader->bytes, *end = at + size;
    uint64_t count = 0, columns = 0, group = 0;
    if (size == 0)
        return STATUS_CORRUPT;
    reader->table.format = *at++;
    if (reader->table.format != SEAL_FORMAT && reader->table.format != SEAL_FORMAT_FIRST)
        return STATUS_UNSUPPORTED;
    if (!byte_number(&at, end, &count) || !byte_number(&at, end, &columns) ||
        !byte_number(&at, end, &group) || count < 1 || count > SEAL_ROWS_MAX || columns < 1 ||
        columns > SEAL_COLUMNS_MAX || group >= columns)
        return STATUS_CORRUPT;
    reader->table.count = (uint32_t)count;
    reader->table.columns = (unsigned)columns;
    reader->group = (unsigned)group;
    return read_places(reader, at, end);
}

enum status seal_reader_new(struct seal_reader **out, const void *bytes, size_t size)
{
    struct seal_reader *reader = calloc(1, sizeof *reader);
    if (reader)
        reader->bytes = malloc(size ? size : 1);
    if (!reader || !reader->bytes) {
        seal_reader_free(reader);
        return STATUS_NOMEM;
    }
    if (size > 0)
        memcpy(reader->bytes, bytes, size);
    enum status status = read_head(reader, size);
    if (status != STATUS_OK) {
        seal_reader_free(reader);
        return status;
    }
    *out = reader;
    return STATUS_OK;
}

void seal_reader_free(struct seal_reader *reader)
{
    if (!reader)
        return;
    for (unsigned i = 0; i < SEAL_COLUMNS_MAX; i++) {
        free(reader->values[i]);
        free(reader->is_absent[i]);
    }
    free(reader->same);
    free(reader->groups);
    free(reader->bytes);
    free(reader);
}

uint32_t seal_reader_count(const struct seal_reader *reader)
{
    return reader->table.count;
}

int seal_reader_find(const struct seal_reader *reader, const char *name)
{
    for (unsigned i = 0; i < reader->table.columns; i++)
        if (strcmp(reader->places[i].name, name) == 0)
            return (int)i;
    return -1;
}

// ---- Columns --------------------------------------------------------------------------

// A signed number that had `shift` zeros at its end.
static bool read_signed(int64_t *out, unsigned shift, const unsigned char **at,
                        const unsigned char *end)
{
    uint64_t value = 0;
    if (!byte_number(at, end, &value))
        return false;
    *out = (int64_t)((value >> 1 ^ (0 - (value & 1))) << shift);
    return true;
}

// Their count and, but in the first format, two shifts; one line alone is all groups'.
static enum status read_lines(const struct seal_reader *reader,
                              struct seal_line lines[SEAL_GROUPS_MAX], const unsigned char **at,
                              const unsigned char *end)
{
    uint64_t count = 0, slope = 0, base = 0;
    bool is_sound = byte_number(at, end, &count) && count <= SEAL_GROUPS_MAX;
    if (is_sound && reader->table.format != SEAL_FORMAT_FIRST)
        is_sound =
            byte_number(at, end, &slope) && byte_number(at, end, &base) && slope < 64 && base < 64;
    for (unsigned i = 0; i < count && is_sound; i++)
        is_sound = read_signed(&lines[i].slope, (unsigned)slope, at, end) &&
                   read_signed(&lines[i].base, (unsigned)base, at, end);
    for (unsigned i = 1; i < SEAL_GROUPS_MAX && count == 1; i++)
        lines[i] = lines[0];
    return is_sound ? STATUS_OK : STATUS_CORRUPT;
}

static uint64_t get_rest(struct bit_reader *bits, struct seal_models *models, unsigned width)
{
    const unsigned head = bits->learning == BIT_LEARN_TWICE ? SEAL_HEAD_BITS_FIRST : SEAL_HEAD_BITS;
    uint64_t value = 1;
    unsigned left = width - 1, node = 1;
    for (unsigned i = 0; i < head && left > 0; i++, left--) {
        const bool bit = bit_reader_get(bits, &models->head[width][node]);
        node = node << 1 | bit;
        value = value << 1 | bit;
    }
    return left > 0 ? value << left | bit_reader_plain(bits, left) : value;
}

static unsigned get_tree(struct bit_reader *bits, struct bit_model *models, unsigned depth)
{
    unsigned node = 1;
    for (unsigned i = 0; i < depth; i++)
        node = node << 1 | bit_reader_get(bits, &models[node]);
    return node - (1U << depth);
}

static unsigned get_width(struct bit_reader *bits, struct seal_models *models, unsigned scale)
{
    if (bits->learning == BIT_LEARN_TWICE)
        return get_tree(bits, models->width[scale], 7);
    if (bit_reader_get(bits, &models->nothing[scale]))
        return 0;
    return get_tree(bits, models->width[scale], 6) + 1;
}

// STATUS_CORRUPT: wider than any integer.
static enum status get_left(struct bit_reader *bits, struct seal_models *models, unsigned scale,
                            int64_t *left)
{
    const unsigned width = get_width(bits, models, scale);
    *left = 0;
    if (width == 0)
        return STATUS_OK;
    if (width > 64)
        return STATUS_CORRUPT;
    const bool is_negative = bit_reader_get(bits, &models->sign[width]);
    const uint64_t size = get_rest(bits, models, width);
    *left = (int64_t)(is_negative ? 0 - size : size);
    return STATUS_OK;
}

static enum status get_value(struct seal_guesser *guesser, bool is_guessed, uint32_t row,
                             struct bit_reader *bits, struct seal_models *models, int64_t *value)
{
    bool is_likely = false;
    if (!is_guessed && seal_guess_whole(guesser, row, value, &is_likely) &&
        bit_reader_get(bits, &models->whole[is_likely])) {
        seal_guess_was_whole(guesser, *value);
        return STATUS_OK;
    }
    int64_t left = 0;
    enum status status = STATUS_OK;
    const int64_t guess = seal_guess_at(guesser, row);
    if (!is_guessed)
        status = get_left(bits, models, seal_guess_scale(guesser), &left);
    *value = seal_add(guess, left);
    seal_guess_was(guesser, row, *value, left);
    return status;
}

static enum status get_values(struct seal_reader *reader, unsigned column,
                              struct seal_guesser *guesser, struct bit_reader *bits,
                              struct seal_models *models)
{
    const bool is_guessed = reader->places[column].is_guessed;
    int64_t *values = reader->values[column];
    unsigned char *is_absent = reader->is_absent[column];
    unsigned was_absent = 0;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < reader->table.count && status == STATUS_OK; i++) {
        const uint32_t row = seal_guess_row(guesser, i);
        if (is_absent)
            was_absent = is_absent[row] = bit_reader_get(bits, &models->absent[was_absent]);
        if (!was_absent)
            status = get_value(guesser, is_guessed, row, bits, models, &values[row]);
    }
    return status == STATUS_OK && bits->is_over ? STATUS_CORRUPT : status;
}

static enum status decode(struct seal_reader *reader, unsigned column)
{
    const struct place *place = &reader->places[column];
    const unsigned char *at = place->begin;
    struct seal_line lines[SEAL_GROUPS_MAX] = {{0}};
    struct seal_guesser guesser;
    struct bit_reader bits = {0};
    enum status status = STATUS_OK;
    const enum bit_learning learning = seal_learning(&reader->table, &place->guess);
    if (seal_is_line(&place->guess))
        status = read_lines(reader, lines, &at, place->end);
    if (status == STATUS_OK && (place->has_absent || !place->is_guessed))
        status = bit_reader_init(&bits, &at, place->end, learning);
    if (status != STATUS_OK)
        return status;
    if (at != place->end)
        return STATUS_CORRUPT;
    struct seal_models *models = malloc(sizeof *models);
    if (!models)
        return STATUS_NOMEM;
    bit_models_init((struct bit_model *)models, sizeof *models / sizeof(struct bit_model),
                    learning);
    status = seal_guesser_init(&guesser, &reader->table, &place->guess, lines);
    if (status == STATUS_OK)
        status = get_values(reader, column, &guesser, &bits, models);
    seal_guesser_deinit(&guesser);
    free(models);
    return status;
}

static enum status need(struct seal_reader *reader, unsigned char column)
{
    struct seal_column unused;
    return column == SEAL_NONE ? STATUS_OK : seal_reader_column(reader, column, &unused);
}

// Numbers a column's values, once.
static enum status need_numbers(struct seal_reader *reader, unsigned column, unsigned most,
                                uint16_t **out, const uint16_t **known)
{
    if (*out)
        return STATUS_OK;
    enum status status = need(reader, (unsigned char)column);
    if (status != STATUS_OK)
        return status;
    uint16_t *numbers = malloc(reader->table.count * sizeof *numbers);
    if (!numbers)
        return STATUS_NOMEM;
    status = seal_number(reader->values[column], reader->is_absent[column], reader->table.count,
                         most, numbers);
    if (status != STATUS_OK) {
        free(numbers);
        return status;
    }
    *known = *out = numbers;
    return STATUS_OK;
}

// What a guess is made from stands before its column, so that this comes to an end.
static enum status need_all(struct seal_reader *reader, const struct seal_guess *guess)
{
    enum status status = need(reader, guess->plus);
    if (status == STATUS_OK)
        status = need(reader, guess->x);
    if (status == STATUS_OK)
        status = need(reader, guess->minus);
    if (status == STATUS_OK)
        status = need(reader, guess->over);
    if (status == STATUS_OK && seal_is_same(guess))
        status = need_numbers(reader, 0, SEAL_ROWS_MAX, &reader->same, &reader->table.same);
    if (status == STATUS_OK && seal_is_line(guess))
        status = need_numbers(reader, reader->group, SEAL_GROUPS_MAX, &reader->groups,
                              &reader->table.group);
    return status;
}

enum status seal_reader_column(struct seal_reader *reader, unsigned column, struct seal_column *out)
{
    struct place *place = &reader->places[column];
    if (!reader->table.values[column]) {
        enum status status = need_all(reader, &place->guess);
        if (status != STATUS_OK)
            return status;
        if (!reader->values[column])
            reader->values[column] = calloc(reader->table.count, sizeof **reader->values);
        if (place->has_absent && !reader->is_absent[column])
            reader->is_absent[column] = calloc(reader->table.count, 1);
        if (!reader->values[column] || (place->has_absent && !reader->is_absent[column]))
            return STATUS_NOMEM;
        status = decode(reader, column);
        if (status != STATUS_OK)
            return status;
        reader->table.values[column] = reader->values[column];
        reader->table.is_absent[column] = reader->is_absent[column];
    }
    *out = (struct seal_column){reader->values[column], reader->is_absent[column]};
    return STATUS_OK;
}
