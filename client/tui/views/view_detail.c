// All of the cursor's row: every value that is known, with its name.
#include "client/tui/view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/tui/plots.h"
#include "common/core/base/text.h"
#include "common/core/query/result.h"

enum { NAME_WIDTH = 30, MARGIN = 1, TITLE_ROWS = 2 };

// The row that is shown; NULL if it is gone.
static const struct result *selected(const struct model *model, size_t *row)
{
    const unsigned focus = model->views[view_shown(model)].focus;
    return view_selected(model, focus, row) ? view_result(model) : NULL;
}

// Columns for the tables alone, and what others tell.
static bool is_internal(const char *key)
{
    static const char *const keys[] = {"is_host",    "in_trouble", "group_by",   "group_size",
                                       "group_live", "trend",      "util_ratio", "pcie",
                                       "events",     "stream",     "number",     "as_of_ns",
                                       "processes",  "has_trouble"};
    for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

// The length of a column's name without its unit, which the value has.
static size_t bare_length(const char *key)
{
    static const char *const units[] = {"_ns",    "_bytes",  "_ratio", "_celsius",
                                        "_watts", "_joules", "_hz"};
    const size_t length = strlen(key);
    for (unsigned i = 0; i < sizeof units / sizeof *units; i++) {
        const size_t unit = strlen(units[i]);
        if (length > unit && strcmp(key + length - unit, units[i]) == 0)
            return length - unit;
    }
    return length;
}

// A name in words where its key has none; "ttft_ns" is "ttft"; of values that would have one name,
// as "model" and "model_bytes", each is itself.
static const char *bare_name(char *text, size_t size, const struct result *result, size_t row,
                             const char *key)
{
    static const char *const words[][2] = {{"error_ratio", "failed requests"},
                                           {"ratio", "change"},
                                           {"ratio_low", "change from"},
                                           {"ratio_high", "change to"}};
    const size_t length = bare_length(key);
    (void)snprintf(text, size, "%.*s", (int)length, key);
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(key, words[i][0]) == 0)
            return words[i][1];
    for (unsigned i = 0; i < result_column_count(result); i++) {
        const char *other = result_column(result, i)->key;
        if (strcmp(other, key) != 0 && !is_internal(other) &&
            result_cell(result, row, i).type != VALUE_NULL && bare_length(other) == length &&
            strncmp(other, key, length) == 0)
            return key;
    }
    return text;
}

// The phases of a request, one after the other, on a scale of its whole time.  Returns the number
// of lines, 0 of other rows.
static size_t draw_phases(struct canvas *canvas, struct rect area, int y,
                          const struct result *result, size_t row)
{
    static const char *const phases[][2] = {
        {"queue", "queue_ns"}, {"prefill", "prefill_ns"}, {"decode", "decode_ns"}};
    enum { PHASES = sizeof phases / sizeof *phases };
    struct plot_stage stages[PHASES] = {0};
    double at_ns = 0;
    const double total_ns = result_number(result, row, "e2e_ns", NAN);
    for (unsigned i = 0; i < PHASES; i++) {
        const double took_ns = result_number(result, row, phases[i][1], NAN);
        if (!isfinite(took_ns) || !(total_ns > 0))
            return 0;
        (void)snprintf(stages[i].name, sizeof stages[i].name, "%s", phases[i][0]);
        stages[i].start_ns = at_ns;
        stages[i].duration_ns = took_ns;
        at_ns += took_ns;
    }
    const struct rect lines = {area.x + MARGIN, area.y + y, area.width - 2 * MARGIN, PHASES + 1};
    plot_waterfall(canvas, lines, stages, PHASES, total_ns, 0, 0);
    return PHASES + 2; // "other", and an empty line
}

static size_t put_value(struct canvas *canvas, struct rect area, int y, const char *name,
                        const char *value)
{
    canvas_fit(canvas, area, MARGIN, y, NAME_WIDTH, ALIGN_LEFT, STYLE_DIM, name);
    return (size_t)canvas_wrap(canvas, area, MARGIN + NAME_WIDTH + 1, y, STYLE_PLAIN, value);
}

// Who uses a host or device: the processes with memory on it, and the models on its host, with
// their states.
static size_t put_users(const struct model *model, struct canvas *canvas, struct rect area, int y,
                        const struct result *result, size_t row)
{
    char text[GRID_CELL_SIZE], name[128], state[32];
    const struct result *now = model_answer(model, POLL_NOW);
    size_t lines = 0;
    if (result_get(result, row, "processes").type == VALUE_TEXT)
        lines += put_value(canvas, area, y, "processes",
                           result_text(text, sizeof text, result, row, "processes"));
    text[0] = '\0';
    for (size_t i = 0; now && i < result_row_count(now); i++)
        if (result_get(now, i, "model").type == VALUE_TEXT &&
            value_is_same(result_get(now, i, "host"), result_get(result, row, "host")) &&
            !result_is(now, i, "state", "ended"))
            (void)text_append(text, sizeof text, ", ", "%s %s",
                              result_text(name, sizeof name, now, i, "model"),
                              result_text(state, sizeof state, now, i, "state"));
    if (text[0])
        lines += put_value(canvas, area, y + (int)lines, "models on the host", text);
    return lines;
}

size_t view_detail_draw(const struct model *model, struct canvas *canvas, struct rect area, int y)
{
    size_t row, lines = TITLE_ROWS;
    const struct result *result = selected(model, &row);
    if (!result) {
        (void)canvas_put(canvas, area, MARGIN, y, STYLE_WARNING,
                         "The row is no longer among those that are shown (Esc: back)");
        return 1;
    }
    (void)canvas_put(canvas, area, MARGIN, y, STYLE_TITLE, "Detail (Esc: back)");
    const bool is_request =
        view_current(model) == &view_requests && model->views[VIEW_REQUESTS].focus == 0;
    if (is_request)
        lines += view_why_draw(model, canvas, area, y + (int)lines, result, row);
    if (view_current(model) == &view_hosts) {
        lines += view_machine_draw(model, canvas, area, y + (int)lines, result, row);
        lines += put_users(model, canvas, area, y + (int)lines, result, row);
    }
    if (view_current(model) == &view_alerts)
        lines += view_alert_draw(canvas, area, y + (int)lines, result, row);
    lines += draw_phases(canvas, area, y + (int)lines, result, row);
    if (is_request)
        lines += view_meanwhile_draw(model, canvas, area, y + (int)lines, result, row);
    for (unsigned column = 0; column < result_column_count(result); column++) {
        char value[GRID_CELL_SIZE], name[64];
        const char *key = result_column(result, column)->key;
        if (result_cell(result, row, column).type == VALUE_NULL || is_internal(key))
            continue;
        grid_value_text(value, &model->choice, result, row, column, 0);
        lines += put_value(canvas, area, y + (int)lines,
                           bare_name(name, sizeof name, result, row, key), value);
    }
    return lines;
}
