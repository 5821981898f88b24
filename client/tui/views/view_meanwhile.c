// Details of a request: why it took so long, as SLOWEST explains it, and what else happened on its
// host from its arrival to its end.
#include "client/tui/view.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/tui/plots.h"
#include "common/core/base/unit.h"
#include "common/core/record/throttle.h"

enum { MARGIN = 1, LABEL = 30, FIGURES = 22, ROWS_MAX = 8 };

// A part of the excess below this share is not shown.
static const double part_least = 0.05;

// Where the lines go, the next one to line `y`; without a canvas they are only counted.
struct page {
    struct canvas *canvas;
    struct rect area;
    int y;
};

static void put_line(struct page *page, enum style style, const char *text)
{
    canvas_fit(page->canvas, page->area, MARGIN, page->y++, page->area.width - 2 * MARGIN,
               ALIGN_LEFT, style, text);
}

// A line with a bar: `from` and `to` are fractions of its whole width.
static void put_bar(struct page *page, enum style style, const char *label, double from, double to,
                    const char *figures)
{
    const int y = page->y++, width = page->area.width - 2 * MARGIN;
    const int bar = width - LABEL - FIGURES - 2;
    canvas_fit_name(page->canvas, page->area, MARGIN, y, LABEL, STYLE_PLAIN, label);
    plot_bar(page->canvas, page->area, MARGIN + LABEL + 1, y, bar, style, from, to);
    canvas_fit(page->canvas, page->area, MARGIN + width - FIGURES, y, FIGURES, ALIGN_RIGHT,
               STYLE_PLAIN, figures);
}

// ---- Why ------------------------------------------------------------------------------

// True if row `i` of the answer is the request itself.
static bool is_itself(const struct result *answer, size_t i, const struct result *request,
                      size_t row)
{
    return value_is_same(result_get(answer, i, "run"), result_get(request, row, "run")) &&
           result_integer(answer, i, "request", 0) == result_integer(request, row, "request", 0) &&
           result_integer(answer, i, "started_ns", -1) ==
               result_integer(request, row, "started_ns", -2);
}

// A bar for each "throttle_excess_ns" and the like: "throttle (power cap)".
static void put_parts(struct page *page, const struct result *answer, size_t row, double excess_ns)
{
    char name[THROTTLE_TEXT_SIZE + 32], took[UNIT_TEXT_SIZE], share[UNIT_TEXT_SIZE],
        figures[2 * UNIT_TEXT_SIZE], why[THROTTLE_TEXT_SIZE];
    (void)throttle_text(why, result_integer(answer, row, "throttle_reasons", 0));
    for (unsigned i = 0; i < result_column_count(answer); i++) {
        const char *key = result_column(answer, i)->key;
        const char *stem = strstr(key, "_excess_ns");
        const double part_ns = value_number(result_cell(answer, row, i), 0);
        if (!stem || stem == key || fabs(part_ns) < part_least * excess_ns)
            continue;
        const bool has_why = strncmp(key, "throttle_", 9) == 0 && why[0];
        (void)snprintf(name, sizeof name, "  %.*s%s%s%s", (int)(stem - key), key,
                       has_why ? " (" : "", has_why ? why : "", has_why ? ")" : "");
        (void)snprintf(figures, sizeof figures, "%s %s", unit_format(took, UNIT_DURATION, part_ns),
                       unit_format(share, UNIT_RATIO, part_ns / excess_ns));
        put_bar(page, part_ns > 0 ? STYLE_WARNING : STYLE_GOOD, name, 0, fabs(part_ns) / excess_ns,
                figures);
    }
}

static void put_explanation(struct page *page, const struct model *model,
                            const struct result *request, size_t row)
{
    char line[256], took[UNIT_TEXT_SIZE], usual[UNIT_TEXT_SIZE], more[UNIT_TEXT_SIZE], text[128];
    const struct result *answer = model_answer(model, POLL_EXPLANATION);
    size_t at = 0;
    while (answer && at < result_row_count(answer) && !is_itself(answer, at, request, row))
        at++;
    if (!answer || at == result_row_count(answer)) {
        put_line(page, STYLE_DIM,
                 model->answers[POLL_EXPLANATION].known ? "Why: nothing is known of its peers"
                                                        : "Why: asking ...");
        return;
    }
    const double excess_ns = result_number(answer, at, "excess_ns", 0);
    const bool is_slow = excess_ns > 0 && result_get(answer, at, "blame").type == VALUE_TEXT;
    (void)snprintf(line, sizeof line, "Why: %s%s · took %s, usual %s (median of %" PRId64 ")",
                   is_slow ? "mostly " : "as usual",
                   is_slow ? result_text(text, sizeof text, answer, at, "blame") : "",
                   unit_format(took, UNIT_DURATION, result_number(answer, at, "took_ns", NAN)),
                   unit_format(usual, UNIT_DURATION, result_number(answer, at, "median_ns", NAN)),
                   result_integer(answer, at, "peers", 0));
    put_line(page, is_slow ? STYLE_WARNING : STYLE_GOOD, line);
    if (result_get(answer, at, "note").type == VALUE_TEXT)
        put_line(page, STYLE_DIM, result_text(line, sizeof line, answer, at, "note"));
    if (!is_slow)
        return;
    (void)snprintf(line, sizeof line,
                   "  %s more, of which:", unit_format(more, UNIT_DURATION, excess_ns));
    put_line(page, STYLE_PLAIN, line);
    put_parts(page, answer, at, excess_ns);
}

// ---- Meanwhile ------------------------------------------------------------------------

// The time of the request.
struct span {
    double from_ns, to_ns;
};

// One kind of what happened: the answer that has it, and how a row is called.
static const struct meanwhile {
    enum polled_query polled;
    const char *name, *of, *end; // its label is `name` and the column `of`
    enum style style;
} meanwhiles[] = {
    {POLL_EVENTS_THEN, "event", "event", "duration_ns", STYLE_BAD},
    {POLL_LOADS_THEN, "load", "model", "duration_ns", STYLE_WARNING},
    {POLL_REQUESTS_THEN, "request", "model", "e2e_ns", STYLE_BAR_REST},
};
enum { MEANWHILES = sizeof meanwhiles / sizeof *meanwhiles };

// What overlapped the request, on its scale; at most ROWS_MAX rows of a kind.
static void put_meanwhile(struct page *page, const struct meanwhile *kind,
                          const struct result *answer, const struct span *span,
                          const struct result *request, size_t row)
{
    char label[160], name[96], words[96], device[48], took[UNIT_TEXT_SIZE], line[96];
    size_t more = 0, shown = 0;
    for (size_t i = 0; answer && i < result_row_count(answer); i++) {
        const double from_ns = result_number(answer, i, "started_ns", NAN);
        const double took_ns = result_number(answer, i, kind->end, INFINITY); // it lasts
        const double whole_ns = span->to_ns - span->from_ns;
        if (!(from_ns < span->to_ns) || from_ns + took_ns <= span->from_ns ||
            is_itself(answer, i, request, row))
            continue;
        if (shown == ROWS_MAX) {
            more++;
            continue;
        }
        shown++;
        (void)result_text(name, sizeof name, answer, i, kind->of);
        words[0] = '\0';
        if (kind->polled == POLL_EVENTS_THEN)
            record_event_words(words, sizeof words, name, NULL);
        (void)snprintf(label, sizeof label, "%s %s %s %s", from_ns < span->from_ns ? "<" : " ",
                       kind->name, words[0] ? words : name,
                       result_text(device, sizeof device, answer, i, "device"));
        put_bar(page, kind->style, label, fmax(from_ns - span->from_ns, 0) / whole_ns,
                fmin(from_ns + took_ns - span->from_ns, whole_ns) / whole_ns,
                isfinite(took_ns) ? unit_format(took, UNIT_DURATION, took_ns) : "lasts");
    }
    (void)snprintf(line, sizeof line, "  and %zu more", more);
    if (more > 0)
        put_line(page, STYLE_DIM, line);
}

size_t view_why_draw(const struct model *model, struct canvas *canvas, struct rect area, int y,
                     const struct result *result, size_t row)
{
    struct page page = {canvas, area, y};
    put_explanation(&page, model, result, row);
    put_line(&page, STYLE_PLAIN, "");
    return (size_t)(page.y - y);
}

size_t view_meanwhile_draw(const struct model *model, struct canvas *canvas, struct rect area,
                           int y, const struct result *result, size_t row)
{
    struct page page = {canvas, area, y};
    const double from_ns = result_number(result, row, "started_ns", NAN);
    const struct span span = {from_ns, from_ns + result_number(result, row, "e2e_ns", NAN)};
    if (!(span.to_ns > span.from_ns))
        return 0;
    put_line(&page, STYLE_TITLE,
             "Meanwhile on its host, from its arrival to its end (<: began before)");
    const int before = page.y;
    for (unsigned i = 0; i < MEANWHILES; i++)
        put_meanwhile(&page, &meanwhiles[i], model_answer(model, meanwhiles[i].polled), &span,
                      result, row);
    if (page.y == before)
        put_line(&page, STYLE_DIM,
                 model->answers[POLL_REQUESTS_THEN].known ? "  nothing else" : "  asking ...");
    put_line(&page, STYLE_PLAIN, "");
    return (size_t)(page.y - y);
}
