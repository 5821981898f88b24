#include "client/cli/commands/comparison.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/output/table.h"
#include "common/core/base/text.h"
#include "common/core/stats/stats.h"

_Static_assert(sizeof((struct comparison_tally){0}.counts) / sizeof(size_t) == STATS_VERDICT_COUNT,
               "a count for each verdict");

enum { CELL_SIZE = 64 };

static const char title[] = "change of the median";

static enum stats_verdict verdict_at(const struct result *result, size_t row)
{
    for (unsigned i = 0; i < STATS_VERDICT_COUNT; i++)
        if (result_is(result, row, "verdict", stats_verdict_text((enum stats_verdict)i)))
            return (enum stats_verdict)i;
    return STATS_UNDECIDED;
}

struct comparison_tally comparison_tally(const struct result *result)
{
    struct comparison_tally tally = {0};
    for (size_t row = 0; row < result_row_count(result); row++) {
        tally.p95_worse += result_is(result, row, "p95_verdict", stats_verdict_text(STATS_WORSE));
        if (result_get(result, row, "verdict").type == VALUE_NULL) // it explains another
            continue;
        const enum stats_verdict verdict = verdict_at(result, row);
        const int64_t needed = result_integer(result, row, "needed_count", 0);
        tally.counts[verdict]++;
        tally.judged++;
        tally.too_few += verdict == STATS_UNDECIDED &&
                         (result_integer(result, row, "before_count", 0) < needed ||
                          result_integer(result, row, "after_count", 0) < needed);
    }
    return tally;
}

// ---- Cells --------------------------------------------------------------------------

// A ratio as a change: 1.031 is "+3.1 %".
static void write_change(char out[CELL_SIZE], double ratio)
{
    const double percent = (ratio - 1) * 100;
    if (!isfinite(ratio))
        (void)snprintf(out, CELL_SIZE, "-");
    else if (fabs(percent) < 1000)
        (void)snprintf(out, CELL_SIZE, "%+.1f %%", fabs(percent) < 0.05 ? 0.0 : percent);
    else
        (void)snprintf(out, CELL_SIZE, "x%.4g", ratio);
}

static void write_interval(char out[CELL_SIZE], const struct result *result, size_t row,
                           const char *from, const char *to)
{
    char low[CELL_SIZE], high[CELL_SIZE];
    write_change(low, result_number(result, row, from, (double)NAN));
    write_change(high, result_number(result, row, to, (double)NAN));
    const bool is_open = strcmp(low, "-") == 0 || strcmp(high, "-") == 0;
    (void)snprintf(out, CELL_SIZE, "%.20s%s%.20s", is_open ? "-" : low, is_open ? "" : " to ",
                   is_open ? "" : high);
}

static enum unit unit_at(const struct result *result, size_t row)
{
    for (unsigned unit = 0; unit < UNIT_COUNT_OF; unit++)
        if (result_is(result, row, "unit", unit_name((enum unit)unit)))
            return (enum unit)unit;
    return UNIT_NONE;
}

enum {
    WHAT,
    DEVICE,
    METRIC,
    BEFORE,
    AFTER,
    CHANGE,
    INTERVAL,
    TAIL_CHANGE,
    TAIL_INTERVAL,
    VERDICT,
    COLUMNS
};

static const struct table_column columns[COLUMNS] = {
    [WHAT] = {"model", TABLE_LEFT, true, 0},
    [DEVICE] = {"device", TABLE_LEFT, true, 2},
    [METRIC] = {"metric", TABLE_LEFT, false, 0},
    [BEFORE] = {"before", TABLE_RIGHT, false, 1},
    [AFTER] = {"after", TABLE_RIGHT, false, 1},
    [CHANGE] = {"change", TABLE_RIGHT, false, 0},
    [INTERVAL] = {"99 % interval", TABLE_RIGHT, false, 0},
    [TAIL_CHANGE] = {"p95 change", TABLE_RIGHT, false, 3},
    [TAIL_INTERVAL] = {"p95 interval", TABLE_RIGHT, false, 4},
    [VERDICT] = {"verdict", TABLE_LEFT, false, 0},
};

// The columns that show one value of the result, or two as an interval.
static const char *const keys[COLUMNS][2] = {
    [DEVICE] = {"device"},         [METRIC] = {"metric"},
    [BEFORE] = {"before_median"},  [AFTER] = {"after_median"},
    [CHANGE] = {"ratio"},          [INTERVAL] = {"ratio_low", "ratio_high"},
    [TAIL_CHANGE] = {"p95_ratio"}, [TAIL_INTERVAL] = {"p95_ratio_low", "p95_ratio_high"},
    [VERDICT] = {"verdict"},
};

// The subject of a row: a model, an operation, a pipeline's batches.
static char *what_text(const struct result *result, size_t row)
{
    const struct value model = result_get(result, row, "model");
    const int64_t batch = result_integer(result, row, "batch_items", 0);
    char *name = table_cell_text(
        model.type == VALUE_NULL ? result_get(result, row, "operation") : model, UNIT_NONE);
    char *both = NULL;
    if (batch <= 0 || !name)
        return name;
    if (asprintf(&both, "%s, batch %" PRId64, name, batch) < 0)
        both = NULL;
    free(name);
    return both;
}

// The text of a cell, escaped for the terminal; the caller frees it.
static char *cell_text(const struct result *result, size_t row, unsigned column)
{
    char text[CELL_SIZE];
    const char *key = keys[column][0];
    if (column == WHAT)
        return what_text(result, row);
    if (keys[column][1]) {
        write_interval(text, result, row, key, keys[column][1]);
        return strdup(text);
    }
    if (column == CHANGE || column == TAIL_CHANGE) {
        // A p95 without an interval would be the slowest of few values.
        const bool is_none =
            column == TAIL_CHANGE && result_get(result, row, "p95_ratio_high").type == VALUE_NULL;
        write_change(text, is_none ? (double)NAN : result_number(result, row, key, (double)NAN));
        return strdup(text);
    }
    const bool is_median = column == BEFORE || column == AFTER;
    return table_cell_text(result_get(result, row, key),
                           is_median ? unit_at(result, row) : UNIT_NONE);
}

// ---- Lines around the table -----------------------------------------------------------

static void write_filter(FILE *out, const struct query_filter *filter)
{
    char time[UNIT_TEXT_SIZE];
    bool some = cli_write_filter(out, filter, "");
    if (filter->since_ns) {
        (void)fprintf(out, "%ssince %s", some ? ", " : "",
                      unit_format_int(time, UNIT_TIME, filter->since_ns));
        some = true;
    }
    if (filter->until_ns)
        (void)fprintf(out, "%suntil %s", some ? ", " : "",
                      unit_format_int(time, UNIT_TIME, filter->until_ns));
    if (!some && !filter->until_ns)
        (void)fputs("all records", out);
}

// One side: "baseline june: 3 runs, coverage 100.0 %".
static void write_side(FILE *out, const struct query *query, unsigned side,
                       const struct result *result)
{
    char coverage[UNIT_TEXT_SIZE];
    if (query->compare.baseline[side][0])
        (void)fprintf(out, "baseline %s", query->compare.baseline[side]);
    else
        write_filter(out, side == 0 ? &query->filter : &query->compare.other);
    const int64_t runs = result_integer(result, 0, side == 0 ? "before_runs" : "after_runs", 0);
    const double ratio = result_number(
        result, 0, side == 0 ? "before_coverage_ratio" : "after_coverage_ratio", (double)NAN);
    (void)fprintf(out, " (%" PRId64 " %s, coverage %s)", runs, runs == 1 ? "run" : "runs",
                  unit_format(coverage, UNIT_RATIO, ratio));
}

// "2 worse, 1 better, 3 the same, 1 undecided".
static void write_tally(FILE *out, const struct comparison_tally *tally)
{
    (void)fprintf(out, "%zu worse, %zu better, %zu the same, %zu undecided",
                  tally->counts[STATS_WORSE], tally->counts[STATS_BETTER],
                  tally->counts[STATS_SAME], tally->counts[STATS_UNDECIDED]);
    if (tally->too_few > 0)
        (void)fprintf(out, " (%zu of them with too few values)", tally->too_few);
    if (tally->p95_worse > 0)
        (void)fprintf(out, "; the 95th percentile of %zu is worse", tally->p95_worse);
}

static void write_text(FILE *out, struct value value, const char *before)
{
    char *text = value.type == VALUE_TEXT ? table_cell_text(value, UNIT_NONE) : NULL;
    if (text)
        (void)fprintf(out, "%s%s\n", before, text);
    free(text);
}

// Prints the method of the comparison.
static void write_method(FILE *out, const struct result *result)
{
    char margin[UNIT_TEXT_SIZE];
    (void)fprintf(
        out,
        "Method: %s, with an interval from order statistics of each side whose width "
        "follows from blocks of consecutive values; within %s counts as the same.  p95 is "
        "judged apart: the verdict is the median's.\n",
        title, unit_format(margin, UNIT_RATIO, result_number(result, 0, "margin", 0)));
    if (result_integer(result, 0, "before_runs", 0) < 2 ||
        result_integer(result, 0, "after_runs", 0) < 2)
        (void)fputs("A side of one run does not show what differs from one start to the next.\n",
                    out);
}

// ---- A table --------------------------------------------------------------------------

static enum status print_table(const struct cli *cli, const struct query *query,
                               const struct result *result, struct error *err)
{
    FILE *out = cli->env.out;
    struct table *table;
    if (table_new(&table, columns, COLUMNS) != STATUS_OK)
        return error_no_memory(err, "compare");
    for (size_t row = 0; row < result_row_count(result); row++) {
        for (unsigned column = 0; column < COLUMNS; column++)
            table_take(table, cell_text(result, row, column));
        char *note = table_cell_text(result_get(result, row, "note"), UNIT_NONE);
        char line[512];
        if (note && strcmp(note, "-") != 0) {
            (void)snprintf(line, sizeof line, "  %.500s", note);
            table_add_below(table, line);
        }
        free(note);
    }
    (void)fputs("before: ", out);
    write_side(out, query, 0, result);
    (void)fputs("\nafter:  ", out);
    write_side(out, query, 1, result);
    (void)fputs("\n\n", out);
    enum status status = table_print(table, out, cli->env.width, err);
    table_free(table);
    if (status != STATUS_OK)
        return status;
    const struct comparison_tally tally = comparison_tally(result);
    (void)fputc('\n', out);
    write_tally(out, &tally);
    (void)fputs(".\n", out);
    write_text(out, result_get(result, 0, "differences"), "Differences: ");
    write_method(out, result);
    return STATUS_OK;
}

// ---- Markdown -------------------------------------------------------------------------

// Writes the text of a cell with Markdown's own characters escaped.
static void write_markdown(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (strchr("\\|`*_<>[]#&~", *text))
            (void)fputc('\\', out);
        (void)fputc(*text, out);
    }
}

static enum status print_markdown(const struct cli *cli, const struct query *query,
                                  const struct result *result, struct error *err)
{
    FILE *out = cli->env.out;
    const struct comparison_tally tally = comparison_tally(result);
    (void)fputs("**", out);
    write_tally(out, &tally);
    (void)fputs("**\n\n- before: ", out);
    write_side(out, query, 0, result);
    (void)fputs("\n- after: ", out);
    write_side(out, query, 1, result);
    (void)fputc('\n', out);
    write_text(out, result_get(result, 0, "differences"), "- differences: ");
    (void)fputs("\n|", out);
    for (unsigned column = 0; column < COLUMNS; column++)
        (void)fprintf(out, " %s |", columns[column].title);
    (void)fputs(" note |\n|", out);
    for (unsigned column = 0; column < COLUMNS; column++)
        (void)fputs(columns[column].align == TABLE_RIGHT ? " ---: |" : " --- |", out);
    (void)fputs(" --- |\n", out);
    for (size_t row = 0; row < result_row_count(result); row++) {
        (void)fputc('|', out);
        for (unsigned column = 0; column <= COLUMNS; column++) {
            char *text = column < COLUMNS
                             ? cell_text(result, row, column)
                             : table_cell_text(result_get(result, row, "note"), UNIT_NONE);
            if (!text)
                return error_no_memory(err, "compare");
            (void)fputc(' ', out);
            write_markdown(out, column == COLUMNS && strcmp(text, "-") == 0 ? "" : text);
            (void)fputs(" |", out);
            free(text);
        }
        (void)fputc('\n', out);
    }
    (void)fputc('\n', out);
    write_method(out, result);
    return STATUS_OK;
}

enum status comparison_print(const struct cli *cli, const struct query *query,
                             const struct result *result, struct error *err)
{
    return option_given(&cli->options, OPTION_MARKDOWN) ? print_markdown(cli, query, result, err)
                                                        : print_table(cli, query, result, err);
}
