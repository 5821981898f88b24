// The window beside the one of the same length before it: a verdict per model and metric.
#include "client/tui/view.h"

static const struct grid_column columns[] = {
    {"verdict", "verdict", GRID_STATE, true, 9, 11, 0},
    {"model", "model", GRID_NAME, true, 10, 28, 0},
    {"operation", "operation", GRID_UNIT, true, 9, 20, 6},
    {"device", "device", GRID_NAME, true, 6, 20, 5},
    {"metric", "metric", GRID_NAME, true, 8, 26, 0},
    {"change", "ratio", GRID_UNIT, false, 7, 0, 0},
    {"from", "ratio_low", GRID_UNIT, false, 7, 0, 1},
    {"to", "ratio_high", GRID_UNIT, false, 7, 0, 1},
    {"p95", "p95_verdict", GRID_STATE, true, 9, 11, 2},
    {"p99", "p99_verdict", GRID_STATE, true, 9, 11, 4},
    {"before", "before_count", GRID_UNIT, false, 7, 0, 7},
    {"now", "after_count", GRID_UNIT, false, 7, 0, 7},
    {"note", "note", GRID_UNIT, true, 4, 80, 3},
};
static const char *const identity[] = {"model", "operation", "device", "metric", NULL};
static const struct grid grid = {
    .columns = columns, .count = sizeof columns / sizeof *columns, .identity = identity};

static const struct panel panel = {
    .title = "The window beside the one before it",
    .none = "nothing to compare: the window and the one before it need requests (t: another)",
    .polled = POLL_COMPARE,
    .grid = &grid};

const struct view view_compare = {
    .name = "Compare",
    .polls = POLL(COMPARE),
    .panels = &panel,
    .panel_count = 1,
    .draw_empty = view_empty_requests_draw,
};
