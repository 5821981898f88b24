#include "client/tui/grid_rows.h"

#include <stdlib.h>
#include <string.h>

// ---- Order ------------------------------------------------------------------

enum { ORDER_MAX = GRID_SORTS_MAX + 4 };

struct order {
    const struct result *result;
    const size_t *groups;              // of each row; NULL: the table is no tree
    struct grid_sort sorts[ORDER_MAX]; // columns of the result
    unsigned count;
    bool is_reversed; // without columns: the groups are
};

// Texts rise, numbers fall (the largest is what one looks for); what is absent
// comes last either way.
static int compare_by(const struct order *order, const struct grid_sort *sort, size_t row_a,
                      size_t row_b)
{
    const struct value a = result_cell(order->result, row_a, (unsigned)sort->column);
    const struct value b = result_cell(order->result, row_b, (unsigned)sort->column);
    if (a.type == VALUE_NULL || b.type == VALUE_NULL)
        return (a.type == VALUE_NULL) - (b.type == VALUE_NULL);
    const int result =
        a.type == VALUE_TEXT && b.type == VALUE_TEXT
            ? strcmp(a.text.bytes, b.text.bytes)
            : (value_number(a, 0) < value_number(b, 0)) - (value_number(a, 0) > value_number(b, 0));
    return sort->reversed ? -result : result;
}

static int compare_values(const struct order *order, size_t row_a, size_t row_b)
{
    int result = 0;
    for (unsigned i = 0; i < order->count && result == 0; i++)
        result = compare_by(order, &order->sorts[i], row_a, row_b);
    return result;
}

// Equal rows stay in the result's order.  Groups stay together, each row behind its group.
static int compare_rows(const void *left, const void *right, void *context)
{
    const struct order *order = context;
    const size_t row_a = *(const size_t *)left, row_b = *(const size_t *)right;
    const size_t group_a = order->groups ? order->groups[row_a] : row_a;
    const size_t group_b = order->groups ? order->groups[row_b] : row_b;
    if (group_a != group_b) {
        const int result = compare_values(order, group_a, group_b);
        const int place = (group_a > group_b) - (group_a < group_b);
        return result ? result : order->is_reversed ? -place : place;
    }
    int result = (row_b == group_b) - (row_a == group_a); // the group itself comes first
    result = result ? result : compare_values(order, row_a, row_b);
    return result ? result : (row_a > row_b) - (row_a < row_b);
}

// Adds a column that the result has.
static void add_sort(struct order *order, const char *key, bool reversed)
{
    const int found = result_find(order->result, key);
    if (found >= 0 && order->count < ORDER_MAX)
        order->sorts[order->count++] = (struct grid_sort){found, reversed};
}

// The sorts whose columns the result has.  A tree is sorted by all that its rows are called.
static struct order order_of(const struct grid *grid, const struct grid_state *state,
                             const struct result *result)
{
    struct order order = {.result = result};
    for (unsigned i = 0; i <= state->before_count; i++) {
        const bool is_last = i == state->before_count;
        const struct grid_sort sort =
            is_last ? (struct grid_sort){state->sort, state->reversed} : state->before[i];
        const struct grid_column *column = sort.column >= 0 ? &grid->columns[sort.column] : NULL;
        const bool is_tree = column && column->format == GRID_TREE;
        if (column && !is_tree)
            add_sort(&order, column->key, sort.reversed);
        for (const char *const *key = grid->identity; is_tree && *key; key++)
            add_sort(&order, *key, sort.reversed);
    }
    return order;
}

void grid_state_reset(struct grid_state *state)
{
    state->top = state->cursor = 0;
    state->at = 0;
    state->sort = GRID_UNSORTED;
    state->is_held = state->reversed = false;
    state->before_count = 0;
}

bool grid_sorts_before(const struct grid_state *state, unsigned column)
{
    bool sorts = false;
    for (unsigned i = 0; i < state->before_count; i++)
        sorts |= state->before[i].column == (int)column;
    return sorts;
}

bool grid_sorts_by(const struct grid_state *state, unsigned column)
{
    return state->sort == (int)column || grid_sorts_before(state, column);
}

// True if one of the row's texts has the text that the user wants.
static bool is_wanted(const struct grid_state *state, const struct result *result, size_t row)
{
    if (!state->choice || !state->choice->only[0])
        return true;
    for (unsigned column = 0; column < result_column_count(result); column++) {
        const struct value value = result_cell(result, row, column);
        if (value.type == VALUE_TEXT && strcasestr(value.text.bytes, state->choice->only))
            return true;
    }
    return false;
}

// Hash of the cells that identify a row (FNV-1a); never 0.
static uint64_t identity_of(const struct grid *grid, const struct result *result, size_t row)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (const char *const *key = grid->identity; key && *key; key++) {
        const struct value value = result_get(result, row, *key);
        const bool is_text = value.type == VALUE_TEXT;
        const int64_t whole = value.type == VALUE_INT ? value.i : (int64_t)value_number(value, 0);
        const unsigned char *bytes =
            is_text ? (const unsigned char *)value.text.bytes : (const unsigned char *)&whole;
        const size_t size = is_text ? value.text.size : sizeof whole;
        for (size_t i = 0; i <= size; i++) // with an end, so that texts do not run together
            hash = (hash ^ (i < size ? bytes[i] : 0xFF)) * UINT64_C(1099511628211);
    }
    return hash ? hash : 1;
}

// True if the row is the one that the cursor was on, as far as is known.
static bool is_at(const struct grid *grid, const struct grid_state *state,
                  const struct result *result, size_t row)
{
    return state->at == 0 || identity_of(grid, result, row) == state->at;
}

// ---- The tree ---------------------------------------------------------------

enum { OPENED = 1 }; // bit of a toggled group's hash

// The place of a group in `toggled`; GRID_TOGGLED_MAX: it is not there.
static unsigned find_toggled(const struct grid *grid, const struct grid_state *state,
                             const struct result *result, size_t group)
{
    bool has_any = false;
    for (unsigned i = 0; i < GRID_TOGGLED_MAX; i++)
        has_any |= state->toggled[i] != 0;
    if (!has_any) // as mostly; an identity takes its time
        return GRID_TOGGLED_MAX;
    const uint64_t hash = identity_of(grid, result, group);
    unsigned i = 0;
    while (i < GRID_TOGGLED_MAX && (state->toggled[i] | OPENED) != (hash | OPENED))
        i++;
    return i;
}

bool grid_rows_is_small(const struct grid *grid, const struct result *result)
{
    const unsigned most = grid->small > 0 ? grid->small : GRID_SMALL;
    if (!grid->is_folded)
        return result_row_count(result) <= most;
    unsigned rows = 0;
    for (size_t row = 0; row < result_row_count(result) && rows <= most; row++)
        rows += !grid->is_folded(result, row);
    return rows <= most;
}

bool grid_rows_is_open(const struct grid *grid, const struct grid_state *state,
                       const struct result *result, size_t group, bool is_small)
{
    const unsigned place = find_toggled(grid, state, result, group);
    return place < GRID_TOGGLED_MAX ? state->toggled[place] & OPENED : is_small;
}

size_t *grid_rows_groups(const struct grid *grid, const struct result *result)
{
    const size_t count = result && grid->is_group ? result_row_count(result) : 0;
    size_t *groups = count > 0 ? calloc(count, sizeof *groups) : NULL;
    for (size_t row = 0; groups && row < count; row++) {
        const bool follows = row > 0 && !grid->is_group(result, row) &&
                             grid->is_group(result, groups[row - 1]) &&
                             grid->is_in_group(result, groups[row - 1], row);
        groups[row] = follows ? groups[row - 1] : row;
    }
    return groups;
}

// ---- The rows that are shown --------------------------------------------------

enum shown { SHOWN, FOLDED, CLOSED };

// `group`: of the row, which may be the row itself.
static enum shown shown(const struct grid *grid, const struct grid_state *state,
                        const struct result *result, size_t row, size_t group, bool is_small)
{
    const bool is_chosen = state->choice && state->choice->only[0];
    if (!is_wanted(state, result, row))
        return CLOSED;
    if (grid->is_folded && !state->unfolded && grid->is_folded(result, row))
        return FOLDED;
    if (group == row || is_chosen || grid->is_kept(result, row) ||
        grid_rows_is_open(grid, state, result, group, is_small))
        return SHOWN;
    return CLOSED;
}

size_t *grid_rows_shown(const struct grid *grid, const struct grid_state *state,
                        const struct result *result, size_t *count, size_t *folded)
{
    const size_t all = result ? result_row_count(result) : 0;
    *count = *folded = 0;
    size_t *rows = all > 0 ? calloc(all, sizeof *rows) : NULL;
    if (!rows)
        return NULL;
    size_t *groups = grid_rows_groups(grid, result);
    struct order order = order_of(grid, state, result);
    order.groups = groups;
    order.is_reversed = state->reversed && order.count == 0;
    const bool has_urgent = grid->is_urgent && order.count == 0;
    const bool is_small = groups && grid_rows_is_small(grid, result);
    for (int urgent = has_urgent; urgent >= 0; urgent--) { // the urgent ones, then the others
        for (size_t i = 0; i < all; i++) {
            const size_t row = order.is_reversed ? all - 1 - i : i;
            if (has_urgent && grid->is_urgent(result, row) != (urgent == 1))
                continue;
            const size_t group = groups ? groups[row] : row;
            const enum shown is = shown(grid, state, result, row, group, is_small);
            if (is == SHOWN)
                rows[(*count)++] = row;
            *folded += is == FOLDED;
        }
    }
    if (order.count > 0 || groups)
        qsort_r(rows, *count, sizeof *rows, compare_rows, &order);
    free(groups);
    return rows;
}

size_t grid_rows_lines(const struct grid *grid, const struct grid_state *state,
                       const struct result *result)
{
    size_t count, folded;
    free(grid_rows_shown(grid, state, result, &count, &folded));
    return count + (folded > 0);
}

// ---- The cursor ---------------------------------------------------------------

bool grid_rows_selected(const struct grid *grid, const struct grid_state *state,
                        const struct result *result, size_t *row)
{
    size_t count, folded;
    size_t *rows = grid_rows_shown(grid, state, result, &count, &folded);
    const bool has = state->cursor < count &&
                     (!state->is_held || is_at(grid, state, result, rows[state->cursor]));
    if (has)
        *row = rows[state->cursor];
    free(rows);
    return has;
}

static size_t clamped(size_t at, long long by, size_t count)
{
    const long long last = count > 0 ? (long long)count - 1 : 0;
    const long long to = (long long)(at < (size_t)last ? at : (size_t)last) + by;
    return to < 0 ? 0 : to > last ? (size_t)last : (size_t)to;
}

// Scrolls so that the cursor is visible, and no line behind the last is.
static void show_cursor(struct grid_state *state, size_t lines, size_t page)
{
    const size_t last = lines > page ? lines - page : 0;
    if (state->top > last)
        state->top = last;
    if (state->cursor < state->top)
        state->top = state->cursor;
    if (page > 0 && state->cursor >= state->top + page)
        state->top = state->cursor - page + 1;
}

// Notes which row the cursor is on.
static void settle(const struct grid *grid, struct grid_state *state, const struct result *result,
                   const size_t *rows, size_t count)
{
    state->at = grid->identity && state->cursor < count
                    ? identity_of(grid, result, rows[state->cursor])
                    : 0;
}

void grid_rows_move(const struct grid *grid, struct grid_state *state, const struct result *result,
                    long long rows, size_t page)
{
    size_t count, folded;
    size_t *shown = grid_rows_shown(grid, state, result, &count, &folded);
    state->cursor = clamped(state->cursor, rows, count);
    show_cursor(state, count + (folded > 0), page);
    settle(grid, state, result, shown, count);
    if (state->cursor + 1 == count && folded > 0) // the line behind the last row
        state->top = count + 1 > page ? count + 1 - page : 0;
    free(shown);
}

// Opens or closes the group of a row; false if it is in none.
static bool toggle(const struct grid *grid, struct grid_state *state, const struct result *result,
                   size_t row, bool opens)
{
    size_t *groups = grid_rows_groups(grid, result);
    const size_t group = groups ? groups[row] : row;
    free(groups);
    if (!grid->is_group || !grid->is_group(result, group))
        return false;
    unsigned place = find_toggled(grid, state, result, group);
    if (place == GRID_TOGGLED_MAX)
        place--; // the oldest gives way
    memmove(state->toggled + 1, state->toggled, place * sizeof *state->toggled);
    state->toggled[0] = (identity_of(grid, result, group) | OPENED) - !opens;
    if (!opens)
        state->at = identity_of(grid, result, group);
    return true;
}

bool grid_rows_open(const struct grid *grid, struct grid_state *state, const struct result *result,
                    bool opens, size_t page)
{
    size_t row;
    if (!grid_rows_selected(grid, state, result, &row) || !toggle(grid, state, result, row, opens))
        return false;
    grid_rows_keep(grid, state, result, page);
    return true;
}

void grid_rows_scroll(const struct grid *grid, struct grid_state *state,
                      const struct result *result, long long rows, size_t page)
{
    size_t count, folded;
    size_t *shown = grid_rows_shown(grid, state, result, &count, &folded);
    const size_t lines = count + (folded > 0);
    state->top = clamped(state->top, rows, lines > page ? lines - page + 1 : 1);
    if (state->cursor < state->top)
        state->cursor = clamped(state->top, 0, count);
    if (page > 0 && state->cursor >= state->top + page)
        state->cursor = clamped(state->top + page - 1, 0, count);
    settle(grid, state, result, shown, count);
    free(shown);
}

void grid_rows_keep(const struct grid *grid, struct grid_state *state, const struct result *result,
                    size_t page)
{
    size_t count, folded;
    size_t *rows = grid_rows_shown(grid, state, result, &count, &folded);
    const bool follows = !state->is_held && state->cursor == 0 && state->top == 0 &&
                         state->sort == GRID_UNSORTED && state->before_count == 0;
    for (size_t i = 0; i < count && state->at != 0 && !follows; i++) {
        if (!is_at(grid, state, result, rows[i]))
            continue;
        const long long moved = (long long)i - (long long)state->cursor;
        const long long top = (long long)state->top + moved;
        state->top = top > 0 ? (size_t)top : 0;
        state->cursor = i;
        break;
    }
    state->cursor = clamped(state->cursor, 0, count);
    show_cursor(state, count + (folded > 0), page);
    if (!state->is_held || (count > 0 && is_at(grid, state, result, rows[state->cursor])))
        settle(grid, state, result, rows, count);
    free(rows);
}

// ---- Searching ------------------------------------------------------------------

// `keys`: of the columns that are searched; NULL: all are.
static bool row_has(const struct grid_choice *choice, const struct result *result, size_t row,
                    const char *text, const char *const *keys)
{
    char cell[GRID_CELL_SIZE];
    for (unsigned i = 0; keys ? keys[i] != NULL : i < result_column_count(result); i++) {
        const int column = keys ? result_find(result, keys[i]) : (int)i;
        if (column < 0 || result_cell(result, row, (unsigned)column).type == VALUE_NULL)
            continue;
        grid_value_text(cell, choice, result, row, (unsigned)column, 0);
        if (strcasestr(cell, text))
            return true;
    }
    return false;
}

// Shows the first row with the text that is in a closed group, or folded as what has ended.
static bool unfold(const struct grid *grid, struct grid_state *state, const struct result *result,
                   const char *text, const char *const *keys)
{
    for (size_t row = 0; result && row < result_row_count(result); row++) {
        if (!is_wanted(state, result, row) || !row_has(state->choice, result, row, text, keys))
            continue;
        state->unfolded |= grid->is_folded && grid->is_folded(result, row);
        (void)toggle(grid, state, result, row, true);
        return true;
    }
    return false;
}

static bool find_shown(const struct grid *grid, struct grid_state *state,
                       const struct result *result, const char *text, const char *const *keys,
                       int step, size_t page)
{
    size_t count, folded;
    bool found = false;
    size_t *rows = grid_rows_shown(grid, state, result, &count, &folded);
    const size_t first = step == 0 ? 0 : 1;
    for (size_t i = first; i < count + first && !found && text[0]; i++) {
        const size_t ahead = step < 0 ? count - i % count : i;
        const size_t at = (state->cursor + ahead) % count;
        found = row_has(state->choice, result, rows[at], text, keys);
        if (found)
            state->cursor = at;
    }
    show_cursor(state, count + (folded > 0), page);
    settle(grid, state, result, rows, count);
    free(rows);
    return found;
}

bool grid_rows_find(const struct grid *grid, struct grid_state *state, const struct result *result,
                    const char *text, int step, size_t page)
{
    const char *const *keys = grid->identity; // names, before cells that may repeat them
    bool found = false;
    for (int pass = 0; pass < 2 && !found; pass++, keys = NULL)
        found = find_shown(grid, state, result, text, keys, step, page) ||
                (text[0] && unfold(grid, state, result, text, keys) &&
                 find_shown(grid, state, result, text, keys, step, page));
    return found;
}
