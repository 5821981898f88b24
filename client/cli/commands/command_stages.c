// inferstat loads --average, inferstat loads --compare A B
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/commands/insight.h"
#include "client/cli/args/time_arg.h"
#include "client/cli/output/rows.h"
#include "client/cli/output/table.h"
#include "common/core/base/text.h"
#include "common/core/query/query_text.h"

enum { GROUPS_MAX = QUERY_DIMENSION_COUNT };

static bool same_value(struct value a, struct value b)
{
    if (a.type != VALUE_TEXT || b.type != VALUE_TEXT)
        return a.type == b.type;
    return a.text.size == b.text.size && memcmp(a.text.bytes, b.text.bytes, a.text.size) == 0;
}

// Whether two rows, perhaps of different answers, are equal in the first `count` columns.
static bool same_cells(const struct result *a, size_t row_a, const struct result *b, size_t row_b,
                       unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (!same_value(result_cell(a, row_a, i), result_cell(b, row_b, i)))
            return false;
    return true;
}

// ---- Tables ---------------------------------------------------------------------------

// A column after those of the groups, the cache and the stage.
struct figure {
    const char *key, *title;
    unsigned minor;
};

enum { FIGURES_MAX = 10 };

static enum status new_table(struct table **out, const struct result *result, unsigned groups,
                             const struct figure *figures, unsigned count)
{
    struct table_column columns[GROUPS_MAX + 2 + FIGURES_MAX];
    unsigned used = 0;
    for (unsigned i = 0; i < groups; i++)
        columns[used++] =
            (struct table_column){.title = result_column(result, i)->key, .may_shrink = true};
    columns[used++] = (struct table_column){.title = "cache"};
    columns[used++] = (struct table_column){.title = "stage", .may_shrink = true};
    for (unsigned i = 0; i < count; i++)
        columns[used++] = (struct table_column){
            .title = figures[i].title, .align = TABLE_RIGHT, .minor = figures[i].minor};
    return table_new(out, columns, used);
}

static void add_stage(struct table *table, struct value stage)
{
    char *name = table_cell_text(stage, UNIT_NONE), *indented = NULL;
    if (name && asprintf(&indented, "  %s", name) < 0)
        indented = NULL;
    free(name);
    table_take(table, indented);
}

// The names of a waterfall are in its first row only.
static void add_names(struct table *table, const struct result *result, size_t row, unsigned groups,
                      const char *cache)
{
    const bool is_total = result_is(result, row, "part", "total");
    for (unsigned i = 0; i < groups; i++) {
        if (is_total)
            table_add_value(table, result_cell(result, row, i), UNIT_NONE);
        else
            table_add(table, "");
    }
    table_add(table, is_total ? cache : "");
    if (is_total)
        table_add(table, "all");
    else if (result_is(result, row, "part", "other"))
        table_add(table, "  other");
    else
        add_stage(table, result_get(result, row, "stage"));
}

static void add_figures(struct table *table, const struct result *result, size_t row,
                        const struct figure *figures, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const int column = result_find(result, figures[i].key);
        table_add_value(table, result_cell(result, row, (unsigned)column),
                        column < 0 ? UNIT_NONE : result_column(result, (unsigned)column)->unit);
    }
}

static void copy_cache(char cache[16], const struct result *result, size_t row)
{
    const struct value value = result_get(result, row, "cache");
    (void)snprintf(cache, 16, "%.*s", value.type == VALUE_TEXT ? (int)value.text.size : 0,
                   value.type == VALUE_TEXT ? value.text.bytes : "");
}

// Counts the cache states of the row's group except "all"; `cache` gets the last one.
static unsigned count_caches(char cache[16], const struct result *result, size_t row,
                             unsigned groups)
{
    unsigned kinds = 0;
    for (size_t i = 0; i < result_row_count(result); i++) {
        if (!result_is(result, i, "part", "total") || result_is(result, i, "cache", "all") ||
            !same_cells(result, row, result, i, groups))
            continue;
        copy_cache(cache, result, i);
        kinds++;
    }
    return kinds;
}

// Adds all rows.  "all" is omitted if the group has only one cache state.
static void add_waterfalls(struct table *table, const struct result *result, unsigned groups,
                           const struct figure *figures, unsigned count)
{
    for (size_t row = 0; row < result_row_count(result); row++) {
        char cache[16] = "";
        const bool is_all = result_is(result, row, "cache", "all");
        const unsigned kinds = count_caches(cache, result, row, groups);
        if (kinds == 1 && !is_all)
            continue;
        if (kinds != 1)
            copy_cache(cache, result, row);
        add_names(table, result, row, groups, cache);
        add_figures(table, result, row, figures, count);
    }
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

static enum status print_averages(struct cli *cli, const struct result *result, unsigned groups,
                                  struct error *err)
{
    static const struct figure figures[] = {
        {"count", "loads", 0},
        {"failed", "failed", 3},
        {"mean_ns", "mean", 0},
        {"p50_ns", "p50", 1},
        {"max_ns", "max", 1},
        {"share_ratio", "share", 0},
        {"load_bytes_per_second", "rate", 2},
        {"storage_bytes_per_second", "storage", 2},
        {"page_cache_ratio", "cached", 2},
    };
    const unsigned count = sizeof figures / sizeof *figures;
    struct table *table;
    if (new_table(&table, result, groups, figures, count) != STATUS_OK)
        return error_no_memory(err, "loads");
    add_waterfalls(table, result, groups, figures, count);
    enum status status = table_print(table, cli->env.out, cli->env.width, err);
    table_free(table);
    if (status == STATUS_OK)
        (void)fputs("cold: at most 10 % of the file was in the page cache; warm: at least 90 %; "
                    "mixed: between; all: every load\n",
                    cli->env.out);
    return status;
}

static enum status show(struct cli *cli, const struct result *result, unsigned groups,
                        enum status (*print)(struct cli *cli, const struct result *result,
                                             unsigned groups, struct error *err),
                        struct error *err)
{
    if (cli->options.format == FORMAT_TEXT)
        return print(cli, result, groups, err);
    rows_print(cli->env.out, cli->options.format, result);
    return STATUS_OK;
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
    enum status status = cli_ask_for(cli, &query, "loads", &result, err);
    if (status != STATUS_OK)
        return status;
    status = show(cli, result, count, print_averages, err);
    result_free(result);
    return status;
}

// ---- Comparisons ----------------------------------------------------------------------

static enum status read_when(void *context, int64_t *out_ns, const char *text, bool latest,
                             struct error *err)
{
    const struct cli *cli = context;
    return time_arg_parse(cli->env.notes, out_ns, text, cli->env.now_ns, latest, "a time", err);
}

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
        status = query_text_read_filter(&side, text, read_when, cli, NULL, err);
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

// Finds the row with the same groups, cache, part and stage; the number of rows if there is
// none.
static size_t find_row(const struct result *in, const struct result *of, size_t row,
                       unsigned groups)
{
    size_t found = 0;
    while (found < result_row_count(in) && !same_cells(in, found, of, row, groups + COMPARED_TEXTS))
        found++;
    return found;
}

// Adds a row with the figures of A and B for one part (a row past the end: absent).
static enum status add_compared(struct result *out, const struct result *a, size_t row_a,
                                const struct result *b, size_t row_b, unsigned groups)
{
    if (result_add_row(out) != STATUS_OK)
        return STATUS_NOMEM;
    const bool in_a = row_a < result_row_count(a);
    for (unsigned i = 0; i < groups + COMPARED_TEXTS; i++) {
        const struct value value = in_a ? result_cell(a, row_a, i) : result_cell(b, row_b, i);
        if (value.type == VALUE_TEXT &&
            result_set_text(out, i, value.text.bytes, value.text.size) != STATUS_OK)
            return STATUS_NOMEM;
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
    return STATUS_OK;
}

// Adds the rows that only B has of the group and cache state of a row.
static enum status add_missing(struct result *out, const struct result *a, const struct result *b,
                               size_t of, unsigned groups)
{
    enum status status = STATUS_OK;
    for (size_t row = 0; row < result_row_count(b) && status == STATUS_OK; row++)
        if (same_cells(a, of, b, row, groups + 1) &&
            find_row(a, b, row, groups) == result_row_count(a))
            status = add_compared(out, a, result_row_count(a), b, row, groups);
    return status;
}

static bool has_kind(const struct result *in, const struct result *of, size_t row, unsigned groups)
{
    for (size_t i = 0; i < result_row_count(in); i++)
        if (same_cells(in, i, of, row, groups + 1))
            return true;
    return false;
}

// Joins two answers: the rows of A in order, then those only in B.
static enum status line_up(const struct result *a, const struct result *b, unsigned groups,
                           struct result **out)
{
    enum status status = result_new(out);
    for (unsigned i = 0; i < groups && status == STATUS_OK; i++)
        status = result_add_column(*out, result_column(a, i)->key, UNIT_NONE);
    for (unsigned i = 0; i < COMPARED_COUNT && status == STATUS_OK; i++)
        status = result_add_column(*out, compared[i].key, compared[i].unit);
    const size_t end = result_row_count(a);
    for (size_t row = 0; row < end && status == STATUS_OK; row++) {
        status = add_compared(*out, a, row, b, find_row(b, a, row, groups), groups);
        if (status == STATUS_OK && (row + 1 == end || !same_cells(a, row, a, row + 1, groups + 1)))
            status = add_missing(*out, a, b, row, groups);
    }
    for (size_t row = 0; row < result_row_count(b) && status == STATUS_OK; row++)
        if (!has_kind(a, b, row, groups))
            status = add_compared(*out, a, end, b, row, groups);
    return status;
}

// Prints the text of a side, escaped for the terminal.
static char *side_text(char text[QUERY_TEXT_SIZE], const struct cli *cli, int side)
{
    const char *words = cli->options.arguments[side];
    return text_escape(text, QUERY_TEXT_SIZE, words, strlen(words));
}

static enum status print_comparison(struct cli *cli, const struct result *result, unsigned groups,
                                    struct error *err)
{
    static const struct figure figures[] = {
        {"a_count", "loads A", 1}, {"b_count", "loads B", 1},     {"a_mean_ns", "A", 0},
        {"b_mean_ns", "B", 0},     {"difference_ns", "B - A", 0}, {"ratio", "B / A", 0},
    };
    const unsigned count = sizeof figures / sizeof *figures;
    struct table *table;
    if (new_table(&table, result, groups, figures, count) != STATUS_OK)
        return error_no_memory(err, "loads");
    add_waterfalls(table, result, groups, figures, count);
    char side[QUERY_TEXT_SIZE];
    for (int i = 0; i < 2; i++)
        (void)fprintf(cli->env.out, "%c: %s\n", 'A' + i, side_text(side, cli, i));
    (void)fputc('\n', cli->env.out);
    enum status status = table_print(table, cli->env.out, cli->env.width, err);
    table_free(table);
    return status;
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
        if (find_row(b, a, row, groups) < result_row_count(b))
            return true;
    return false;
}

static enum status compare_sides(struct cli *cli, struct query_filter sides[2], struct error *err)
{
    const struct cli_options *options = &cli->options;
    struct result *answers[2] = {NULL, NULL}, *both = NULL;
    enum query_dimension group_by[GROUPS_MAX];
    unsigned groups = 0;
    enum status status = STATUS_OK;
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
        status = show(cli, both, groups, print_comparison, err);
    result_free(both);
    result_free(answers[0]);
    result_free(answers[1]);
    return status;
}

enum status command_load_comparison(struct cli *cli, struct error *err)
{
    if (cli->options.argument_count != 2)
        return error_set(err, STATUS_INVALID,
                         "loads --compare: give two sides, such as \"host=a\" \"host=b\" (see "
                         "inferstat loads --help)");
    struct query_filter *sides = calloc(2, sizeof *sides);
    if (!sides)
        return error_no_memory(err, "loads");
    enum status status = compare_sides(cli, sides, err);
    free(sides);
    return status;
}
