// Writing sealed rows (seal_codec.h).
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/seal_guess.h"

enum {
    SAMPLE_PART = 4, // of the rows, by which a guess is chosen
    SAMPLE_LEAST = 1024,
    ENOUGH_PART = 32, // of a bit a row: then no other guess is tried
    WORTH_PART = 128, // what another one must be better by
    FINER_BITS = 6,   // that lines are finer than what is left beside them
};

// Lines as they are written: one a group or, where one is enough, one; their slopes and
// bases without so many bits at their end.
struct lines {
    unsigned count, slope_shift, base_shift;
    struct seal_line of[SEAL_GROUPS_MAX]; // every group's
};

// What becomes of a column by a guess.
struct outcome {
    struct seal_guess guess;
    struct lines lines;
    double bits;   // what it takes, about
    bool is_exact; // nothing is left of any row
};

// A column with the guess that is tried, and the cheapest so far.
struct attempt {
    struct seal_table table;
    unsigned column;
    unsigned groups;    // how many there are
    uint32_t looked_at; // rows
    struct outcome tried, best;
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

static int64_t fixed(double value, unsigned point)
{
    const double scaled = value * (double)(1 << point);
    return fabs(scaled) < 0x1p62 ? llround(scaled) : 0;
}

// To the nearest number with so many zeros at its end.
static int64_t rounded(int64_t value, unsigned shift)
{
    if (shift == 0)
        return value;
    const uint64_t half = UINT64_C(1) << (shift - 1);
    return (int64_t)(((uint64_t)value + half) & ~(2 * half - 1));
}

static struct seal_line fit(const struct sums *sums, unsigned point, const struct lines *lines)
{
    struct seal_line line = {0, 0};
    if (sums->n <= 0)
        return line;
    const double spread = sums->n * sums->xx - sums->x * sums->x;
    const double slope = spread > 0 ? (sums->n * sums->xy - sums->x * sums->y) / spread : 0;
    line.slope = rounded(fixed(slope, point), lines->slope_shift);
    // The line as it is kept goes through the middle of the points.
    const double kept = (double)line.slope / (double)(1 << point);
    const double middle = (sums->y - kept * sums->x) / sums->n;
    line.base = rounded(fixed((double)sums->y0 - kept * (double)sums->x0 + middle, point),
                        lines->base_shift);
    return line;
}

static void add_point(struct sums *sum, const struct seal_operand *x, int64_t y)
{
    if (sum->n == 0) {
        sum->x0 = x->whole;
        sum->y0 = y;
    }
    const double dx = (double)x->whole - (double)sum->x0 + (double)x->rest / (double)x->parts;
    const double dy = (double)y - (double)sum->y0;
    sum->n++;
    sum->x += dx;
    sum->y += dy;
    sum->xx += dx * dx;
    sum->xy += dx * dy;
}

// Fits as many lines as are wanted, with their shifts.
static void fit_lines(const struct attempt *attempt, const struct seal_guess *guess,
                      struct lines *lines)
{
    const struct seal_table *table = &attempt->table;
    struct sums sums[SEAL_GROUPS_MAX] = {{0}};
    for (uint32_t row = 0; row < attempt->looked_at; row++) {
        if (!is_there(table, attempt->column, row))
            continue;
        const struct seal_operand x = seal_operand(table, guess, row);
        const int64_t y =
            seal_subtract(table->values[attempt->column][row], seal_value(table, guess->plus, row));
        add_point(&sums[lines->count > 1 ? table->group[row] : 0], &x, y);
    }
    for (unsigned i = 0; i < SEAL_GROUPS_MAX; i++)
        lines->of[i] = i < lines->count ? fit(&sums[i], seal_point(guess), lines) : lines->of[0];
}

// A signed number as one that is small where its distance from 0 is.
static uint64_t folded(int64_t value)
{
    return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

static void put_lines(const struct lines *lines, struct byte_sink *sink)
{
    byte_sink_number(sink, lines->count);
    byte_sink_number(sink, lines->slope_shift);
    byte_sink_number(sink, lines->base_shift);
    for (unsigned i = 0; i < lines->count; i++) {
        byte_sink_number(sink, folded(lines->of[i].slope >> lines->slope_shift));
        byte_sink_number(sink, folded(lines->of[i].base >> lines->base_shift));
    }
}

// About what put_lines takes.
static double lines_bits(const struct lines *lines)
{
    double bits = 0;
    for (unsigned i = 0; i < lines->count; i++)
        bits += 18 + seal_width(lines->of[i].slope >> lines->slope_shift) +
                seal_width(lines->of[i].base >> lines->base_shift);
    return bits;
}

// ---- The cheapest guess ---------------------------------------------------------------

// How many values there were of each width and sign, and how many guesses at a whole one
// were wrong and right, by whether they were likely.
struct widths {
    uint32_t of[65], negative[65], count;
    uint32_t whole[2][2];
};

static double bits_of(uint32_t part, uint32_t whole)
{
    return part > 0 ? part * log2((double)whole / part) : 0;
}

static double either_bits(uint32_t one, uint32_t other)
{
    return bits_of(one, one + other) + bits_of(other, one + other);
}

// What an ideal coder takes for widths and signs, and one bit for each bit below.
static double widths_bits(const struct widths *widths)
{
    double bits = 0;
    for (unsigned i = 0; i <= 64; i++) {
        const uint32_t all = widths->of[i], negative = widths->negative[i];
        bits += bits_of(all, widths->count) + (i > 1 ? (double)all * (i - 1) : 0);
        bits += either_bits(negative, all - negative);
    }
    for (unsigned i = 0; i < 2; i++)
        bits += either_bits(widths->whole[i][0], widths->whole[i][1]);
    return bits;
}

static void count_width(struct widths *widths, struct seal_guesser *guesser, uint32_t row,
                        int64_t value)
{
    int64_t guess = 0;
    bool is_likely = false;
    if (seal_guess_whole(guesser, row, &guess, &is_likely)) {
        widths->whole[is_likely][guess == value]++;
        if (guess == value) {
            seal_guess_was_whole(guesser, value);
            return;
        }
    }
    const int64_t left = seal_subtract(value, seal_guess_at(guesser, row));
    const unsigned width = seal_width(left);
    widths->of[width]++;
    widths->negative[width] += left < 0;
    widths->count++;
    seal_guess_was(guesser, row, value, left);
}

// What comes of what is tried, for the rows that are looked at.
static enum status weigh(struct attempt *attempt)
{
    struct outcome *tried = &attempt->tried;
    struct seal_guesser guesser;
    struct widths widths = {{0}, {0}, 0, {{0}}};
    if (seal_is_line(&tried->guess))
        fit_lines(attempt, &tried->guess, &tried->lines);
    enum status status =
        seal_guesser_init(&guesser, &attempt->table, &tried->guess, tried->lines.of);
    if (status != STATUS_OK)
        return status;
    for (uint32_t i = 0; i < attempt->looked_at; i++) {
        const uint32_t row = seal_guess_row(&guesser, i);
        if (is_there(&attempt->table, attempt->column, row))
            count_width(&widths, &guesser, row, attempt->table.values[attempt->column][row]);
    }
    seal_guesser_deinit(&guesser);
    tried->is_exact = widths.of[0] == widths.count && tried->guess.way != SEAL_BATCH;
    tried->bits = widths_bits(&widths);
    if (seal_is_line(&tried->guess))
        tried->bits += lines_bits(&tried->lines);
    if (tried->bits + (double)attempt->looked_at / WORTH_PART < attempt->best.bits)
        attempt->best = *tried;
    return STATUS_OK;
}

static enum status try_guess(struct attempt *attempt, const struct seal_guess *guess)
{
    attempt->tried = (struct outcome){.guess = *guess, .lines.count = attempt->groups};
    return weigh(attempt);
}

static unsigned less(unsigned a, unsigned b)
{
    return a > b ? a - b : 0;
}

// How large what lines go over is, in bits.
static unsigned operand_bits(const struct attempt *attempt, const struct seal_guess *guess)
{
    double sum = 0;
    for (uint32_t row = 0; row < attempt->table.count; row++)
        sum += fabs((double)seal_operand(&attempt->table, guess, row).whole);
    return seal_bits((uint64_t)(sum / attempt->table.count));
}

static enum status try_coarser(struct attempt *attempt, const struct outcome *fine, unsigned count)
{
    const unsigned left = (unsigned)(fine->bits / attempt->looked_at);
    const unsigned shift = less(left + seal_point(&fine->guess), FINER_BITS);
    attempt->tried = (struct outcome){.guess = fine->guess, .lines.count = count};
    attempt->tried.lines.base_shift = shift < 62 ? shift : 62;
    attempt->tried.lines.slope_shift =
        less(attempt->tried.lines.base_shift, operand_bits(attempt, &fine->guess));
    return weigh(attempt);
}

// Whether there is little to gain by another guess.
static bool is_enough(const struct attempt *attempt)
{
    return attempt->best.bits * ENOUGH_PART <= attempt->looked_at;
}

// Those that are known of the column first, then what may do for any.
static enum status try_all(struct attempt *attempt, const struct seal_guess *guesses,
                           unsigned count)
{
    static const unsigned char ways[] = {SEAL_ZERO, SEAL_BEFORE, SEAL_SAME};
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < count && status == STATUS_OK; i++)
        if (guesses[i].column == attempt->column && !is_enough(attempt))
            status = try_guess(attempt, &guesses[i]);
    for (unsigned i = 0; i < sizeof ways && status == STATUS_OK; i++)
        if ((ways[i] != SEAL_SAME || attempt->column > 0) && !is_enough(attempt))
            status =
                try_guess(attempt, &(struct seal_guess){.column = (unsigned char)attempt->column,
                                                        .way = ways[i],
                                                        .plus = SEAL_NONE,
                                                        .x = SEAL_NONE,
                                                        .minus = SEAL_NONE,
                                                        .over = SEAL_NONE});
    return status;
}

// Some of the rows tell which guess is the best; all of them what becomes of it.
static enum status choose(struct attempt *attempt, const struct seal_guess *guesses, unsigned count)
{
    const uint32_t rows = attempt->table.count;
    const uint32_t least = rows < SAMPLE_LEAST ? rows : SAMPLE_LEAST;
    const uint32_t part = rows / SAMPLE_PART;
    attempt->best.bits = INFINITY;
    attempt->looked_at = part > least ? part : least;
    enum status status = try_all(attempt, guesses, count);
    if (status != STATUS_OK)
        return status;
    const struct seal_guess best = attempt->best.guess;
    attempt->best.bits = INFINITY;
    attempt->looked_at = rows;
    status = try_guess(attempt, &best);
    if (status != STATUS_OK || !seal_is_line(&best))
        return status;
    const struct outcome fine = attempt->best;
    status = try_coarser(attempt, &fine, attempt->groups);
    if (status == STATUS_OK && attempt->groups > 1)
        status = try_coarser(attempt, &fine, 1);
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
                     int64_t left)
{
    const bool is_negative = left < 0;
    const unsigned width = seal_width(left);
    unsigned node = 1;
    bit_writer_put(writer, &models->nothing[scale], width == 0);
    if (width == 0)
        return;
    for (unsigned i = 6; i-- > 0;) {
        const bool bit = (width - 1) >> i & 1;
        bit_writer_put(writer, &models->width[scale][node], bit);
        node = node << 1 | bit;
    }
    bit_writer_put(writer, &models->sign[width], is_negative);
    put_rest(writer, models, is_negative ? 0 - (uint64_t)left : (uint64_t)left, width);
}

static void put_value(struct bit_writer *writer, struct seal_models *models,
                      struct seal_guesser *guesser, uint32_t row, int64_t value)
{
    int64_t guess = 0;
    bool is_likely = false;
    if (seal_guess_whole(guesser, row, &guess, &is_likely)) {
        bit_writer_put(writer, &models->whole[is_likely], guess == value);
        if (guess == value) {
            seal_guess_was_whole(guesser, value);
            return;
        }
    }
    const int64_t left = seal_subtract(value, seal_guess_at(guesser, row));
    put_left(writer, models, seal_guess_scale(guesser), left);
    seal_guess_was(guesser, row, value, left);
}

static enum status put_values(const struct attempt *attempt, struct byte_sink *sink)
{
    struct bit_writer writer;
    struct seal_guesser guesser;
    struct seal_models *models = attempt->models;
    const struct outcome *best = &attempt->best;
    const enum bit_learning learning = seal_learning(&attempt->table, &best->guess);
    bit_models_init((struct bit_model *)models, sizeof *models / sizeof(struct bit_model),
                    learning);
    enum status status = seal_guesser_init(&guesser, &attempt->table, &best->guess, best->lines.of);
    if (status != STATUS_OK)
        return status;
    bit_writer_init(&writer, learning);
    const unsigned char *is_absent = attempt->table.is_absent[attempt->column];
    unsigned was_absent = 0;
    for (uint32_t i = 0; i < attempt->table.count; i++) {
        const uint32_t row = seal_guess_row(&guesser, i);
        if (is_absent)
            bit_writer_put(&writer, &models->absent[was_absent], is_absent[row]);
        was_absent = is_absent && is_absent[row];
        if (!was_absent && !best->is_exact)
            put_value(&writer, models, &guesser, row, attempt->table.values[attempt->column][row]);
    }
    seal_guesser_deinit(&guesser);
    status = bit_writer_end(&writer, sink);
    bit_writer_deinit(&writer);
    return status;
}

// A column: flags, guess, lines, bits.
enum { HAS_ABSENT = 1, IS_GUESSED = 2 };

static enum status put_column(struct attempt *attempt, struct byte_sink *sink)
{
    const struct seal_guess *best = &attempt->best.guess;
    const bool has_absent = attempt->table.is_absent[attempt->column] != NULL;
    const bool is_guessed = attempt->best.is_exact;
    struct byte_sink body = {0};
    byte_sink_put(&body, (unsigned char)(has_absent * HAS_ABSENT + is_guessed * IS_GUESSED));
    byte_sink_append(&body, &best->way, 1);
    if (best->way >= SEAL_ARRIVAL) {
        const unsigned char from[] = {best->plus, best->x, best->minus, best->over};
        byte_sink_append(&body, from, sizeof from);
    }
    if (seal_is_line(best))
        put_lines(&attempt->best.lines, &body);
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

// Where a column stands: one may be behind all others.
static unsigned char place_of(const struct seal_rows *rows, unsigned column)
{
    if (rows->behind == 0 || column == SEAL_NONE || column < rows->behind)
        return (unsigned char)column;
    return (unsigned char)(column == rows->behind ? rows->columns - 1 : column - 1);
}

static void put_head(const struct seal_rows *rows, struct byte_sink *sink)
{
    const char *names[SEAL_COLUMNS_MAX];
    for (unsigned i = 0; i < rows->columns; i++)
        names[place_of(rows, i)] = rows->names[i];
    byte_sink_put(sink, SEAL_FORMAT);
    byte_sink_number(sink, rows->count);
    byte_sink_number(sink, rows->columns);
    byte_sink_number(sink, place_of(rows, rows->group));
    for (unsigned i = 0; i < rows->columns; i++) {
        const size_t size = strlen(names[i]);
        byte_sink_number(sink, size);
        byte_sink_append(sink, names[i], size);
    }
}

static enum status begin(struct attempt *attempt, const struct seal_rows *rows)
{
    for (unsigned i = 0; i < rows->columns; i++) {
        attempt->table.values[place_of(rows, i)] = rows->values[i];
        attempt->table.is_absent[place_of(rows, i)] = rows->is_absent[i];
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
    for (uint32_t row = 0; row < rows->count && status == STATUS_OK; row++)
        if (attempt->group[row] >= attempt->groups)
            attempt->groups = attempt->group[row] + 1U;
    return status;
}

static bool is_before(const struct seal_guess *guess, unsigned char from)
{
    return from == SEAL_NONE || from < guess->column;
}

// With the columns at their places.
static struct seal_guess placed(const struct seal_rows *rows, const struct seal_guess *guess)
{
    const struct seal_guess out = {.column = place_of(rows, guess->column),
                                   .way = guess->way,
                                   .plus = place_of(rows, guess->plus),
                                   .x = place_of(rows, guess->x),
                                   .minus = place_of(rows, guess->minus),
                                   .over = place_of(rows, guess->over)};
    assert(is_before(&out, out.plus) && is_before(&out, out.x) && is_before(&out, out.minus) &&
           is_before(&out, out.over));
    return out;
}

enum status seal_writer_new(struct seal_writer **out, const struct seal_rows *rows,
                            const struct seal_guess *guesses, unsigned guess_count)
{
    struct seal_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return STATUS_NOMEM;
    writer->guess_count = guess_count;
    for (unsigned i = 0; i < guess_count; i++)
        writer->guesses[i] = placed(rows, &guesses[i]);
    writer->attempt.table =
        (struct seal_table){.format = SEAL_FORMAT, .count = rows->count, .columns = rows->columns};
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
