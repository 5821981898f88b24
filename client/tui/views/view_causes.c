// Why requests of the cursor's model and host are slower than usual: the causes, the most important
// first, each with what it explains and the command that shows it.
#include "client/tui/view.h"

#include <stdio.h>

#include "common/core/base/unit.h"
#include "common/core/query/result.h"

enum { MARGIN = 1, SHARE_WIDTH = 18, TITLE_ROWS = 2 };

// Draws lines from `y` on, if there is a canvas, and counts them.
struct paper {
    struct canvas *canvas;
    struct rect area;
    int y;
};

static void add_line(struct paper *paper, int x, enum style style, const char *text)
{
    paper->y += canvas_wrap(paper->canvas, paper->area, x, paper->y, style, text);
}

// "llama-70b gpu01"; "all models" without a name.
static void add_title(struct paper *paper, const struct model *model)
{
    char text[2 * QUERY_TEXT_SIZE + 64];
    const char *name = model->scope.why.by[QUERY_BY_MODEL];
    const char *host = model->scope.why.by[QUERY_BY_HOST];
    (void)snprintf(text, sizeof text, "Why: %s%s%s, the last %s (Esc: back)",
                   name[0] ? name : "all models", host[0] ? " on " : "", host,
                   window_length_ns(&model->scope.window) > 0 ? window_text(&model->scope.window)
                                                              : "24h");
    add_line(paper, MARGIN, STYLE_TITLE, text);
    paper->y++;
}

// "median 4.4s, usually 0.25s; p95 9.1s, usually 0.4s" of the model that a cause is about.
static void add_comparison(struct paper *paper, const struct result *result, size_t row)
{
    static const char *const keys[] = {"p50_ns", "usual_p50_ns", "p95_ns", "usual_p95_ns"};
    char values[4][UNIT_TEXT_SIZE], text[4 * UNIT_TEXT_SIZE + 128];
    if (!result_is(result, row, "verdict", "WORSE"))
        return;
    for (unsigned i = 0; i < 4; i++)
        (void)unit_format(values[i], UNIT_DURATION, result_number(result, row, keys[i], 0));
    (void)snprintf(text, sizeof text, "%s: median %s, usually %s; p95 %s, usually %s",
                   result_is(result, row, "metric", "ttft_ns") ? "time to first token"
                                                               : "time of a request",
                   values[0], values[1], values[2], values[3]);
    add_line(paper, MARGIN, STYLE_PLAIN, text);
    paper->y++;
}

static void add_cause(struct paper *paper, const struct result *result, size_t row)
{
    char share[UNIT_TEXT_SIZE] = "", time[UNIT_TEXT_SIZE] = "", text[1024], host[256];
    const bool is_part = result_get(result, row, "share_ratio").type == VALUE_REAL;
    const bool has_host = result_get(result, row, "host").type == VALUE_TEXT;
    if (is_part) {
        (void)unit_format(share, UNIT_RATIO, result_number(result, row, "share_ratio", 0));
        (void)unit_format(time, UNIT_DURATION, result_number(result, row, "explained_ns", 0));
        (void)snprintf(text, sizeof text, "%7s %8s", share, time);
        (void)canvas_put(paper->canvas, paper->area, MARGIN, paper->y, STYLE_STRONG, text);
    }
    const int length = has_host
                           ? snprintf(text, sizeof text,
                                      "%s: ", result_text(host, sizeof host, result, row, "host"))
                           : 0;
    (void)result_text(text + length, sizeof text - (size_t)length, result, row, "text");
    add_line(paper, MARGIN + SHARE_WIDTH, row == 0 ? STYLE_STRONG : STYLE_PLAIN, text);
    if (result_get(result, row, "evidence").type == VALUE_TEXT)
        add_line(paper, MARGIN + SHARE_WIDTH, STYLE_DIM,
                 result_text(text, sizeof text, result, row, "evidence"));
}

size_t view_causes_draw(const struct model *model, struct canvas *canvas, struct rect area, int y)
{
    struct paper paper = {canvas, area, y};
    const struct result *result = model_answer(model, POLL_WHY);
    add_title(&paper, model);
    if (!model->answers[POLL_WHY].known)
        add_line(&paper, MARGIN, STYLE_DIM, "asking ...");
    else if (!result)
        add_line(&paper, MARGIN, STYLE_DIM, "nothing to explain: no request in that time");
    for (size_t row = 0; result && row < result_row_count(result); row++) {
        if (row == 0)
            add_comparison(&paper, result, row);
        add_cause(&paper, result, row);
    }
    return (size_t)(paper.y - y);
}
