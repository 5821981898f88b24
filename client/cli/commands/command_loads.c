// inferstat loads [--average | --compare A B]
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/args/value_args.h"
#include "client/cli/commands/stages.h"
#include "common/core/base/text.h"
#include "common/core/query/query_text.h"

enum { GROUPS_MAX = QUERY_DIMENSION_COUNT, FIGURES_MAX = 10 };

// Whether two rows, perhaps of different answers, are equal in the first `count` columns.
static bool same_cells(const struct result *a, size_t row_a, const struct result *b, size_t row_b,
                       unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (!value_is_same(result_cell(a, row_a, i), result_cell(b, row_b, i)))
            return false;
    return true;
}

// ---- Tables ---------------------------------------------------------------------------

// Counts the cache states of the row's group except "all"; `row` becomes one of them.
static unsigned count_caches(const struct result *result, size_t *row)
{
    const unsigned groups = (unsigned)result_find(result, "cache");
    const size_t of = *row;
    unsigned kinds = 0;
    for (size_t i = 0; i < result_row_count(result); i++) {
        if (!result_is(result, i, "part", "total") || result_is(result, i, "cache", "all") ||
            !same_cells(result, of, result, i, groups))
            continue;
        *row = i;
        kinds++;
    }
    return kinds;
}

// The names of a waterfall are in its first row only.
static char *group_text(const struct column *column, const struct result *result, size_t row)
{
    return result_is(result, row, "part", "total") ? column_value(column, result, row) : strdup("");
}

// "all" is the name of the only cache state of a group, if it has but one.
static char *cache_text(const struct column *column, const struct result *result, size_t row)
{
    size_t only = row;
    const bool is_only = count_caches(result, &only) == 1;
    return result_is(result, row, "part", "total")
               ? column_value(column, result, is_only ? only : row)
               : strdup("");
}

static char *stage_text(const struct column *column, const struct result *result, size_t row)
{
    if (result_is(result, row, "part", "total"))
        return strdup("all");
    const bool is_other = result_is(result, row, "part", "other");
    char *name = is_other ? strdup("other") : column_value(column, result, row);
    char *indented = NULL;
    if (name && asprintf(&indented, "  %s", name) < 0)
        indented = NULL;
    free(name);
    return indented;
}

// Prints the groups, the cache state and the stage, then `figures`.  Of a table, the rows of a
// group's only cache state are left out: those of "all" are the same.
static enum status print_waterfalls(const struct cli *cli, const struct result *result,
                                    const struct column *figures, unsigned count, struct error *err)
{
    struct column columns[GROUPS_MAX + 2 + FIGURES_MAX];
    const unsigned groups = (unsigned)result_find(result, "cache");
    for (unsigned i = 0; i < groups; i++) {
        const char *key = result_column(result, i)->key;
        columns[i] = (struct column){key, key, .cell = group_text};
    }
    columns[groups] = (struct column){"cache", "cache", .cell = cache_text, .is_whole = true};
    columns[groups + 1] = (struct column){"stage", "stage", .cell = stage_text};
    memcpy(&columns[groups + 2], figures, count * sizeof *figures);
    const struct columns view = {columns, groups + 2 + count, NULL};
    struct rows rows = cli_rows(cli, &view);
    for (size_t row = 0; row < result_row_count(result); row++) {
        size_t only = row;
        if (rows.format != FORMAT_TEXT || result_is(result, row, "cache", "all") ||
            count_caches(result, &only) != 1)
            rows_write(&rows, result, row, row + 1);
    }
    return rows_end(&rows, STATUS_OK, err);
}

// ---- Averages -------------------------------------------------------------------------

static struct query stages_query(const struct query_filter *filter,
                                 const enum query_dimension *group_by, unsigned group_count)
{
    struct query query = {.kind = QUERY_STAGES, .filter = *filter, .group_count = group_count};
    memcpy(query.group_by, group_by, group_count * sizeof *group_by);
    return query;
}

static const enum query_dimension usual_groups[] = {QUERY_BY_MODEL, QUERY_BY_DEVICE};

static enum status print_averages(struct cli *cli, const struct result *result, struct error *err)
{
    static const struct column figures[] = {
        {"count", "loads", COLUMN_RIGHT(0)},
        {"failed", "failed", COLUMN_RIGHT(3)},
        {"mean_ns", "mean", COLUMN_RIGHT(0)},
        {"p50_ns", "p50", COLUMN_RIGHT(1)},
        {"max_ns", "max", COLUMN_RIGHT(1)},
        {"share_ratio", "share", COLUMN_RIGHT(0)},
        {"load_bytes_per_second", "rate", COLUMN_RIGHT(2)},
        {"storage_bytes_per_second", "storage", COLUMN_RIGHT(2)},
        {"page_cache_ratio", "cached", COLUMN_RIGHT(2)},
    };
    enum status status =
        print_waterfalls(cli, result, figures, sizeof figures / sizeof *figures, err);
    if (status == STATUS_OK && cli->options.format == FORMAT_TEXT)
        (void)fputs("cold: at most 10 % of the file was in the page cache; warm: at least 90 %; "
                    "mixed: between; all: every load\n",
                    cli->env.out);
    return status;
}

// The dimensions to group by: those of --by, else model and device.  In a comparison (`sides`
// not NULL) only those that both sides filter alike.
static unsigned choose_groups(const struct query *query, const struct query_filter *sides,
                              enum query_dimension *out)
{
    const bool given = query->group_count > 0;
    const enum query_dimension *from = given ? query->group_by : usual_groups;
    const unsigned from_count =
        given ? query->group_count : sizeof usual_groups / sizeof *usual_groups;
    unsigned count = 0;
    for (unsigned i = 0; i < from_count; i++)
        if (!sides || strcmp(sides[0].by[from[i]], sides[1].by[from[i]]) == 0)
            out[count++] = from[i];
    return count;
}

enum status command_load_average(struct cli *cli, struct error *err)
{
    enum query_dimension group_by[QUERY_DIMENSION_COUNT];
    const unsigned count = choose_groups(&cli->query, NULL, group_by);
    const struct query query = stages_query(&cli->query.filter, group_by, count);
    struct result *result = NULL;
    enum status status = cli_ask_for(cli, &query, "loads", "no data", &result, err);
    if (status != STATUS_OK)
        return status;
    status = print_averages(cli, result, err);
    result_free(result);
    return status;
}

// ---- Comparisons ----------------------------------------------------------------------

// Reads a side ("host=a since 1h", or a run) on top of the query's filter.
static enum status read_side(struct cli *cli, const char *text, struct query_filter *out,
                             struct error *err)
{
    struct query_filter side = {.since_ns = 0};
    const size_t size = strlen(text);
    enum status status = STATUS_OK;
    if (size >= 4 && size <= 36 && strspn(text, "0123456789abcdefABCDEF-") == size)
        memcpy(side.by[QUERY_BY_RUN], text, size + 1);
    else
        status = query_text_read_filter(&side, text, time_arg_read, cli, NULL, err);
    if (status != STATUS_OK)
        return error_prefix(err, status, "loads --compare");
    *out = cli->query.filter;
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (side.by[i][0])
            memcpy(out->by[i], side.by[i], sizeof out->by[i]);
    out->since_ns = side.since_ns ? side.since_ns : out->since_ns;
    out->until_ns = side.until_ns ? side.until_ns : out->until_ns;
    return STATUS_OK;
}

static const struct {
    const char *key;
    enum unit unit;
} compared[] = {
    {"cache", UNIT_NONE},         {"part", UNIT_NONE},
    {"stage", UNIT_NONE},         {"a_count", UNIT_COUNT},
    {"b_count", UNIT_COUNT},      {"a_mean_ns", UNIT_DURATION},
    {"b_mean_ns", UNIT_DURATION}, {"difference_ns", UNIT_DURATION},
    {"ratio", UNIT_RATIO},
};

enum { COMPARED_COUNT = sizeof compared / sizeof *compared, COMPARED_TEXTS = 3 };

// Finds the row that is equal in the first `count` columns; the number of rows if there is none.
static size_t find_row(const struct result *in, const struct result *of, size_t row, unsigned count)
{
    size_t found = 0;
    while (found < result_row_count(in) && !same_cells(in, found, of, row, count))
        found++;
    return found;
}

// Adds a row with the figures of A and B for one part (a row past the end: absent).
static void add_compared(struct result *out, const struct result *a, size_t row_a,
                         const struct result *b, size_t row_b, unsigned groups)
{
    const bool in_a = row_a < result_row_count(a);
    (void)result_add_row(out);
    for (unsigned i = 0; i < groups + COMPARED_TEXTS; i++) {
        const struct value value = in_a ? result_cell(a, row_a, i) : result_cell(b, row_b, i);
        if (value.type == VALUE_TEXT)
            (void)result_set_text(out, i, value.text.bytes, value.text.size);
    }
    const unsigned first = groups + COMPARED_TEXTS;
    const double mean_a = result_number(a, row_a, "mean_ns", (double)NAN);
    const double mean_b = result_number(b, row_b, "mean_ns", (double)NAN);
    result_set_int(out, first, result_integer(a, row_a, "count", 0));
    result_set_int(out, first + 1, result_integer(b, row_b, "count", 0));
    result_set_real(out, first + 2, mean_a);
    result_set_real(out, first + 3, mean_b);
    result_set_real(out, first + 4, mean_b - mean_a);
    result_set_real(out, first + 5, mean_a > 0 ? mean_b / mean_a : (double)NAN);
}

// Joins two answers: the rows of A in order, after those of a group and cache state the ones that
// only B has of it, and at the end the groups and cache states that only B has.
static enum status line_up(const struct result *a, const struct result *b, unsigned groups,
                           struct result **out)
{
    enum status status = result_new(out);
    for (unsigned i = 0; i < groups && status == STATUS_OK; i++)
        status = result_add_column(*out, result_column(a, i)->key, UNIT_NONE);
    for (unsigned i = 0; i < COMPARED_COUNT && status == STATUS_OK; i++)
        status = result_add_column(*out, compared[i].key, compared[i].unit);
    if (status != STATUS_OK)
        return status;
    const size_t end = result_row_count(a), end_b = result_row_count(b);
    const unsigned texts = groups + COMPARED_TEXTS; // groups, cache, part and stage
    for (size_t row = 0; row < end; row++) {
        add_compared(*out, a, row, b, find_row(b, a, row, texts), groups);
        if (row + 1 < end && same_cells(a, row, a, row + 1, groups + 1))
            continue;
        for (size_t i = 0; i < end_b; i++)
            if (same_cells(a, row, b, i, groups + 1) && find_row(a, b, i, texts) == end)
                add_compared(*out, a, end, b, i, groups);
    }
    for (size_t row = 0; row < end_b; row++)
        if (find_row(a, b, row, groups + 1) == end)
            add_compared(*out, a, end, b, row, groups);
    return result_status(*out);
}

// Prints the text of a side, escaped for the terminal.
static char *side_text(char text[QUERY_TEXT_SIZE], const struct cli *cli, int side)
{
    const char *words = cli->options.arguments[side];
    return text_escape(text, QUERY_TEXT_SIZE, words, strlen(words));
}

static enum status print_comparison(struct cli *cli, const struct result *result, struct error *err)
{
    static const struct column figures[] = {
        {"a_count", "loads A", COLUMN_RIGHT(1)},     {"b_count", "loads B", COLUMN_RIGHT(1)},
        {"a_mean_ns", "A", COLUMN_RIGHT(0)},         {"b_mean_ns", "B", COLUMN_RIGHT(0)},
        {"difference_ns", "B - A", COLUMN_RIGHT(0)}, {"ratio", "B / A", COLUMN_RIGHT(0)},
    };
    FILE *out = cli->env.out;
    char side[QUERY_TEXT_SIZE];
    if (cli->options.format == FORMAT_TEXT) {
        (void)fprintf(out, "A: %s\n", side_text(side, cli, 0));
        (void)fprintf(out, "B: %s\n\n", side_text(side, cli, 1));
    }
    return print_waterfalls(cli, result, figures, sizeof figures / sizeof *figures, err);
}

// Queries both sides; an error names the side without data.
static enum status ask_sides(struct cli *cli, const struct query_filter sides[2],
                             const enum query_dimension *group_by, unsigned group_count,
                             struct result *answers[2], struct error *err)
{
    char side[QUERY_TEXT_SIZE];
    for (int i = 0; i < 2; i++) {
        result_free(answers[i]);
        answers[i] = NULL;
        const struct query query = stages_query(&sides[i], group_by, group_count);
        enum status status = cli_ask(cli, &query, &answers[i], err);
        if (status == STATUS_NO_DATA)
            return error_set(err, status, "loads: no data: nothing matches side %c (%s)", 'A' + i,
                             side_text(side, cli, i));
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

// Whether the answers have a row in common.
static bool have_common(const struct result *a, const struct result *b, unsigned groups)
{
    for (size_t row = 0; row < result_row_count(a); row++)
        if (find_row(b, a, row, groups + COMPARED_TEXTS) < result_row_count(b))
            return true;
    return false;
}

static enum status compare_sides(struct cli *cli, struct error *err)
{
    const struct cli_options *options = &cli->options;
    struct query_filter sides[2];
    struct result *answers[2] = {NULL, NULL}, *both = NULL;
    enum query_dimension group_by[GROUPS_MAX];
    unsigned groups = 0;
    enum status status =
        options->argument_count == 2
            ? STATUS_OK
            : error_set(err, STATUS_INVALID,
                        "loads --compare: give two sides, such as \"host=a\" \"host=b\" (see "
                        "inferstat loads --help)");
    for (int i = 0; i < 2 && status == STATUS_OK; i++)
        status = read_side(cli, options->arguments[i], &sides[i], err);
    if (status == STATUS_OK) {
        groups = choose_groups(&cli->query, sides, group_by);
        status = ask_sides(cli, sides, group_by, groups, answers, err);
    }
    if (status == STATUS_OK && groups > 0 && !have_common(answers[0], answers[1], groups)) {
        groups = 0; // different models or devices: compares the totals of both sides
        status = ask_sides(cli, sides, group_by, groups, answers, err);
    }
    if (status == STATUS_OK && line_up(answers[0], answers[1], groups, &both) != STATUS_OK)
        status = error_no_memory(err, "loads");
    if (status == STATUS_OK)
        status = print_comparison(cli, both, err);
    result_free(both);
    result_free(answers[0]);
    result_free(answers[1]);
    return status;
}

// ---- The command ----------------------------------------------------------------------

static void put_line(void *rows, const char *line)
{
    rows_add_below(rows, line);
}

static enum status add_rows(struct cli *cli, struct rows *rows, const struct result *page,
                            struct error *err)
{
    struct stages stages = {0};
    enum status status = stages_ask(&stages, cli, page, err);
    for (size_t row = 0; status == STATUS_OK && row < result_row_count(page); row++) {
        rows_write(rows, page, row, row + 1);
        status = stages_choose(&stages, page, row, err);
        stages_draw(&stages, cli->env.width, put_line, rows);
    }
    stages_deinit(&stages);
    return status;
}

enum status command_loads(struct cli *cli, struct error *err)
{
    const struct cli_options *options = &cli->options;
    const bool average = option_given(options, OPTION_AVERAGE);
    const bool compare = option_given(options, OPTION_COMPARE);
    if (average && compare)
        return error_set(err, STATUS_INVALID, "loads: --average and --compare: only one of them");
    if (options->argument_count > 0 && !compare)
        return error_set(err, STATUS_INVALID,
                         "loads: unexpected argument '%s' (sides of --compare?)",
                         options->arguments[0]);
    if (option_given(options, OPTION_BY) && !average && !compare)
        return error_set(err, STATUS_INVALID, "loads: --by is for --average and --compare");
    if (average)
        return command_load_average(cli, err);
    if (compare)
        return compare_sides(cli, err);
    return record_pages_list(cli, add_rows, err);
}
