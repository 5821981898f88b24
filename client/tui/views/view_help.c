// Help: the keys, from their table, and the words, from the record table.
#include "client/tui/view.h"

#include "client/tui/key_bindings.h"
#include "common/core/record/record.h"

static const struct {
    const char *word, *meaning;
    int kind, column; // of the record table, whose meaning it is; -1: `meaning`
} words[] = {
    {"tok/s", "output tokens a second, of all requests", -1, -1},
    {"t/s", "output tokens a second of one request", -1, -1},
    {"TTFT", "", RECORD_KIND_INFERENCE, INFERENCE_TTFT_NS},
    {"TPOT", "time per output token of a request after its first", -1, -1},
    {"E2E", "", RECORD_KIND_INFERENCE, INFERENCE_E2E_NS},
    {"queue", "", RECORD_KIND_INFERENCE, INFERENCE_QUEUE_NS},
    {"prefill", "", RECORD_KIND_INFERENCE, INFERENCE_PREFILL_NS},
    {"decode", "", RECORD_KIND_INFERENCE, INFERENCE_DECODE_NS},
    {"ITL", "gap between two tokens of one request", -1, -1},
    {"other", "what of a load no stage covers", -1, -1},
    {"warm", "the file was in the page cache", -1, -1},
    {"overlap", "both at once / the shorter of copy and compute", -1, -1},
    {"exposed", "", RECORD_KIND_PIPELINE, PIPELINE_EXPOSED_COPY_NS},
    {"starved", "the copy engine idle, no filled slot ready", -1, -1},
    {"pool waits", "acquires that had to wait / acquires", -1, -1},
    {"in flight", "made by a run, not stored yet", -1, -1},
    {"dropped", "lost on the way, with known numbers", -1, -1},
    {"unnumbered", "lost because a ring was full", -1, -1},
    {"coverage", "stored / (stored + known lost)", -1, -1},
    {"balanced", "stored and lost add up to produced", -1, -1},
};

enum {
    WORDS = sizeof words / sizeof *words,
    KEYS_WIDTH = 52,
    BESIDE_WIDTH = 114,
    NAME_WIDTH = 11,
    MARGIN = 1
};

// Lines: a heading, the keys, and the words; beside each other where the area is
// wide enough, else below with an empty line between.
static unsigned key_count(void)
{
    unsigned shown = 0;
    for (const struct key_binding *binding = key_bindings; binding->keys; binding++)
        shown += binding->help != NULL;
    return shown;
}

static bool beside(struct rect area)
{
    return area.width >= BESIDE_WIDTH;
}

size_t view_help_rows(struct rect area)
{
    size_t keys = 1 + (size_t)key_count(), terms = 1 + (size_t)WORDS;
    if (beside(area))
        return keys > terms ? keys : terms;
    return keys + 1 + terms;
}

static void draw_line(struct canvas *canvas, struct rect area, int y, enum style style,
                      const char *name, const char *text)
{
    canvas_fit(canvas, area, MARGIN, y, NAME_WIDTH, ALIGN_LEFT, style, name);
    int x = MARGIN + NAME_WIDTH + 1;
    canvas_fit(canvas, area, x, y, area.width - x, ALIGN_LEFT, STYLE_PLAIN, text);
}

static void draw_keys(struct canvas *canvas, struct rect area, int y)
{
    (void)canvas_put(canvas, area, MARGIN, y++, STYLE_TITLE, "Keys");
    for (const struct key_binding *binding = key_bindings; binding->keys; binding++)
        if (binding->help)
            draw_line(canvas, area, y++, STYLE_KEY, binding->keys, binding->help);
}

static void draw_words(struct canvas *canvas, struct rect area, int y)
{
    (void)canvas_put(canvas, area, MARGIN, y++, STYLE_TITLE, "Words");
    for (unsigned i = 0; i < WORDS; i++) {
        const char *meaning = words[i].meaning;
        if (words[i].column >= 0)
            meaning =
                record_kind_info((enum record_kind)words[i].kind)->columns[words[i].column].meaning;
        draw_line(canvas, area, y++, STYLE_STRONG, words[i].word, meaning);
    }
}

void view_help_draw(const struct model *model, struct canvas *canvas, struct rect area)
{
    int top = (int)model->help_top;
    draw_keys(canvas, area, -top);
    if (beside(area)) {
        struct rect left, right;
        layout_beside(area, KEYS_WIDTH, 0, &left, &right);
        draw_words(canvas, right, -top);
    } else {
        draw_words(canvas, area, (int)key_count() + 2 - top);
    }
}
