// Which columns of a kind people see, and under what titles.  One table; lists
// and the live tail read it.
#ifndef INFERSTAT_CLIENT_CLI_VIEW_H
#define INFERSTAT_CLIENT_CLI_VIEW_H

#include "client/cli/table.h"
#include "common/core/query/result.h"
#include "common/core/record/record.h"

enum view_style {
    VIEW_PLAIN,  // in its unit
    VIEW_RUN,    // a UUID, its first 8 characters (filters take them)
    VIEW_YES_NO, // 1, 0 or absent
    VIEW_CLOCK,  // an offset with its error, from clock_error_ns: "+1.2ms ±0.3ms"
};

struct view_column {
    const char *key; // of the result
    const char *title;
    enum view_style style;
    enum table_align align;
    unsigned minor; // as in a table
};

struct view {
    const struct view_column *columns;
    unsigned count;
};

const struct view *view_of(enum record_kind kind);

// An empty table of a view.
MUST_CHECK enum status view_table(struct table **out, const struct view *view);

// Adds a row of a result to it; columns that the result lacks show as absent.
void view_add_row(const struct view *view, struct table *table, const struct result *result,
                  size_t row);

// One cell as people see it; the caller frees it.  NULL when out of memory.
char *view_cell(const struct view_column *column, const struct result *result, size_t row);

#endif
