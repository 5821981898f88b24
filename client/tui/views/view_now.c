// Now: charts, and a row per model and host with its state and figures.
#include "client/tui/view.h"

#include "common/core/query/result.h"

static const struct grid_column columns[] = {
    {"model", "model", GRID_NAME, true, 10, 28, 0},
    {"host", "host", GRID_NAME, true, 6, 24, 0},
    {"state", "state", GRID_STATE, true, 8, 9, 0},
    {"since", "since_ns", GRID_CLOCK, true, 8, 8, 9},
    {"req/s", "request_rate", GRID_BARE, false, 6, 0, 0},
    {"tok/s", "output_token_rate", GRID_BARE, false, 7, 0, 1},
    {"items/s", "item_rate", GRID_IF_ANY, false, 8, 0, 1},
    {"run", "running_requests", GRID_UNIT, false, 4, 0, 4},
    {"wait", "waiting_requests", GRID_UNIT, false, 4, 0, 5},
    {"TTFT p50", "ttft_p50_ns", GRID_UNIT, false, 8, 0, 3},
    {"p95", "ttft_p95_ns", GRID_UNIT, false, 7, 0, 0},
    {"t/s p50", "tokens_per_second_p50", GRID_BARE, false, 7, 0, 4},
    {"E2E p50", "e2e_p50_ns", GRID_IF_ANY, false, 8, 0, 7},
    {"E2E p95", "e2e_p95_ns", GRID_IF_ANY, false, 7, 0, 3},
    {"errors", "error_ratio", GRID_SHARE, false, 6, 0, 1},
    {"requests", "requests", GRID_UNIT, false, 8, 0, 8},
    {"why", "reason", GRID_UNIT, true, 10, 90, 6},
};
static const char *const identity[] = {"model", "host", NULL};

static bool is_ended(const struct result *result, size_t row)
{
    return result_is(result, row, "state", "ended");
}

static const struct grid grid = {.columns = columns,
                                 .count = sizeof columns / sizeof *columns,
                                 .identity = identity,
                                 .is_folded = is_ended,
                                 .folded = "ended"};

static const struct panel panel = {.title = "Models",
                                   .none = "no process of a model",
                                   .polled = POLL_NOW,
                                   .grid = &grid,
                                   .head_rows = view_charts_rows,
                                   .draw_head = view_charts_draw};

const struct view view_now = {
    .name = "Now",
    .polls = POLL(NOW) | POLL(WINDOW) | POLL(TOKENS) | POLL(TTFT),
    .panels = &panel,
    .panel_count = 1,
    .draw_empty = view_empty_requests_draw,
};
