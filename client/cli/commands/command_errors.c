// inferstat errors [--by LIST]
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "client/cli/output/columns.h"

static char *error_text(const struct column *column, const struct result *result, size_t row)
{
    if (result_get(result, row, column->key).type == VALUE_NULL)
        return strdup("(no reason recorded)");
    return column_value(column, result, row);
}

static char *kind_text(const struct column *column, const struct result *result, size_t row)
{
    const struct value kind = result_get(result, row, column->key);
    return strdup(kind.type == VALUE_TEXT ? record_kind_words(kind.text.bytes) : "-");
}

static const struct column figures[] = {
    {"count", "count", COLUMN_RIGHT(0)},
    {"first_ns", "first", COLUMN_LEFT(2)},
    {"last_ns", "last", COLUMN_LEFT(1)},
    {"kind", "kind", COLUMN_LEFT(0), .cell = kind_text},
};

enum {
    FIGURE_COUNT = sizeof figures / sizeof *figures,
    SHOWN_MAX = FIGURE_COUNT + QUERY_DIMENSION_COUNT + 1,
};

// The text that arrived last, where it is not the one that is counted.
static void add_example(struct table *table, const struct result *result, size_t row)
{
    if (!value_is_same(result_get(result, row, "error"), result_get(result, row, "example")))
        table_add_cell_below(table, "    such as: ", result, row, "example");
}

static unsigned choose(struct column out[SHOWN_MAX], const struct query *query)
{
    unsigned count = FIGURE_COUNT;
    memcpy(out, figures, sizeof figures);
    count += columns_by_group(out + count, query);
    out[count++] = (struct column){"error", "error", COLUMN_LEFT(0), .cell = error_text};
    return count;
}

enum status command_errors(struct cli *cli, struct error *err)
{
    struct result *result = NULL;
    struct column shown[SHOWN_MAX];
    const struct columns view = {shown, choose(shown, &cli->query), add_example};
    enum status status = cli_ask_for(cli, &cli->query, "errors", "no failures", &result, err);
    if (status == STATUS_OK)
        status = cli_print(cli, &view, result, err);
    if (status == STATUS_OK)
        cli_note(cli, result);
    result_free(result);
    return status;
}
