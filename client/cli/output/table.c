#include "client/cli/output/table.h"

#include <stdlib.h>
#include <string.h>

#include "common/core/base/array.h"
#include "common/core/base/glyph.h"
#include "common/core/base/text.h"
#include "common/core/base/unit.h"

enum {
    GAP = 2,           // blanks between columns
    SHRINK_LEAST = 10, // no column is cut to fewer
    RUN_SHOWN = 8,     // characters of a UUID
};

static const char cut_mark[] = "...";

// A line below a row.
struct below {
    size_t row;
    char *line;
};

struct table {
    struct column *columns;
    char *(*names)[2]; // their keys and titles
    unsigned column_count;
    void (*fill_below)(struct table *table, const struct result *result, size_t row);
    char **cells; // row by row
    size_t cell_count;
    size_t cell_room;
    struct below *belows; // by rising row
    size_t below_count;
    size_t below_room;
    bool failed; // out of memory
};

// The layout of a table for one width, one element per column.
struct layout {
    unsigned count;
    struct laid {
        unsigned needed; // for all its cells
        unsigned width;  // given; 0: left out
    } * columns;
};

struct table *table_new(const struct columns *columns)
{
    struct table *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    table->fill_below = columns->add_below;
    table->column_count = columns->count;
    table->columns = calloc(columns->count, sizeof *table->columns);
    table->names = calloc(columns->count, sizeof *table->names);
    bool failed = !table->columns || !table->names;
    for (unsigned i = 0; !failed && i < columns->count; i++) {
        const struct column *column = &columns->columns[i];
        char **names = table->names[i];
        names[0] = strdup(column->key);
        names[1] = text_escape_new(column->title, strlen(column->title));
        table->columns[i] = *column;
        table->columns[i].key = names[0];
        table->columns[i].title = names[1];
        failed = !names[0] || !names[1];
    }
    if (failed) {
        table_free(table);
        return NULL;
    }
    return table;
}

void table_free(struct table *table)
{
    if (!table)
        return;
    for (unsigned i = 0; table->names && i < table->column_count; i++) {
        free(table->names[i][0]);
        free(table->names[i][1]);
    }
    for (size_t i = 0; i < table->cell_count; i++)
        free(table->cells[i]);
    for (size_t i = 0; i < table->below_count; i++)
        free(table->belows[i].line);
    free(table->names);
    free(table->cells);
    free(table->belows);
    free(table->columns);
    free(table);
}

// ---- Cells --------------------------------------------------------------------

char *table_cell_text(struct value value, enum unit unit)
{
    char text[UNIT_TEXT_SIZE];
    switch (value.type) {
    case VALUE_INT:
        return strdup(unit_format_int(text, unit, value.i));
    case VALUE_REAL:
        return strdup(unit_format(text, unit, value.r));
    case VALUE_TEXT:
        return text_escape_new(value.text.bytes, value.text.size);
    case VALUE_NULL:
        break;
    }
    return strdup("-");
}

char *column_value(const struct column *column, const struct result *result, size_t row)
{
    const int place = result_find(result, column->key);
    return table_cell_text(result_cell(result, row, (unsigned)place),
                           place < 0 ? UNIT_NONE : result_column(result, (unsigned)place)->unit);
}

char *column_run(const struct column *column, const struct result *result, size_t row)
{
    struct value run = result_get(result, row, column->key);
    if (run.type == VALUE_TEXT && run.text.size > RUN_SHOWN)
        run.text.size = RUN_SHOWN;
    return table_cell_text(run, UNIT_NONE);
}

char *column_in_row_unit(const struct column *column, const struct result *result, size_t row)
{
    unsigned unit = 0;
    while (unit < UNIT_COUNT_OF && !result_is(result, row, "unit", unit_name((enum unit)unit)))
        unit++;
    return table_cell_text(result_get(result, row, column->key),
                           unit < UNIT_COUNT_OF ? (enum unit)unit : UNIT_NONE);
}

char *column_text(const struct column *column, const struct result *result, size_t row)
{
    return column->cell ? column->cell(column, result, row) : column_value(column, result, row);
}

// ---- Filling ------------------------------------------------------------------

static void add_cell(struct table *table, char *cell)
{
    if (!cell || !ARRAY_RESERVE(&table->cells, &table->cell_room, table->cell_count + 1)) {
        table->failed = true;
        free(cell);
        return;
    }
    table->cells[table->cell_count++] = cell;
}

void table_add_row(struct table *table, const struct result *result, size_t row)
{
    for (unsigned i = 0; i < table->column_count && !table->failed; i++)
        add_cell(table, column_text(&table->columns[i], result, row));
    if (table->fill_below)
        table->fill_below(table, result, row);
}

void table_add_below(struct table *table, const char *line)
{
    char *copy = strdup(line);
    if (!copy || !ARRAY_RESERVE(&table->belows, &table->below_room, table->below_count + 1)) {
        table->failed = true;
        free(copy);
        return;
    }
    const size_t rows = table->cell_count / table->column_count;
    table->belows[table->below_count++] = (struct below){.row = rows - 1, .line = copy};
}

// ---- Laying out ---------------------------------------------------------------

// Makes each column as wide as its cells need.
static void measure(const struct table *table, struct layout *layout)
{
    for (unsigned i = 0; i < layout->count; i++)
        layout->columns[i].needed = (unsigned)glyph_text_width(table->columns[i].title);
    for (size_t i = 0; i < table->cell_count; i++) {
        struct laid *laid = &layout->columns[i % layout->count];
        unsigned needed = (unsigned)glyph_text_width(table->cells[i]);
        if (needed > laid->needed)
            laid->needed = needed;
    }
    for (unsigned i = 0; i < layout->count; i++)
        layout->columns[i].width = layout->columns[i].needed;
}

static unsigned shown_columns(const struct layout *layout)
{
    unsigned shown = 0;
    for (unsigned i = 0; i < layout->count; i++)
        shown += layout->columns[i].width > 0;
    return shown;
}

static unsigned total_width(const struct layout *layout)
{
    unsigned total = 0;
    for (unsigned i = 0; i < layout->count; i++)
        total += layout->columns[i].width;
    return total + GAP * (shown_columns(layout) - 1);
}

// Leaves out the most minor column, of equals the rightmost; false when none is
// minor.
static bool leave_minor_out(const struct table *table, const struct layout *layout)
{
    unsigned minor = 0;
    unsigned which = 0;
    for (unsigned i = 0; i < layout->count; i++) {
        if (layout->columns[i].width > 0 && table->columns[i].minor > 0 &&
            table->columns[i].minor >= minor) {
            minor = table->columns[i].minor;
            which = i;
        }
    }
    if (minor > 0)
        layout->columns[which].width = 0;
    return minor > 0;
}

static bool may_shrink(const struct column *column)
{
    return column->align == TABLE_LEFT && !column->is_whole &&
           strcmp(column->key, "started_ns") != 0;
}

// Shrinks the widest shrinkable column by one; false if none can shrink.
static bool shrink_widest(const struct table *table, const struct layout *layout)
{
    struct laid *widest = NULL;
    for (unsigned i = 0; i < layout->count; i++) {
        struct laid *laid = &layout->columns[i];
        if (may_shrink(&table->columns[i]) && laid->width > SHRINK_LEAST &&
            (!widest || laid->width > widest->width))
            widest = laid;
    }
    if (widest)
        widest->width--;
    return widest != NULL;
}

// Leaves out the rightmost column and gives the others their width back; false
// when only one is left.
static bool leave_last_out(const struct layout *layout)
{
    if (shown_columns(layout) == 1)
        return false;
    unsigned last = layout->count - 1;
    while (layout->columns[last].width == 0)
        last--;
    layout->columns[last].width = 0;
    for (unsigned i = 0; i < last; i++) {
        if (layout->columns[i].width > 0)
            layout->columns[i].width = layout->columns[i].needed;
    }
    return true;
}

static void fit(const struct table *table, struct layout *layout, unsigned width)
{
    measure(table, layout);
    while (width > 0 && total_width(layout) > width) {
        if (!leave_minor_out(table, layout) && !shrink_widest(table, layout) &&
            !leave_last_out(layout))
            return;
    }
}

// ---- Printing -----------------------------------------------------------------

static void print_blanks(FILE *out, unsigned count)
{
    (void)fprintf(out, "%*s", (int)count, "");
}

static void print_cell(FILE *out, const char *text, unsigned width, enum table_align align,
                       bool last)
{
    unsigned needed = (unsigned)glyph_text_width(text);
    unsigned blanks = needed < width ? width - needed : 0;
    if (align == TABLE_RIGHT)
        print_blanks(out, blanks);
    if (needed <= width) {
        (void)fputs(text, out);
    } else {
        unsigned mark = sizeof cut_mark - 1 < width ? sizeof cut_mark - 1 : width;
        size_t bytes = glyph_cut(text, (int)(width - mark));
        (void)fwrite(text, 1, bytes, out);
        (void)fwrite(cut_mark, 1, mark, out);
    }
    if (align == TABLE_LEFT && !last)
        print_blanks(out, blanks);
}

static void print_line(const struct table *table, const struct layout *layout, FILE *out,
                       char *const *cells)
{
    unsigned left = shown_columns(layout);
    for (unsigned i = 0; i < layout->count; i++) {
        const struct column *column = &table->columns[i];
        if (layout->columns[i].width == 0)
            continue;
        left--;
        print_cell(out, cells ? cells[i] : column->title, layout->columns[i].width, column->align,
                   left == 0);
        if (left > 0)
            print_blanks(out, GAP);
    }
    (void)fputc('\n', out);
}

static void print_rows(const struct table *table, const struct layout *layout, FILE *out)
{
    size_t below = 0;
    for (size_t row = 0; row < table->cell_count / table->column_count; row++) {
        print_line(table, layout, out, table->cells + row * table->column_count);
        for (; below < table->below_count && table->belows[below].row == row; below++)
            (void)fprintf(out, "%s\n", table->belows[below].line);
    }
}

enum status table_print(const struct table *table, FILE *out, unsigned width, struct error *err)
{
    struct layout layout = {.count = table->column_count};
    layout.columns = calloc(layout.count, sizeof *layout.columns);
    if (table->failed || !layout.columns) {
        free(layout.columns);
        return error_no_memory(err, "table");
    }
    fit(table, &layout, width);
    print_line(table, &layout, out, NULL);
    print_rows(table, &layout, out);
    unsigned hidden = layout.count - shown_columns(&layout);
    if (hidden > 0)
        (void)fprintf(out, "(%u more column%s: widen the terminal, or use --json)\n", hidden,
                      hidden == 1 ? "" : "s");
    free(layout.columns);
    return STATUS_OK;
}
