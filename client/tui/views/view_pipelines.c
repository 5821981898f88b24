// Runs of the copy/compute pipeline, the newest of the window first.
#include "client/tui/view.h"

#include <math.h>
#include <string.h>

// Marks copies that compute does not hide, and a copy engine that is idle because no slot is
// filled.  Waits for the pool are no fault where copies are what
// everything waits for; nor is starving where the first slot's filling is a good part of
// the run, where it ended early, or where a model's weights come from storage, whose speed
// loads tell.
static const double overlap_least = 0.60;
static const double exposed_most = 0.05; // of the run's time
static const double starved_most = 0.05; // of the run's time
static const double starved_run_least_ns = 100e6;
static const char storage_workload[] = "model_load";

static const struct grid_column columns[] = {
    {"time", "started_ns", GRID_CLOCK, true, 8, 8, 0},
    {"workload", "workload", GRID_UNIT, true, 8, 20, 0},
    {"model", "model", GRID_NAME, true, 8, 24, 3},
    {"device", "device", GRID_NAME, true, 6, 20, 4},
    {"status", "status", GRID_OUTCOME, true, 6, 9, 1},
    {"items/s", "items_per_second", GRID_BARE, false, 9, 0, 0},
    {"overlap", "overlap_ratio", GRID_UNIT, false, 7, 0, 0},
    {"exposed", "exposed_copy_ns", GRID_UNIT, false, 7, 0, 2},
    {"starved", "copy_starved_ns", GRID_UNIT, false, 7, 0, 0},
    {"pool waits", "pool_starvation_ratio", GRID_UNIT, false, 10, 0, 5},
    {"chunk", "chunk_bytes", GRID_UNIT, false, 8, 0, 7},
    {"pool", "pool_size", GRID_UNIT, false, 4, 0, 8},
    {"sync", "sync", GRID_UNIT, true, 6, 8, 6},
    {"host", "host", GRID_NAME, true, 6, 24, 9},
    {"total", "duration_ns", GRID_UNIT, false, 7, 0, 10},
    {"items", "items", GRID_UNIT, false, 8, 0, 12},
    {"waited", "pool_wait_ns", GRID_UNIT, false, 7, 0, 11},
    {"p50", "item_p50_ns", GRID_UNIT, false, 7, 0, 14},
    {"p99", "item_p99_ns", GRID_UNIT, false, 7, 0, 13},
    {"copying", "copy_busy_ns", GRID_UNIT, false, 7, 0, 15},
    {"computing", "compute_busy_ns", GRID_UNIT, false, 9, 0, 16},
    {"free min", "pool_available_min", GRID_UNIT, false, 8, 0, 17},
    {"max", "pool_available_max", GRID_UNIT, false, 3, 0, 18},
    {"acquired", "pool_acquires", GRID_UNIT, false, 8, 0, 19},
};

// One chunk has nothing to overlap with.
static bool overlap_is_low(const struct result *result, size_t row)
{
    double chunk_bytes = result_number(result, row, "chunk_bytes", 0);
    double copied_bytes = result_number(result, row, "bytes_h2d", INFINITY);
    return result_number(result, row, "overlap_ratio", 1) < overlap_least &&
           copied_bytes > chunk_bytes &&
           result_number(result, row, "exposed_copy_ns", INFINITY) >
               exposed_most * result_number(result, row, "duration_ns", 0);
}

static bool copy_is_starved(const struct result *result, size_t row)
{
    char status[16], workload[32];
    double duration_ns = result_number(result, row, "duration_ns", 0);
    double starved_ns = result_number(result, row, "copy_starved_ns", 0);
    return strcmp(result_text(status, sizeof status, result, row, "status"), "ok") == 0 &&
           strcmp(result_text(workload, sizeof workload, result, row, "workload"),
                  storage_workload) != 0 &&
           duration_ns >= starved_run_least_ns && starved_ns > duration_ns * starved_most;
}

static bool deserves_look(const struct result *result, size_t row, const struct grid_column *column)
{
    if (strcmp(column->key, "overlap_ratio") == 0)
        return overlap_is_low(result, row);
    return strcmp(column->key, "copy_starved_ns") == 0 && copy_is_starved(result, row);
}

static const char *const identity[] = {"run", "stream", "number", NULL};
static const struct grid pipeline_grid = {.columns = columns,
                                          .count = sizeof columns / sizeof *columns,
                                          .deserves_look = deserves_look,
                                          .identity = identity};

static void facts(const struct model *model, struct rect area, struct segments *facts)
{
    (void)area;
    const struct result *result = model_answer(model, POLL_PIPELINES);
    size_t rows = result ? result_row_count(result) : 0, low = 0, starved = 0;
    for (size_t row = 0; row < rows; row++) {
        low += overlap_is_low(result, row);
        starved += copy_is_starved(result, row);
    }
    if (low > 0)
        segments_add(facts, 0, STYLE_WARNING, "! %zu under %.0f %% overlap", low,
                     overlap_least * 100);
    if (starved > 0)
        segments_add(facts, 1, STYLE_WARNING, "! %zu starved over %.0f %%", starved,
                     starved_most * 100);
}

static const struct panel panel = {
    .title = "Pipeline runs",
    .none = "no pipeline run in the window: inferstat-worker encode makes one",
    .polled = POLL_PIPELINES,
    .grid = &pipeline_grid,
    .facts = facts};

static void draw_empty(const struct model *model, struct canvas *canvas, struct rect area)
{
    static const struct view_line how[] = {
        {STYLE_STRONG, "  inferstat-worker encode --encoder iqp --qubits 16"},
    };
    view_empty_draw(model, canvas, area, "A run of the pipeline appears here at once:", how, 1);
}

const struct view view_pipelines = {
    .name = "Pipelines",
    .polls = POLL(PIPELINES),
    .panels = &panel,
    .panel_count = 1,
    .draw_empty = draw_empty,
};
