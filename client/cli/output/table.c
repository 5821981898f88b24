#include "client/cli/output/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/array.h"
#include "common/core/base/glyph.h"
#include "common/core/base/text.h"

enum {
    GAP = 2,           // blanks between columns
    BELOW = 4,         // and before most lines below a row
    SHRINK_LEAST = 10, // no column is cut to fewer
    RUN_SHOWN = 8,     // characters of a UUID
};

static const char cut_mark[] = "...";

struct below {
    size_t row;
    char *line;
};

// A column of the table, and its layout for one width of the terminal.
struct laid {
    struct column column;
    char *key, *title;
    unsigned needed; // for all its cells
    unsigned width;  // given; 0: left out
    bool is_below;   // a line below each row instead
};

struct table {
    struct laid *columns;
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

struct table *table_new(const struct columns *columns)
{
    struct table *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    table->fill_below = columns->add_below;
    table->column_count = columns->count;
    table->columns = calloc(columns->count, sizeof *table->columns);
    bool failed = !table->columns;
    for (unsigned i = 0; !failed && i < columns->count; i++) {
        const struct column *column = &columns->columns[i];
        struct laid *laid = &table->columns[i];
        laid->key = strdup(column->key);
        laid->title = text_escape_new(column->title, strlen(column->title));
        laid->column = *column;
        laid->column.key = laid->key;
        laid->column.title = laid->title;
        failed = !laid->key || !laid->title;
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
    for (unsigned i = 0; table->columns && i < table->column_count; i++) {
        free(table->columns[i].key);
        free(table->columns[i].title);
    }
    for (size_t i = 0; i < table->cell_count; i++)
        free(table->cells[i]);
    for (size_t i = 0; i < table->below_count; i++)
        free(table->belows[i].line);
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
        (void)unit_format(text, unit, value.r); // "1980 MHz" stays as others show it
        return strdup(strchr(text, '.') ? unit_separate(text) : text);
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

char *column_change(const struct column *column, const struct result *result, size_t row)
{
    char text[UNIT_TEXT_SIZE];
    return strdup(result_change(text, result, row, "before_median", column->key));
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
        add_cell(table, column_text(&table->columns[i].column, result, row));
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

void table_add_cell_below(struct table *table, const char *title, const struct result *result,
                          size_t row, const char *key)
{
    char *text = column_value(&(struct column){.key = key}, result, row), *line = NULL;
    if (text && result_get(result, row, key).type != VALUE_NULL &&
        asprintf(&line, "%s%s", title, text) > 0)
        table_add_below(table, line);
    free(line);
    free(text);
}

// ---- Laying out ---------------------------------------------------------------

// Makes each column as wide as its cells need; an optional one without values needs nothing.
static void measure(const struct table *table)
{
    for (unsigned i = 0; i < table->column_count; i++) {
        struct laid *laid = &table->columns[i];
        bool has_value = !laid->column.is_optional;
        for (size_t cell = i; cell < table->cell_count; cell += table->column_count)
            has_value = has_value || strcmp(table->cells[cell], "-") != 0;
        laid->needed = has_value ? (unsigned)glyph_text_width(laid->title) : 0;
    }
    for (size_t i = 0; i < table->cell_count && table->column_count > 0; i++) {
        struct laid *laid = &table->columns[i % table->column_count];
        unsigned needed = (unsigned)glyph_text_width(table->cells[i]);
        if (laid->needed > 0 && needed > laid->needed)
            laid->needed = needed;
    }
    for (unsigned i = 0; i < table->column_count; i++)
        table->columns[i].width = table->columns[i].needed;
}

static unsigned shown_columns(const struct table *table)
{
    unsigned shown = 0;
    for (unsigned i = 0; i < table->column_count; i++)
        shown += table->columns[i].width > 0;
    return shown;
}

static unsigned total_width(const struct table *table)
{
    unsigned total = 0;
    for (unsigned i = 0; i < table->column_count; i++)
        total += table->columns[i].width;
    return total + GAP * (shown_columns(table) - 1);
}

// Leaves out the most minor column, of equals the rightmost; false when none is
// minor.
static bool leave_minor_out(const struct table *table)
{
    struct laid *minor = NULL;
    for (unsigned i = 0; i < table->column_count; i++) {
        struct laid *laid = &table->columns[i];
        if (laid->width > 0 && laid->column.minor > 0 &&
            (!minor || laid->column.minor >= minor->column.minor))
            minor = laid;
    }
    if (minor)
        minor->width = 0;
    return minor != NULL;
}

// Shrinks the widest shrinkable column by one; false if none can shrink.
static bool shrink_widest(const struct table *table)
{
    struct laid *widest = NULL;
    for (unsigned i = 0; i < table->column_count; i++) {
        struct laid *laid = &table->columns[i];
        const bool may_shrink = laid->column.align == TABLE_LEFT && !laid->column.is_whole &&
                                strcmp(laid->key, "started_ns") != 0;
        if (may_shrink && laid->width > SHRINK_LEAST && (!widest || laid->width > widest->width))
            widest = laid;
    }
    if (widest)
        widest->width--;
    return widest != NULL;
}

// Leaves out the rightmost column and gives the others their width back; false
// when only one is left.
static bool leave_last_out(const struct table *table)
{
    if (shown_columns(table) == 1)
        return false;
    unsigned last = table->column_count - 1;
    while (table->columns[last].width == 0)
        last--;
    table->columns[last].width = 0;
    for (unsigned i = 0; i < last; i++) {
        if (table->columns[i].width > 0)
            table->columns[i].width = table->columns[i].needed;
    }
    return true;
}

static void fit(const struct table *table, unsigned width)
{
    measure(table);
    for (unsigned i = 0; i < table->column_count; i++) {
        struct laid *laid = &table->columns[i];
        laid->is_below = laid->column.is_below && width > 0 && total_width(table) > width;
        if (laid->is_below)
            laid->width = 0;
    }
    while (width > 0 && total_width(table) > width) {
        if (!leave_minor_out(table) && !shrink_widest(table) && !leave_last_out(table))
            return;
    }
}

// ---- Printing -----------------------------------------------------------------

static void print_blanks(FILE *out, unsigned count)
{
    (void)fprintf(out, "%*s", (int)count, "");
}

// The colour of a cell that says how something is (SGR); NULL: none.
static const char *colour_of(const char *title, const char *text)
{
    static const struct {
        const char *text, *colour;
    } words[] = {
        {"down", "31"},       {"silent", "31"}, {"errors", "31"},  {"error", "31"},
        {"killed", "31"},     {"WORSE", "31"},  {"firing", "31"},  {"critical", "31"},
        {"unbalanced", "31"}, {"slow", "33"},   {"pending", "33"}, {"warning", "33"},
        {"no data", "33"},    {"BETTER", "32"}, {"ok", "32"},      {"-", NULL},
        {"0", NULL},
    };
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text, words[i].text) == 0)
            return words[i].colour;
    const bool is_bad = strcmp(title, "lost") == 0 || strncmp(title, "trouble", 7) == 0;
    return is_bad || (text[0] && text[strlen(text) - 1] == '!') ? "33" : NULL;
}

static void print_cell(FILE *out, const char *text, unsigned width, enum table_align align,
                       bool last, const char *colour)
{
    unsigned needed = (unsigned)glyph_text_width(text);
    unsigned blanks = needed < width ? width - needed : 0;
    if (align == TABLE_RIGHT)
        print_blanks(out, blanks);
    if (needed <= width && colour) {
        (void)fprintf(out, "\033[%sm%s\033[0m", colour, text);
    } else if (needed <= width) {
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

// The titles where `cells` is NULL.
static void print_line(const struct table *table, FILE *out, char *const *cells, bool colours)
{
    unsigned left = shown_columns(table);
    for (unsigned i = 0; i < table->column_count; i++) {
        const struct laid *laid = &table->columns[i];
        if (laid->width == 0)
            continue;
        left--;
        print_cell(out, cells ? cells[i] : laid->title, laid->width, laid->column.align, left == 0,
                   colours && cells ? colour_of(laid->title, cells[i]) : NULL);
        if (left > 0)
            print_blanks(out, GAP);
    }
    (void)fputc('\n', out);
}

void table_print_words(FILE *out, unsigned width, int at, int indent, const char *text)
{
    for (int blanks = 0; *text;) {
        const char *end = text + strcspn(text, " ");
        int columns = 0;
        for (const char *next = text; next < end;)
            columns += glyph_width(glyph_next(&next));
        if (blanks > 0 && width > 0 && at + blanks + columns > (int)width)
            at = fprintf(out, "\n%*s", indent, "") - 1;
        else
            at += fprintf(out, "%*s", blanks, "");
        at += columns;
        (void)fprintf(out, "%.*s", (int)(end - text), text);
        blanks = (int)strspn(end, " ");
        text = end + blanks;
    }
    (void)fprintf(out, "\n");
}

enum status table_print(const struct table *table, FILE *out, unsigned width, bool colours,
                        struct error *err)
{
    if (table->failed)
        return error_no_memory(err, "table");
    fit(table, width);
    print_line(table, out, NULL, false);
    size_t below = 0;
    const size_t rows = table->column_count > 0 ? table->cell_count / table->column_count : 0;
    for (size_t row = 0; row < rows; row++) {
        char *const *cells = table->cells + row * table->column_count;
        print_line(table, out, cells, colours);
        for (unsigned i = 0; i < table->column_count && strcmp(cells[0], "ok") != 0; i++)
            if (table->columns[i].is_below && strcmp(cells[i], "-") != 0 &&
                strcmp(cells[i], "0") != 0) {
                const int at = fprintf(out, "%*s%s: ", BELOW, "", table->columns[i].title);
                table_print_words(out, width, at, BELOW + 2, cells[i]);
            }
        for (; below < table->below_count && table->belows[below].row == row; below++) {
            const char *line = table->belows[below].line;
            const bool is_red = colours && strncmp(line, "    error: ", 11) == 0;
            (void)fputs(is_red ? "\033[31m" : "", out);
            table_print_words(out, width, 0, BELOW + 2, line);
            (void)fputs(is_red ? "\033[0m" : "", out);
        }
    }
    unsigned hidden = 0;
    for (unsigned i = 0; i < table->column_count; i++)
        hidden += table->columns[i].needed > 0 && table->columns[i].width == 0 &&
                  !table->columns[i].is_below;
    if (hidden > 0)
        (void)fprintf(out, "(%u more column%s: widen the terminal, or use --wide)\n", hidden,
                      hidden == 1 ? "" : "s");
    return STATUS_OK;
}
