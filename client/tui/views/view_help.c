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

static void draw_line(struct canvas *canvas, struct rect area, int y, enum style style,
                      const char *name, const char *text)
{
    canvas_fit(canvas, area, MARGIN, y, NAME_WIDTH, ALIGN_LEFT, style, name);
    int x = MARGIN + NAME_WIDTH + 1;
    canvas_fit(canvas, area, x, y, area.width - x, ALIGN_LEFT, STYLE_PLAIN, text);
}

// Returns the line behind the last one.
static int draw_keys(struct canvas *canvas, struct rect area, int y)
{
    (void)canvas_put(canvas, area, MARGIN, y++, STYLE_TITLE, "Keys");
    for (const struct key_binding *binding = key_bindings; binding->keys; binding++)
        if (binding->help)
            draw_line(canvas, area, y++, STYLE_KEY, binding->keys, binding->help);
    return y;
}

static int draw_words(struct canvas *canvas, struct rect area, int y)
{
    (void)canvas_put(canvas, area, MARGIN, y++, STYLE_TITLE, "Words");
    for (unsigned i = 0; i < WORDS; i++) {
        const char *meaning = words[i].meaning;
        if (words[i].column >= 0)
            meaning =
                record_kind_info((enum record_kind)words[i].kind)->columns[words[i].column].meaning;
        draw_line(canvas, area, y++, STYLE_STRONG, words[i].word, meaning);
    }
    return y;
}

// The keys, and the words; beside each other where the area is wide enough, else below with an
// empty line between.
size_t view_help_draw(const struct model *model, struct canvas *canvas, struct rect area, int y)
{
    struct rect left, right;
    (void)model;
    const int keys_end = draw_keys(canvas, area, y);
    if (area.width < BESIDE_WIDTH)
        return (size_t)(draw_words(canvas, area, keys_end + 1) - y);
    layout_beside(area, KEYS_WIDTH, 0, &left, &right);
    const int words_end = draw_words(canvas, right, y);
    return (size_t)((keys_end > words_end ? keys_end : words_end) - y);
}
