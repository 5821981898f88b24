// Now: charts, and a row per model and host with its state and figures.  A model of several hosts
// (or a host of several models) has a row before theirs, which are shown if they need attention.
#include "client/tui/view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/tui/plots.h"
#include "common/core/query/result.h"

static const struct grid_column columns[] = {
    {"model / host", "model", GRID_TREE, true, 14, 40, 0},
    {"state", "state", GRID_STATE, true, 8, 9, 0},
    {"req/s", "request_rate", GRID_BARE, false, 5, 0, 4},
    {"tok/s", "output_token_rate", GRID_BARE, false, 5, 0, 1},
    {"items/s", "item_rate", GRID_IF_ANY, false, 7, 0, 1},
    {"run", "running_requests", GRID_UNIT, false, 3, 0, 6},
    {"wait", "waiting_requests", GRID_UNIT, false, 4, 0, 8},
    {"TTFT p50", "ttft_p50_ns", GRID_UNIT, false, 8, 0, 7},
    {"TTFT p95", "ttft_p95_ns", GRID_UNIT, false, 8, 0, 0},
    {"TPOT p95", "tpot_p95_ns", GRID_UNIT, false, 8, 0, 3},
    {"E2E p95", "e2e_p95_ns", GRID_IF_ANY, false, 7, 0, 3},
    {"err %", "error_ratio", GRID_SHARE, false, 5, 0, 1},
    {"GPU %", "gpu_util_ratio", GRID_BARE, false, 5, 0, 3},
    {"VRAM", "device_memory_ratio", GRID_BARE, false, 4, 0, 5},
    {"J/tok", "joules_per_token", GRID_IF_ANY, false, 5, 0, 9},
    {"trend", "trend", GRID_DRAWN, false, 12, 12, 2},
    {"why", "reason", GRID_UNIT, true, 10, 60, 10},
};
static const char *const identity[] = {"model", "host", NULL};

static bool is_ended(const struct result *result, size_t row)
{
    return result_is(result, row, "state", "ended");
}

static bool is_by_host(const struct result *result, size_t row)
{
    return result_is(result, row, "group_by", "host");
}

static bool is_in_group(const struct result *result, size_t group, size_t row)
{
    const char *key = is_by_host(result, group) ? "host" : "model";
    const struct value a = result_get(result, group, key), b = result_get(result, row, key);
    return a.type == VALUE_TEXT && value_is_same(a, b);
}

static bool needs_attention(const struct result *result, size_t row)
{
    static const char *const states[] = {"down", "silent", "errors", "slow", "alert"};
    for (unsigned i = 0; i < sizeof states / sizeof *states; i++)
        if (result_is(result, row, "state", states[i]))
            return true;
    return false;
}

// What is ok although a device or the host is in trouble, which the reason names.
static bool deserves_look(const struct result *result, size_t row, const struct grid_column *column)
{
    return strcmp(column->key, "state") == 0 && result_is(result, row, "state", "ok") &&
           result_get(result, row, "has_trouble").type != VALUE_NULL;
}

// "llama-70b 3/4": the live ones of all; of others "llama-70b gpu01", in a group "gpu01".
static void name_of(char *text, size_t size, const struct result *result, size_t row,
                    bool has_group)
{
    char names[2][256];
    const bool by_host = is_by_host(result, row);
    (void)result_text(names[by_host], sizeof names[0], result, row, "model");
    if (strcmp(names[by_host], "-") == 0) // as of a sampler
        (void)snprintf(names[by_host], sizeof names[0], "no model");
    (void)result_text(names[!by_host], sizeof names[0], result, row, "host");
    if (has_group)
        (void)snprintf(text, size, "%s", names[1]);
    else if (model_is_group(result, row))
        (void)snprintf(text, size, "%s %lld/%lld", names[0],
                       (long long)result_integer(result, row, "group_live", 0),
                       (long long)result_integer(result, row, "group_size", 0));
    else
        (void)snprintf(text, size, "%s %s", names[0], names[1]);
}

// The throughput of each part of the window that is over; the scale is the row's own.
static void draw_trend(const struct grid_column *column, struct canvas *canvas, struct rect area,
                       int x, int y, int width, double scale, const struct result *result,
                       size_t row)
{
    enum { PARTS_MAX = 32 };
    double values[PARTS_MAX], top = 0;
    size_t count = 0;
    (void)column;
    (void)scale;
    const struct value trend = result_get(result, row, "trend");
    for (const char *at = trend.type == VALUE_TEXT ? trend.text.bytes : NULL;
         at && count < PARTS_MAX;) {
        char *end;
        const double value = strtod(at, &end);
        values[count] = end == at ? (double)NAN : value;
        at = strchr(at, ',');
        at += at != NULL;
        top = fmax(top, values[count++]);
    }
    plot_sparkline(canvas, (struct rect){area.x + x, area.y + y, width, 1}, values, count, top);
}

static const struct grid grid = {
    GRID_COLUMNS(columns),          .identity = identity,       .draw = draw_trend,
    .is_folded = is_ended,          .folded = "ended",          .is_group = model_is_group,
    .is_in_group = is_in_group,     .is_kept = needs_attention, .name_of = name_of,
    .deserves_look = deserves_look,
};

static const struct panel panel = {.title = "Models",
                                   .none = "no process of a model",
                                   .polled = POLL_NOW,
                                   .grid = &grid,
                                   .head_rows = view_charts_rows,
                                   .draw_head = view_charts_draw};

const struct view view_now = {
    .name = "Now",
    .polls = POLL(NOW) | POLL(TOKENS) | POLL(TTFT) | POLL(ERRORS),
    .panels = &panel,
    .panel_count = 1,
    .draw_empty = view_empty_requests_draw,
};
