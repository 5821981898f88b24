// Writing sealed rows (seal_codec.h).
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/seal_guess.h"

// A column with the guess that is tried, and the cheapest so far.
struct attempt {
    struct seal_table table;
    unsigned column;
    struct seal_guess best;
    struct seal_line best_lines[SEAL_GROUPS_MAX];
    double best_bits;   // what it takes, about
    bool is_best_exact; // nothing is left of any row
    uint16_t *same, *group;
    struct seal_models *models;
};

struct seal_writer {
    struct attempt attempt;
    struct seal_guess guesses[SEAL_GUESSES_MAX];
    unsigned guess_count;
    struct byte_sink sink;
};

static bool is_there(const struct seal_table *table, unsigned column, uint32_t row)
{
    return !table->is_absent[column] || !table->is_absent[column][row];
}

// ---- Lines ----------------------------------------------------------------------------

// Sums for a least-squares line, about the group's first point: what is far from 0 would
// lose its digits.
struct sums {
    double n, x, y, xx, xy;
    int64_t x0, y0;
};

static int64_t fixed(double value)
{
    const double scaled = value * (double)(1 << SEAL_POINT);
    return fabs(scaled) < 0x1p62 ? llround(scaled) : 0;
}

static void fit_group(const struct sums *sums, struct seal_line *line)
{
    *line = (struct seal_line){0, 0};
    if (sums->n <= 0)
        return;
    const double spread = sums->n * sums->xx - sums->x * sums->x;
    const double slope = spread > 0 ? (sums->n * sums->xy - sums->x * sums->y) / spread : 0;
    line->slope = fixed(slope);
    // The line as it is kept goes through the middle of the points.
    const double kept = (double)line->slope / (double)(1 << SEAL_POINT);
    const double middle = (sums->y - kept * sums->x) / sums->n;
    line->base = fixed((double)sums->y0 - kept * (double)sums->x0 + middle);
}

static void fit_lines(const struct attempt *attempt, const struct seal_guess *guess,
                      struct seal_line *lines)
{
    const struct seal_table *table = &attempt->table;
    struct sums sums[SEAL_GROUPS_MAX] = {{0}};
    for (uint32_t row = 0; row < table->count; row++) {
        if (!is_there(table, attempt->column, row))
            continue;
        struct sums *sum = &sums[table->group[row]];
        const int64_t x = seal_operand(table, guess, row);
        const int64_t y =
            seal_subtract(table->values[attempt->column][row], seal_value(table, guess->plus, row));
        if (sum->n == 0) {
            sum->x0 = x;
            sum->y0 = y;
        }
        const double dx = (double)x - (double)sum->x0, dy = (double)y - (double)sum->y0;
        sum->n++;
        sum->x += dx;
        sum->y += dy;
        sum->xx += dx * dx;
        sum->xy += dx * dy;
    }
    for (unsigned i = 0; i < SEAL_GROUPS_MAX; i++)
        fit_group(&sums[i], &lines[i]);
}

// ---- The cheapest guess ---------------------------------------------------------------

// How many values there were of each width and sign.
struct widths {
    uint32_t of[65], negative[65], count;
};

static double bits_of(uint32_t part, uint32_t whole)
{
    return part > 0 ? part * log2((double)whole / part) : 0;
}

// What an ideal coder takes for widths and signs, and one bit for each bit below.
static double widths_bits(const struct widths *widths)
{
    double bits = 0;
    for (unsigned i = 0; i <= 64; i++) {
        const uint32_t all = widths->of[i], negative = widths->negative[i];
        bits += bits_of(all, widths->count) + (i > 1 ? (double)all * (i - 1) : 0);
        bits += bits_of(negative, all) + bits_of(all - negative, all);
    }
    return bits;
}

static enum status try_guess(struct attempt *attempt, const struct seal_guess *guess)
{
    struct seal_line lines[SEAL_GROUPS_MAX] = {{0}};
    struct seal_guesser guesser;
    struct widths widths = {{0}, {0}, 0};
    if (guess->way == SEAL_LINE)
        fit_lines(attempt, guess, lines);
    enum status status = seal_guesser_init(&guesser, &attempt->table, guess, lines);
    if (status != STATUS_OK)
        return status;
    for (uint32_t row = 0; row < attempt->table.count; row++) {
        if (!is_there(&attempt->table, attempt->column, row))
            continue;
        const int64_t value = attempt->table.values[attempt->column][row];
        const int64_t left = seal_subtract(value, seal_guess_at(&guesser, row));
        const unsigned width = seal_bits(left < 0 ? 0 - (uint64_t)left : (uint64_t)left);
        widths.of[width]++;
        widths.negative[width] += left < 0;
        widths.count++;
        seal_guess_was(&guesser, row, value);
    }
    seal_guesser_deinit(&guesser);
    const double bits = widths_bits(&widths);
    if (bits < attempt->best_bits) {
        attempt->best_bits = bits;
        attempt->is_best_exact = widths.of[0] == widths.count;
        attempt->best = *guess;
        memcpy(attempt->best_lines, lines, sizeof lines);
    }
    return STATUS_OK;
}

static enum status choose(struct attempt *attempt, const struct seal_guess *guesses, unsigned count)
{
    enum status status = STATUS_OK;
    attempt->best_bits = INFINITY;
    for (unsigned way = SEAL_ZERO; way <= SEAL_SAME && status == STATUS_OK; way++)
        if (way != SEAL_SAME || attempt->column > 0)
            status =
                try_guess(attempt, &(struct seal_guess){.column = (unsigned char)attempt->column,
                                                        .way = (unsigned char)way,
                                                        .plus = SEAL_NONE,
                                                        .x = SEAL_NONE,
                                                        .minus = SEAL_NONE,
                                                        .over = SEAL_NONE});
    for (unsigned i = 0; i < count && status == STATUS_OK; i++)
        if (guesses[i].column == attempt->column)
            status = try_guess(attempt, &guesses[i]);
    return status;
}

// ---- Bytes ----------------------------------------------------------------------------

// Of `value` the bits below its highest one: the first few as likely as they have been.
static void put_rest(struct bit_writer *writer, struct seal_models *models, uint64_t value,
                     unsigned width)
{
    if (width < 2)
        return;
    unsigned left = width - 1, node = 1;
    for (unsigned i = 0; i < SEAL_HEAD_BITS && left > 0; i++) {
        const bool bit = value >> --left & 1;
        bit_writer_put(writer, &models->head[width][node], bit);
        node = node << 1 | bit;
    }
    bit_writer_plain(writer, value, left);
}

static void put_left(struct bit_writer *writer, struct seal_models *models, unsigned scale,
                     int64_t left, unsigned *width)
{
    const bool is_negative = left < 0;
    const uint64_t size = is_negative ? 0 - (uint64_t)left : (uint64_t)left;
    unsigned node = 1;
    *width = seal_bits(size);
    for (unsigned i = 7; i-- > 0;) {
        const bool bit = *width >> i & 1;
        bit_writer_put(writer, &models->width[scale][node], bit);
        node = node << 1 | bit;
    }
    if (*width == 0)
        return;
    bit_writer_put(writer, &models->sign[*width], is_negative);
    put_rest(writer, models, size, *width);
}

static enum status put_values(const struct attempt *attempt, struct byte_sink *sink)
{
    struct bit_writer writer;
    struct seal_guesser guesser;
    struct seal_models *models = attempt->models;
    bit_models_init((struct bit_model *)models, sizeof *models / sizeof(struct bit_model));
    enum status status =
        seal_guesser_init(&guesser, &attempt->table, &attempt->best, attempt->best_lines);
    if (status != STATUS_OK)
        return status;
    bit_writer_init(&writer);
    const unsigned char *is_absent = attempt->table.is_absent[attempt->column];
    unsigned width = 0, was_absent = 0;
    for (uint32_t row = 0; row < attempt->table.count; row++) {
        if (is_absent)
            bit_writer_put(&writer, &models->absent[was_absent], is_absent[row]);
        was_absent = is_absent && is_absent[row];
        if (was_absent || attempt->is_best_exact)
            continue;
        const int64_t value = attempt->table.values[attempt->column][row];
        const int64_t left = seal_subtract(value, seal_guess_at(&guesser, row));
        const unsigned scale = attempt->best.way == SEAL_LINE ? guesser.scale : width != 0;
        put_left(&writer, models, scale, left, &width);
        seal_guess_was(&guesser, row, value);
    }
    seal_guesser_deinit(&guesser);
    status = bit_writer_end(&writer, sink);
    bit_writer_deinit(&writer);
    return status;
}

// A signed number as one that is small where its distance from 0 is.
static uint64_t folded(int64_t value)
{
    return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

static void put_lines(const struct attempt *attempt, struct byte_sink *sink)
{
    unsigned count = 0;
    for (uint32_t row = 0; row < attempt->table.count; row++)
        if (attempt->group[row] >= count)
            count = attempt->group[row] + 1U;
    byte_sink_number(sink, count);
    for (unsigned i = 0; i < count; i++) {
        const struct seal_line *line = &attempt->best_lines[i];
        byte_sink_number(sink, folded(line->slope));
        byte_sink_number(sink, folded(line->base));
    }
}

// A column: flags, guess, lines, bits.
enum { HAS_ABSENT = 1, IS_GUESSED = 2 };

static enum status put_column(struct attempt *attempt, struct byte_sink *sink)
{
    const struct seal_guess *best = &attempt->best;
    const bool has_absent = attempt->table.is_absent[attempt->column] != NULL;
    const bool is_guessed = attempt->is_best_exact;
    struct byte_sink body = {0};
    byte_sink_put(&body, (unsigned char)(has_absent * HAS_ABSENT + is_guessed * IS_GUESSED));
    byte_sink_append(&body, &best->way, 1);
    if (best->way == SEAL_LINE || best->way == SEAL_ARRIVAL) {
        const unsigned char from[] = {best->plus, best->x, best->minus, best->over};
        byte_sink_append(&body, from, sizeof from);
    }
    if (best->way == SEAL_LINE)
        put_lines(attempt, &body);
    enum status status = STATUS_OK;
    if (has_absent || !is_guessed)
        status = put_values(attempt, &body);
    byte_sink_number(sink, body.size);
    byte_sink_append(sink, body.bytes, body.size);
    if (status == STATUS_OK && (body.has_failed || sink->has_failed))
        status = STATUS_NOMEM;
    byte_sink_deinit(&body);
    return status;
}

static void put_head(const struct seal_rows *rows, struct byte_sink *sink)
{
    byte_sink_put(sink, SEAL_FORMAT);
    byte_sink_number(sink, rows->count);
    byte_sink_number(sink, rows->columns);
    byte_sink_number(sink, rows->group);
    for (unsigned i = 0; i < rows->columns; i++) {
        const size_t size = strlen(rows->names[i]);
        byte_sink_number(sink, size);
        byte_sink_append(sink, rows->names[i], size);
    }
}

static enum status begin(struct attempt *attempt, const struct seal_rows *rows)
{
    for (unsigned i = 0; i < rows->columns; i++) {
        attempt->table.values[i] = rows->values[i];
        attempt->table.is_absent[i] = rows->is_absent[i];
    }
    attempt->same = malloc(rows->count * sizeof *attempt->same);
    attempt->group = malloc(rows->count * sizeof *attempt->group);
    attempt->models = malloc(sizeof *attempt->models);
    if (!attempt->same || !attempt->group || !attempt->models)
        return STATUS_NOMEM;
    attempt->table.same = attempt->same;
    attempt->table.group = attempt->group;
    enum status status =
        seal_number(rows->values[0], rows->is_absent[0], rows->count, SEAL_ROWS_MAX, attempt->same);
    if (status == STATUS_OK)
        status = seal_number(rows->values[rows->group], rows->is_absent[rows->group], rows->count,
                             SEAL_GROUPS_MAX, attempt->group);
    return status;
}

enum status seal_writer_new(struct seal_writer **out, const struct seal_rows *rows,
                            const struct seal_guess *guesses, unsigned guess_count)
{
    struct seal_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return STATUS_NOMEM;
    writer->guess_count = guess_count;
    memcpy(writer->guesses, guesses, guess_count * sizeof *guesses);
    writer->attempt.table = (struct seal_table){.count = rows->count, .columns = rows->columns};
    enum status status = begin(&writer->attempt, rows);
    put_head(rows, &writer->sink);
    if (status != STATUS_OK) {
        seal_writer_free(writer);
        return status;
    }
    *out = writer;
    return STATUS_OK;
}

enum status seal_writer_step(struct seal_writer *writer, bool *is_done)
{
    struct attempt *attempt = &writer->attempt;
    enum status status = choose(attempt, writer->guesses, writer->guess_count);
    if (status == STATUS_OK)
        status = put_column(attempt, &writer->sink);
    attempt->column++;
    *is_done = attempt->column == attempt->table.columns;
    return status;
}

const void *seal_writer_bytes(const struct seal_writer *writer, size_t *size)
{
    *size = writer->sink.size;
    return writer->sink.bytes;
}

void seal_writer_free(struct seal_writer *writer)
{
    if (!writer)
        return;
    free(writer->attempt.same);
    free(writer->attempt.group);
    free(writer->attempt.models);
    byte_sink_deinit(&writer->sink);
    free(writer);
}
