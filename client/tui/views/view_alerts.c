// Alerts: those that are open, and those of the window that fired.
#include "client/tui/view.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/core/base/unit.h"
#include "common/core/query/query_text.h"
#include "common/core/query/result.h"

enum panel_number { PANEL_OPEN, PANEL_HISTORY, PANELS };

static const struct grid_column columns[] = {
    {"state", "state", GRID_STATE, true, 9, 10, 0},
    {"severity", "severity", GRID_OUTCOME, true, 8, 8, 3},
    {"rule", "rule", GRID_NAME, true, 17, 30, 0},
    {"model", "model", GRID_IF_ANY, true, 6, 24, 1},
    {"host", "host", GRID_NAME, true, 6, 20, 0},
    {"device", "device", GRID_IF_ANY, true, 6, 12, 1},
    {"since", "since_ns", GRID_CLOCK, true, 8, 8, 0},
    {"resolved", "resolved_ns", GRID_CLOCK_IF_ANY, true, 8, 8, 0},
    {"value", "value", GRID_IN_ROW_UNIT, false, 8, 0, 0},
    {"threshold", "threshold", GRID_IN_ROW_UNIT, false, 9, 0, 3},
    {"ack by", "acknowledged_by", GRID_IF_ANY, true, 6, 20, 2},
    {"silent to", "silenced_until_ns", GRID_CLOCK_IF_ANY, true, 8, 9, 1},
    {"why", "why", GRID_IF_ANY, true, 8, 90, 4},
};
static const char *const identity[] = {"id", NULL};
static const struct grid grid = {GRID_COLUMNS(columns), .identity = identity};

static const struct panel panels[PANELS] = {
    [PANEL_OPEN] = {.title = "Open alerts (a acknowledges, S silences)",
                    .none = "no alert is open",
                    .polled = POLL_ALERTS,
                    .grid = &grid,
                    .facts = view_present_facts},
    [PANEL_HISTORY] = {.title = "Fired in the window",
                       .none = "no alert fired in the window (t: a longer one)",
                       .polled = POLL_HISTORY,
                       .grid = &grid},
};

// ---- What an alert's details begin with ------------------------------------------------------

enum { LINE_SIZE = 640, NAME_SIZE = 128, BEFORE_SECONDS = 600 };

// "4.4s in the last 5m, threshold 3.0s, critical, since 11:58:00".
static void state_text(char text[LINE_SIZE], const struct result *result, size_t row)
{
    char value[GRID_CELL_SIZE], threshold[GRID_CELL_SIZE], severity[NAME_SIZE];
    char clock[UNIT_TEXT_SIZE], rule[LINE_SIZE], window[QUERY_WINDOW_SIZE];
    (void)query_text_alert_window(window, result_text(rule, LINE_SIZE, result, row, "rule_text"));
    grid_value_text(value, NULL, result, row, (unsigned)result_find(result, "value"), 0);
    grid_value_text(threshold, NULL, result, row, (unsigned)result_find(result, "threshold"), 0);
    (void)snprintf(text, LINE_SIZE, "%.100s%s%s, threshold %.100s, %s, since %s", value,
                   window[0] ? " in the last " : "", window, threshold,
                   result_text(severity, sizeof severity, result, row, "severity"),
                   view_clock_text(clock, result_integer(result, row, "since_ns", 0)));
}

// The command that shows more; of a device also where its trouble is over.
static void command_text(char text[LINE_SIZE], const struct result *result, size_t row)
{
    static const char *const keys[] = {"model", "host", "device"};
    char name[NAME_SIZE];
    const bool has_device = result_get(result, row, "device").type != VALUE_NULL;
    int size = snprintf(text, LINE_SIZE, "next: inferstat %s",
                        has_device                                            ? "devices"
                        : result_get(result, row, "model").type != VALUE_NULL ? "why"
                                                                              : "hosts");
    for (unsigned i = 0; i < 3; i++)
        if (result_get(result, row, keys[i]).type != VALUE_NULL)
            size += snprintf(text + size, LINE_SIZE - (size_t)size, " --%s %s", keys[i],
                             result_text(name, sizeof name, result, row, keys[i]));
    struct tm utc;
    const time_t since = result_integer(result, row, "since_ns", 0) / 1000000000 - BEFORE_SECONDS;
    if (has_device && gmtime_r(&since, &utc) && size < LINE_SIZE)
        (void)strftime(text + size, LINE_SIZE - (size_t)size, " --since %FT%TZ", &utc);
}

size_t view_alert_draw(struct canvas *canvas, struct rect area, int y, const struct result *result,
                       size_t row)
{
    enum { LINES = 4 };
    char lines[LINES][LINE_SIZE] = {""}, rule[LINE_SIZE - 8], why[NAME_SIZE * 2];
    const bool has_why = result_get(result, row, "why").type == VALUE_TEXT;
    int used = 0;
    if (result_get(result, row, "rule_text").type == VALUE_TEXT)
        (void)snprintf(lines[0], LINE_SIZE, "rule: %s",
                       result_text(rule, sizeof rule, result, row, "rule_text"));
    state_text(lines[1], result, row);
    (void)snprintf(lines[2], LINE_SIZE, "cause: %s",
                   has_why ? result_text(why, sizeof why, result, row, "why") : "none is known");
    command_text(lines[3], result, row);
    for (unsigned i = 0; i < LINES; i++)
        if (lines[i][0])
            used += canvas_wrap(canvas, area, 1, y + used, i == 1 ? STYLE_STRONG : STYLE_PLAIN,
                                lines[i]);
    return (size_t)used + 1;
}

// ---- The view --------------------------------------------------------------------------------

static void arrange(const struct model *model, struct rect body, struct rect *out)
{
    enum { TITLE_AND_HEADING = 2 };
    const size_t rows = view_panel_rows(model, &panels[PANEL_OPEN]);
    const int most = body.height / 2;
    const struct layout_want open = {
        4, TITLE_AND_HEADING + (rows < (size_t)most ? (int)rows : most), 0, false};
    const struct layout_want history = {4, TITLE_AND_HEADING + 2, 1, true};
    const struct layout_want wants[] = {open, history};
    layout_stack(body, wants, PANELS, out);
}

const struct view view_alerts = {
    .name = "Alerts",
    .polls = POLL(ALERTS) | POLL(HISTORY),
    .panels = panels,
    .panel_count = PANELS,
    .arrange = arrange,
    .draw_empty = view_empty_requests_draw,
};
