#include "client/cli/commands/stages.h"

#include <stdlib.h>
#include <string.h>

#include "client/cli/commands/record_pages.h"
#include "client/cli/output/width.h"
#include "common/core/base/array.h"
#include "common/core/base/text.h"
#include "common/core/base/unit.h"

enum {
    NAME_WIDTH = 18,
    DURATION_WIDTH = 9,
    SHARE_WIDTH = 8,
    INDENT = 4,
    BAR_WIDTH = 30,
    BAR_TERMINAL_LEAST = 72, // terminal columns for bars
    LINE_SIZE = 512,
};

// One stage as read, with its run.
struct owned_stage {
    char run[40]; // UUID
    int64_t stream;
    int64_t parent;
    struct stage stage;
};

struct stages {
    struct owned_stage *all;
    size_t count, room;
    char **texts; // of the names
    size_t text_count, text_room;
    struct stage *chosen; // of stages_of
    size_t chosen_room;
};

void stages_free(struct stages *stages)
{
    if (!stages)
        return;
    for (size_t i = 0; i < stages->text_count; i++)
        free(stages->texts[i]);
    free(stages->texts);
    free(stages->all);
    free(stages->chosen);
    free(stages);
}

static void read_run(char run[40], const struct result *result, size_t row)
{
    struct value value = result_get(result, row, "run");
    run[0] = '\0';
    if (value.type == VALUE_TEXT && value.text.size < 40) {
        memcpy(run, value.text.bytes, value.text.size);
        run[value.text.size] = '\0';
    }
}

// Stage names repeat: each is stored once.
static const char *keep_text(struct stages *stages, const char *bytes, size_t size)
{
    for (size_t i = 0; i < stages->text_count; i++) {
        if (strlen(stages->texts[i]) == size && memcmp(stages->texts[i], bytes, size) == 0)
            return stages->texts[i];
    }
    char *copy = ARRAY_RESERVE(&stages->texts, &stages->text_room, stages->text_count + 1)
                     ? strndup(bytes, size)
                     : NULL;
    if (copy)
        stages->texts[stages->text_count++] = copy;
    return copy;
}

static bool add_stage(struct stages *stages, const struct result *page, size_t row)
{
    if (!ARRAY_RESERVE(&stages->all, &stages->room, stages->count + 1))
        return false;

    struct owned_stage *owned = &stages->all[stages->count];
    *owned = (struct owned_stage){
        .stream = result_integer(page, row, "stream", -1),
        .parent = result_integer(page, row, "parent", -1),
        .stage = {.started_ns = result_integer(page, row, "started_ns", 0),
                  .duration_ns = result_integer(page, row, "duration_ns", 0),
                  .ordinal = result_integer(page, row, "ordinal", 0)},
    };
    read_run(owned->run, page, row);
    struct value name = result_get(page, row, "stage");
    if (name.type == VALUE_TEXT) {
        name.text.bytes = keep_text(stages, name.text.bytes, name.text.size);
        if (!name.text.bytes)
            return false;
    }
    owned->stage.name = name;
    stages->count++;
    return true;
}

static enum status on_page(void *context, const struct result *page, struct error *err)
{
    for (size_t row = 0; row < result_row_count(page); row++) {
        if (!add_stage(context, page, row))
            return error_no_memory(err, "stages");
    }
    return STATUS_OK;
}

// Narrows the filter to the time window of the loads in a page, and to their run if they have
// one in common.
static void narrow(struct query_filter *filter, const struct result *loads)
{
    int64_t since = INT64_MAX;
    int64_t until = 0;
    char run[40];
    read_run(run, loads, 0);
    for (size_t row = 0; row < result_row_count(loads); row++) {
        int64_t started = result_integer(loads, row, "started_ns", 0);
        int64_t duration = result_integer(loads, row, "duration_ns", 0);
        int64_t end;
        if (__builtin_add_overflow(started, duration, &end) || end == INT64_MAX)
            end = INT64_MAX - 1;
        since = started < since ? started : since;
        until = end > until ? end : until;
        char other[40];
        read_run(other, loads, row);
        if (strcmp(run, other) != 0)
            run[0] = '\0';
    }
    filter->since_ns = since > 0 ? since : 0;
    filter->until_ns = until > filter->since_ns ? until + 1 : filter->since_ns + 1;
    if (run[0] != '\0')
        memcpy(filter->by[QUERY_BY_RUN], run, strlen(run) + 1);
}

enum status stages_ask(struct stages **out, struct cli *cli, const struct result *loads,
                       struct error *err)
{
    struct stages *stages = calloc(1, sizeof *stages);
    if (!stages)
        return error_no_memory(err, "stages");
    enum status status = STATUS_OK;
    if (result_row_count(loads) > 0) {
        struct query_filter filter = cli->query.filter;
        narrow(&filter, loads);
        status =
            record_pages_read(cli, RECORD_KIND_LOAD_STAGE, &filter, true, 0, on_page, stages, err);
    }
    if (status != STATUS_OK) {
        stages_free(stages);
        return status;
    }
    *out = stages;
    return STATUS_OK;
}

static int by_ordinal(const void *a, const void *b)
{
    const struct stage *left = a;
    const struct stage *right = b;
    return (left->ordinal > right->ordinal) - (left->ordinal < right->ordinal);
}

const struct stage *stages_of(struct stages *stages, const struct result *loads, size_t row,
                              size_t *count)
{
    char run[40];
    read_run(run, loads, row);
    int64_t stream = result_integer(loads, row, "stream", -2);
    int64_t number = result_integer(loads, row, "number", -2);
    *count = 0;
    for (size_t i = 0; i < stages->count; i++) {
        const struct owned_stage *owned = &stages->all[i];
        if (owned->stream != stream || owned->parent != number || strcmp(owned->run, run) != 0)
            continue;
        if (!ARRAY_RESERVE(&stages->chosen, &stages->chosen_room, *count + 1))
            break;
        stages->chosen[(*count)++] = owned->stage;
    }
    if (*count > 0)
        qsort(stages->chosen, *count, sizeof *stages->chosen, by_ordinal);
    return stages->chosen;
}

// The time of a load outside its stages; 0 if there is none or the load has no stages.
static int64_t other_ns(const struct stage *stage, size_t count, int64_t load_ns)
{
    if (count == 0)
        return 0;
    int64_t left = load_ns;
    for (size_t i = 0; i < count; i++) {
        if (stage[i].duration_ns >= left)
            return 0;
        left -= stage[i].duration_ns;
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
static void draw_bar(char *text, const struct stage *stage, int64_t load_started_ns,
                     int64_t load_ns, unsigned bar)
{
    int64_t offset = stage->started_ns > load_started_ns ? stage->started_ns - load_started_ns : 0;
    double begin = share_of(offset, load_ns);
    double end = begin + share_of(stage->duration_ns, load_ns);
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

static void draw_line(char line[LINE_SIZE], const struct stage *stage, int64_t load_started_ns,
                      int64_t load_ns, unsigned bar)
{
    char name[64] = "other";
    bool is_stage = stage->name.type == VALUE_TEXT;
    if (is_stage)
        (void)text_escape(name, sizeof name, stage->name.text.bytes, stage->name.text.size);
    unsigned used = width_of(name);
    unsigned blanks = used < NAME_WIDTH ? NAME_WIDTH - used : 0;

    char duration[UNIT_TEXT_SIZE];
    char share[UNIT_TEXT_SIZE];
    char drawn[BAR_WIDTH + 1] = "";
    if (is_stage && bar > 0)
        draw_bar(drawn, stage, load_started_ns, load_ns, bar);
    (void)snprintf(line, LINE_SIZE, "%*s%s%*s%*s%*s%s%s%s", INDENT, "", name, (int)blanks, "",
                   DURATION_WIDTH, unit_format_int(duration, UNIT_DURATION, stage->duration_ns),
                   SHARE_WIDTH,
                   unit_format(share, UNIT_RATIO, share_of(stage->duration_ns, load_ns)),
                   drawn[0] ? "  |" : "", drawn, drawn[0] ? "|" : "");
}

void stages_draw(const struct stage *stages, size_t count, int64_t load_started_ns, int64_t load_ns,
                 unsigned width, void (*put)(void *context, const char *line), void *context)
{
    char line[LINE_SIZE];
    const unsigned bar = width == 0 || width >= BAR_TERMINAL_LEAST ? BAR_WIDTH : 0;
    for (size_t i = 0; i < count; i++) {
        draw_line(line, &stages[i], load_started_ns, load_ns, bar);
        put(context, line);
    }
    const struct stage other = {.duration_ns = other_ns(stages, count, load_ns)};
    if (other.duration_ns > 0) {
        draw_line(line, &other, load_started_ns, load_ns, bar);
        put(context, line);
    }
}
