// The first view: hosts and models, the last load, recent inferences, runs.
#include "client/tui/view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/tui/plots.h"
#include "common/core/base/unit.h"
#include "common/core/query/result.h"

enum panel_number { PANEL_HOSTS, PANEL_LOAD, PANEL_INFERENCES, PANEL_RUNS, PANELS };

// ---- Hosts and models --------------------------------------------------------------

static const struct grid_column host_columns[] = {
    {"host", "host", GRID_UNIT, true, 6, 24, 0},
    {"device", "device", GRID_UNIT, true, 6, 20, 5},
    {"model", "model", GRID_UNIT, true, 10, 28, 0},
    {"runs", "runs_open", GRID_UNIT, false, 4, 0, 10},
    {"requests", "inferences", GRID_UNIT, false, 8, 0, 0},
    {"tokens", "generated_tokens", GRID_UNIT, false, 9, 0, 8},
    {"t/s", "tokens_per_second", GRID_BARE, false, 7, 0, 0},
    {"mean t/s", "mean_tokens_per_second", GRID_BARE, false, 8, 0, 9},
    {"TTFT", "ttft_mean_ns", GRID_UNIT, false, 7, 0, 1},
    {"TTFT p95", "ttft_p95_ns", GRID_UNIT, false, 8, 0, 6},
    {"E2E", "e2e_mean_ns", GRID_UNIT, false, 7, 0, 2},
    {"items/s", "items_per_second", GRID_IF_ANY, false, 8, 0, 0},
    {"E2E p50", "e2e_p50_ns", GRID_IF_ANY, false, 7, 0, 0},
    {"E2E p95", "e2e_p95_ns", GRID_IF_ANY, false, 7, 0, 1},
    {"load", "load_mean_ns", GRID_UNIT, false, 7, 0, 7},
    {"memory", "host_memory_bytes", GRID_UNIT, false, 9, 0, 4},
    {"lost", "lost", GRID_LOSS, false, 6, 0, 7},
    {"coverage", "coverage_ratio", GRID_WHOLE, false, 8, 0, 3},
};
static const struct grid host_grid = {.columns = host_columns,
                                      .count = sizeof host_columns / sizeof *host_columns};

// ---- The last load -------------------------------------------------------------------

enum { STAGES_MAX = 64, NAME_MAX_WIDTH = 24 };

static const struct result *last_load(const struct model *model)
{
    const struct result *loads = model_answer(model, POLL_LOADS);
    return loads && result_row_count(loads) > 0 ? loads : NULL;
}

// The stages of the last load in the answer, in their order.
static size_t stages_of_load(const struct model *model, struct plot_stage stages[STAGES_MAX])
{
    const struct result *load = last_load(model), *all = model_answer(model, POLL_STAGES);
    if (!load || !all)
        return 0;
    const int64_t start_ns = result_integer(load, 0, "started_ns", 0);
    size_t count = 0;
    for (size_t row = 0; row < result_row_count(all) && count < STAGES_MAX; row++) {
        if (!value_is_same(result_get(load, 0, "run"), result_get(all, row, "run")) ||
            result_integer(load, 0, "stream", -1) != result_integer(all, row, "stream", -2) ||
            result_integer(load, 0, "number", -1) != result_integer(all, row, "parent", -2))
            continue;
        struct plot_stage *stage = &stages[count++];
        (void)result_text(stage->name, sizeof stage->name, all, row, "stage");
        stage->start_ns = (double)(result_integer(all, row, "started_ns", start_ns) - start_ns);
        stage->duration_ns = result_number(all, row, "duration_ns", 0);
    }
    return count;
}

static bool load_failed(const struct model *model)
{
    char status[32];
    const struct result *load = last_load(model);
    return load && strcmp(result_text(status, sizeof status, load, 0, "status"), "ok") != 0;
}

static void load_facts(const struct model *model, struct rect area, struct segments *facts)
{
    (void)area;
    const struct result *load = last_load(model);
    if (!load)
        return;
    char text[128], number[UNIT_TEXT_SIZE];
    if (load_failed(model))
        segments_add(facts, 0, STYLE_BAD, "✗ %s",
                     result_text(text, sizeof text, load, 0, "status"));
    segments_add_name(facts, 1, STYLE_STRONG, NAME_MAX_WIDTH,
                      result_text(text, sizeof text, load, 0, "model"));
    segments_add_name(facts, 4, STYLE_PLAIN, NAME_MAX_WIDTH,
                      result_text(text, sizeof text, load, 0, "device"));
    segments_add_name(facts, 7, STYLE_PLAIN, NAME_MAX_WIDTH,
                      result_text(text, sizeof text, load, 0, "host"));
    segments_add(facts, 0, STYLE_STRONG, "%s",
                 unit_format(number, UNIT_DURATION, result_number(load, 0, "duration_ns", NAN)));
    segments_add(facts, 2, STYLE_PLAIN, "%s",
                 unit_format(number, UNIT_BYTES, result_number(load, 0, "model_bytes", NAN)));
    double rate = result_number(load, 0, "load_bytes_per_second", NAN);
    if (isfinite(rate))
        segments_add(facts, 6, STYLE_PLAIN, "%s", unit_format(number, UNIT_BYTES_PER_SECOND, rate));
    double delta = result_number(load, 0, "memory_delta_bytes", NAN);
    if (isfinite(delta))
        segments_add(facts, 3, STYLE_PLAIN, "memory %s%s", delta >= 0 ? "+" : "",
                     unit_format(number, UNIT_BYTES, delta));
    double cached = result_number(load, 0, "page_cache_ratio", NAN);
    if (isfinite(cached))
        segments_add(facts, 5, STYLE_PLAIN, "%s, %s cached",
                     cached >= 0.9   ? "warm"
                     : cached <= 0.1 ? "cold"
                                     : "partly warm",
                     unit_format(number, UNIT_RATIO, cached));
}

static int load_head_rows(const struct model *model, struct rect area)
{
    (void)area;
    return load_failed(model) ? 1 : 0;
}

static void draw_load_head(const struct model *model, struct canvas *canvas, struct rect area)
{
    char reason[512];
    if (!load_failed(model))
        return;
    (void)result_text(reason, sizeof reason, last_load(model), 0, "error");
    canvas_fit(canvas, area, 0, 0, area.width, ALIGN_LEFT, STYLE_BAD, reason);
}

static size_t load_rows(const struct model *model)
{
    struct plot_stage stages[STAGES_MAX];
    return last_load(model) ? stages_of_load(model, stages) + 1 : 0; // and "other"
}

static void draw_load(const struct model *model, struct canvas *canvas, struct rect area,
                      size_t top)
{
    struct plot_stage stages[STAGES_MAX];
    const struct result *load = last_load(model);
    if (!load)
        return;
    plot_waterfall(canvas, area, stages, stages_of_load(model, stages),
                   result_number(load, 0, "duration_ns", 0), top);
}

// ---- Recent inferences -----------------------------------------------------------------

static const struct grid_column inference_columns[] = {
    {"time", "started_ns", GRID_CLOCK, true, 8, 8, 0},
    {"model", "model", GRID_UNIT, true, 10, 28, 0},
    {"prompt", "prompt_tokens", GRID_UNIT, false, 6, 0, 3},
    {"cached", "cached_prompt_tokens", GRID_UNIT, false, 6, 0, 11},
    {"output", "generated_tokens", GRID_UNIT, false, 6, 0, 1},
    {"queue", "queue_ns", GRID_UNIT, false, 7, 0, 8},
    {"prefill", "prefill_ns", GRID_UNIT, false, 7, 0, 9},
    {"TTFT", "ttft_ns", GRID_UNIT, false, 7, 0, 0},
    {"decode", "decode_ns", GRID_UNIT, false, 7, 0, 9},
    {"E2E", "e2e_ns", GRID_UNIT, false, 7, 0, 1},
    {"items", "items", GRID_IF_ANY, false, 6, 0, 2},
    {"items/s", "items_per_second", GRID_IF_ANY, false, 8, 0, 0},
    {"t/s", "tokens_per_second", GRID_BARE, false, 7, 0, 0},
    {"prefill t/s", "prefill_tokens_per_second", GRID_BARE, false, 11, 0, 12},
    {"ITL p99", "itl_p99_ns", GRID_UNIT, false, 7, 0, 6},
    {"ITL max", "itl_max_ns", GRID_UNIT, false, 7, 0, 10},
    {"memory", "host_memory_bytes", GRID_UNIT, false, 9, 0, 11},
    {"finish", "finish", GRID_OUTCOME, true, 9, 9, 2},
    {"device", "device", GRID_UNIT, true, 6, 20, 7},
    {"host", "host", GRID_UNIT, true, 6, 24, 4},
};
static const struct grid inference_grid = {
    .columns = inference_columns, .count = sizeof inference_columns / sizeof *inference_columns};

enum { SPEEDS_MAX = 512 };

// The speeds that a sparkline in the area shows: those of the newest inferences, oldest first, NaN
// where an inference has none; the lowest and the highest, NaN when it shows nothing.  They are of
// items where the newest inference has items, else of tokens.
struct speeds {
    enum unit unit;
    double values[SPEEDS_MAX];
    size_t count;
    double lowest, highest;
};

static void read_speeds(struct speeds *out, const struct model *model, struct rect area)
{
    const struct result *result = model_answer(model, POLL_INFERENCES);
    const size_t width = area.width < 0 ? 0 : (size_t)area.width;
    const size_t most = width < SPEEDS_MAX ? width : SPEEDS_MAX;
    const size_t rows = result ? result_row_count(result) : 0;
    out->count = rows < most ? rows : most;
    out->lowest = out->highest = NAN;
    const bool are_items = rows > 0 && result_get(result, 0, "items").type != VALUE_NULL;
    const char *const key = are_items ? "items_per_second" : "tokens_per_second";
    out->unit = are_items ? UNIT_ITEMS_PER_SECOND : UNIT_TOKENS_PER_SECOND;
    for (size_t i = 0; i < out->count; i++) { // the answer has the newest first
        const double speed = result_number(result, i, key, NAN);
        out->values[out->count - 1 - i] = speed;
        out->lowest = fmin(out->lowest, speed); // of a NaN and a number: the number
        out->highest = fmax(out->highest, speed);
    }
}

// A speed without its unit.
static const char *bare_speed(char *text, enum unit unit, double speed)
{
    (void)unit_format(text, unit, speed);
    text[strcspn(text, " ")] = '\0';
    return text;
}

static void inference_facts(const struct model *model, struct rect area, struct segments *facts)
{
    char text[UNIT_TEXT_SIZE];
    struct speeds speeds;
    read_speeds(&speeds, model, area);
    if (!isfinite(speeds.highest))
        return;
    segments_add(facts, 0, STYLE_STRONG, "last %s",
                 unit_format(text, speeds.unit, speeds.values[speeds.count - 1]));
    segments_add(facts, 1, STYLE_PLAIN, "low %s", bare_speed(text, speeds.unit, speeds.lowest));
    segments_add(facts, 1, STYLE_PLAIN, "high %s", bare_speed(text, speeds.unit, speeds.highest));
}

static int speed_rows(const struct model *model, struct rect area)
{
    (void)model;
    static const struct {
        int panel, plot;
    } heights[] = {{20, 3}, {10, 2}, {5, 1}};
    for (unsigned i = 0; i < sizeof heights / sizeof *heights; i++)
        if (area.height >= heights[i].panel)
            return heights[i].plot;
    return 0;
}

// A speed of 0 is the ground of the sparkline: equal speeds look equal.
static void draw_speeds(const struct model *model, struct canvas *canvas, struct rect area)
{
    struct speeds speeds;
    struct rect panel = rect_below(area, -1); // with its title, as speed_rows sees it
    struct rect plot = {area.x, area.y, area.width, speed_rows(model, panel)};
    read_speeds(&speeds, model, plot);
    plot_sparkline(canvas, plot, speeds.values, speeds.count, speeds.highest);
}

// ---- Runs and losses -------------------------------------------------------------------

static const struct grid_column run_columns[] = {
    {"host", "host", GRID_UNIT, true, 6, 24, 0},
    {"pid", "pid", GRID_UNIT, false, 7, 0, 5},
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
    {"version", "worker_version", GRID_UNIT, true, 7, 12, 8},
    {"last activity", "last_activity", GRID_UNIT, true, 13, 40, 6},
};
static const struct grid run_grid = {.columns = run_columns,
                                     .count = sizeof run_columns / sizeof *run_columns};

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
        segments_add_name(facts, 1, STYLE_BAD, LOSSES_WIDTH, text);
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
    (void)area;
    loss_facts(model, facts);
    for (unsigned i = 0; i < sizeof figures / sizeof *figures; i++) {
        double figure = model_figure(model, figures[i].key, 0);
        if (figure > 0)
            segments_add(facts, figures[i].rank, STYLE_PLAIN, "%.0f %s", figure, figures[i].text);
    }
    char text[UNIT_TEXT_SIZE];
    double size = model_figure(model, "store_bytes", NAN);
    if (isfinite(size))
        segments_add(facts, 1, STYLE_PLAIN, "store %s", unit_format(text, UNIT_BYTES, size));
}

// ---- The view --------------------------------------------------------------------------

static const struct panel panels[PANELS] = {
    [PANEL_HOSTS] = {.title = "Hosts and models",
                     .none = "no load and no inference recorded",
                     .polled = POLL_OVERVIEW,
                     .grid = &host_grid},
    [PANEL_LOAD] = {.title = "Last load",
                    .none = "no load recorded",
                    .polled = POLL_LOADS,
                    .facts = load_facts,
                    .head_rows = load_head_rows,
                    .draw_head = draw_load_head,
                    .list_rows = load_rows,
                    .draw_list = draw_load},
    [PANEL_INFERENCES] = {.title = "Recent inferences",
                          .none = "no inference recorded",
                          .polled = POLL_INFERENCES,
                          .grid = &inference_grid,
                          .facts = inference_facts,
                          .head_rows = speed_rows,
                          .draw_head = draw_speeds},
    [PANEL_RUNS] = {.title = "Runs and losses",
                    .none = "no run recorded",
                    .polled = POLL_RUNS,
                    .grid = &run_grid,
                    .facts = run_facts},
};

static int at_most(int value, int most)
{
    return value < most ? value : most;
}

static int rows_of(const struct model *model, enum panel_number number)
{
    size_t rows = view_panel_rows(model, &panels[number]);
    return rows < CANVAS_SIDE_MAX ? (int)rows : CANVAS_SIDE_MAX;
}

static void arrange(const struct model *model, struct rect body, struct rect *out)
{
    enum { TITLE = 1, TITLE_AND_HEADING = 2, BESIDE_WIDTH = 132, GAP = 2 };
    const struct layout_want hosts = {
        3, at_most(TITLE_AND_HEADING + rows_of(model, PANEL_HOSTS), body.height * 3 / 10), 1,
        false};
    const struct layout_want load = {
        3, TITLE + load_head_rows(model, body) + rows_of(model, PANEL_LOAD), 2, false};
    const struct layout_want inferences = {5, 5, 0, true};
    const struct layout_want runs = {
        3, at_most(TITLE_AND_HEADING + rows_of(model, PANEL_RUNS), body.height / 4), 3, false};

    if (body.width < BESIDE_WIDTH) {
        const struct layout_want wants[] = {hosts, load, inferences, runs};
        layout_stack(body, wants, PANELS, out);
        return;
    }
    // Hosts and load beside each other, as high as the higher one.
    struct layout_want top = hosts;
    if (load.wanted > top.wanted)
        top.wanted = at_most(load.wanted, body.height / 2);
    const struct layout_want wants[] = {top, inferences, runs};
    struct rect rows[3];
    layout_stack(body, wants, 3, rows);
    layout_beside(rows[0], body.width * 11 / 20, GAP, &out[PANEL_HOSTS], &out[PANEL_LOAD]);
    out[PANEL_INFERENCES] = rows[1];
    out[PANEL_RUNS] = rows[2];
}

static void draw_empty(const struct model *model, struct canvas *canvas, struct rect area)
{
    static const struct view_line how[] = {
        {STYLE_STRONG, "  inferstat-worker llm --model FILE.gguf"},
        {STYLE_PLAIN, ""},
        {STYLE_PLAIN, "No model at hand?  One with random weights:"},
        {STYLE_STRONG, "  inferstat-worker make-model --shape 15m FILE.gguf"},
    };
    view_empty_draw(model, canvas, area,
                    "Start a worker, and what it does appears here at once:", how,
                    sizeof how / sizeof *how);
}

const struct view view_overview = {
    .name = "Overview",
    .panels = panels,
    .panel_count = PANELS,
    .arrange = arrange,
    .draw_empty = draw_empty,
};
