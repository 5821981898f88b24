#include "client/tui/tui.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/tui/canvas.h"
#include "client/tui/poller.h"
#include "client/tui/model.h"
#include "client/tui/screen.h"
#include "client/tui/settings/settings.h"
#include "client/tui/settings/settings_file.h"
#include "client/tui/update.h"
#include "client/tui/view.h"
#include "common/sys/clock.h"
#include "common/sys/stop.h"
#include "common/sys/when.h"

// Answers may come faster than a screen is worth drawing.
static const uint64_t frame_ns = UINT64_C(100000000);
static const uint64_t second_ns = UINT64_C(1000000000);

struct tui {
    struct poller *poller;
    struct screen *screen;
    struct canvas canvas;
    struct model model;
    export_rows *rows;
    const char *settings; // path of their file; NULL: none
    char *zone;           // TZ at the start; NULL: not set
    uint64_t drawn_ns;    // when the screen was last drawn
    bool stale;           // the model has changed since
    bool at_once;         // by the user, who wants to see it
    bool quit;
};

// Writes what the screen shows, without the prompt, to the file that the user named.
static void export(struct tui *tui)
{
    struct error err = {0};
    view_draw(&tui->model, &tui->canvas);
    struct export_list list = {.result = view_result(&tui->model)};
    size_t *rows = view_rows(&tui->model, &list.count);
    list.rows = rows;
    const enum status status = export_write(tui->model.prompt.text, model_may_replace(&tui->model),
                                            &tui->canvas, &list, tui->rows, &err);
    free(rows);
    model_end_export(&tui->model, status, err.text,
                     export_is_rows(tui->model.prompt.text) ? list.count : 0);
}

static void apply_look(struct tui *tui)
{
    const char *zone = tui->model.settings.utc ? "UTC" : tui->zone;
    screen_set_theme(tui->screen, tui->model.settings.theme);
    (void)(zone ? setenv("TZ", zone, 1) : unsetenv("TZ"));
    tzset();
}

static void save(struct tui *tui)
{
    struct error err = {0};
    const struct settings *settings = &tui->model.settings;
    if (settings->changed == 0 && !settings_columns_changed(settings))
        return;
    if (!tui->settings)
        model_notify(&tui->model, "not saved: neither XDG_CONFIG_HOME nor HOME is set");
    else if (settings_save(&tui->model, tui->settings, &err) != STATUS_OK)
        model_notify(&tui->model, err.text);
    else
        model_notify(&tui->model, "saved");
}

static void happen(struct tui *tui, struct event *event)
{
    event->now_ns = clock_monotonic_ns();
    event->wall_now_ns = clock_wall_ns();
    unsigned effects = model_update(&tui->model, event);
    tui->stale = true;
    if (effects & EFFECT_REPAINT)
        screen_repaint(tui->screen);
    if (effects & EFFECT_PACE)
        poller_set_interval(tui->poller, tui->model.interval_seconds, tui->model.paused);
    if (effects & EFFECT_SCOPE)
        poller_set_scope(tui->poller, &tui->model.scope);
    if (effects & EFFECT_CHANGE)
        poller_change(tui->poller, &tui->model.change);
    if (effects & EFFECT_ASK)
        poller_query_now(tui->poller, tui->model.scope.wanted);
    if (effects & EFFECT_SUBJECT)
        poller_query_now(tui->poller, tui->model.asked);
    if (effects & EFFECT_LOOK)
        apply_look(tui);
    if (effects & EFFECT_SAVE)
        save(tui);
    if (effects & EFFECT_EXPORT)
        export(tui);
    if (effects & EFFECT_QUIT)
        tui->quit = true;
}

static enum status draw(struct tui *tui, struct error *err)
{
    int width, height;
    screen_size(tui->screen, &width, &height);
    if ((width != tui->canvas.width || height != tui->canvas.height) &&
        canvas_resize(&tui->canvas, width, height) != STATUS_OK)
        return error_no_memory(err, "dashboard");
    view_draw(&tui->model, &tui->canvas);
    screen_show(tui->screen, &tui->canvas);
    tui->drawn_ns = clock_monotonic_ns();
    tui->stale = tui->at_once = false;
    return STATUS_OK;
}

static void read_terminal(struct tui *tui)
{
    struct event event = {0};
    while (!tui->quit && screen_read(tui->screen, &event)) {
        happen(tui, &event);
        tui->at_once = true;
        event = (struct event){0};
    }
}

static void consume_news(struct tui *tui)
{
    struct poller_news news;
    poller_consume(tui->poller, &news);
    if (news.round && tui->model.contact == CONTACT_NONE)
        tui->at_once = true; // the first answers are waited for
    for (unsigned polled = 0; polled < POLL_COUNT; polled++)
        if (news.answered[polled])
            happen(tui, &(struct event){.kind = EVENT_ANSWER,
                                        .polled = (enum polled_query)polled,
                                        .generation = news.generations[polled],
                                        .result = news.results[polled]});
    if (news.round)
        happen(tui, &(struct event){.kind = EVENT_ROUND,
                                    .status = news.round_error.status,
                                    .text = news.round_error.text});
    if (news.change)
        happen(tui, &(struct event){.kind = EVENT_CHANGED,
                                    .status = news.change_error.status,
                                    .text = news.change_error.text,
                                    .cleared = news.cleared});
}

// Nanoseconds until the screen is to be drawn, 0 when now.  The clock on it moves with every
// second; the age of the data is there as soon as an answer is overdue.
static uint64_t until_drawn(const struct tui *tui)
{
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t next_ns = tui->drawn_ns + frame_ns;
    if (tui->stale)
        return tui->at_once || now_ns >= next_ns ? 0 : next_ns - now_ns;
    const uint64_t tick_ns = second_ns - (uint64_t)clock_wall_ns() % second_ns;
    const uint64_t overdue_ns = model_overdue_ns(&tui->model);
    return overdue_ns > now_ns && overdue_ns - now_ns < tick_ns ? overdue_ns - now_ns : tick_ns;
}

static enum status run(struct tui *tui, struct error *err)
{
    const int fds[] = {poller_fd(tui->poller), stop_fd()};
    enum status status = STATUS_OK;
    while (status == STATUS_OK && !tui->quit && !stop_requested()) {
        uint64_t wait_ns = until_drawn(tui);
        if (wait_ns == 0) {
            status = draw(tui, err);
            continue;
        }
        bool ticks = !tui->stale;
        if (!screen_wait(tui->screen, fds, wait_ns))
            break; // the terminal has gone away
        read_terminal(tui);
        consume_news(tui);
        if (ticks && !tui->stale)
            happen(tui, &(struct event){.kind = EVENT_TICK});
    }
    return status;
}

static enum status read_time(void *context, int64_t *out_ns, const char *text, bool latest,
                             struct error *err)
{
    return when_parse(out_ns, text, *(const int64_t *)context, latest, "time", err);
}

// Draws the first screen before the first answer.
static enum status start(struct tui *tui, const struct tui_options *options, struct error *err)
{
    double interval =
        options->interval_seconds != 0 ? options->interval_seconds : TUI_INTERVAL_DEFAULT;
    if (!(interval >= TUI_INTERVAL_MINIMUM && interval <= TUI_INTERVAL_MAXIMUM))
        return error_set(err, STATUS_INVALID, "interval of %g seconds: it must be %g to %g",
                         interval, TUI_INTERVAL_MINIMUM, TUI_INTERVAL_MAXIMUM);
    enum status status = poller_open(&tui->poller, options->target, interval, err);
    if (status != STATUS_OK)
        return status;
    model_init(&tui->model, poller_name(tui->poller), interval);
    tui->model.is_file = poller_is_file(tui->poller);
    if (tui->model.is_file) // it is seldom about now
        tui->model.scope.window.length = window_lengths() - 1;
    tui->model.readonly = options->readonly;
    tui->model.compact = options->compact;
    tui->model.when = read_time;
    tui->rows = options->rows;
    model_set_filter(&tui->model, options->filter);
    tui->settings = options->settings;
    tui->model.now_ns = clock_monotonic_ns(); // a message is shown from now on
    if (tui->settings)
        settings_load(&tui->model, tui->settings);
    if (options->interval_seconds != 0)
        tui->model.interval_seconds = interval;
    poller_set_interval(tui->poller, tui->model.interval_seconds, false);

    status = screen_open(&tui->screen, !options->no_mouse, !options->no_color, err);
    if (status != STATUS_OK)
        return status;
    const char *zone = getenv("TZ");
    tui->zone = zone ? strdup(zone) : NULL;
    apply_look(tui);
    canvas_init(&tui->canvas, options->ascii || !screen_has_unicode(tui->screen));
    struct event event = {.kind = EVENT_RESIZE};
    screen_size(tui->screen, &event.x, &event.y);
    happen(tui, &event);
    status = draw(tui, err);
    return status == STATUS_OK ? poller_start(tui->poller, err) : status;
}

enum status tui_run(const struct tui_options *options, struct error *err)
{
    struct tui tui = {0};
    enum status status = start(&tui, options, err);
    if (status == STATUS_OK)
        status = run(&tui, err);
    screen_close(tui.screen); // first, so that the user has the prompt back
    poller_close(tui.poller);
    canvas_deinit(&tui.canvas);
    model_deinit(&tui.model);
    free(tui.zone);
    return status;
}
