#include "client/tui/settings/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/tui/model.h"
#include "client/tui/view.h"
#include "common/core/base/text.h"

enum { CHOICES_MAX = 8, KEY_SIZE = 64, VALUE_SIZE = 2048 };

enum setting { SETTING_THEME, SETTING_TEMPERATURE, SETTING_TIMES, SETTING_REFRESH, SETTINGS };

static const struct {
    const char *key, *label;
    const char *choices[CHOICES_MAX];
} table[SETTINGS] = {
    [SETTING_THEME] = {"theme", "colours", {"default", "light", "colour-blind", "mono"}},
    [SETTING_TEMPERATURE] = {"temperature", "temperatures", {"celsius", "fahrenheit"}},
    [SETTING_TIMES] = {"times", "times", {"local", "utc"}},
    [SETTING_REFRESH] = {"refresh", "refresh", {"0.5s", "1s", "2s", "5s", "10s", "30s", "60s"}},
};

// ---- Values -----------------------------------------------------------------------

static unsigned choices_of(unsigned setting)
{
    unsigned count = 0;
    while (count < CHOICES_MAX && table[setting].choices[count])
        count++;
    return count;
}

// The index of the setting's value; the number of its choices if it is another one.
static unsigned get(const struct model *model, unsigned setting)
{
    unsigned i = 0;
    switch (setting) {
    case SETTING_THEME:
        return model->settings.theme;
    case SETTING_TEMPERATURE:
        return model->choice.fahrenheit;
    case SETTING_TIMES:
        return model->settings.utc;
    default:
        while (i < choices_of(setting) &&
               strtod(table[setting].choices[i], NULL) != model->interval_seconds)
            i++;
        return i;
    }
}

static void set(struct model *model, unsigned setting, unsigned choice)
{
    if (setting == SETTING_THEME)
        model->settings.theme = (enum theme)choice;
    else if (setting == SETTING_TEMPERATURE)
        model->choice.fahrenheit = choice == 1;
    else if (setting == SETTING_TIMES)
        model->settings.utc = choice == 1;
    else
        model->interval_seconds = strtod(table[setting].choices[choice], NULL);
}

// ---- Columns ----------------------------------------------------------------------

static const struct grid *focused_grid(const struct model *model, struct grid_state const **state)
{
    const struct view_state *shown = &model->views[view_shown(model)];
    *state = &shown->panels[shown->focus];
    return view_current(model)->panels[shown->focus].grid;
}

// Sets or clears the columns' bits so that column `column` is hidden, wanted or neither.
static void choose(struct grid_state *state, unsigned column, bool hidden, bool pinned)
{
    const uint32_t bit = UINT32_C(1) << column;
    state->hidden = hidden ? state->hidden | bit : state->hidden & ~bit;
    state->pinned = pinned ? state->pinned | bit : state->pinned & ~bit;
}

// Writes "-wait +why": the columns hidden and wanted, by the keys of the result.
static void write_columns(char *out, size_t size, const struct grid *grid,
                          const struct grid_state *state)
{
    out[0] = '\0';
    for (unsigned i = 0; i < grid->count; i++)
        if ((state->hidden | state->pinned) >> i & 1)
            (void)text_append(out, size, " ", "%c%s", state->hidden >> i & 1 ? '-' : '+',
                              grid->columns[i].key);
}

// A column of another version is left out; the first one is in the error.
static enum status read_columns(const struct grid *grid, struct grid_state *state, const char *key,
                                const char *value, struct error *err)
{
    enum status status = STATUS_OK;
    state->hidden = state->pinned = 0;
    for (size_t size; *value; value += size + (value[size] == ' ')) {
        size = strcspn(value, " ");
        unsigned i = 0;
        while (i < grid->count && (strlen(grid->columns[i].key) + 1 != size ||
                                   strncmp(grid->columns[i].key, value + 1, size - 1) != 0))
            i++;
        if (i < grid->count)
            choose(state, i, i > 0 && value[0] == '-', value[0] == '+');
        else if (status == STATUS_OK && size > 0)
            status = error_set(err, STATUS_INVALID, "%s: no such column: \"%.*s\"", key,
                               size < 64 ? (int)size : 64, value);
    }
    return status;
}

// "columns.hosts.2": of a view's second panel.
static void write_key(char key[KEY_SIZE], unsigned view, unsigned panel)
{
    int used = snprintf(key, KEY_SIZE, "columns.%.30s.%u", views[view]->name, panel + 1);
    for (int i = 0; i < used; i++)
        if (key[i] >= 'A' && key[i] <= 'Z')
            key[i] = (char)(key[i] + ('a' - 'A'));
}

bool settings_columns_changed(const struct settings *settings)
{
    bool changed = false;
    for (unsigned view = 0; view < VIEW_TABLE_SIZE; view++)
        changed |= settings->columns[view] != 0;
    return changed;
}

// ---- Rows -------------------------------------------------------------------------

size_t settings_rows(const struct model *model)
{
    const struct grid_state *state;
    const struct grid *grid = focused_grid(model, &state);
    return SETTINGS + (grid ? grid->count : 0);
}

void settings_row(const struct model *model, size_t row, const char **label, const char **value)
{
    if (row < SETTINGS) {
        const unsigned choice = get(model, (unsigned)row);
        *label = table[row].label;
        *value = choice < choices_of((unsigned)row) ? table[row].choices[choice] : "as started";
        return;
    }
    const struct grid_state *state;
    const struct grid *grid = focused_grid(model, &state);
    const unsigned column = (unsigned)(row - SETTINGS);
    *label = grid->columns[column].heading;
    *value = state->hidden >> column & 1   ? "never"
             : state->pinned >> column & 1 ? "always"
                                           : "where there is room";
}

static void step_column(struct model *model, unsigned column, int step)
{
    const unsigned view = view_shown(model), focus = model->views[view].focus;
    struct grid_state *state = &model->views[view].panels[focus];
    // With room, always, never; the first column says what the row is.
    const int choices = column == 0 ? 2 : 3;
    const int now = state->hidden >> column & 1 ? 2 : state->pinned >> column & 1 ? 1 : 0;
    const int next = (now + step + choices) % choices;
    choose(state, column, next == 2, next == 1);
    model->settings.columns[view] |= UINT64_C(1) << focus;
}

void settings_step(struct model *model, size_t row, int step)
{
    if (row >= SETTINGS) {
        step_column(model, (unsigned)(row - SETTINGS), step);
        return;
    }
    const unsigned setting = (unsigned)row, count = choices_of(setting);
    const unsigned now = get(model, setting);
    set(model, setting, now >= count ? 0 : (unsigned)((int)now + step + (int)count) % count);
    model->settings.changed |= 1u << setting;
}

// ---- Lines ------------------------------------------------------------------------

enum status settings_apply(struct model *model, const char *key, const char *value,
                           struct error *err)
{
    char columns[KEY_SIZE];
    for (unsigned setting = 0; setting < SETTINGS; setting++) {
        if (strcmp(key, table[setting].key) != 0)
            continue;
        for (unsigned i = 0; i < choices_of(setting); i++) {
            if (strcmp(value, table[setting].choices[i]) == 0) {
                set(model, setting, i);
                return STATUS_OK;
            }
        }
        return error_set(err, STATUS_INVALID, "%s: no such value: \"%.64s\"", key, value);
    }
    for (unsigned view = 0; view < VIEW_TABLE_SIZE; view++)
        for (unsigned panel = 0; panel < views[view]->panel_count; panel++) {
            write_key(columns, view, panel);
            if (strcmp(key, columns) == 0 && views[view]->panels[panel].grid)
                return read_columns(views[view]->panels[panel].grid,
                                    &model->views[view].panels[panel], key, value, err);
        }
    return STATUS_OK;
}

// The value of the changed key number `number`, and its key; false beyond the last.  Numbers
// without a changed key have an empty one.
static bool changed_line(const struct model *model, unsigned number, char key[KEY_SIZE],
                         char value[VALUE_SIZE])
{
    const unsigned column = number - SETTINGS;
    const unsigned view = column / MODEL_PANELS_MAX, panel = column % MODEL_PANELS_MAX;
    key[0] = '\0';
    if (number < SETTINGS) {
        const unsigned choice = get(model, number);
        if (!(model->settings.changed >> number & 1) || choice >= choices_of(number))
            return true;
        (void)snprintf(key, KEY_SIZE, "%s", table[number].key);
        (void)snprintf(value, VALUE_SIZE, "%s", table[number].choices[choice]);
        return true;
    }
    if (view >= VIEW_TABLE_SIZE)
        return false;
    if (!(model->settings.columns[view] >> panel & 1))
        return true;
    write_key(key, view, panel);
    write_columns(value, VALUE_SIZE, views[view]->panels[panel].grid,
                  &model->views[view].panels[panel]);
    return true;
}

// True if the line, which ends with a newline or the text, sets `key`.
static bool line_sets(const char *line, const char *key)
{
    const size_t length = strlen(key);
    line += strspn(line, " \t");
    return strncmp(line, key, length) == 0 && line[length + strspn(line + length, " \t")] == '=';
}

// Copies `text` without the lines that set `key`, and adds the new one in place of the first, or
// at the end.
static char *replace_line(char *text, const char *key, const char *value)
{
    const size_t size = strlen(text) + strlen(key) + strlen(value) + sizeof " = \n\n";
    char *out = malloc(size);
    size_t used = 0;
    bool written = false;
    for (const char *line = text; out && *line;) {
        const size_t length = strcspn(line, "\n"), whole = length + (line[length] == '\n');
        const bool sets = line_sets(line, key);
        if (sets && !written)
            used += (size_t)snprintf(out + used, size - used, "%s = %s\n", key, value);
        else if (!sets)
            used += (size_t)snprintf(out + used, size - used, "%.*s", (int)whole, line);
        written |= sets;
        line += whole;
    }
    if (out && !written)
        (void)snprintf(out + used, size - used, "%s%s = %s\n",
                       used > 0 && out[used - 1] != '\n' ? "\n" : "", key, value);
    free(text);
    return out;
}

char *settings_text(const struct model *model, const char *old)
{
    char key[KEY_SIZE], value[VALUE_SIZE];
    char *text = strdup(old[0] ? old : "# inferstat top (F2 changes these lines)\n");
    for (unsigned i = 0; text && changed_line(model, i, key, value); i++)
        if (key[0])
            text = replace_line(text, key, value);
    return text;
}
