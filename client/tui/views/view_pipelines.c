// Runs of the copy/compute pipeline, the newest of the window first: charts over the window, and
// the lanes of the run at the cursor.
#include "client/tui/view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/core/base/unit.h"

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
    double duration_ns = result_number(result, row, "duration_ns", 0);
    double starved_ns = result_number(result, row, "copy_starved_ns", 0);
    return result_is(result, row, "status", "ok") &&
           !result_is(result, row, "workload", storage_workload) &&
           duration_ns >= starved_run_least_ns && starved_ns > duration_ns * starved_most;
}

static bool deserves_look(const struct result *result, size_t row, const struct grid_column *column)
{
    if (strcmp(column->key, "overlap_ratio") == 0)
        return overlap_is_low(result, row);
    return strcmp(column->key, "copy_starved_ns") == 0 && copy_is_starved(result, row);
}

static const char *const identity[] = {"run", "stream", "number", NULL};
static const struct grid pipeline_grid = {GRID_COLUMNS(columns), .deserves_look = deserves_look,
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

// ---- Charts ---------------------------------------------------------------------------------

static int chart_rows(const struct model *model, struct rect area)
{
    static const struct layout_step heights[] = {{34, 8}, {22, 6}, {14, 5}, {0, 0}};
    return view_has_charts(model) && area.width >= 75 ? layout_rows(area.height, heights) : 0;
}

static void draw_charts(const struct model *model, struct canvas *canvas, struct rect area)
{
    static const struct {
        const char *title;
        enum polled_query polled;
        enum unit unit;
    } charts[] = {{"overlap %, mean", POLL_OVERLAP, UNIT_RATIO},
                  {"exposed, mean", POLL_EXPOSED, UNIT_DURATION},
                  {"starved, mean", POLL_STARVED, UNIT_DURATION}};
    enum { CHARTS = sizeof charts / sizeof *charts };
    const int rows = chart_rows(model, rect_below(area, -1)), width = area.width / CHARTS;
    for (int i = 0; i < CHARTS && rows > 0; i++)
        view_chart_draw(model, canvas, (struct rect){area.x + i * width, area.y, width - 1, rows},
                        charts[i].title, charts[i].polled, charts[i].unit);
}

// ---- Lanes ----------------------------------------------------------------------------------

// The totals of a run, drawn one after the other: copies that nothing hides, copy and compute at
// once, compute alone, neither.  A store has no times of single copies.
struct lane {
    const char *name;
    double from_ns, exposed_ns, to_ns; // exposed until `exposed_ns`
    enum style style;
};
enum { LANES = 4 };

// Reads the run at the cursor; false if there is none, or if its times were not measured.
static bool read_lanes(struct lane lanes[LANES], const struct model *model, double *total_ns)
{
    size_t row;
    const struct result *runs = model_answer(model, POLL_PIPELINES);
    if (!view_selected(model, 0, &row))
        return false;
    const double exposed = result_number(runs, row, "exposed_copy_ns", NAN);
    const double both = result_number(runs, row, "both_busy_ns", NAN);
    const double idle = result_number(runs, row, "idle_ns", 0);
    const double busy = exposed + result_number(runs, row, "compute_busy_ns", NAN);
    *total_ns = fmax(result_number(runs, row, "duration_ns", 0), busy + idle);
    lanes[0] = (struct lane){"copy", 0, exposed, exposed + both, STYLE_BAR};
    lanes[1] = (struct lane){"compute", exposed, exposed, busy, STYLE_BAR};
    lanes[2] = (struct lane){"neither", busy, busy, busy + idle, STYLE_BAR_REST};
    lanes[3] = (struct lane){"starved", 0, 0, result_number(runs, row, "copy_starved_ns", 0),
                             STYLE_WARNING};
    return isfinite(busy + both) && *total_ns > 0;
}

static size_t lane_rows(const struct model *model)
{
    struct lane lanes[LANES];
    double total_ns;
    return read_lanes(lanes, model, &total_ns) ? LANES : 0;
}

static void draw_lane(struct canvas *canvas, struct rect area, int y, const struct lane *lane,
                      double total_ns)
{
    enum { NAME = 8, FIGURES = 18, EXPOSED = 0x2592, FULL = 0x2588 };
    char text[UNIT_TEXT_SIZE], share[UNIT_TEXT_SIZE], figures[2 * UNIT_TEXT_SIZE];
    const double ns[] = {lane->from_ns, lane->exposed_ns, lane->to_ns};
    const int width = area.width - NAME - FIGURES - 2;
    int x[3];
    for (unsigned i = 0; i < 3; i++)
        x[i] = NAME + 1 + (int)lround(fmin(fmax(ns[i] / total_ns, 0), 1) * fmax(width, 0));
    for (unsigned i = 1; i < 3; i++) // what there is, is seen
        x[i] += ns[i] > ns[i - 1] && x[i] == x[i - 1];
    canvas_fit(canvas, area, 0, y, NAME, ALIGN_LEFT, STYLE_PLAIN, lane->name);
    canvas_line(canvas, area, x[0], y, x[1] - x[0], STYLE_WARNING, EXPOSED);
    canvas_line(canvas, area, x[1], y, x[2] - x[1], lane->style, FULL);
    (void)snprintf(figures, sizeof figures, "%s %8s",
                   unit_format(text, UNIT_DURATION, lane->to_ns - lane->from_ns),
                   unit_format(share, UNIT_RATIO, (lane->to_ns - lane->from_ns) / total_ns));
    canvas_fit(canvas, area, area.width - FIGURES, y, FIGURES, ALIGN_RIGHT, STYLE_PLAIN, figures);
}

static void draw_lanes(const struct model *model, struct canvas *canvas, struct rect area,
                       size_t top)
{
    struct lane lanes[LANES];
    double total_ns;
    if (!read_lanes(lanes, model, &total_ns))
        return;
    for (int y = 0; y < area.height && top + (size_t)y < LANES; y++)
        draw_lane(canvas, area, y, &lanes[top + (size_t)y], total_ns);
}

static void lane_facts(const struct model *model, struct rect area, struct segments *facts)
{
    size_t row;
    char text[UNIT_TEXT_SIZE];
    const struct result *runs = model_answer(model, POLL_PIPELINES);
    (void)area;
    if (!view_selected(model, 0, &row))
        return;
    const bool is_low = overlap_is_low(runs, row);
    segments_add(facts, 0, is_low ? STYLE_WARNING : STYLE_STRONG, "%soverlap %s", is_low ? "!" : "",
                 unit_format(text, UNIT_RATIO, result_number(runs, row, "overlap_ratio", NAN)));
    segments_add(facts, 1, STYLE_DIM, "▒ exposed copy");
    segments_add(facts, 2, STYLE_PLAIN, "of %s",
                 unit_format(text, UNIT_DURATION, result_number(runs, row, "duration_ns", NAN)));
}

// ---- The view -------------------------------------------------------------------------------

enum panel_number { PANEL_RUNS, PANEL_LANES, PANELS };

static const struct panel panels[PANELS] = {
    [PANEL_RUNS] = {.title = "Newest pipeline runs",
                    .none = "no run in the window: inferstat-worker encode makes one",
                    .polled = POLL_PIPELINES,
                    .grid = &pipeline_grid,
                    .facts = facts,
                    .head_rows = chart_rows,
                    .draw_head = draw_charts},
    [PANEL_LANES] = {.title = "Run at the cursor (totals overlap)",
                     .none = "the run's times were not measured",
                     .polled = POLL_PIPELINES,
                     .facts = lane_facts,
                     .list_rows = lane_rows,
                     .draw_list = draw_lanes},
};

// Lanes have a place only when there is a run.
static void arrange(const struct model *model, struct rect body, struct rect *out)
{
    enum { TITLE = 1 };
    const bool has_runs = view_panel_rows(model, &panels[PANEL_RUNS]) > 0;
    const int lanes = has_runs ? TITLE + LANES : 0;
    const struct layout_want wants[] = {{5, 6, 0, true}, {lanes, lanes, 1, false}};
    layout_stack(body, wants, PANELS, out);
}

static void draw_empty(const struct model *model, struct canvas *canvas, struct rect area)
{
    static const struct view_line how[] = {
        {STYLE_STRONG, "  inferstat-worker encode --encoder iqp --qubits 16"},
    };
    view_empty_draw(model, canvas, area, "A run of the pipeline appears here at once:", how, 1);
}

const struct view view_pipelines = {
    .name = "Pipelines",
    .polls = POLL(PIPELINES) | POLL(OVERLAP) | POLL(EXPOSED) | POLL(STARVED),
    .panels = panels,
    .panel_count = PANELS,
    .arrange = arrange,
    .draw_empty = draw_empty,
};
