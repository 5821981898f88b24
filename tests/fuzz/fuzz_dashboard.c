// The dashboard under libFuzzer, also compact: keys, the mouse, sizes, times, answers and changes
// of the store in any order.  The columns of answers are those that the views know, their cells are
// anything; few are of a generation that is gone.  After each event the screen is drawn and
// checked: every cell inside, no control characters, wide characters whole.
#include <string.h>

#include "client/tui/key_bindings.h"
#include "client/tui/update.h"
#include "client/tui/view.h"
#include "tests/fuzz/fuzz.h"

enum { STEPS_MAX = 200, ROWS_MAX = 40, TEXT_MAX = 24 };

// What queries answer of machines, events and NOW, beside the columns of the view's tables.
static const char *const keys[] = {
    "host",       "device",       "model",       "run",
    "state",      "events",       "event",       "code",
    "group_by",   "group_size",   "group_live",  "since_ns",
    "started_ns", "duration_ns",  "mean",        "p50",
    "p95",        "sampled_ns",   "pcie_width",  "pcie_width_max",
    "e2e_ns",     "queue_ns",     "prefill_ns",  "decode_ns",
    "runs",       "memory_bytes", "store_error", "last_load_started_ns",
    "unit",       "value",        "severity",    "verdict",
    "reason",     "trend"};
static const char *const words[] = {"ok",        "down",    "slow",  "ended", "firing",
                                    "model",     "host",    "worse", "error", "千問",
                                    "e\xcc\x81", "\x1b[2J", "a b",   "gpu-01"};

enum { KEYS = sizeof keys / sizeof *keys, WORDS = sizeof words / sizeof *words };

static void set_cell(struct result *result, unsigned column, struct input *input)
{
    char text[TEXT_MAX];
    const size_t size = (size_t)take(input, 1) % TEXT_MAX;
    switch (take(input, 1) % 6) {
    case 0:
        return;
    case 1:
        result_set_int(result, column, (int64_t)take(input, 8));
        return;
    case 2:
        result_set_int(result, column, (int64_t)take(input, 1));
        return;
    case 3:
        result_set_real(result, column, (double)(int64_t)take(input, 8) / 1e3);
        return;
    case 4:
        for (size_t i = 0; i < size; i++)
            text[i] = (char)take(input, 1);
        (void)result_set_text(result, column, text, size);
        return;
    default: {
        const char *word = words[take(input, 1) % WORDS];
        (void)result_set_text(result, column, word, strlen(word));
    }
    }
}

// An answer with the keys above, and the columns of the tables of the view.
static struct result *make_answer(const struct model *model, struct input *input)
{
    struct result *result;
    check(result_new(&result) == STATUS_OK);
    for (unsigned i = 0; i < KEYS; i++)
        if (take(input, 1) % 4)
            check(result_add_column(result, keys[i], (enum unit)(take(input, 1) % UNIT_COUNT_OF)) ==
                  STATUS_OK);
    const struct panel *panel = view_current(model)->panels;
    for (unsigned i = 0; panel->grid && i < panel->grid->count; i++)
        if (result_find(result, panel->grid->columns[i].key) < 0)
            check(result_add_column(result, panel->grid->columns[i].key,
                                    (enum unit)(take(input, 1) % UNIT_COUNT_OF)) == STATUS_OK);
    for (uint64_t rows = take(input, 1) % ROWS_MAX; rows > 0 && input->size > 0; rows--) {
        check(result_add_row(result) == STATUS_OK);
        for (unsigned column = 0; column < result_column_count(result); column++)
            set_cell(result, column, input);
    }
    return result;
}

static struct event next_event(const struct model *model, struct input *input)
{
    static const uint32_t special[] = {KEY_CODE_ENTER, KEY_CODE_ESCAPE, KEY_CODE_TAB,
                                       KEY_CODE_F2,    KEY_CODE_F4,     KEY_CODE_CTRL_U};
    struct event event = {0};
    switch (take(input, 1) % 10) {
    case 0:
    case 1:
        event.code = (uint32_t)take(input, 1) % 96 + 32;
        break;
    case 2:
        event.code = KEY_CODE_FIRST + (uint32_t)take(input, 1) % 24;
        break;
    case 3:
        event.code = special[take(input, 1) % (sizeof special / sizeof *special)];
        break;
    case 4:
        event = (struct event){.kind = take(input, 1) % 3 ? EVENT_PRESS : EVENT_WHEEL,
                               .x = (int)(take(input, 2) % 424) - 2,
                               .y = (int)(int8_t)take(input, 1),
                               .turn = (int)(int8_t)take(input, 1)};
        break;
    case 5:
        event = (struct event){
            .kind = EVENT_RESIZE, .x = (int)take(input, 2) % 420, .y = (int)take(input, 1) % 130};
        break;
    case 6:
        event = (struct event){.kind = EVENT_ROUND,
                               .status = take(input, 1) % 2 ? STATUS_OK : STATUS_TIMEOUT,
                               .text = "no answer"};
        break;
    case 7:
        event.kind = EVENT_TICK;
        break;
    case 8:
        event = (struct event){.kind = EVENT_CHANGED,
                               .status = take(input, 1) % 2 ? STATUS_OK : STATUS_TIMEOUT,
                               .text = "no answer",
                               .cleared = take(input, 8)};
        break;
    default:
        event = (struct event){.kind = EVENT_ANSWER,
                               .polled = (enum polled_query)(take(input, 1) % POLL_COUNT)};
        event.generation =
            model->scope.generations[event.polled] - (take(input, 1) % 16 == 0 ? 1 : 0);
        event.result = take(input, 1) % 8 ? make_answer(model, input) : NULL;
    }
    return event;
}

static void check_screen(const struct canvas *canvas)
{
    for (int y = 0; y < canvas->height; y++)
        for (int x = 0; x < canvas->width; x++) {
            const struct cell *cell = canvas_cell(canvas, x, y);
            check(cell->width <= 2 && cell->style < STYLE_COUNT);
            check(cell->width == 0 || (cell->code >= 0x20 && cell->code != 0x7F));
            check(cell->width != 2 || (x + 1 < canvas->width && cell[1].width == 0));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct model model;
    struct input input = {data, size};
    struct canvas canvas;
    uint64_t now_ns = UINT64_C(1000000000000);
    model_init(&model, "fuzzed", 2);
    const uint64_t mode = take(&input, 1);
    canvas_init(&canvas, mode % 2);
    model.compact = mode % 16 >= 14;
    (void)model_update(&model, &(struct event){.kind = EVENT_RESIZE,
                                               .now_ns = now_ns,
                                               .wall_now_ns = INT64_C(1774785600000000000),
                                               .x = 80,
                                               .y = 24});
    for (unsigned step = 0; step < STEPS_MAX && input.size > 0; step++) {
        struct event event = next_event(&model, &input);
        now_ns += take(&input, 2) * UINT64_C(1000000);
        event.now_ns = now_ns;
        event.wall_now_ns = INT64_C(1774785600000000000) + (int64_t)now_ns;
        (void)model_update(&model, &event);
        check(canvas_resize(&canvas, model.width, model.height) == STATUS_OK);
        view_draw(&model, &canvas);
        check_screen(&canvas);
    }
    canvas_deinit(&canvas);
    model_deinit(&model);
    return 0;
}
