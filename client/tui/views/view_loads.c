// Loads of models and startups of processes: the newest of the window, and the stages of the one at
// the cursor, beside the usual ones of its model, host and device, or the one before it.
#include "client/tui/view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/tui/plots.h"
#include "common/core/base/unit.h"
#include "common/core/query/result.h"

enum panel_number { PANEL_LIST, PANEL_STAGES, PANEL_STARTUPS, PANELS };

static const struct grid_column columns[] = {
    {"time", "started_ns", GRID_CLOCK, true, 8, 8, 0},
    {"model", "model", GRID_NAME, true, 10, 28, 0},
    {"host", "host", GRID_NAME, true, 6, 24, 2},
    {"device", "device", GRID_NAME, true, 6, 20, 2},
    {"status", "status", GRID_OUTCOME, true, 6, 9, 1},
    {"total", "duration_ns", GRID_UNIT, false, 7, 0, 0},
    {"size", "model_bytes", GRID_UNIT, false, 9, 0, 3},
    {"rate", "load_bytes_per_second", GRID_UNIT, false, 9, 0, 4},
    {"cached", "page_cache_ratio", GRID_UNIT, false, 6, 0, 5},
    {"reason", "error", GRID_IF_ANY, true, 8, 60, 4},
};
static const char *const identity[] = {"run", "stream", "number", NULL};
static const struct grid load_grid = {GRID_COLUMNS(columns), .identity = identity};

static const struct grid_column startup_columns[] = {
    {"time", "started_ns", GRID_CLOCK, true, 8, 8, 0},
    {"host", "host", GRID_NAME, true, 6, 24, 0},
    {"total", "duration_ns", GRID_UNIT, false, 7, 0, 0},
    {"mem start", "memory_start_bytes", GRID_UNIT, false, 9, 0, 2},
    {"mem ready", "memory_ready_bytes", GRID_UNIT, false, 9, 0, 1},
    {"delta", "memory_delta_bytes", GRID_UNIT, false, 9, 0, GRID_RANK_LUXURY},
};
static const struct grid startup_grid = {GRID_COLUMNS(startup_columns), .identity = identity};

enum { STAGES_MAX = 64, NAME_MAX_WIDTH = 24 };

const struct result *view_load(const struct model *model, size_t *row)
{
    const bool is_startup = model->views[VIEW_LOADS].focus == PANEL_STARTUPS;
    return view_selected(model, is_startup ? PANEL_STARTUPS : PANEL_LIST, row)
               ? model_answer(model, is_startup ? POLL_STARTUPS : POLL_LOADS)
               : NULL;
}

// The stages of a load in an answer, in their order.
static size_t find_stages(struct plot_stage stages[STAGES_MAX], const struct result *all,
                          const struct result *load, size_t at)
{
    const int64_t start_ns = result_integer(load, at, "started_ns", 0);
    size_t count = 0;
    for (size_t row = 0; all && row < result_row_count(all) && count < STAGES_MAX; row++) {
        if (!value_is_same(result_get(load, at, "run"), result_get(all, row, "run")) ||
            result_integer(load, at, "stream", -1) != result_integer(all, row, "stream", -2) ||
            result_integer(load, at, "number", -1) != result_integer(all, row, "parent", -2))
            continue;
        struct plot_stage *stage = &stages[count++];
        *stage = (struct plot_stage){0};
        (void)result_text(stage->name, sizeof stage->name, all, row, "stage");
        stage->start_ns = (double)(result_integer(all, row, "started_ns", start_ns) - start_ns);
        stage->duration_ns = result_number(all, row, "duration_ns", 0);
    }
    return count;
}

// ---- What a load is compared with -----------------------------------------------------------

struct beside {
    char name[96]; // "of 12 warm loads"
    double total_ns, other_ns;
    struct plot_stage stages[STAGES_MAX];
    size_t count;
    bool known; // there is such a load, or several
};

// What STAGES calls loads that found as much in the page cache.
static const char *cache_of(const struct result *load, size_t at)
{
    const double cached = result_number(load, at, "page_cache_ratio", NAN);
    return isnan(cached) ? "unknown" : cached <= 0.1 ? "cold" : cached >= 0.9 ? "warm" : "mixed";
}

// The medians of loads of one cache; false if there are none.
static bool read_usual(struct beside *beside, const struct result *usual, const char *cache)
{
    for (size_t row = 0; usual && row < result_row_count(usual); row++) {
        const double ns = result_number(usual, row, "p50_ns", 0);
        if (!result_is(usual, row, "cache", cache))
            continue;
        if (result_is(usual, row, "part", "total")) {
            const int64_t loads = result_integer(usual, row, "count", 0);
            beside->known = loads > 0;
            beside->total_ns = ns;
            const bool is_named = strcmp(cache, "all") != 0 && strcmp(cache, "unknown") != 0;
            (void)snprintf(beside->name, sizeof beside->name, "of %lld%s%s %s", (long long)loads,
                           is_named ? " " : "", is_named ? cache : "",
                           loads == 1 ? "load" : "loads");
        } else if (result_is(usual, row, "part", "other")) {
            beside->other_ns = ns;
        } else if (beside->count < STAGES_MAX) {
            struct plot_stage *stage = &beside->stages[beside->count++];
            (void)result_text(stage->name, sizeof stage->name, usual, row, "stage");
            stage->duration_ns = ns;
        }
    }
    return beside->known;
}

static void read_before(struct beside *beside, const struct model *model, const struct result *load,
                        size_t at)
{
    const size_t before = queries_load_before(load, at);
    if (before == SIZE_MAX)
        return;
    beside->known = true;
    beside->total_ns = beside->other_ns = result_number(load, before, "duration_ns", 0);
    beside->count =
        find_stages(beside->stages, model_answer(model, POLL_STAGES_BEFORE), load, before);
    for (size_t i = 0; i < beside->count; i++)
        beside->other_ns -= beside->stages[i].duration_ns;
    char time[UNIT_TEXT_SIZE];
    (void)snprintf(beside->name, sizeof beside->name, "at %s",
                   view_clock_text(time, result_integer(load, before, "started_ns", 0)));
}

// The stages of a load, each with what it is compared with: the usual ones are of loads that found
// as much in the page cache, else of all.
static size_t stages_of_load(const struct model *model, const struct result *load, size_t at,
                             struct plot_stage stages[STAGES_MAX], struct beside *beside)
{
    const struct result *usual = model_answer(model, POLL_STAGES_USUAL);
    *beside = (struct beside){0};
    if (model->against_before)
        read_before(beside, model, load, at);
    else if (!read_usual(beside, usual, cache_of(load, at)))
        (void)read_usual(beside, usual, "all");
    const size_t count = find_stages(stages, model_answer(model, POLL_STAGES), load, at);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < beside->count && stages[i].beside_ns == 0; k++)
            if (strcmp(stages[i].name, beside->stages[k].name) == 0)
                stages[i].beside_ns = beside->stages[k].duration_ns;
    return count;
}

// ---- The panel of stages --------------------------------------------------------------------

static bool has_failed(const struct result *load, size_t at)
{
    return result_get(load, at, "status").type == VALUE_TEXT &&
           !result_is(load, at, "status", "ok");
}

static void load_facts(const struct model *model, struct rect area, struct segments *facts)
{
    (void)area;
    size_t at;
    const struct result *load = view_load(model, &at);
    if (!load)
        return;
    char text[128], number[UNIT_TEXT_SIZE];
    if (has_failed(load, at))
        segments_add(facts, 0, STYLE_BAD, "✗ %s",
                     result_text(text, sizeof text, load, at, "status"));
    const bool is_startup = result_get(load, at, "model").type == VALUE_NULL;
    segments_add_name(facts, 1, STYLE_STRONG, NAME_MAX_WIDTH,
                      is_startup ? "startup" : result_text(text, sizeof text, load, at, "model"));
    if (!is_startup)
        segments_add_name(facts, 4, STYLE_PLAIN, NAME_MAX_WIDTH,
                          result_text(text, sizeof text, load, at, "device"));
    segments_add_name(facts, 7, STYLE_PLAIN, NAME_MAX_WIDTH,
                      result_text(text, sizeof text, load, at, "host"));
    if (!is_startup)
        segments_add(facts, 2, STYLE_PLAIN, "%s",
                     unit_format(number, UNIT_BYTES, result_number(load, at, "model_bytes", NAN)));
    double rate = result_number(load, at, "load_bytes_per_second", NAN);
    if (isfinite(rate))
        segments_add(facts, 6, STYLE_PLAIN, "%s", unit_format(number, UNIT_BYTES_PER_SECOND, rate));
    double cached = result_number(load, at, "page_cache_ratio", NAN);
    if (isfinite(cached))
        segments_add(facts, 5, STYLE_PLAIN, "%s, %s cached", cache_of(load, at),
                     unit_format(number, UNIT_RATIO, cached));
}

enum { HEAD_ROWS = 3 }; // the comparison, memory, headings

static int load_head_rows(const struct model *model, struct rect area)
{
    size_t at;
    (void)area;
    const struct result *load = view_load(model, &at);
    return load ? HEAD_ROWS + has_failed(load, at) : 0;
}

// "total 1.2s +33.3 % · usual 0.9s, of 12 warm loads · d: one before".
static void draw_beside(const struct model *model, struct canvas *canvas, struct rect area, int y,
                        const struct beside *beside, double total_ns)
{
    char total[UNIT_TEXT_SIZE], change[UNIT_TEXT_SIZE], other[UNIT_TEXT_SIZE];
    struct segments line = {.separator = " · "};
    const bool is_slow = beside->known && total_ns > 1.2 * beside->total_ns;
    const bool is_asked = model->against_before || model->answers[POLL_STAGES_USUAL].known;
    (void)unit_format_change(change, total_ns / beside->total_ns);
    segments_add(&line, 0, is_slow ? STYLE_WARNING : STYLE_STRONG, "total %s%s%s",
                 unit_format(total, UNIT_DURATION, total_ns), beside->known ? " " : "",
                 beside->known ? change : "");
    if (beside->known)
        segments_add(&line, 0, STYLE_PLAIN, "%s %s, %s", model->against_before ? "before" : "usual",
                     unit_format(other, UNIT_DURATION, beside->total_ns), beside->name);
    else
        segments_add(&line, 0, STYLE_DIM, "%s",
                     !is_asked               ? "asking what is usual ..."
                     : model->against_before ? "none before it in the window"
                                             : "what is usual is not known");
    segments_add(&line, 1, STYLE_DIM, "d: %s", model->against_before ? "the usual" : "one before");
    (void)segments_draw(&line, canvas, area, 0, y, area.width, ALIGN_LEFT);
}

// "memory 16.0 MB before, 77.0 MB after, +61.0 MB", and the same of the device.
static void draw_memory(struct canvas *canvas, struct rect area, int y, const struct result *load,
                        size_t at)
{
    static const struct {
        const char *name, *before, *after;
    } memories[] = {{"memory", "host_memory_before_bytes", "host_memory_after_bytes"},
                    {"memory", "memory_start_bytes", "memory_ready_bytes"},
                    {"device", "device_memory_before_bytes", "device_memory_after_bytes"}};
    char text[3][UNIT_TEXT_SIZE];
    struct segments line = {.separator = " · "};
    for (unsigned i = 0; i < sizeof memories / sizeof *memories; i++) {
        const double before = result_number(load, at, memories[i].before, NAN);
        const double after = result_number(load, at, memories[i].after, NAN);
        if (isfinite(before) && isfinite(after))
            segments_add(&line, i, STYLE_PLAIN, "%s %s before, %s after, %s%s", memories[i].name,
                         unit_format(text[0], UNIT_BYTES, before),
                         unit_format(text[1], UNIT_BYTES, after), after >= before ? "+" : "",
                         unit_format(text[2], UNIT_BYTES, after - before));
    }
    (void)segments_draw(&line, canvas, area, 0, y, area.width, ALIGN_LEFT);
}

static void draw_load_head(const struct model *model, struct canvas *canvas, struct rect area)
{
    char reason[512];
    struct plot_stage stages[STAGES_MAX];
    struct beside beside;
    size_t at;
    int y = 0;
    const struct result *load = view_load(model, &at);
    if (!load)
        return;
    const size_t count = stages_of_load(model, load, at, stages, &beside);
    if (has_failed(load, at))
        canvas_fit(canvas, area, 0, y++, area.width, ALIGN_LEFT, STYLE_BAD,
                   result_text(reason, sizeof reason, load, at, "error"));
    draw_beside(model, canvas, area, y++, &beside, result_number(load, at, "duration_ns", 0));
    draw_memory(canvas, area, y++, load, at);
    plot_waterfall_headings(canvas, area, y, stages, count,
                            model->against_before ? "before" : "usual");
}

static size_t load_rows(const struct model *model)
{
    struct plot_stage stages[STAGES_MAX];
    size_t at;
    const struct result *load = view_load(model, &at);
    return load ? find_stages(stages, model_answer(model, POLL_STAGES), load, at) + 1 : 0;
}

static void draw_load(const struct model *model, struct canvas *canvas, struct rect area,
                      size_t top)
{
    struct plot_stage stages[STAGES_MAX];
    struct beside beside;
    size_t at;
    const struct result *load = view_load(model, &at);
    if (!load)
        return;
    const size_t count = stages_of_load(model, load, at, stages, &beside);
    plot_waterfall(canvas, area, stages, count, result_number(load, at, "duration_ns", 0),
                   beside.other_ns, top);
}

static const struct panel panels[PANELS] = {
    [PANEL_LIST] = {.title = "Loads",
                    .none = "no load in the window (t: a longer one)",
                    .polled = POLL_LOADS,
                    .grid = &load_grid},
    [PANEL_STAGES] = {.title = "Stages",
                      .none = "no load in the window",
                      .polled = POLL_STAGES,
                      .facts = load_facts,
                      .head_rows = load_head_rows,
                      .draw_head = draw_load_head,
                      .list_rows = load_rows,
                      .draw_list = draw_load},
    [PANEL_STARTUPS] = {.title = "Startups",
                        .none = "no process started in the window",
                        .polled = POLL_STARTUPS,
                        .needs_rows = true,
                        .grid = &startup_grid},
};

// The lists beside the stages where both have room, else around them; startups have a place only
// when there are some, and on a high screen.
static void arrange(const struct model *model, struct rect body, struct rect *out)
{
    enum { TITLE_AND_HEADING = 2, TITLE = 1, BESIDE = 110, GAP = 2, HIGH = 18 };
    const bool is_beside = body.width >= BESIDE;
    const int rows = (int)view_panel_rows(model, &panels[PANEL_STARTUPS]);
    const int of_load = (int)load_rows(model);
    const int stages =
        is_beside || of_load == 0 ? 0 : TITLE + load_head_rows(model, body) + of_load;
    const int startups =
        rows == 0 || body.height < HIGH ? 0 : TITLE_AND_HEADING + (rows < 4 ? rows : 4);
    const struct layout_want wants[] = {{4, TITLE_AND_HEADING + 4, 0, true},
                                        {stages < 3 ? stages : 3, stages, 1, false},
                                        {startups, startups, 2, false}};
    struct rect lists = body, beside = {0};
    if (is_beside)
        layout_beside(body, body.width * 45 / 100, GAP, &lists, &beside);
    layout_stack(lists, wants, PANELS, out);
    if (is_beside)
        out[PANEL_STAGES] = beside;
}

const struct view view_loads = {
    .name = "Loads",
    .polls = POLL(LOADS) | POLL(STAGES) | POLL(STARTUPS),
    .panels = panels,
    .panel_count = PANELS,
    .arrange = arrange,
    .draw_empty = view_empty_requests_draw,
};
