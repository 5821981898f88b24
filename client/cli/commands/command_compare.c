// inferstat compare BEFORE AFTER | compare --against BEFORE | compare --models A,B
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "common/core/stats/stats.h"

// The smallest margin; 0 means the default.
static const double no_margin = 1e-9;

// Checks the options against each other: two baselines, one baseline and filters, or two models.
static enum status check_sides(const struct cli *cli, struct error *err)
{
    const struct cli_options *options = &cli->options;
    const unsigned words = options->argument_count;
    if (option_given(options, OPTION_MARKDOWN) && options->format != FORMAT_TEXT)
        return error_set(err, STATUS_INVALID, "--json, --csv and --markdown: only one of them");
    if (options->models && (options->against || words != 0))
        return error_set(err, STATUS_INVALID,
                         "compare: --models compares records, not baselines: leave out %s%s",
                         options->against ? "--against " : "",
                         options->against ? options->against : options->arguments[0]);
    if (options->models)
        return STATUS_OK;
    if (options->against ? words != 0 : words != 2)
        return error_set(err, STATUS_INVALID,
                         "compare: give two baselines, or --against BASELINE and filters, or "
                         "--models A,B (see inferstat compare --help)");
    if (!options->against && query_filter_narrows(&cli->query.compare.other))
        return error_set(err, STATUS_INVALID,
                         "compare: filters do not apply to two baselines (--against compares one "
                         "with what filters cover)");
    return STATUS_OK;
}

// ---- Totals ---------------------------------------------------------------------------

struct tally {
    size_t judged; // rows with a verdict
    size_t counts[STATS_VERDICT_COUNT];
    size_t too_few;    // undecided rows with fewer values than a verdict needs
    size_t tail_worse; // rows with a worse p95 or p99; their verdict is that of the median
};

static enum stats_verdict verdict_at(const struct result *result, size_t row)
{
    for (unsigned i = 0; i < STATS_VERDICT_COUNT; i++)
        if (result_is(result, row, "verdict", stats_verdict_text((enum stats_verdict)i)))
            return (enum stats_verdict)i;
    return STATS_UNDECIDED;
}

static struct tally count_rows(const struct result *result)
{
    struct tally tally = {0};
    for (size_t row = 0; row < result_row_count(result); row++) {
        tally.tail_worse +=
            result_is(result, row, "p95_verdict", stats_verdict_text(STATS_WORSE)) ||
            result_is(result, row, "p99_verdict", stats_verdict_text(STATS_WORSE));
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

// The overall verdict: any comparison that is worse, tails included; else any median or total that
// is undecided despite enough values; else undecided if none had enough values.
static enum status judge(const struct result *result, struct error *err)
{
    const struct tally tally = count_rows(result);
    const size_t rows = tally.judged, undecided = tally.counts[STATS_UNDECIDED];
    if (tally.counts[STATS_WORSE] > 0)
        return error_set(err, STATUS_CHECK_FAILED, "compare: %zu of %zu are worse",
                         tally.counts[STATS_WORSE], rows);
    if (tally.tail_worse > 0)
        return error_set(err, STATUS_CHECK_FAILED, "compare: the p95 or p99 of %zu of %zu is worse",
                         tally.tail_worse, rows);
    if (undecided > tally.too_few)
        return error_set(err, STATUS_UNDECIDED,
                         "compare: %zu of %zu are undecided: their values differ too much (more "
                         "of them, or a larger --margin, may decide)",
                         undecided - tally.too_few, rows);
    if (rows == 0)
        return error_set(err, STATUS_UNDECIDED,
                         "compare: the metric depends on the demand or the device and has no "
                         "verdict (busy_output_token_rate has one)");
    if (tally.too_few == rows)
        return error_set(err, STATUS_UNDECIDED, "compare: undecided: too few values on a side");
    return STATUS_OK;
}

// ---- Cells --------------------------------------------------------------------------

enum { CELL_SIZE = 64 };

_Static_assert((int)CELL_SIZE >= (int)UNIT_TEXT_SIZE, "room for a change");

// A tail's change and verdict.  Without an interval it would be the slowest of few values.
static char *tail_text(const struct column *column, const struct result *result, size_t row)
{
    char change[CELL_SIZE], key[CELL_SIZE], before[CELL_SIZE], text[2 * CELL_SIZE] = "-";
    (void)snprintf(key, sizeof key, "%s_ratio_high", column->key);
    if (result_get(result, row, key).type == VALUE_NULL)
        return strdup(text);
    (void)snprintf(key, sizeof key, "%s_ratio", column->key);
    (void)snprintf(before, sizeof before, "before_%s", column->key);
    (void)result_change(change, result, row, before, key);
    (void)snprintf(key, sizeof key, "%s_verdict", column->key);
    char *verdict = table_cell_text(result_get(result, row, key), UNIT_NONE);
    (void)snprintf(text, sizeof text, "%s %s", change, verdict ? verdict : "-");
    free(verdict);
    return strdup(text);
}

// The interval of the change.
static char *interval_text(const struct column *column, const struct result *result, size_t row)
{
    (void)column;
    char low[CELL_SIZE], high[CELL_SIZE], text[2 * CELL_SIZE];
    (void)result_change(low, result, row, "before_median", "ratio_low");
    (void)result_change(high, result, row, "before_median", "ratio_high");
    const bool is_open = strcmp(low, "-") == 0 || strcmp(high, "-") == 0;
    (void)snprintf(text, sizeof text, "%.20s%s%.20s", is_open ? "-" : low, is_open ? "" : " to ",
                   is_open ? "" : high);
    return strdup(text);
}

// The median, or the total of a row that has one.
static char *side_text(const struct column *column, const struct result *result, size_t row)
{
    struct column total = *column;
    total.key = strcmp(column->key, "before_median") == 0 ? "before_total" : "after_total";
    const bool is_total = result_get(result, row, total.key).type != VALUE_NULL;
    return column_in_row_unit(is_total ? &total : column, result, row);
}

// The subject of a row: a model, an operation, a pipeline's batches.
static char *what_text(const struct column *column, const struct result *result, size_t row)
{
    (void)column;
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

// The note of a row, in the line below it.
static void add_note(struct table *table, const struct result *result, size_t row)
{
    table_add_cell_below(table, "  ", result, row, "note");
}

static const struct column columns[] = {
    {"model", "model", COLUMN_LEFT(1), .cell = what_text},
    {"host", "host", COLUMN_LEFT(1), .is_optional = true},
    {"device", "device", COLUMN_LEFT(1)},
    {"metric", "metric", COLUMN_LEFT(0)},
    {"before_median", "before", COLUMN_RIGHT(0), .cell = side_text},
    {"after_median", "after", COLUMN_RIGHT(0), .cell = side_text},
    {"ratio", "change", COLUMN_RIGHT(0), .cell = column_change},
    {"ratio", "interval", COLUMN_RIGHT(3), .cell = interval_text},
    {"verdict", "verdict", COLUMN_LEFT(0), .is_whole = true},
    {"p95", "p95", COLUMN_LEFT(4), .cell = tail_text},
    {"p99", "p99", COLUMN_LEFT(4), .cell = tail_text},
    {"note", "note", COLUMN_LEFT(0)}, // of Markdown; a table has it below the row
};

enum { NAMES = 3, COLUMNS = sizeof columns / sizeof *columns };

// ---- Lines around the table -----------------------------------------------------------

// One side: "baseline june: 3 runs, coverage 100.0 %".
static void write_side(FILE *out, const struct query *query, unsigned side,
                       const struct result *result)
{
    char coverage[UNIT_TEXT_SIZE];
    if (query->compare.baseline[side][0])
        (void)fprintf(out, "baseline %s", query->compare.baseline[side]);
    else
        cli_write_filter(out, side == 0 ? &query->filter : &query->compare.other, "all records");
    const int64_t runs = result_integer(result, 0, side == 0 ? "before_runs" : "after_runs", 0);
    const double ratio = result_number(
        result, 0, side == 0 ? "before_coverage_ratio" : "after_coverage_ratio", (double)NAN);
    (void)fprintf(out, " (%" PRId64 " %s, coverage %s)", runs, runs == 1 ? "run" : "runs",
                  unit_format(coverage, UNIT_RATIO, ratio));
}

// One fact of two models after `before`: "file 90.5 KB / 30.1 KB (-66.7 %)".  Returns what
// separates the next fact from it; `before` where nothing is known.
static const char *write_fact(FILE *out, const char *before, const char *name, const char *key,
                              const struct result *result)
{
    char keys[3][CELL_SIZE], change[CELL_SIZE];
    (void)snprintf(keys[0], sizeof keys[0], "before_%s", key);
    (void)snprintf(keys[1], sizeof keys[1], "after_%s", key);
    (void)snprintf(keys[2], sizeof keys[2], "%s_ratio", key);
    if (result_get(result, 0, keys[0]).type == VALUE_NULL &&
        result_get(result, 0, keys[1]).type == VALUE_NULL)
        return before;
    (void)fprintf(out, "%s%s ", before, name);
    for (unsigned i = 0; i < 2; i++) {
        char *text = column_value(&(struct column){.key = keys[i]}, result, 0);
        (void)fprintf(out, "%s%s", i == 0 ? "" : " / ", text ? text : "-");
        free(text);
    }
    const double ratio = result_number(result, 0, keys[2], (double)NAN);
    (void)unit_format_change(change, ratio);
    if (isfinite(ratio))
        (void)fprintf(out, " (%s)", change);
    return ", ";
}

// Of two models what is known of them, after `before`.
static void write_facts(FILE *out, const char *before, const struct result *result)
{
    const char *separator = write_fact(out, before, "parameters", "parameters", result);
    separator = write_fact(out, separator, "quantisation", "quantisation", result);
    (void)write_fact(out, separator, "file", "file_bytes", result);
}

// "2 worse, 1 better, 3 the same, 1 undecided".
static void write_tally(FILE *out, const struct tally *tally)
{
    (void)fprintf(out, "%zu worse, %zu better, %zu the same, %zu undecided",
                  tally->counts[STATS_WORSE], tally->counts[STATS_BETTER],
                  tally->counts[STATS_SAME], tally->counts[STATS_UNDECIDED]);
    if (tally->too_few > 0)
        (void)fprintf(out, " (%zu of them with too few values)", tally->too_few);
    if (tally->tail_worse > 0)
        (void)fprintf(out, "; the p95 or p99 of %zu is worse", tally->tail_worse);
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
    double confidence = 1;
    for (size_t row = 0; row < result_row_count(result); row++)
        confidence = fmin(confidence, result_number(result, row, "confidence", 1));
    (void)fprintf(
        out,
        "Method: change of the median, of a total and of p95 and p99, each with its own verdict; "
        "intervals of at least %.4g %%, whose width follows from blocks of consecutive values, so "
        "that all verdicts together are wrong in fewer than 5 of 100 comparisons; within %s counts "
        "as the same.\n",
        100 * confidence, unit_format(margin, UNIT_RATIO, result_number(result, 0, "margin", 0)));
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
    (void)fputs("before: ", out);
    write_side(out, query, 0, result);
    (void)fputs("\nafter:  ", out);
    write_side(out, query, 1, result);
    write_facts(out, "\nmodels: ", result);
    (void)fputs("\n\n", out);
    struct column shown[COLUMNS];
    memcpy(shown, columns, sizeof shown);
    for (unsigned i = 0; i < NAMES; i++) // a narrow terminal omits only what all rows share
        for (size_t row = 1; row < result_row_count(result); row++)
            if (!value_is_same(result_get(result, 0, shown[i].key),
                               result_get(result, row, shown[i].key)))
                shown[i].minor = 0;
    if (shown[0].minor == 0 || shown[NAMES - 1].minor == 0) // the change tells more than its sides
        shown[NAMES + 1].minor = 2, shown[NAMES + 2].minor = 1;
    enum status status =
        cli_print(cli, &(struct columns){shown, COLUMNS - 1, add_note}, result, err);
    if (status != STATUS_OK)
        return status;
    const struct tally tally = count_rows(result);
    char *notes = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&notes, &size);
    if (!to)
        return error_no_memory(err, "compare");
    write_tally(to, &tally);
    (void)fputs(".\n", to);
    write_text(to, result_get(result, 0, "differences"), "Differences: ");
    write_method(to, result);
    if (fclose(to) != 0) {
        free(notes);
        return error_no_memory(err, "compare");
    }
    (void)fputc('\n', out);
    cli_print_lines(cli, 0, notes);
    free(notes);
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
    const struct tally tally = count_rows(result);
    struct column shown[COLUMNS] = {{0}};
    unsigned count = 0;
    for (unsigned i = 0; i < COLUMNS; i++)
        if (!columns[i].is_optional || result_get(result, 0, columns[i].key).type != VALUE_NULL)
            shown[count++] = columns[i];
    (void)fputs("**", out);
    write_tally(out, &tally);
    (void)fputs("**\n\n- before: ", out);
    write_side(out, query, 0, result);
    (void)fputs("\n- after: ", out);
    write_side(out, query, 1, result);
    write_facts(out, "\n- models: ", result);
    (void)fputc('\n', out);
    write_text(out, result_get(result, 0, "differences"), "- differences: ");
    (void)fputs("\n|", out);
    for (unsigned column = 0; column < count; column++)
        (void)fprintf(out, " %s |", shown[column].title);
    (void)fputs("\n|", out);
    for (unsigned column = 0; column < count; column++)
        (void)fputs(shown[column].align == TABLE_RIGHT ? " ---: |" : " --- |", out);
    (void)fputc('\n', out);
    for (size_t row = 0; row < result_row_count(result); row++) {
        (void)fputc('|', out);
        for (unsigned column = 0; column < count; column++) {
            char *text = column_text(&shown[column], result, row);
            if (!text)
                return error_no_memory(err, "compare");
            const bool is_no_note = column == count - 1 && strcmp(text, "-") == 0;
            (void)fputc(' ', out);
            write_markdown(out, is_no_note ? "" : text);
            (void)fputs(" |", out);
            free(text);
        }
        (void)fputc('\n', out);
    }
    (void)fputc('\n', out);
    write_method(out, result);
    return STATUS_OK;
}

// ---- The command ----------------------------------------------------------------------

static enum status print(const struct cli *cli, const struct query *query,
                         const struct result *result, struct error *err)
{
    if (cli->options.format != FORMAT_TEXT)
        return cli_print(cli, NULL, result, err);
    return option_given(&cli->options, OPTION_MARKDOWN) ? print_markdown(cli, query, result, err)
                                                        : print_table(cli, query, result, err);
}

enum status cli_compare(struct cli *cli, const struct query *query, struct error *err)
{
    struct result *result;
    enum status status = cli_ask(cli, query, &result, err);
    if (status == STATUS_NO_DATA)
        cli_print_none(cli);
    if (status != STATUS_OK)
        return error_prefix(err, status, "compare");
    status = print(cli, query, result, err);
    if (status == STATUS_OK)
        status = judge(result, err);
    result_free(result);
    return status;
}

enum status command_compare(struct cli *cli, struct error *err)
{
    enum status status = check_sides(cli, err);
    double *margin = &cli->query.compare.margin;
    if (cli->options.margin && *margin < no_margin)
        *margin = no_margin;
    return status == STATUS_OK ? cli_compare(cli, &cli->query, err) : status;
}
