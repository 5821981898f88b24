// The frame around every view: title, totals and losses, trouble, keys.
#include "client/tui/view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

// "5s", from a minute on as durations are shown everywhere.
static const char *age_text(char *text, double seconds)
{
    if (seconds < 60)
        (void)snprintf(text, UNIT_TEXT_SIZE, "%.0fs", seconds);
    else
        (void)unit_format(text, UNIT_DURATION, seconds * 1e9);
    return text;
}

// The time of day: "14:03:22".
static const char *clock_text(char *text, int64_t time_ns)
{
    (void)unit_format_int(text, UNIT_TIME, time_ns);
    const char *space = strchr(text, ' ');
    return space ? space + 1 : text;
}

enum { SOURCE_NAME_MIN = 12 };

// Who answers, and what of it is shown: the second where there is room for one only.
static void draw_source(const struct model *model, struct canvas *canvas, struct rect area, int x,
                        int room)
{
    enum { GAP = 2 };
    const int wanted = glyph_text_width(model->filter_text);
    int name = glyph_text_width(model->name);
    if (room < SOURCE_NAME_MIN)
        return;
    if (!model->filtered) {
        canvas_fit(canvas, area, x, 0, room, ALIGN_LEFT, STYLE_DIM, model->name);
        return;
    }
    if (name + GAP + wanted > room)
        name = room - GAP - wanted;
    if (name >= SOURCE_NAME_MIN) {
        canvas_fit(canvas, area, x, 0, name, ALIGN_LEFT, STYLE_DIM, model->name);
        x += name + GAP;
        room -= name + GAP;
    }
    canvas_fit(canvas, area, x, 0, room, ALIGN_LEFT, STYLE_WARNING, model->filter_text);
}

enum { VIEW_NAME_SIZE = 64, VIEW_GAP = 2 };

// "2 Pipelines"; `brief`: the number alone, but of the view shown.
static const char *view_name(char *text, const struct model *model, unsigned number, bool brief)
{
    const char *name = views[number]->name;
    if (brief && number != model->view)
        (void)snprintf(text, VIEW_NAME_SIZE, "%u", number + 1);
    else
        (void)snprintf(text, VIEW_NAME_SIZE, "%u %s", number + 1, name);
    return text;
}

static int views_width(const struct model *model, bool brief)
{
    char text[VIEW_NAME_SIZE];
    int width = 0;
    for (unsigned i = 0; i < VIEW_COUNT; i++)
        width += glyph_text_width(view_name(text, model, i, brief)) + VIEW_GAP;
    return width;
}

static void draw_views(const struct model *model, struct canvas *canvas, struct rect area, int x,
                       bool brief)
{
    char text[VIEW_NAME_SIZE];
    for (unsigned i = 0; i < VIEW_COUNT; i++)
        x += VIEW_GAP + canvas_put(canvas, area, x, 0, i == model->view ? STYLE_FOCUS : STYLE_DIM,
                                   view_name(text, model, i, brief));
}

// How the title's line is shared out: the contact and the clock at its right, the program
// and the views at its left, whoever answers between.
struct title {
    struct segments right;
    int right_room, views_x, room;
    bool brief;
};

enum { TITLE_MARGIN = 1 };
static const char program[] = "inferstat";

static void lay_out_title(struct title *title, const struct model *model, struct rect area)
{
    char age[UNIT_TEXT_SIZE], clock[UNIT_TEXT_SIZE];
    struct segments *right = &title->right;
    *title = (struct title){.right = {.separator = "  "}};
    if (model->paused)
        segments_add(right, 0, STYLE_WARNING, "‖ paused, %s old",
                     age_text(age, model_age_seconds(model)));
    else
        segments_add(right, 0, contacts[model->contact].style, "%s",
                     model->is_file ? contacts[model->contact].file
                                    : contacts[model->contact].collector);
    segments_add(right, 1, STYLE_PLAIN, "%s", clock_text(clock, model->wall_now_ns));
    title->right_room = area.width - 2 * TITLE_MARGIN;
    const int end = area.width - TITLE_MARGIN - segments_width(right, title->right_room);
    title->views_x = TITLE_MARGIN + glyph_text_width(program) + VIEW_GAP;
    title->room = end - VIEW_GAP - title->views_x;
    // A filter must not be truncated, a name may.
    const int source = model->filtered ? glyph_text_width(model->filter_text) : SOURCE_NAME_MIN;
    title->brief = views_width(model, false) + source > title->room;
}

static void draw_title(const struct model *model, struct canvas *canvas, struct rect area)
{
    struct title title;
    lay_out_title(&title, model, area);
    (void)segments_draw(&title.right, canvas, area, TITLE_MARGIN, 0, title.right_room, ALIGN_RIGHT);
    (void)canvas_put(canvas, area, TITLE_MARGIN, 0, STYLE_STRONG, program);
    const int width = views_width(model, title.brief);
    draw_views(model, canvas, area, title.views_x, title.brief);
    draw_source(model, canvas, area, title.views_x + width, title.room - width);
}

bool view_frame_view_at(const struct model *model, struct rect area, int x, int y, unsigned *number)
{
    char text[VIEW_NAME_SIZE];
    struct title title;
    if (!rect_contains(area, x, y))
        return false;
    lay_out_title(&title, model, area);
    int from = area.x + title.views_x;
    for (unsigned i = 0; i < VIEW_COUNT; i++) {
        const int width = glyph_text_width(view_name(text, model, i, title.brief));
        *number = i;
        if (x >= from && x < from + width)
            return true;
        from += width + VIEW_GAP;
    }
    return false;
}

// "1 host", "2 hosts".
static void add_count(struct segments *segments, unsigned rank, enum style style, double count,
                      const char *one, const char *many)
{
    segments_add(segments, rank, style, "%.0f %s", count, count == 1 ? one : many);
}

static void draw_status(const struct model *model, struct canvas *canvas, struct rect area)
{
    enum { MARGIN = 1 };
    if (!model_answer(model, POLL_SUMMARY))
        return;
    char text[UNIT_TEXT_SIZE];
    struct segments right = {.separator = " · "};
    double in_flight = model_figure(model, "in_flight", 0);
    double coverage = model_figure(model, "coverage_ratio", NAN);
    int64_t lost = model_lost(model);
    if (in_flight > 0)
        segments_add(&right, 1, STYLE_PLAIN, "in flight %.0f", in_flight);
    segments_add(&right, 0, lost > 0 ? STYLE_BAD : STYLE_GOOD, "%slost %lld", lost > 0 ? "! " : "",
                 (long long)lost);
    segments_add(&right, 0, coverage < 1 ? STYLE_BAD : STYLE_GOOD, "coverage %s",
                 unit_format(text, UNIT_RATIO, coverage));
    int end = area.width - MARGIN;
    end -= segments_draw(&right, canvas, area, MARGIN, 0, end - MARGIN, ALIGN_RIGHT);

    struct segments left = {.separator = " · "};
    double open = model_figure(model, "runs_open", 0), runs = model_figure(model, "runs", 0);
    double failed = model_figure(model, "inferences_failed", 0);
    double loads_failed = model_figure(model, "loads_failed", 0);
    double speed = model_figure(model, "tokens_per_second", -1);
    double items = model_figure(model, "items_per_second", -1);
    add_count(&left, 5, STYLE_PLAIN, model_figure(model, "hosts", 0), "host", "hosts");
    add_count(&left, 6, STYLE_PLAIN, model_figure(model, "models", 0), "model", "models");
    if (open < runs)
        segments_add(&left, 4, STYLE_PLAIN, "%.0f of %.0f runs open", open, runs);
    else
        add_count(&left, 4, STYLE_PLAIN, open, "run open", "runs open");
    add_count(&left, 1, STYLE_PLAIN, model_figure(model, "inferences", 0), "inference",
              "inferences");
    if (failed > 0)
        segments_add(&left, 2, STYLE_BAD, "%.0f failed", failed);
    if (loads_failed > 0)
        add_count(&left, 3, STYLE_BAD, loads_failed, "load failed", "loads failed");
    if (speed >= 0)
        segments_add(&left, 7, STYLE_PLAIN, "%s", unit_format(text, UNIT_TOKENS_PER_SECOND, speed));
    if (items >= 0)
        segments_add(&left, 7, STYLE_PLAIN, "%s", unit_format(text, UNIT_ITEMS_PER_SECOND, items));
    (void)segments_draw(&left, canvas, area, MARGIN, 0, end - 2 - MARGIN, ALIGN_LEFT);
}

// Why the collector cannot write its store; "" where it can.
static const char *store_error(char *text, size_t size, const struct model *model)
{
    const struct result *summary = model_answer(model, POLL_SUMMARY);
    text[0] = '\0';
    if (!summary || result_get(summary, 0, "store_error").type == VALUE_NULL)
        return text;
    return result_text(text, size, summary, 0, "store_error");
}

bool view_frame_has_banner(const struct model *model)
{
    char text[ERROR_TEXT_SIZE];
    bool trouble = model->contact == CONTACT_LOST || model->contact == CONTACT_FAULT ||
                   store_error(text, sizeof text, model)[0];
    return model->answered_ns != 0 && trouble;
}

static void draw_banner(const struct model *model, struct canvas *canvas, struct rect area)
{
    char text[ERROR_TEXT_SIZE + 64], why[ERROR_TEXT_SIZE];
    char age[UNIT_TEXT_SIZE], clock[UNIT_TEXT_SIZE];
    if (model->contact == CONTACT_LOST)
        (void)snprintf(text, sizeof text, "✗ no answer for %s, reconnecting · showing %s",
                       age_text(age, model_age_seconds(model)),
                       clock_text(clock, model->answered_at_ns));
    else if (model->contact == CONTACT_FAULT)
        (void)snprintf(text, sizeof text, "✗ %s", model->fault);
    else
        (void)snprintf(text, sizeof text, "✗ the store cannot be written: %s",
                       store_error(why, sizeof why, model));
    canvas_fit(canvas, area, 1, 0, area.width - 2, ALIGN_LEFT, STYLE_BAD, text);
}

// Of a view of one panel there is no next one, and none to enlarge it over.  That lists
// scroll goes without saying; that the help does, does not.
static bool is_of_use(const struct model *model, enum action action)
{
    const struct rect body = layout_frame(model->width, model->height, false).body;
    if (action == ACTION_PAGE_DOWN)
        return model->overlay == OVERLAY_HELP && view_help_rows(body) > (size_t)body.height;
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
        draw_banner(model, canvas, frame->banner);
    draw_footer(model, canvas, frame->footer);
}
