#include "common/store/schema/seal_decoder.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { FORMAT_FIRST = 1, FORMAT_SECOND = 2, NO_COLUMN = 255, GROUPS_MAX = 64 };
enum { HAS_ABSENT = 1, IS_EXACT = 2, FLAGS = 3 };

enum predictor {
    PREDICT_ZERO,
    PREDICT_PREVIOUS,     // the row before
    PREDICT_PREVIOUS_RUN, // the last row with the same column 0; else the row before
    PREDICT_ARRIVAL,      // keeps plus + value as in the row before
    PREDICT_LINE,         // plus + line(group, x - minus), or of (x - minus) / (over - 1)
    PREDICT_FIRST_FORMAT, // the first format has no others
    PREDICT_RATE = PREDICT_FIRST_FORMAT, // as PREDICT_LINE, with the quotient's fraction
    PREDICT_NEXT,                        // PREDICT_PREVIOUS + 1
    PREDICT_NEXT_RUN,                    // PREDICT_PREVIOUS_RUN + 1
    PREDICT_SEEN,                        // its value when x and minus were last the same
    PREDICT_BATCH, // from the last row to the first: keeps plus + value as in the row after
                   // it where a bit says so; else x plus the last such difference
    PREDICTORS,
};

// ---- Bytes and bits -------------------------------------------------------------------

struct bytes {
    const unsigned char *at, *end;
};

// A varint: seven bits a byte, lowest first.
static bool read_number(struct bytes *bytes, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; bytes->at < bytes->end && shift < 64; shift += 7) {
        const unsigned char byte = *bytes->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return shift < 63 || byte <= 1;
    }
    return false;
}

static bool read_span(struct bytes *bytes, struct bytes *out)
{
    uint64_t size = 0;
    if (!read_number(bytes, &size) || size > (size_t)(bytes->end - bytes->at))
        return false;
    *out = (struct bytes){bytes->at, bytes->at + size};
    bytes->at += size;
    return true;
}

// How a bit's probability adapts.  The first format averages a fast and a slow estimate;
// the second one counts, up to a limit.
enum { LEARN_AVERAGE = 0, LEARN_RECENT = 30, LEARN_LONG = 254 };

struct bit_decoder {
    unsigned learning;
    struct bytes coded, plain;
    size_t plain_bits; // read
    uint32_t range, code;
    bool is_over; // read beyond the end of `plain`
};

static unsigned char next_coded(struct bit_decoder *decoder)
{
    return decoder->coded.at < decoder->coded.end ? *decoder->coded.at++ : 0;
}

static bool start_bits(struct bit_decoder *decoder, struct bytes *bytes, unsigned learning)
{
    uint64_t coded = 0, plain = 0;
    if (!read_number(bytes, &coded) || !read_number(bytes, &plain) ||
        coded > (size_t)(bytes->end - bytes->at) ||
        plain != (size_t)(bytes->end - bytes->at) - coded)
        return false;
    *decoder = (struct bit_decoder){.learning = learning,
                                    .coded = {bytes->at, bytes->at + coded},
                                    .plain = {bytes->at + coded, bytes->end},
                                    .range = UINT32_MAX};
    for (unsigned i = 0; i < 4; i++)
        decoder->code = decoder->code << 8 | next_coded(decoder);
    return true;
}

// The part of `range` that a 0 takes.  A model's upper 16 bits are its probability.
static uint32_t range_of_zero(uint32_t model, uint32_t range, unsigned learning)
{
    uint32_t chance = model >> 16, least = 8;
    if (learning == LEARN_AVERAGE) {
        chance = (chance + (model & 0xffff)) >> 1;
        least = 64;
    }
    const uint32_t most = 65536 - least;
    return (range >> 16) * (chance < least ? least : chance > most ? most : chance);
}

static void learn_average(uint32_t *model, bool bit)
{
    uint32_t fast = *model & 0xffff, slow = *model >> 16;
    fast = bit ? fast - (fast >> 4) : fast + ((65535 - fast) >> 4);
    slow = bit ? slow - (slow >> 6) : slow + ((65535 - slow) >> 6);
    *model = slow << 16 | fast;
}

// The n-th bit counts for 1 / (n + 1.5), in 65536ths.
static void learn_counted(uint32_t *model, bool bit, uint32_t most)
{
    const uint32_t count = *model & 1023, rate = 131072 / (2 * count + 3);
    uint32_t chance = *model >> 10;
    if (bit)
        chance -= (uint32_t)((uint64_t)chance * rate >> 16);
    else
        chance += (uint32_t)((uint64_t)((UINT32_MAX >> 10) - chance) * rate >> 16);
    *model = chance << 10 | (count < most ? count + 1 : count);
}

static bool get_bit(struct bit_decoder *decoder, uint32_t *model)
{
    const uint32_t zero = range_of_zero(*model, decoder->range, decoder->learning);
    const bool bit = decoder->code >= zero;
    decoder->code -= bit ? zero : 0;
    decoder->range = bit ? decoder->range - zero : zero;
    if (decoder->learning == LEARN_AVERAGE)
        learn_average(model, bit);
    else
        learn_counted(model, bit, decoder->learning);
    while (decoder->range < UINT32_C(1) << 24) {
        decoder->range <<= 8;
        decoder->code = decoder->code << 8 | next_coded(decoder);
    }
    return bit;
}

static uint64_t get_plain(struct bit_decoder *decoder, unsigned count)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < count; i++, decoder->plain_bits++) {
        const unsigned char *byte = decoder->plain.at + decoder->plain_bits / 8;
        decoder->is_over |= byte >= decoder->plain.end;
        value = value << 1 | (!decoder->is_over && (*byte >> (7 - decoder->plain_bits % 8) & 1));
    }
    return value;
}

// ---- Residuals ------------------------------------------------------------------------

enum { SCALES = 70 }; // contexts of a residual's width

struct models {
    uint32_t zero[SCALES], width[SCALES][128];
    uint32_t sign[65], head[65][8], absent[2], batch[2];
};

static unsigned get_tree(struct bit_decoder *bits, uint32_t *models, unsigned depth)
{
    unsigned node = 1;
    for (unsigned i = 0; i < depth; i++)
        node = node << 1 | get_bit(bits, &models[node]);
    return node - (1U << depth);
}

// False: wider than 64 bits.
static bool get_residual(struct bit_decoder *bits, struct models *models, unsigned scale,
                         uint64_t *out)
{
    const bool is_first = bits->learning == LEARN_AVERAGE;
    unsigned width = 0;
    *out = 0;
    if (is_first)
        width = get_tree(bits, models->width[scale], 7);
    else if (!get_bit(bits, &models->zero[scale]))
        width = get_tree(bits, models->width[scale], 6) + 1;
    if (width == 0 || width > 64)
        return width == 0;
    const bool is_negative = get_bit(bits, &models->sign[width]);
    uint64_t value = 1;
    unsigned left = width - 1, node = 1;
    for (unsigned i = 0; i < (is_first ? 2U : 3U) && left > 0; i++, left--) {
        const bool bit = get_bit(bits, &models->head[width][node]);
        node = node << 1 | bit;
        value = value << 1 | bit;
    }
    if (left > 0)
        value = value << left | get_plain(bits, left);
    *out = is_negative ? 0 - value : value;
    return true;
}

// ---- Predictions ----------------------------------------------------------------------

struct line {
    uint64_t slope, base; // fixed point, signed
};

enum { SEEN_BITS = 12, STREAK_MAX = 3 };

struct segment {
    struct seal_rows *rows;
    unsigned format, group; // the column that lines depend on
};

// One column being decoded.
struct column {
    const struct segment *segment;
    unsigned place;
    bool is_exact; // all residuals are 0 and not stored
    unsigned char predictor, plus, x, minus, over;
    struct line lines[GROUPS_MAX];
    unsigned char groups[SEAL_ROWS_MAX]; // the line of each row
    uint64_t seen[1 << SEEN_BITS];       // by hash of x and minus
    uint64_t last, beyond;
    unsigned scale, width, streak; // of a line; of the last residual; of zeros in a row
    struct bit_decoder bits;
    struct models models;
};

static unsigned bit_length(uint64_t value)
{
    return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

static bool is_line(const struct column *column)
{
    return column->predictor == PREDICT_LINE || column->predictor == PREDICT_RATE;
}

// As 64 bits that wrap; 0 where the value is absent, or there is no such column.
static uint64_t value_at(const struct column *column, unsigned char of, uint32_t row)
{
    const struct seal_rows *rows = column->segment->rows;
    if (of == NO_COLUMN || (rows->is_absent[of] && rows->is_absent[of][row]))
        return 0;
    return (uint64_t)rows->values[of][row];
}

static uint64_t predict_line(struct column *column, uint32_t row)
{
    const struct line *line = &column->lines[column->groups[row]];
    const bool is_rate = column->predictor == PREDICT_RATE;
    const unsigned point = is_rate ? 30 : 20;
    const int64_t over = (int64_t)value_at(column, column->over, row);
    const int64_t parts = over > 1 ? over - 1 : 0;
    int64_t x = (int64_t)(value_at(column, column->x, row) - value_at(column, column->minus, row));
    int64_t rest = 0;
    if (column->over != NO_COLUMN) {
        rest = is_rate && parts > 0 ? x % parts : 0;
        x = parts > 0 ? x / parts : 0;
    }
    uint64_t sum = line->slope * (uint64_t)x + line->base + (UINT64_C(1) << (point - 1));
    if (rest != 0)
        sum += (uint64_t)((int64_t)(line->slope * (uint64_t)rest) / parts);
    const int64_t at = (int64_t)sum >> point;
    column->scale = bit_length((uint64_t)(at < 0 ? ~at : at));
    return value_at(column, column->plus, row) + (uint64_t)at;
}

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    return value ^ value >> 29;
}

static uint64_t *seen_at(struct column *column, uint32_t row)
{
    const uint64_t minus = mix(value_at(column, column->minus, row));
    return &column->seen[mix(value_at(column, column->x, row) + minus) >> (64 - SEEN_BITS)];
}

// The value that makes its sum with `plus` that of another row, whose value was the last.
static uint64_t same_sum(const struct column *column, uint32_t row, uint32_t other)
{
    return value_at(column, column->plus, other) + column->last -
           value_at(column, column->plus, row);
}

static uint64_t last_of_run(const struct column *column, uint32_t row)
{
    const unsigned char *is_absent = column->segment->rows->is_absent[column->place];
    for (uint32_t before = row; before-- > 0;)
        if (value_at(column, 0, before) == value_at(column, 0, row) &&
            !(is_absent && is_absent[before]))
            return value_at(column, (unsigned char)column->place, before);
    return column->last;
}

static uint64_t predict(struct column *column, uint32_t row)
{
    switch ((enum predictor)column->predictor) {
    case PREDICT_PREVIOUS:
        return column->last;
    case PREDICT_NEXT:
        return column->last + 1;
    case PREDICT_PREVIOUS_RUN:
        return last_of_run(column, row);
    case PREDICT_NEXT_RUN:
        return last_of_run(column, row) + 1;
    case PREDICT_ARRIVAL:
        return row == 0 ? 0 : same_sum(column, row, row - 1);
    case PREDICT_LINE:
    case PREDICT_RATE:
        return predict_line(column, row);
    case PREDICT_SEEN:
        return *seen_at(column, row);
    case PREDICT_BATCH:
        return value_at(column, column->x, row) + column->beyond;
    case PREDICT_ZERO:
    case PREDICTORS:
        break;
    }
    return 0;
}

static unsigned scale_of(const struct column *column)
{
    if (is_line(column))
        return column->scale;
    if (column->segment->format == FORMAT_FIRST || column->predictor == PREDICT_ZERO)
        return column->width != 0;
    return column->width ? STREAK_MAX + column->width : column->streak;
}

static void remember(struct column *column, uint32_t row, uint64_t value, uint64_t residual)
{
    if (column->predictor == PREDICT_SEEN)
        *seen_at(column, row) = value;
    else if (column->predictor == PREDICT_BATCH)
        column->beyond = value - value_at(column, column->x, row);
    column->last = value;
    column->width = bit_length(residual >> 63 ? 0 - residual : residual);
    if (column->width != 0)
        column->streak = 0;
    else if (column->streak < STREAK_MAX)
        column->streak++;
}

// ---- Columns --------------------------------------------------------------------------

static bool get_value(struct column *column, uint32_t row, uint64_t *value)
{
    if (!column->is_exact && column->predictor == PREDICT_BATCH &&
        row + 1 < column->segment->rows->count) {
        const bool is_likely =
            value_at(column, column->over, row) == value_at(column, column->over, row + 1);
        if (get_bit(&column->bits, &column->models.batch[is_likely])) {
            *value = column->last = same_sum(column, row, row + 1);
            return true;
        }
    }
    uint64_t residual = 0;
    const uint64_t predicted = predict(column, row);
    if (!column->is_exact &&
        !get_residual(&column->bits, &column->models, scale_of(column), &residual))
        return false;
    *value = predicted + residual;
    remember(column, row, *value, residual);
    return true;
}

static bool get_values(struct column *column)
{
    const struct seal_rows *rows = column->segment->rows;
    unsigned char *is_absent = rows->is_absent[column->place];
    unsigned was_absent = 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        const uint32_t row = column->predictor == PREDICT_BATCH ? rows->count - 1 - i : i;
        if (is_absent)
            was_absent = is_absent[row] =
                get_bit(&column->bits, &column->models.absent[was_absent]);
        uint64_t value = 0;
        if (!was_absent && !get_value(column, row, &value))
            return false;
        rows->values[column->place][row] = (int64_t)value;
    }
    return !column->bits.is_over;
}

// Numbers the distinct values of the group's column by first appearance; those beyond the
// limit share the last number.
static void find_groups(struct column *column)
{
    uint64_t known[GROUPS_MAX];
    unsigned count = 0;
    for (uint32_t row = 0; row < column->segment->rows->count; row++) {
        const uint64_t value = value_at(column, (unsigned char)column->segment->group, row);
        unsigned place = 0;
        while (place < count && known[place] != value)
            place++;
        if (place == count && count < GROUPS_MAX)
            known[count++] = value;
        column->groups[row] = (unsigned char)(place < GROUPS_MAX ? place : GROUPS_MAX - 1);
    }
}

// One line alone serves all groups.
static bool read_lines(struct column *column, struct bytes *bytes)
{
    uint64_t count = 0, shifts[2] = {0, 0}, value = 0;
    bool is_sound = read_number(bytes, &count) && count <= GROUPS_MAX;
    find_groups(column);
    for (unsigned i = 0; is_sound && column->segment->format != FORMAT_FIRST && i < 2; i++)
        is_sound = read_number(bytes, &shifts[i]) && shifts[i] < 64;
    for (uint64_t i = 0; is_sound && i < 2 * count; i++) {
        is_sound = read_number(bytes, &value);
        value = (value >> 1 ^ (0 - (value & 1))) << shifts[i % 2];
        *(i % 2 ? &column->lines[i / 2].base : &column->lines[i / 2].slope) = value;
    }
    for (unsigned i = 1; i < GROUPS_MAX && count == 1; i++)
        column->lines[i] = column->lines[0];
    return is_sound;
}

static bool read_predictor(struct column *column, struct bytes *bytes, unsigned char *flags)
{
    const unsigned predictors =
        column->segment->format == FORMAT_FIRST ? PREDICT_FIRST_FORMAT : PREDICTORS;
    if (bytes->end - bytes->at < 2 || bytes->at[0] & ~FLAGS || bytes->at[1] >= predictors)
        return false;
    *flags = *bytes->at++;
    column->predictor = *bytes->at++;
    column->plus = column->x = column->minus = column->over = NO_COLUMN;
    if ((column->predictor == PREDICT_PREVIOUS_RUN || column->predictor == PREDICT_NEXT_RUN) &&
        column->place == 0)
        return false;
    if (column->predictor < PREDICT_ARRIVAL)
        return true;
    if (bytes->end - bytes->at < 4 || (is_line(column) && column->segment->group >= column->place))
        return false;
    unsigned char *const fields[] = {&column->plus, &column->x, &column->minus, &column->over};
    for (unsigned i = 0; i < 4; i++) {
        *fields[i] = *bytes->at++;
        if (*fields[i] != NO_COLUMN && *fields[i] >= column->place)
            return false;
    }
    return !is_line(column) || read_lines(column, bytes);
}

static void init_models(struct column *column, unsigned learning)
{
    uint32_t *models = (uint32_t *)&column->models;
    for (size_t i = 0; i < sizeof column->models / sizeof *models; i++)
        models[i] = learning == LEARN_AVERAGE ? 0x80008000 : 0x80000000;
}

static enum status decode_column(struct column *column, struct bytes bytes)
{
    struct seal_rows *rows = column->segment->rows;
    unsigned char flags = 0;
    if (!read_predictor(column, &bytes, &flags))
        return STATUS_CORRUPT;
    column->is_exact = flags & IS_EXACT;
    const bool is_long = column->predictor == PREDICT_ZERO || is_line(column);
    const unsigned learning = column->segment->format == FORMAT_FIRST ? LEARN_AVERAGE
                              : is_long                               ? LEARN_LONG
                                                                      : LEARN_RECENT;
    init_models(column, learning);
    const bool has_bits = (flags & HAS_ABSENT) || !column->is_exact;
    if (has_bits ? !start_bits(&column->bits, &bytes, learning) : bytes.at != bytes.end)
        return STATUS_CORRUPT;
    rows->values[column->place] = calloc(rows->count, sizeof **rows->values);
    if (flags & HAS_ABSENT)
        rows->is_absent[column->place] = calloc(rows->count, 1);
    if (!rows->values[column->place] || ((flags & HAS_ABSENT) && !rows->is_absent[column->place]))
        return STATUS_NOMEM;
    return get_values(column) ? STATUS_OK : STATUS_CORRUPT;
}

static enum status decode_columns(struct segment *segment, struct bytes *bytes)
{
    struct seal_rows *rows = segment->rows;
    struct column *column = malloc(sizeof *column);
    enum status status = column ? STATUS_OK : STATUS_NOMEM;
    for (unsigned i = 0; i < rows->columns && status == STATUS_OK; i++) {
        struct bytes own;
        memset(column, 0, sizeof *column);
        column->segment = segment;
        column->place = i;
        status = read_span(bytes, &own) ? decode_column(column, own) : STATUS_CORRUPT;
    }
    free(column);
    return status == STATUS_OK && bytes->at != bytes->end ? STATUS_CORRUPT : status;
}

enum status seal_decode(struct seal_rows *out, const void *data, size_t size)
{
    struct bytes bytes = {data, (const unsigned char *)data + size};
    struct segment segment = {.rows = out};
    uint64_t count = 0, columns = 0, group = 0;
    *out = (struct seal_rows){0};
    if (size == 0)
        return STATUS_CORRUPT;
    segment.format = *bytes.at++;
    if (segment.format != FORMAT_FIRST && segment.format != FORMAT_SECOND)
        return STATUS_UNSUPPORTED;
    if (!read_number(&bytes, &count) || !read_number(&bytes, &columns) ||
        !read_number(&bytes, &group) || count < 1 || count > SEAL_ROWS_MAX || columns < 1 ||
        columns > SEAL_COLUMNS_MAX || group >= columns)
        return STATUS_CORRUPT;
    out->count = (uint32_t)count;
    out->columns = (unsigned)columns;
    segment.group = (unsigned)group;
    for (unsigned i = 0; i < out->columns; i++) {
        struct bytes name;
        if (!read_span(&bytes, &name) || name.end - name.at > SEAL_NAME_MAX)
            return STATUS_CORRUPT;
        memcpy(out->names[i], name.at, (size_t)(name.end - name.at));
    }
    enum status status = decode_columns(&segment, &bytes);
    if (status != STATUS_OK)
        seal_rows_deinit(out);
    return status;
}

void seal_rows_deinit(struct seal_rows *rows)
{
    for (unsigned i = 0; i < SEAL_COLUMNS_MAX; i++) {
        free(rows->values[i]);
        free(rows->is_absent[i]);
    }
    *rows = (struct seal_rows){0};
}
