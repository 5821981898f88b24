#include "client/tui/grid.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/tui/grid_rows.h"
#include "common/core/base/text.h"
#include "common/core/base/unit.h"
#include "common/core/base/glyph.h"
#include "common/core/record/record.h"

enum { GAP = 2, GAP_TIGHT = 1, CURSOR_WIDTH = 1 };

static const int64_t day_ns = INT64_C(86400) * 1000000000;

// ---- One cell ---------------------------------------------------------------

static void format_unit(char *text, enum unit unit, struct value value)
{
    if (value.type == VALUE_INT)
        (void)unit_format_int(text, unit, value.i);
    else
        (void)unit_format(text, unit, value.r);
}

static void format_clock(char *text, int64_t time_ns, int64_t now_ns)
{
    char full[UNIT_TEXT_SIZE]; // "2026-03-29 02:30:00"
    (void)unit_format_int(full, UNIT_TIME, time_ns);
    size_t size = strlen(full);
    bool recent = time_ns > now_ns - day_ns && time_ns < now_ns + day_ns;
    if (size != 19)
        (void)snprintf(text, GRID_CELL_SIZE, "%s", full);
    else if (recent)
        (void)snprintf(text, GRID_CELL_SIZE, "%s", full + 11);
    else
        (void)snprintf(text, GRID_CELL_SIZE, "%.8s", full + 2);
}

// A number without its unit, and in more columns than `width` without decimals, one
// after the other.
static void format_bare(char *text, enum unit unit, struct value value, int width)
{
    static const double parts[] = {10, 1}; // tenths, then none
    if (unit == UNIT_RATIO) {
        const double percent = value_number(value, 0) * 100;
        const double shown = percent > 0 ? fmax(percent, 0.1) : percent;
        const int decimals = percent > 0 && percent < 9.95;
        (void)snprintf(text, GRID_CELL_SIZE, "%s%.*f", percent > 0 && percent < 0.05 ? "<" : "",
                       decimals, shown);
        return;
    }
    format_unit(text, unit, value);
    text[strcspn(text, " ")] = '\0';
    if ((int)strlen(text) > width && fabs(value_number(value, 0)) < 0.01)
        (void)snprintf(text, GRID_CELL_SIZE, "<0.01");
    for (unsigned i = 0; i < 2 && (int)strlen(text) > width; i++) {
        (void)unit_format(text, unit, round(value_number(value, 0) * parts[i]) / parts[i]);
        size_t point = strcspn(text, ". ");
        text[text[point] == '.' && parts[i] > 1 ? point + 2 : point] = '\0';
    }
}

// The sign and the look of a state (NOW) or verdict (COMPARE); a text that is none has neither.
static const struct {
    const char *text, *sign;
    enum style style;
} states[] = {
    {RECORD_RUN_DOWN, "✗", STYLE_BAD}, {"silent", "✗", STYLE_BAD},
    {"errors", "✗", STYLE_BAD},        {"slow", "▲", STYLE_WARNING},
    {"alert", "✗", STYLE_BAD},         {"loading", "○", STYLE_DIM},
    {"ok", "●", STYLE_GOOD},           {"idle", "○", STYLE_DIM},
    {"ended", "·", STYLE_DIM},         {"WORSE", "▲", STYLE_BAD},
    {"BETTER", "▼", STYLE_GOOD},       {"SAME", "=", STYLE_DIM},
    {"UNDECIDED", "?", STYLE_DIM},     {"firing", "✗", STYLE_BAD},
    {"pending", "▲", STYLE_WARNING},   {"no data", "?", STYLE_WARNING},
    {"resolved", "·", STYLE_DIM},      {"silenced", "○", STYLE_DIM},
};

enum { STATES = sizeof states / sizeof *states };

static unsigned state_of(const char *text)
{
    unsigned i = 0;
    while (i < STATES && strcmp(states[i].text, text) != 0)
        i++;
    return i;
}

// True for a column with quantiles of a window, which are exact to one percent.
static bool is_quantile(const char *key)
{
    return key && (strstr(key, "_p50_ns") || strstr(key, "_p95_ns") || strstr(key, "_p99_ns")) &&
           strncmp(key, "itl_", 4) != 0; // of a request
}

// `text` holds GRID_CELL_SIZE bytes.
static void format_cell(char *text, const struct grid_choice *choice,
                        const struct grid_column *column, enum unit unit, struct value value,
                        int64_t now_ns)
{
    if (unit == UNIT_CELSIUS && choice && choice->fahrenheit &&
        (value.type == VALUE_INT || value.type == VALUE_REAL)) {
        (void)snprintf(text, GRID_CELL_SIZE, "%.0f F", value_number(value, 0) * 9 / 5 + 32);
        return;
    }
    if (column->format == GRID_VERDICT) {
        (void)snprintf(text, GRID_CELL_SIZE, "%s",
                       value.type != VALUE_INT ? "-"
                       : value.i               ? "yes"
                                               : "NO");
        return;
    }
    if (value.type == VALUE_NULL) {
        (void)snprintf(text, GRID_CELL_SIZE, "-");
        return;
    }
    if (value.type == VALUE_TEXT) {
        (void)text_escape(text, GRID_CELL_SIZE, value.text.bytes, value.text.size);
        if (column->key && strcmp(column->key, "kind") == 0)
            (void)snprintf(text, GRID_CELL_SIZE, "%s", record_kind_words(value.text.bytes));
        const unsigned state = column->format == GRID_STATE ? state_of(text) : STATES;
        if (state < STATES)
            (void)snprintf(text, GRID_CELL_SIZE, "%s %s", states[state].sign, states[state].text);
        return;
    }
    if ((column->format == GRID_CLOCK || column->format == GRID_CLOCK_IF_ANY) &&
        value.type == VALUE_INT) {
        format_clock(text, value.i, now_ns);
        return;
    }
    if (unit == UNIT_DURATION && is_quantile(column->key))
        (void)unit_format_rough(text, unit, value_number(value, 0));
    else if (column->format == GRID_BARE || column->format == GRID_IF_ANY ||
             column->format == GRID_SHARE)
        format_bare(text, unit, value, column->width);
    else
        format_unit(text, unit, value);
}

static bool is_bad_outcome(const char *text)
{
    return strcmp(text, "error") == 0 || strcmp(text, "critical") == 0 ||
           strcmp(text, "killed") == 0 || strcmp(text, "silent") == 0 ||
           strcmp(text, RECORD_RUN_DOWN) == 0;
}

static enum style cell_style(enum grid_format format, struct value value, const char *text)
{
    if (value.type == VALUE_NULL)
        return STYLE_DIM;
    switch (format) {
    case GRID_UNIT:
    case GRID_IN_ROW_UNIT:
    case GRID_NAME:
    case GRID_BARE:
    case GRID_IF_ANY:
    case GRID_IF_DIFFERENT:
    case GRID_CLOCK:
    case GRID_CLOCK_IF_ANY:
    case GRID_DRAWN:
    case GRID_TREE:
        break;
    case GRID_MARKED:
        return text[0] == '!' || (text[0] && text[strlen(text) - 1] == '!') ? STYLE_WARNING
                                                                            : STYLE_PLAIN;
    case GRID_OUTCOME:
        return is_bad_outcome(text) ? STYLE_BAD : STYLE_PLAIN;
    case GRID_LOSS:
    case GRID_SHARE:
        return value_number(value, 0) > 0 ? STYLE_BAD : STYLE_PLAIN;
    case GRID_WHOLE:
        return value_number(value, 0) < 1 ? STYLE_WARNING : STYLE_PLAIN;
    case GRID_VERDICT:
        return value_number(value, 0) > 0 ? STYLE_GOOD : STYLE_BAD;
    case GRID_STATE:
        for (unsigned i = 0; i < STATES; i++)
            if (strstr(text, states[i].text))
                return states[i].style;
        break;
    }
    return STYLE_PLAIN;
}

static bool deserves_look(const struct grid *grid, const struct grid_column *column,
                          const struct result *result, size_t row)
{
    return grid->deserves_look && grid->deserves_look(result, row, column);
}

// Nothing is told by style alone.  `text` holds GRID_CELL_SIZE bytes.
static void mark(char *text)
{
    const size_t size = strlen(text) + 1;
    if (size == GRID_CELL_SIZE)
        return;
    memmove(text + 1, text, size);
    text[0] = '!';
}

// ---- Columns ----------------------------------------------------------------

struct fitted {
    int gap;
    int x[GRID_COLUMNS_MAX];
    int width[GRID_COLUMNS_MAX]; // 0: left out
    int found[GRID_COLUMNS_MAX]; // the result's column, or -1
    double scale;                // of drawn cells
    size_t *groups;              // of a tree (grid_rows_groups), else NULL
    bool has_groups;             // some row is one
    bool is_small;               // grid_rows_is_small
    const size_t *measured;      // rows whose cells set the widths; NULL: the first ones
    size_t measured_count;
};

// The text of a row of a tree: "▾ name", and "    name" below it.
static void format_name(char *text, const struct grid *grid, const struct grid_state *state,
                        const struct fitted *fitted, const struct result *result, size_t row)
{
    char name[GRID_CELL_SIZE - 8];
    const bool is_child = fitted->groups && fitted->groups[row] != row;
    const char *mark = is_child                                                        ? "    "
                       : !grid->is_group(result, row)                                  ? "  "
                       : grid_rows_is_open(grid, state, result, row, fitted->is_small) ? "▾ "
                                                                                       : "▸ ";
    grid->name_of(name, sizeof name, result, row, is_child);
    (void)snprintf(text, GRID_CELL_SIZE, "%s%s", fitted->has_groups ? mark : "", name);
}

// The unit of a cell.
static enum unit unit_of(const struct grid_column *column, const struct result *result, size_t row,
                         int found)
{
    if (column->format != GRID_IN_ROW_UNIT)
        return found >= 0 ? result_column(result, (unsigned)found)->unit : UNIT_NONE;
    for (unsigned unit = 0; unit < UNIT_COUNT_OF; unit++)
        if (result_is(result, row, "unit", unit_name((enum unit)unit)))
            return (enum unit)unit;
    return UNIT_NONE;
}

// The columns that what is in a column needs: texts up to its most, numbers whole.
static int natural_width(const struct grid *grid, const struct grid_state *state,
                         const struct fitted *fitted, const struct grid_column *column,
                         const struct result *result, int found)
{
    int width = column->width;
    int heading = glyph_text_width(column->heading);
    if (column->is_text && heading > width)
        width = heading;
    const size_t rows =
        result && found >= 0 && column->format != GRID_DRAWN ? fitted->measured_count : 0;
    for (size_t i = 0; i < rows && !(column->is_text && width >= column->width_max); i++) {
        const size_t row = fitted->measured ? fitted->measured[i] : i;
        char text[GRID_CELL_SIZE];
        struct value value = result_cell(result, row, (unsigned)found);
        if (column->is_text && value.type != VALUE_TEXT && column->format != GRID_TREE)
            continue;
        if (column->format == GRID_TREE)
            format_name(text, grid, state, fitted, result, row);
        else
            format_cell(text, state->choice, column, unit_of(column, result, row, found), value,
                        0); // clocks are all of one width
        if (deserves_look(grid, column, result, row))
            mark(text);
        int needed = glyph_text_width(text);
        if (column->is_text && needed > column->width_max)
            needed = column->width_max;
        if (needed > width)
            width = needed;
    }
    return width;
}

static int used_width(const struct fitted *fitted, unsigned count)
{
    int used = 0;
    for (unsigned i = 0; i < count; i++)
        if (fitted->width[i] > 0)
            used += fitted->width[i] + (used > 0 ? fitted->gap : 0);
    return used;
}

// Takes columns off texts, from the widest, until all fit or none has any left.
static void shrink_texts(const struct grid *grid, struct fitted *fitted, int width)
{
    for (int excess = used_width(fitted, grid->count) - width; excess > 0; excess--) {
        int widest = -1;
        for (unsigned i = 0; i < grid->count; i++) {
            const struct grid_column *column = &grid->columns[i];
            if (column->is_text && fitted->width[i] > column->width &&
                (widest < 0 || fitted->width[i] > fitted->width[widest]))
                widest = (int)i;
        }
        if (widest < 0)
            return;
        fitted->width[widest]--;
    }
}

// The rank of a column; one that the user wants is omitted after all others.
static unsigned rank_of(const struct grid *grid, const struct grid_state *state, unsigned column)
{
    const unsigned rank = grid->columns[column].rank;
    return rank > 1 && state->pinned >> column & 1 ? 1 : rank;
}

// The shown column to leave out next, or -1: the highest rank; never one sorted by.
static int most_dispensable(const struct grid *grid, const struct grid_state *state,
                            const struct fitted *fitted)
{
    int worst = -1;
    for (unsigned i = 0; i < grid->count; i++)
        if (fitted->width[i] > 0 && rank_of(grid, state, i) > 0 && !grid_sorts_by(state, i) &&
            (worst < 0 || rank_of(grid, state, i) >= rank_of(grid, state, (unsigned)worst)))
            worst = (int)i;
    return worst;
}

// Columns of the least width the table can have with what is shown.
static int least_width(const struct grid *grid, const struct fitted *fitted)
{
    struct fitted least = *fitted; // its groups are borrowed
    for (unsigned i = 0; i < grid->count; i++)
        if (least.width[i] > 0 && grid->columns[i].is_text)
            least.width[i] = grid->columns[i].width;
    return used_width(&least, grid->count);
}

// Leaves columns ranked `rank` and above out while the table needs more columns
// than there are; `least`: with texts at their least width.
static void leave_out(const struct grid *grid, const struct grid_state *state,
                      struct fitted *fitted, int width, unsigned rank, bool least)
{
    for (;;) {
        int needed = least ? least_width(grid, fitted) : used_width(fitted, grid->count);
        int worst = needed > width ? most_dispensable(grid, state, fitted) : -1;
        if (worst < 0 || rank_of(grid, state, (unsigned)worst) < rank)
            return;
        fitted->width[worst] = 0;
    }
}

// Gives drawn cells the columns that are left.
static void grow_drawn(const struct grid *grid, struct fitted *fitted, int room)
{
    for (unsigned i = 0; i < grid->count; i++) {
        const struct grid_column *column = &grid->columns[i];
        const int wide = fitted->width[i] + room - used_width(fitted, grid->count);
        if (column->format == GRID_DRAWN && fitted->width[i] > 0 && wide > fitted->width[i])
            fitted->width[i] = wide < column->width_max ? wide : column->width_max;
    }
}

enum { SORT_MARK_SIZE = 16 };

// The mark behind a heading: "▲"; "▲2" of the second of several columns sorted by; "" of others.
static const char *sort_mark(char text[SORT_MARK_SIZE], const struct grid *grid,
                             const struct grid_state *state, unsigned column)
{
    const bool rises = grid->columns[column].is_text && grid->columns[column].format != GRID_CLOCK;
    unsigned place = 0;
    while (place < state->before_count && state->before[place].column != (int)column)
        place++;
    const bool is_last = place == state->before_count;
    text[0] = '\0';
    if (is_last && state->sort != (int)column)
        return text;
    const bool reversed = is_last ? state->reversed : state->before[place].reversed;
    (void)snprintf(text, SORT_MARK_SIZE, state->before_count > 0 ? "%s%u" : "%s",
                   reversed != rises ? "▲" : "▼", place + 1);
    return text;
}

// True if some row has a value; `differs`: another one than the first row.
static bool has_value(const struct result *result, int found, bool differs)
{
    struct value first = {.type = VALUE_NULL};
    for (size_t row = 0; found >= 0 && row < result_row_count(result); row++) {
        if (differs && row == 0)
            first = result_cell(result, row, (unsigned)found);
        if (!value_is_same(result_cell(result, row, (unsigned)found), first))
            return true;
    }
    return false;
}

// `rows`: those shown, `count` of them.  Of a large table only rows that are visible are measured.
static void fit(const struct grid *grid, const struct grid_state *state,
                const struct result *result, const size_t *rows, size_t count, struct rect area,
                struct fitted *fitted)
{
    enum { MEASURED_ALL = 256 };
    const int width = area.width;
    assert(grid->count <= GRID_COLUMNS_MAX);
    *fitted = (struct fitted){.gap = width >= 110 ? GAP : GAP_TIGHT,
                              .groups = grid_rows_groups(grid, result),
                              .measured_count = result ? result_row_count(result) : 0};
    if (fitted->measured_count > MEASURED_ALL) {
        const size_t top = state->top < count ? state->top : count;
        const size_t page = area.height > 1 ? (size_t)area.height - 1 : 0;
        fitted->measured = rows ? rows + top : NULL;
        fitted->measured_count = count - top < page ? count - top : page;
    }
    for (size_t row = 0; fitted->groups && row < result_row_count(result); row++)
        fitted->has_groups = fitted->has_groups || grid->is_group(result, row);
    fitted->is_small = fitted->has_groups && grid_rows_is_small(grid, result);
    for (unsigned i = 0; i < grid->count; i++) {
        const struct grid_column *column = &grid->columns[i];
        fitted->found[i] = result ? result_find(result, column->key) : -1;
        fitted->width[i] = natural_width(grid, state, fitted, column, result, fitted->found[i]);
        char mark_text[SORT_MARK_SIZE];
        const bool is_sorted = grid_sorts_by(state, i);
        const int heading = glyph_text_width(column->heading) +
                            glyph_text_width(sort_mark(mark_text, grid, state, i));
        if (is_sorted && fitted->width[i] < heading)
            fitted->width[i] = heading;
        const bool differs = column->format == GRID_IF_DIFFERENT;
        const bool is_optional =
            differs || column->format == GRID_IF_ANY || column->format == GRID_CLOCK_IF_ANY ||
            column->format == GRID_DRAWN || (grid->omits_absent && !column->is_text);
        if (!is_sorted && ((state->hidden >> i & 1) ||
                           (is_optional && !has_value(result, fitted->found[i], differs))))
            fitted->width[i] = 0;
    }
    const int room = width - CURSOR_WIDTH;
    leave_out(grid, state, fitted, room, GRID_RANK_LUXURY, false);
    leave_out(grid, state, fitted, room, 1, true);
    shrink_texts(grid, fitted, room);
    grow_drawn(grid, fitted, room);

    int x = CURSOR_WIDTH;
    for (unsigned i = 0; i < grid->count; i++) {
        fitted->x[i] = x;
        if (x + fitted->width[i] > width)
            fitted->width[i] = x < width ? width - x : 0;
        if (fitted->width[i] > 0)
            x += fitted->width[i] + fitted->gap;
    }
}

// ---- Drawing ----------------------------------------------------------------

static void draw_headings(const struct grid *grid, const struct grid_state *state,
                          const struct fitted *fitted, struct canvas *canvas, struct rect area)
{
    for (unsigned i = 0; i < grid->count; i++) {
        const struct grid_column *column = &grid->columns[i];
        if (fitted->width[i] <= 0)
            continue;
        enum align align = column->is_text ? ALIGN_LEFT : ALIGN_RIGHT;
        char heading[64], mark_text[SORT_MARK_SIZE];
        (void)snprintf(heading, sizeof heading, "%s%s", column->heading,
                       sort_mark(mark_text, grid, state, i));
        canvas_fit(canvas, area, fitted->x[i], 0, fitted->width[i], align,
                   grid_sorts_by(state, i) ? STYLE_SORTED : STYLE_HEADING, heading);
    }
}

static void draw_row(const struct grid *grid, const struct grid_state *state,
                     const struct fitted *fitted, const struct result *result, size_t row,
                     int64_t now_ns, int y, struct canvas *canvas, struct rect area)
{
    for (unsigned i = 0; i < grid->count; i++) {
        const struct grid_column *column = &grid->columns[i];
        if (fitted->width[i] <= 0)
            continue;
        struct value value = result_cell(result, row, (unsigned)fitted->found[i]);
        char text[GRID_CELL_SIZE];
        if (column->format == GRID_DRAWN) {
            grid->draw(column, canvas, area, fitted->x[i], y, fitted->width[i], fitted->scale,
                       result, row);
            continue;
        }
        if (column->format == GRID_TREE)
            format_name(text, grid, state, fitted, result, row);
        else
            format_cell(text, state->choice, column, unit_of(column, result, row, fitted->found[i]),
                        value, now_ns);
        if (grid->omits_absent && value.type == VALUE_NULL)
            text[0] = '\0';
        enum style style = cell_style(column->format, value, text);
        if (deserves_look(grid, column, result, row)) {
            style = STYLE_WARNING;
            mark(text);
        }
        if (!column->is_text && glyph_text_width(text) > fitted->width[i])
            (void)snprintf(text, sizeof text, "…"); // digits of a number would be another one
        if (column->format == GRID_NAME || column->format == GRID_IF_DIFFERENT ||
            column->format == GRID_TREE)
            canvas_fit_name(canvas, area, fitted->x[i], y, fitted->width[i], style, text);
        else
            canvas_fit(canvas, area, fitted->x[i], y, fitted->width[i],
                       column->is_text ? ALIGN_LEFT : ALIGN_RIGHT, style, text);
    }
}

static void draw_folded(const struct grid *grid, size_t folded, int y, struct canvas *canvas,
                        struct rect area)
{
    char text[64];
    (void)snprintf(text, sizeof text, "▸ %zu %s (o shows)", folded, grid->folded);
    (void)canvas_put(canvas, area, CURSOR_WIDTH, y, STYLE_DIM, text);
}

void grid_draw(const struct grid *grid, const struct grid_state *state, const struct result *result,
               int64_t now_ns, bool focused, struct canvas *canvas, struct rect area)
{
    if (rect_is_empty(area))
        return;
    size_t count, folded;
    size_t *rows = grid_rows_shown(grid, state, result, &count, &folded);
    struct fitted fitted;
    fit(grid, state, result, rows, count, area, &fitted);
    draw_headings(grid, state, &fitted, canvas, area);
    fitted.scale = grid->scale && result ? grid->scale(result) : 0;
    for (int y = 1; y < area.height; y++) {
        const size_t place = state->top + (size_t)(y - 1);
        if (place == count && folded > 0)
            draw_folded(grid, folded, y, canvas, area);
        if (place >= count)
            break;
        draw_row(grid, state, &fitted, result, rows[place], now_ns, y, canvas, area);
        if (focused && place == state->cursor) {
            (void)canvas_put(canvas, area, 0, y, STYLE_FOCUS, ">");
            canvas_reverse(canvas, (struct rect){area.x, area.y + y, area.width, 1});
        }
    }
    free(rows);
    free(fitted.groups);
}

void grid_value_text(char text[GRID_CELL_SIZE], const struct grid_choice *choice,
                     const struct result *result, size_t row, unsigned column, int64_t now_ns)
{
    const struct grid_column as_it_is = {.format = GRID_UNIT};
    const struct grid_column clock = {.format = GRID_CLOCK};
    const struct grid_column in_row_unit = {.format = GRID_IN_ROW_UNIT};
    const char *key = result_column(result, column)->key;
    const bool is_value = strcmp(key, "value") == 0 || strcmp(key, "threshold") == 0 ||
                          ((strncmp(key, "before_", 7) == 0 || strncmp(key, "after_", 6) == 0) &&
                           result_column(result, column)->unit == UNIT_NONE);
    const bool is_change = strncmp(key, "ratio", 5) == 0 || strncmp(key, "p95_ratio", 9) == 0 ||
                           strncmp(key, "p99_ratio", 9) == 0; // of COMPARE
    const char *before = key[0] == 'r'   ? "before_median"
                         : key[2] == '5' ? "before_p95"
                                         : "before_p99";
    const enum unit unit = unit_of(is_value ? &in_row_unit : &as_it_is, result, row, (int)column);
    if (is_change)
        (void)result_change(text, result, row, before, key);
    else
        format_cell(text, choice, unit == UNIT_TIME && now_ns != 0 ? &clock : &as_it_is, unit,
                    result_cell(result, row, column), now_ns);
}

int grid_column_at(const struct grid *grid, const struct grid_state *state,
                   const struct result *result, struct rect area, int x)
{
    size_t count, folded;
    size_t *rows = grid_rows_shown(grid, state, result, &count, &folded);
    struct fitted fitted;
    fit(grid, state, result, rows, count, area, &fitted);
    free(fitted.groups);
    free(rows);
    for (unsigned i = 0; i < grid->count; i++)
        if (fitted.width[i] > 0 && x >= fitted.x[i] && x < fitted.x[i] + fitted.width[i])
            return (int)i;
    return GRID_UNSORTED;
}
