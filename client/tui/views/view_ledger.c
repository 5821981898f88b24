// The ledger: each run's records made, stored and lost, and why.
#include "client/tui/view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/core/base/unit.h"
#include "common/core/query/result.h"

static const struct grid_column run_columns[] = {
    {"host", "host", GRID_NAME, true, 6, 24, 0},
    {"pid", "pid", GRID_UNIT, false, 7, 0, 1},
    {"started", "started_ns", GRID_CLOCK, true, 8, 8, 4},
    {"state", "end", GRID_OUTCOME, true, 6, 6, 0},
    {"produced", "produced", GRID_UNIT, false, 9, 0, 3},
    {"stored", "stored", GRID_UNIT, false, 9, 0, 0},
    {"in flight", "in_flight", GRID_UNIT, false, 9, 0, 2},
    {"dropped", "dropped", GRID_LOSS, false, 8, 0, 0},
    {"unnumbered", "unnumbered", GRID_LOSS, false, 10, 0, 1},
    {"repeated", "duplicates", GRID_UNIT, false, 8, 0, 7},
    {"coverage", "coverage_ratio", GRID_WHOLE, false, 8, 0, 7},
    {"balanced", "balanced", GRID_VERDICT, false, 8, 0, 1},
    {"clock", "clock_offset_ns", GRID_UNIT, false, 8, 0, 9},
    {"version", "worker_version", GRID_UNIT, true, 7, 30, 8},
    {"last activity", "last_activity", GRID_UNIT, true, 13, 40, 6},
};
static const char *const identity[] = {"run", NULL};

// What lost records is seen without scrolling.
static bool is_urgent(const struct result *result, size_t row)
{
    return result_number(result, row, "dropped", 0) > 0 ||
           result_number(result, row, "unnumbered", 0) > 0 ||
           result_integer(result, row, "balanced", 1) == 0;
}

static const struct grid run_grid = {GRID_COLUMNS(run_columns), .identity = identity,
                                     .is_urgent = is_urgent};

#define LEAST_HOURS (1.0 / 60) // for the growth of the store to be told

// Why records were lost, and what the collector did not take at all.
static void loss_facts(const struct model *model, struct segments *facts)
{
    enum { LOSSES_WIDTH = 60, REFUSALS_WIDTH = 40 };
    const struct result *summary = model_answer(model, POLL_SUMMARY);
    if (!summary || result_row_count(summary) == 0)
        return;
    char losses[LOSS_TEXT_SIZE], refusals[128], text[sizeof losses + sizeof refusals];
    if (result_loss_text(losses, summary, 0)[0]) {
        (void)snprintf(text, sizeof text, "lost %s", losses);
        segments_add_name(facts, 0, STYLE_BAD, LOSSES_WIDTH, text);
    }
    if (model_figure(model, "refused_messages", 0) > 0) {
        (void)snprintf(text, sizeof text, "not taken %s",
                       result_text(refusals, sizeof refusals, summary, 0, "refusals"));
        segments_add_name(facts, 2, STYLE_BAD, REFUSALS_WIDTH, text);
    }
}

static void run_facts(const struct model *model, struct rect area, struct segments *facts)
{
    static const struct {
        const char *key, *text;
        unsigned rank;
    } figures[] = {
        {"duplicates", "repeated", 3}, {"expired", "expired", 2}, {"cleared", "cleared", 2}};
    char text[UNIT_TEXT_SIZE];
    (void)area;
    loss_facts(model, facts);
    for (unsigned i = 0; i < sizeof figures / sizeof *figures; i++) {
        double figure = model_figure(model, figures[i].key, 0);
        if (figure > 0)
            segments_add(facts, figures[i].rank, STYLE_PLAIN, "%s %s",
                         unit_format(text, UNIT_COUNT, figure), figures[i].text);
    }
    double size = model_figure(model, "store_bytes", NAN);
    if (isfinite(size))
        segments_add(facts, 1, STYLE_PLAIN, "store %s", unit_format(text, UNIT_BYTES, size));
    // Over the time that the dashboard has been open.
    const double hours = (double)(model->wall_now_ns - model->first_size_ns) / 3.6e12;
    if (isfinite(size) && model->first_size_ns > 0 && hours > LEAST_HOURS)
        segments_add(facts, 4, STYLE_PLAIN, "%+.1f MB/h",
                     (size - model->first_size) / hours / (1024 * 1024));
}

static const struct panel panel = {.title = "Runs and losses of all time",
                                   .none = "no run recorded",
                                   .polled = POLL_RUNS,
                                   .grid = &run_grid,
                                   .facts = run_facts};

const struct view view_ledger = {
    .name = "Ledger",
    .polls = POLL(RUNS),
    .panels = &panel,
    .panel_count = 1,
    .draw_empty = view_empty_requests_draw,
};
