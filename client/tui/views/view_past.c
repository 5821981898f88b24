// In place of Now: averages by host, device and model, of a window of more than a day, for which
// NOW has no states, or under a filter of a device or run.
#include "client/tui/view.h"

static const struct grid_column host_columns[] = {
    {"model", "model", GRID_NAME, true, 10, 28, 0},
    {"host", "host", GRID_NAME, true, 6, 24, 0},
    {"device", "device", GRID_IF_DIFFERENT, true, 6, 20, 0},
    {"requests", "inferences", GRID_UNIT, false, 8, 0, 0},
    {"tokens", "generated_tokens", GRID_UNIT, false, 9, 0, 7},
    {"t/s", "tokens_per_second", GRID_BARE, false, 7, 0, 0},
    {"TTFT", "ttft_mean_ns", GRID_UNIT, false, 7, 0, 6},
    {"TTFT p95", "ttft_p95_ns", GRID_UNIT, false, 8, 0, 0},
    {"E2E", "e2e_mean_ns", GRID_UNIT, false, 7, 0, 5},
    {"items/s", "items_per_second", GRID_IF_ANY, false, 8, 0, 0},
    {"E2E p50", "e2e_p50_ns", GRID_IF_ANY, false, 7, 0, 0},
    {"E2E p95", "e2e_p95_ns", GRID_IF_ANY, false, 7, 0, 1},
    {"load", "load_mean_ns", GRID_UNIT, false, 7, 0, 8},
    {"coverage", "coverage_ratio", GRID_WHOLE, false, 8, 0, 5},
};
static const char *const identity[] = {"model", "host", "device", NULL};
static const struct grid host_grid = {GRID_COLUMNS(host_columns), .identity = identity};

static const struct panel panel = {.title = "Averages of the window",
                                   .none = "no load and no request in the window",
                                   .polled = POLL_OVERVIEW,
                                   .grid = &host_grid,
                                   .head_rows = view_charts_rows,
                                   .draw_head = view_charts_draw};

const struct view view_past = {
    .name = "Now",
    .polls = POLL(OVERVIEW) | POLL(WINDOW) | POLL(TOKENS) | POLL(TTFT) | POLL(ERRORS),
    .panels = &panel,
    .panel_count = 1,
    .draw_empty = view_empty_requests_draw,
};
