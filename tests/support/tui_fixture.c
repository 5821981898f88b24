#include "tests/support/tui_fixture.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/tui/key_bindings.h"
#include "client/tui/view.h"
#include "common/core/base/text.h"
#include "common/sys/when.h"

enum { CELL_SIZE = 512 };

static void must(enum status status)
{
    if (status != STATUS_OK) {
        (void)fprintf(stderr, "tui_fixture: %s\n", status_text(status));
        abort();
    }
}

// Takes the cell at `*text`, ended by '|' or a line feed, and moves behind it.
// Returns whether it was the line's last.
static bool take_cell(const char **text, char cell[CELL_SIZE])
{
    size_t size = strcspn(*text, "|\n");
    assert(size < CELL_SIZE);
    memcpy(cell, *text, size);
    cell[size] = '\0';
    bool last = (*text)[size] != '|';
    *text += size + ((*text)[size] != '\0');
    return last;
}

static enum unit unit_of(const char *name)
{
    for (unsigned unit = 0; unit < UNIT_COUNT_OF; unit++)
        if (strcmp(unit_name((enum unit)unit), name) == 0)
            return (enum unit)unit;
    (void)fprintf(stderr, "tui_fixture: no unit \"%s\"\n", name);
    abort();
}

static void set_cell(struct result *result, unsigned column, const char *cell)
{
    char *end;
    errno = 0;
    long long whole = strtoll(cell, &end, 10);
    if (cell[0] && !*end) {
        result_set_int(result, column, whole);
        return;
    }
    double real = strtod(cell, &end);
    if (cell[0] && !*end)
        result_set_real(result, column, real);
    else if (strcmp(cell, "-") != 0)
        must(result_set_text(result, column, cell, strlen(cell)));
}

struct result *fixture_result(const char *text)
{
    struct result *result;
    must(result_new(&result));
    char cell[CELL_SIZE];
    for (bool last = false; !last;) {
        last = take_cell(&text, cell);
        char *colon = strchr(cell, ':');
        if (colon)
            *colon = '\0';
        must(result_add_column(result, cell, colon ? unit_of(colon + 1) : UNIT_NONE));
    }
    while (*text) {
        must(result_add_row(result));
        bool last = false;
        for (unsigned column = 0; !last; column++) {
            last = take_cell(&text, cell);
            set_cell(result, column, cell);
        }
    }
    return result;
}

unsigned fixture_event(struct model *model, struct event event)
{
    event.now_ns = FIXTURE_NOW_NS;
    event.wall_now_ns = FIXTURE_WALL_NS;
    if (event.kind == EVENT_ANSWER)
        event.generation = model->scope.generations[event.polled];
    return model_update(model, &event);
}

unsigned fixture_key(struct model *model, uint32_t code)
{
    return fixture_event(model, (struct event){.kind = EVENT_KEY, .code = code});
}

unsigned fixture_type(struct model *model, const char *text)
{
    for (; *text; text++)
        (void)fixture_key(model, (unsigned char)*text);
    return fixture_key(model, KEY_CODE_ENTER);
}

void fixture_answer(struct model *model, enum polled_query polled, const char *text)
{
    struct result *result = text ? fixture_result(text) : NULL;
    (void)fixture_event(model,
                        (struct event){.kind = EVENT_ANSWER, .polled = polled, .result = result});
}

void fixture_round(struct model *model, enum status status, const char *text)
{
    (void)fixture_event(model, (struct event){.kind = EVENT_ROUND, .status = status, .text = text});
}

static enum status read_time(void *context, int64_t *out_ns, const char *text, bool latest,
                             struct error *err)
{
    return when_parse(out_ns, text, *(const int64_t *)context, latest, "time", err);
}

void fixture_model(struct model *model, int width, int height)
{
    (void)setenv("TZ", "UTC", 1);
    model_init(model, "ipc:///run/user/1000/inferstat", 2);
    model->when = read_time;
    (void)fixture_event(model, (struct event){.kind = EVENT_RESIZE, .x = width, .y = height});
}

struct model *fixture_new(int width, int height, void (*fill)(struct model *))
{
    struct model *model = malloc(sizeof *model);
    if (!model)
        abort();
    fixture_model(model, width, height);
    if (fill)
        fill(model);
    return model;
}

void fixture_free(struct model *model)
{
    model_deinit(model);
    free(model);
}

// How screen.c shows a cell without colours: bold, dim, underlined and bold, reversed; of the
// cursor's line, capital.
static char look_of(const struct cell *cell)
{
    static const char looks[STYLE_COUNT] = {
        [STYLE_DIM] = 'd',     [STYLE_STRONG] = 'b',  [STYLE_TITLE] = 'b', [STYLE_FOCUS] = 'u',
        [STYLE_HEADING] = 'd', [STYLE_SORTED] = 'b',  [STYLE_KEY] = 'b',   [STYLE_WARNING] = 'b',
        [STYLE_BAD] = 'r',     [STYLE_BAR_REST] = 'd'};
    const char look = looks[cell->style];
    if (cell->reversed)
        return look ? (char)(look - 'a' + 'A') : 'R';
    return look == 'r' || (look && cell->code != ' ') ? look : ' ';
}

char *fixture_looks(const struct model *model)
{
    struct canvas canvas;
    canvas_init(&canvas, false);
    must(canvas_resize(&canvas, model->width, model->height));
    view_draw(model, &canvas);
    for (size_t i = 0; i < (size_t)canvas.width * (size_t)canvas.height; i++)
        canvas.cells[i] = (struct cell){.code = (uint32_t)look_of(&canvas.cells[i]), .width = 1};
    char *text = fixture_text(&canvas);
    canvas_deinit(&canvas);
    return text;
}

bool fixture_shows(const struct model *model, const char *text)
{
    char *screen = fixture_screen(model, false);
    const bool shows = strstr(screen, text) != NULL;
    free(screen);
    return shows;
}

char *fixture_text(const struct canvas *canvas)
{
    enum { BYTES_MAX = 4 }; // of a character
    const size_t row_size = (size_t)canvas->width * BYTES_MAX + 1;
    char *text = malloc((size_t)canvas->height * row_size + 1), *end = text;
    must(text ? STATUS_OK : STATUS_NOMEM);
    for (int y = 0; y < canvas->height; y++) {
        char *trimmed = end; // behind the last character that is not a space
        for (int x = 0; x < canvas->width; x++) {
            const struct cell *cell = canvas_cell(canvas, x, y);
            if (cell->width > 0)
                end += text_encode(end, cell->code);
            if (cell->width > 0 && cell->code != ' ')
                trimmed = end;
        }
        end = trimmed;
        *end++ = '\n';
    }
    *end = '\0';
    return text;
}

char *fixture_screen(const struct model *model, bool ascii)
{
    struct canvas canvas;
    canvas_init(&canvas, ascii);
    must(canvas_resize(&canvas, model->width, model->height));
    view_draw(model, &canvas);
    char *text = fixture_text(&canvas);
    canvas_deinit(&canvas);
    return text;
}
