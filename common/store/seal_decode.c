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
    if (place->end - place->begin < 2 || place->begin[0] & ~FLAGS || place->begin[1] >= SEAL_WAYS)
        return STATUS_CORRUPT;
    *guess = (struct seal_guess){
        (unsigned char)column, place->begin[1], SEAL_NONE, SEAL_NONE, SEAL_NONE, SEAL_NONE};
    place->has_absent = place->begin[0] & HAS_ABSENT;
    place->is_guessed = place->begin[0] & IS_GUESSED;
    place->begin += 2;
    if (guess->way == SEAL_SAME && column == 0)
        return STATUS_CORRUPT;
    if (guess->way != SEAL_LINE && guess->way != SEAL_ARRIVAL)
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
                          (guess->way != SEAL_LINE || reader->group < column);
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
    if (*at++ != SEAL_FORMAT)
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

static bool read_line(struct seal_line *line, const unsigned char **at, const unsigned char *end)
{
    uint64_t slope = 0, base = 0;
    if (!byte_number(at, end, &slope) || !byte_number(at, end, &base))
        return false;
    line->slope = (int64_t)(slope >> 1 ^ (0 - (slope & 1)));
    line->base = (int64_t)(base >> 1 ^ (0 - (base & 1)));
    return true;
}

static enum status read_lines(struct seal_line lines[SEAL_GROUPS_MAX], const unsigned char **at,
                              const unsigned char *end)
{
    uint64_t count = 0;
    if (!byte_number(at, end, &count) || count > SEAL_GROUPS_MAX)
        return STATUS_CORRUPT;
    for (unsigned i = 0; i < count; i++)
        if (!read_line(&lines[i], at, end))
            return STATUS_CORRUPT;
    return STATUS_OK;
}

static uint64_t get_rest(struct bit_reader *bits, struct seal_models *models, unsigned width)
{
    uint64_t value = 1;
    unsigned left = width - 1, node = 1;
    for (unsigned i = 0; i < SEAL_HEAD_BITS && left > 0; i++, left--) {
        const bool bit = bit_reader_get(bits, &models->head[width][node]);
        node = node << 1 | bit;
        value = value << 1 | bit;
    }
    return left > 0 ? value << left | bit_reader_plain(bits, left) : value;
}

// STATUS_CORRUPT: wider than any integer.
static enum status get_left(struct bit_reader *bits, struct seal_models *models, unsigned scale,
                            int64_t *left, unsigned *width)
{
    unsigned node = 1;
    for (unsigned i = 0; i < 7; i++)
        node = node << 1 | bit_reader_get(bits, &models->width[scale][node]);
    *width = node & (SEAL_WIDTHS - 1);
    *left = 0;
    if (*width == 0)
        return STATUS_OK;
    if (*width > 64)
        return STATUS_CORRUPT;
    const bool is_negative = bit_reader_get(bits, &models->sign[*width]);
    const uint64_t size = get_rest(bits, models, *width);
    *left = (int64_t)(is_negative ? 0 - size : size);
    return STATUS_OK;
}

static enum status get_values(struct seal_reader *reader, unsigned column,
                              struct seal_guesser *guesser, struct bit_reader *bits,
                              struct seal_models *models)
{
    const struct place *place = &reader->places[column];
    int64_t *values = reader->values[column];
    unsigned char *is_absent = reader->is_absent[column];
    unsigned width = 0, was_absent = 0;
    enum status status = STATUS_OK;
    for (uint32_t row = 0; row < reader->table.count && status == STATUS_OK; row++) {
        if (is_absent)
            was_absent = is_absent[row] = bit_reader_get(bits, &models->absent[was_absent]);
        if (was_absent)
            continue;
        int64_t left = 0;
        const int64_t guess = seal_guess_at(guesser, row);
        const unsigned scale = place->guess.way == SEAL_LINE ? guesser->scale : width != 0;
        if (!place->is_guessed)
            status = get_left(bits, models, scale, &left, &width);
        values[row] = seal_add(guess, left);
        seal_guess_was(guesser, row, values[row]);
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
    if (place->guess.way == SEAL_LINE)
        status = read_lines(lines, &at, place->end);
    if (status == STATUS_OK && (place->has_absent || !place->is_guessed))
        status = bit_reader_init(&bits, &at, place->end);
    if (status != STATUS_OK)
        return status;
    if (at != place->end)
        return STATUS_CORRUPT;
    struct seal_models *models = malloc(sizeof *models);
    if (!models)
        return STATUS_NOMEM;
    bit_models_init((struct bit_model *)models, sizeof *models / sizeof(struct bit_model));
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
    if (status == STATUS_OK && guess->way == SEAL_SAME)
        status = need_numbers(reader, 0, SEAL_ROWS_MAX, &reader->same, &reader->table.same);
    if (status == STATUS_OK && guess->way == SEAL_LINE)
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
