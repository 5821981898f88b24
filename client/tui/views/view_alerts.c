// Alerts: those that are open, and those of the window that fired.
#include "client/tui/view.h"

enum panel_number { PANEL_OPEN, PANEL_HISTORY, PANELS };

static const struct grid_column open_columns[] = {
    {"state", "state", GRID_STATE, true, 9, 10, 0},
    {"severity", "severity", GRID_OUTCOME, true, 8, 8, 3},
    {"rule", "rule", GRID_NAME, true, 17, 30, 0},
    {"model", "model", GRID_IF_ANY, true, 6, 24, 1},
    {"host", "host", GRID_NAME, true, 6, 20, 0},
    {"device", "device", GRID_IF_ANY, true, 6, 12, 1},
    {"since", "since_ns", GRID_CLOCK, true, 8, 8, 0},
    {"value", "value", GRID_IN_ROW_UNIT, false, 8, 0, 0},
    {"threshold", "threshold", GRID_IN_ROW_UNIT, false, 9, 0, 3},
    {"ack by", "acknowledged_by", GRID_IF_ANY, true, 6, 20, 2},
    {"silent to", "silenced_until_ns", GRID_CLOCK_IF_ANY, true, 8, 9, 1},
    {"why", "why", GRID_IF_ANY, true, 8, 90, 4},
};
static const struct grid_column history_columns[] = {
    {"fired", "since_ns", GRID_CLOCK, true, 8, 8, 0},
    {"resolved", "resolved_ns", GRID_CLOCK, true, 8, 8, 0},
    {"severity", "severity", GRID_OUTCOME, true, 8, 8, 3},
    {"rule", "rule", GRID_NAME, true, 17, 30, 0},
    {"model", "model", GRID_IF_ANY, true, 6, 24, 1},
    {"host", "host", GRID_NAME, true, 6, 20, 0},
    {"device", "device", GRID_IF_ANY, true, 6, 12, 1},
    {"value", "value", GRID_IN_ROW_UNIT, false, 8, 0, 1},
    {"ack by", "acknowledged_by", GRID_IF_ANY, true, 6, 20, 3},
    {"why", "why", GRID_IF_ANY, true, 8, 90, 4},
};
static const char *const identity[] = {"id", NULL};
static const struct grid open_grid = {.columns = open_columns,
                                      .count = sizeof open_columns / sizeof *open_columns,
                                      .identity = identity};
static const struct grid history_grid = {.columns = history_columns,
                                         .count = sizeof history_columns / sizeof *history_columns,
                                         .identity = identity};

static const struct panel panels[PANELS] = {
    [PANEL_OPEN] = {.title = "Open alerts (a acknowledges, S silences)",
                    .none = "no alert is open",
                    .polled = POLL_ALERTS,
                    .grid = &open_grid},
    [PANEL_HISTORY] = {.title = "Fired in the window",
                       .none = "no alert fired in the window (t: a longer one)",
                       .polled = POLL_HISTORY,
                       .grid = &history_grid},
};

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
