#include "client/cli/commands/stages.h"

#include <stdlib.h>
#include <string.h>

#include "common/core/base/array.h"
#include "common/core/base/glyph.h"
#include "common/core/base/text.h"

enum {
    NAME_WIDTH = 18,
    DURATION_WIDTH = 9,
    SHARE_WIDTH = 8,
    INDENT = 4,
    BAR_WIDTH = 30,
    BAR_TERMINAL_LEAST = 72, // terminal columns for bars
    LINE_SIZE = 512,
};

void stages_deinit(struct stages *stages)
{
    record_pages_free(&stages->pages);
    free(stages->chosen);
}

// Narrows the filter to the time window of the loads in a page, and to their run if they have
// one in common.
static void narrow(struct query_filter *filter, const struct result *loads)
{
    int64_t since = INT64_MAX;
    int64_t until = 0;
    const struct value run = result_get(loads, 0, "run");
    bool is_one_run = run.type == VALUE_TEXT && run.text.size < QUERY_TEXT_SIZE;
    for (size_t row = 0; row < result_row_count(loads); row++) {
        int64_t started = result_integer(loads, row, "started_ns", 0);
        int64_t duration = result_integer(loads, row, "duration_ns", 0);
        int64_t end;
        if (__builtin_add_overflow(started, duration, &end) || end == INT64_MAX)
            end = INT64_MAX - 1;
        since = started < since ? started : since;
        until = end > until ? end : until;
        is_one_run = is_one_run && value_is_same(run, result_get(loads, row, "run"));
    }
    filter->since_ns = since > 0 ? since : 0;
    filter->until_ns = until > filter->since_ns ? until + 1 : filter->since_ns + 1;
    if (is_one_run)
        memcpy(filter->by[QUERY_BY_RUN], run.text.bytes, run.text.size + 1);
}

enum status stages_ask(struct stages *stages, struct cli *cli, const struct result *loads,
                       struct error *err)
{
    if (result_row_count(loads) == 0)
        return STATUS_OK;
    struct query_filter filter = cli->query.filter;
    narrow(&filter, loads);
    return record_pages_read(cli, RECORD_KIND_LOAD_STAGE, &filter, true, 0, record_pages_keep,
                             &stages->pages, err);
}

static int by_ordinal(const void *a, const void *b)
{
    const struct stage *left = a;
    const struct stage *right = b;
    return (left->ordinal > right->ordinal) - (left->ordinal < right->ordinal);
}

// Adds the stages of the load in a page.
static enum status choose_of(struct stages *stages, const struct result *page,
                             const struct result *loads, size_t load, struct error *err)
{
    const int64_t number = result_integer(loads, load, "number", -2);
    const unsigned parent_column = (unsigned)result_find(page, "parent"); // of many, few match
    for (size_t row = 0; row < result_row_count(page); row++) {
        const struct value parent = result_cell(page, row, parent_column);
        if (parent.type != VALUE_INT || parent.i != number ||
            result_integer(page, row, "stream", -1) != result_integer(loads, load, "stream", -2) ||
            !value_is_same(result_get(page, row, "run"), result_get(loads, load, "run")))
            continue;
        if (!ARRAY_RESERVE(&stages->chosen, &stages->room, stages->count + 1))
            return error_no_memory(err, "stages");
        stages->chosen[stages->count++] =
            (struct stage){.name = result_get(page, row, "stage"),
                           .started_ns = result_integer(page, row, "started_ns", 0),
                           .duration_ns = result_integer(page, row, "duration_ns", 0),
                           .ordinal = result_integer(page, row, "ordinal", 0)};
    }
    return STATUS_OK;
}

enum status stages_choose(struct stages *stages, const struct result *loads, size_t row,
                          struct error *err)
{
    enum status status = STATUS_OK;
    stages->count = 0;
    stages->load_started_ns = result_integer(loads, row, "started_ns", 0);
    stages->load_ns = result_integer(loads, row, "duration_ns", 0);
    for (size_t i = 0; i < stages->pages.count && status == STATUS_OK; i++)
        status = choose_of(stages, stages->pages.all[i], loads, row, err);
    if (stages->count > 0)
        qsort(stages->chosen, stages->count, sizeof *stages->chosen, by_ordinal);
    return status;
}

// The time of a load outside its stages; 0 if there is none or the load has no stages.
static int64_t other_ns(const struct stages *stages)
{
    int64_t left = stages->count > 0 ? stages->load_ns : 0;
    for (size_t i = 0; i < stages->count; i++) {
        if (stages->chosen[i].duration_ns >= left)
            return 0;
        left -= stages->chosen[i].duration_ns;
    }
    return left;
}

// ---- Drawing ------------------------------------------------------------------

static double share_of(int64_t part, int64_t whole)
{
    double share = whole > 0 ? (double)part / (double)whole : 0.0;
    return share < 0.0 ? 0.0 : share > 1.0 ? 1.0 : share;
}

// "   |####     |": the stage's place in the load.
static void draw_bar(char *text, const struct stages *stages, const struct stage *stage,
                     unsigned bar)
{
    const int64_t begun_ns = stages->load_started_ns;
    int64_t offset = stage->started_ns > begun_ns ? stage->started_ns - begun_ns : 0;
    double begin = share_of(offset, stages->load_ns);
    double end = begin + share_of(stage->duration_ns, stages->load_ns);
    unsigned first = (unsigned)(begin * bar);
    unsigned behind = (unsigned)((end > 1.0 ? 1.0 : end) * bar + 0.5);
    if (first >= bar)
        first = bar - 1;
    if (behind <= first) // however short, it is seen
        behind = first + 1;
    memset(text, ' ', bar);
    memset(text + first, '#', behind - first);
    text[bar] = '\0';
}

static void draw_line(char line[LINE_SIZE], const struct stages *stages, const struct stage *stage,
                      unsigned bar)
{
    char name[64] = "other";
    bool is_stage = stage->name.type == VALUE_TEXT;
    if (is_stage)
        (void)text_escape(name, sizeof name, stage->name.text.bytes, stage->name.text.size);
    unsigned used = (unsigned)glyph_text_width(name);
    unsigned blanks = used < NAME_WIDTH ? NAME_WIDTH - used : 0;

    char duration[UNIT_TEXT_SIZE];
    char share[UNIT_TEXT_SIZE];
    char drawn[BAR_WIDTH + 1] = "";
    if (is_stage && bar > 0)
        draw_bar(drawn, stages, stage, bar);
    (void)snprintf(line, LINE_SIZE, "%*s%s%*s%*s%*s%s%s%s", INDENT, "", name, (int)blanks, "",
                   DURATION_WIDTH, unit_format_int(duration, UNIT_DURATION, stage->duration_ns),
                   SHARE_WIDTH,
                   unit_format(share, UNIT_RATIO, share_of(stage->duration_ns, stages->load_ns)),
                   drawn[0] ? "  |" : "", drawn, drawn[0] ? "|" : "");
}

void stages_draw(const struct stages *stages, unsigned width,
                 void (*put)(void *context, const char *line), void *context)
{
    char line[LINE_SIZE];
    const unsigned bar = width == 0 || width >= BAR_TERMINAL_LEAST ? BAR_WIDTH : 0;
    for (size_t i = 0; i < stages->count; i++) {
        draw_line(line, stages, &stages->chosen[i], bar);
        put(context, line);
    }
    const struct stage other = {.duration_ns = other_ns(stages)};
    if (other.duration_ns > 0) {
        draw_line(line, stages, &other, bar);
        put(context, line);
    }
}
