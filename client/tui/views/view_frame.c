// The frame around every view: title, totals and losses, trouble, keys.
#include "client/tui/view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/tui/key_bindings.h"
#include "common/core/base/unit.h"
#include "common/core/base/glyph.h"

static const struct {
    enum style style;
    const char *collector, *file;
} contacts[] = {
    [CONTACT_NONE] = {STYLE_WARNING, "○ connecting", "○ reading"},
    [CONTACT_OK] = {STYLE_GOOD, "● live", "● file"},
    [CONTACT_LOST] = {STYLE_BAD, "✗ no answer", "✗ no answer"},
    [CONTACT_FAULT] = {STYLE_BAD, "✗ error", "✗ error"},
};

enum { SOURCE_NAME_MIN = 12 };

// Who answers, and what of it is shown: the second where there is room for one only.
static void draw_source(const struct model *model, struct canvas *canvas, struct rect area, int x,
                        int room)
{
    enum { GAP = 2 };
    const int wanted = glyph_text_width(model->filter_text);
    int name = glyph_text_width(model->name);
    if (room < SOURCE_NAME_MIN && (!model->filtered || room < wanted))
        return;
    if (!model->filtered) {
        canvas_fit_name(canvas, area, x, 0, room, STYLE_DIM, model->name);
        return;
    }
    if (name + GAP + wanted > room)
        name = room - GAP - wanted;
    if (name >= SOURCE_NAME_MIN) {
        canvas_fit_name(canvas, area, x, 0, name, STYLE_DIM, model->name);
        x += name + GAP;
        room -= name + GAP;
    }
    canvas_fit(canvas, area, x, 0, room, ALIGN_LEFT, STYLE_WARNING, model->filter_text);
}

enum { VIEW_NAME_SIZE = 64, VIEW_GAP = 1, TITLE_GAP = 2 };

// How much the title says of the views.
enum names { NAMES_ALL, NAMES_SHOWN, NAMES_ONLY_SHOWN };

// "2 Hosts"; of a view that is not shown the number alone, or nothing, if there is no room.
static const char *view_name(char *text, const struct model *model, unsigned number,
                             enum names names)
{
    const char *name = views[number]->name;
    if (names == NAMES_ONLY_SHOWN && number != model->view)
        text[0] = '\0';
    else if (names == NAMES_SHOWN && number != model->view)
        (void)snprintf(text, VIEW_NAME_SIZE, "%u", number + 1);
    else
        (void)snprintf(text, VIEW_NAME_SIZE, "%u %s", number + 1, name);
    return text;
}

// Width of a view's name with the gap after it; 0 if it is not shown.
static int name_width(const struct model *model, unsigned number, enum names names)
{
    char text[VIEW_NAME_SIZE];
    const int width = glyph_text_width(view_name(text, model, number, names));
    return width > 0 ? width + VIEW_GAP : 0;
}

static int views_width(const struct model *model, enum names names)
{
    int width = 0;
    for (unsigned i = 0; i < VIEW_COUNT; i++)
        width += name_width(model, i, names);
    return width;
}

static void draw_views(const struct model *model, struct canvas *canvas, struct rect area, int x,
                       enum names names)
{
    char text[VIEW_NAME_SIZE];
    for (unsigned i = 0; i < VIEW_COUNT; i++) {
        (void)canvas_put(canvas, area, x, 0, i == model->view ? STYLE_FOCUS : STYLE_DIM,
                         view_name(text, model, i, names));
        x += name_width(model, i, names);
    }
}

// How the title's line is shared out: the contact and the clock at its right, the program
// and the views at its left, whoever answers between.
struct title {
    struct segments right;
    int right_room, views_x, room;
    enum names names;
};

enum { TITLE_MARGIN = 1, ZONE_WIDTH = 100 }; // of a narrower line the address takes all there is
static const char program[] = "inferstat";

// "14:03:20", or "03-29 14:03:20" of another day.
static const char *end_text(char *text, int64_t time_ns, int64_t now_ns)
{
    char now[UNIT_TEXT_SIZE];
    enum { YEAR = 5, DATE = 10 }; // bytes of "2026-" and "2026-03-29"
    (void)unit_format_int(now, UNIT_TIME, now_ns);
    const char *clock = view_clock_text(text, time_ns);
    return clock == text || strncmp(text, now, DATE) == 0 ? clock : text + YEAR;
}

// "UTC", "CET": the zone of all times shown.
static void add_zone(struct segments *segments, int64_t time_ns)
{
    char text[UNIT_TEXT_SIZE];
    struct tm local;
    const time_t seconds = (time_t)(time_ns / 1000000000);
    if (localtime_r(&seconds, &local) && strftime(text, sizeof text, "%Z", &local) > 0)
        segments_add(segments, 2, STYLE_DIM, "%s", text);
}

// "window 5m", and when it ends unless that is now.
static void add_window(struct segments *segments, const struct model *model)
{
    char end[UNIT_TEXT_SIZE];
    const struct window *window = &model->scope.window;
    if (model->scope.filter.since_ns != 0 || model->scope.filter.until_ns != 0)
        return; // the filter's text has its times
    if (window_is_live(window))
        segments_add(segments, 0, STYLE_STRONG, "window %s", window_text(window));
    else
        segments_add(segments, 0, STYLE_WARNING, "%s until %s", window_text(window),
                     end_text(end, window->until_ns, model->wall_now_ns));
}

static void lay_out_title(struct title *title, const struct model *model, struct rect area)
{
    char age[UNIT_TEXT_SIZE], text[UNIT_TEXT_SIZE];
    const bool is_live = window_is_live(&model->scope.window);
    struct segments *right = &title->right;
    *title = (struct title){.right = {.separator = "  "}};
    const uint64_t overdue_ns = model_overdue_ns(model);
    if (model->paused)
        segments_add(right, 0, STYLE_WARNING, "‖ paused, %s old",
                     view_age_text(age, model_age_seconds(model)));
    else if (overdue_ns != 0 && model->now_ns >= overdue_ns)
        segments_add(right, 0, STYLE_WARNING, "○ %s old",
                     view_age_text(age, model_age_seconds(model)));
    else if (model->contact == CONTACT_OK && !is_live)
        segments_add(right, 0, STYLE_WARNING, "○ past");
    else
        segments_add(right, 0, contacts[model->contact].style, "%s",
                     model->is_file ? contacts[model->contact].file
                                    : contacts[model->contact].collector);
    add_window(right, model);
    const int least = segments_width(right, area.width); // the figures are of the window
    if (is_live)
        segments_add(right, 1, STYLE_PLAIN, "%s",
                     end_text(text, model_reference_ns(model), model->wall_now_ns));
    if (area.width >= ZONE_WIDTH)
        add_zone(right, model_reference_ns(model));
    title->views_x = TITLE_MARGIN + glyph_text_width(program) + TITLE_GAP;
    const int beside = area.width - title->views_x - TITLE_MARGIN;
    // By worth: a filter, which must not be truncated; the views' names; the clock; the address.
    const int source = model->filtered ? TITLE_GAP + glyph_text_width(model->filter_text) : 0;
    const int needed = least + source;
    title->names = views_width(model, NAMES_ALL) + needed <= beside ? NAMES_ALL : NAMES_SHOWN;
    if (views_width(model, NAMES_SHOWN) + needed > beside)
        title->names = NAMES_ONLY_SHOWN;
    title->right_room = beside - views_width(model, title->names) - source;
    if (title->right_room < least)
        title->right_room = least;
    title->room = beside - TITLE_GAP - segments_width(right, title->right_room);
}

static void draw_title(const struct model *model, struct canvas *canvas, struct rect area)
{
    struct title title;
    lay_out_title(&title, model, area);
    (void)segments_draw(&title.right, canvas, area, area.width - TITLE_MARGIN - title.right_room, 0,
                        title.right_room, ALIGN_RIGHT);
    (void)canvas_put(canvas, area, TITLE_MARGIN, 0, STYLE_STRONG, program);
    const int width = views_width(model, title.names);
    draw_views(model, canvas, area, title.views_x, title.names);
    draw_source(model, canvas, area, title.views_x + width, title.room - width);
}

bool view_frame_view_at(const struct model *model, struct rect area, int x, int y, unsigned *number)
{
    struct title title;
    if (!rect_contains(area, x, y))
        return false;
    lay_out_title(&title, model, area);
    int from = area.x + title.views_x;
    for (unsigned i = 0; i < VIEW_COUNT; i++) {
        const int width = name_width(model, i, title.names);
        *number = i;
        if (x >= from && x < from + width - VIEW_GAP)
            return true;
        from += width;
    }
    return false;
}

bool view_frame_window_at(const struct model *model, struct rect area, int x, int y)
{
    struct title title;
    if (!rect_contains(area, x, y))
        return false;
    lay_out_title(&title, model, area);
    const int width = segments_width(&title.right, title.right_room);
    return x >= area.x + area.width - TITLE_MARGIN - width;
}

// "1 host", "2 hosts".
static void add_count(struct segments *segments, unsigned rank, enum style style, double count,
                      const char *one, const char *many)
{
    char text[UNIT_TEXT_SIZE];
    segments_add(segments, rank, style, "%s %s", unit_format(text, UNIT_COUNT, count),
                 count == 1 ? one : many);
}

// Three digits: "0.43", "13.2", "1341", "24.3k".
static const char *rate_text(char *text, double rate)
{
    const bool is_large = rate >= 9999.5;
    const double shown = is_large ? rate / 1000 : rate;
    const bool is_whole = shown == trunc(shown) && !is_large;
    (void)snprintf(text, UNIT_TEXT_SIZE, "%.*f%s",
                   is_whole || shown >= 99.95 ? 0
                   : shown >= 9.995           ? 1
                                              : 2,
                   shown, is_large ? "k" : "");
    return text;
}

// Figures of all requests of the window.
static void add_figures(struct segments *left, const struct result *window)
{
    static const struct {
        const char *label, *key;
        unsigned rank;
        bool if_any; // 0 is not worth its place
    } rates[] = {{"req/s", QUERY_METRIC_REQUEST_RATE, 0, false},
                 {"tok/s", QUERY_METRIC_OUTPUT_RATE, 0, false},
                 {"items/s", QUERY_METRIC_ITEM_RATE, 2, true},
                 {"running", "running_requests", 4, false},
                 {"waiting", "waiting_requests", 5, false}},
      times[] = {{"TTFT p95", "ttft_p95_ns", 2, false},
                 {"TPOT p95", "tpot_p95_ns", 3, false},
                 {"E2E p95", "e2e_p95_ns", 7, false}};
    char text[UNIT_TEXT_SIZE];
    for (unsigned i = 0; i < sizeof rates / sizeof *rates; i++) {
        const double rate = result_number(window, 0, rates[i].key, -1);
        if (rate > 0 || (rate == 0 && !rates[i].if_any))
            segments_add(left, rates[i].rank, STYLE_PLAIN, "%s %s", rates[i].label,
                         rate_text(text, rate));
    }
    for (unsigned i = 0; i < sizeof times / sizeof *times; i++) {
        const double value = result_number(window, 0, times[i].key, NAN);
        if (isfinite(value))
            segments_add(left, times[i].rank, STYLE_PLAIN, "%s %s", times[i].label,
                         unit_format_rough(text, UNIT_DURATION, value));
    }
    const double errors = result_number(window, 0, QUERY_METRIC_ERRORS, -1);
    if (errors >= 0)
        segments_add(left, 1, errors > 0 ? STYLE_BAD : STYLE_PLAIN, "errors %s",
                     unit_format(text, UNIT_RATIO, errors));
    const double joules = result_number(window, 0, "joules_per_token", NAN);
    if (isfinite(joules))
        segments_add(left, 6, STYLE_PLAIN, "%s J/token", rate_text(text, joules));
}

// Totals of all time, whatever the window is, unless the filter has times.
static void add_totals(struct segments *left, const struct model *model)
{
    const double open = model_figure(model, "runs_open", 0), runs = model_figure(model, "runs", 0);
    const double failed = model_figure(model, "inferences_failed", 0);
    const double loads_failed = model_figure(model, "loads_failed", 0);
    const struct query_filter *filter = &model->scope.filter;
    const struct result *times =
        model->view == VIEW_REQUESTS ? model_answer(model, POLL_HISTOGRAM) : NULL;
    char text[2][UNIT_TEXT_SIZE];
    double timed = 0; // the totals rest, as the times below them do not
    for (size_t row = 0; times && row < result_row_count(times); row++)
        timed += result_number(times, row, "count", 0);
    if (filter->since_ns == 0 && filter->until_ns == 0)
        segments_add(left, 0, STYLE_DIM, "of all time");
    add_count(left, 5, STYLE_PLAIN, model_figure(model, "hosts", 0), "host", "hosts");
    add_count(left, 6, STYLE_PLAIN, model_figure(model, "models", 0), "model", "models");
    if (open < runs)
        segments_add(left, 4, STYLE_PLAIN, "%s of %s runs open",
                     unit_format(text[0], UNIT_COUNT, open),
                     unit_format(text[1], UNIT_COUNT, runs));
    else
        add_count(left, 4, STYLE_PLAIN, open, "run open", "runs open");
    add_count(left, 1, STYLE_PLAIN, fmax(model_figure(model, "inferences", 0), timed), "request",
              "requests");
    if (failed > 0)
        add_count(left, 2, STYLE_BAD, failed, "failed", "failed");
    if (loads_failed > 0)
        add_count(left, 3, STYLE_BAD, loads_failed, "load failed", "loads failed");
}

static void draw_status(const struct model *model, struct canvas *canvas, struct rect area)
{
    enum { MARGIN = 1 };
    if (!model_answer(model, POLL_SUMMARY))
        return;
    char text[UNIT_TEXT_SIZE];
    const struct model_answer *window =
        &model->answers[model_is_now(model) ? POLL_ALL_NOW : POLL_WINDOW];
    const bool is_now = model->view == VIEW_NOW, is_ledger = model->view == VIEW_LEDGER;
    const double in_flight = model_figure(model, "in_flight", 0);
    const double coverage = model_figure(model, "coverage_ratio", NAN);
    const int64_t lost = model_lost(model);
    struct segments right = {.separator = " · "}, left = {.separator = " · "};
    if (is_ledger && in_flight > 0)
        segments_add(&right, 1, STYLE_PLAIN, "in flight %s",
                     unit_format(text, UNIT_COUNT, in_flight));
    if (is_ledger || lost > 0)
        segments_add(&right, 0, lost > 0 ? STYLE_BAD : STYLE_GOOD, "%slost %s",
                     lost > 0 ? "! " : "", unit_format_int(text, UNIT_COUNT, lost));
    if (is_ledger || coverage < 1)
        segments_add(&right, 0, coverage < 1 ? STYLE_BAD : STYLE_GOOD, "coverage %s",
                     unit_format(text, UNIT_RATIO, coverage));
    int end = area.width - MARGIN;
    end -= segments_draw(&right, canvas, area, MARGIN, 0, end - MARGIN, ALIGN_RIGHT);
    if (is_now && !window->result)
        segments_add(&left, 0, STYLE_DIM,
                     window->known ? "no request in the window" : "asking ...");
    else if (is_now)
        add_figures(&left, window->result);
    else
        add_totals(&left, model);
    (void)segments_draw(&left, canvas, area, MARGIN, 0, end - 2 - MARGIN, ALIGN_LEFT);
}

// Of a view of one panel there is no next one, and none to enlarge it over.  That lists
// scroll goes without saying; that the help does, does not.
static bool is_of_use(const struct model *model, enum action action)
{
    const struct rect body = layout_frame(model->width, model->height, false).body;
    if (action == ACTION_PAGE_DOWN)
        return view_overlay_draw(model, NULL, body, 0) > (size_t)body.height;
    if (action == ACTION_COMPLETE || action == ACTION_UP)
        return model->overlay == OVERLAY_FILTER || model->overlay == OVERLAY_SEARCH;
    if (action == ACTION_WHY)
        return !model_is_past(model);
    if (action == ACTION_LIVE)
        return !window_is_live(&model->scope.window);
    return view_current(model)->panel_count > 1 ||
           (action != ACTION_NEXT_PANEL && action != ACTION_ENLARGE);
}

static void draw_footer(const struct model *model, struct canvas *canvas, struct rect area)
{
    enum { MARGIN = 1 };
    struct segments right = {.separator = "  "};
    char text[UNIT_TEXT_SIZE];
    segments_add(&right, 0, STYLE_DIM, "every %s",
                 unit_format(text, UNIT_DURATION, model->interval_seconds * 1e9));
    int end = area.width - MARGIN;
    end -= segments_draw(&right, canvas, area, MARGIN, 0, end - MARGIN, ALIGN_RIGHT) + 2;

    if (model->notice[0]) {
        canvas_fit(canvas, area, MARGIN, 0, end - MARGIN, ALIGN_LEFT, STYLE_STRONG, model->notice);
        return;
    }
    struct segments left = {.separator = "  "};
    const unsigned where = model_key_context(model);
    for (const struct key_binding *binding = key_bindings; binding->keys; binding++)
        if (binding->rank > 0 && binding->contexts & where && is_of_use(model, binding->action))
            segments_add_key(&left, binding->rank, binding->key, binding->label);
    (void)segments_draw(&left, canvas, area, MARGIN, 0, end - MARGIN, ALIGN_LEFT);
}

void view_frame_draw(const struct model *model, struct canvas *canvas,
                     const struct layout_frame *frame)
{
    draw_title(model, canvas, frame->title);
    draw_status(model, canvas, frame->status);
    if (!rect_is_empty(frame->banner))
        view_banner_draw(model, canvas, frame->banner);
    draw_footer(model, canvas, frame->footer);
}

void view_compact_draw(const struct model *model, struct canvas *canvas)
{
    enum { LABEL = 6, GAP = 2 };
    const struct rect area = canvas_area(canvas), lower = rect_below(area, 1);
    struct segments right = {.separator = "  "};
    draw_status(model, canvas, area);
    if (model->notice[0])
        canvas_fit(canvas, lower, 1, 0, area.width - 2, ALIGN_LEFT, STYLE_STRONG, model->notice);
    else if (view_banner_is_needed(model))
        view_banner_draw(model, canvas, lower);
    else
        (void)canvas_put(canvas, lower, 1, 0, STYLE_GOOD,
                         model->answered_ns != 0 ? "● nothing needs attention" : "○ connecting");
    if (model->filtered)
        segments_add(&right, 1, STYLE_WARNING, "%s", model->filter_text);
    if (model->paused)
        segments_add(&right, 0, STYLE_WARNING, "‖ paused");
    add_window(&right, model);
    struct rect line = {LABEL + 2, 2, area.width - LABEL - 3, 1};
    (void)canvas_put(canvas, rect_below(area, 2), 1, 0, STYLE_DIM, "tok/s");
    line.width -= segments_draw(&right, canvas, line, 0, 0, line.width, ALIGN_RIGHT) + GAP;
    view_charts_line(model, canvas, line);
}
