// Whole screens compared with text: tests/golden/tui/NAME.txt.  To take new ones,
// after looking at them: INFERSTAT_GOLDEN_UPDATE=1 test_tui_screens
#include "tests/support/test.h"

#include <errno.h>

#include "client/tui/key_bindings.h"
#include "client/tui/view.h"
#include "tests/support/tui_fixture.h"
#include "common/core/base/glyph.h"

static void nothing_yet(struct model *model)
{
    (void)model;
}

static void nobody(struct model *model)
{
    fixture_round(model, STATUS_UNREACHABLE, "no answer");
}

static void first_answer(struct model *model)
{
    fixture_answer(model, POLL_SUMMARY,
                   "runs|runs_open|hosts|models|inferences|loads\n"
                   "1|1|1|1|5|1\n");
}

static void tick(struct model *model, uint64_t seconds)
{
    struct event event = {.kind = EVENT_TICK,
                          .now_ns = FIXTURE_NOW_NS + seconds * UINT64_C(1000000000),
                          .wall_now_ns = FIXTURE_WALL_NS + (int64_t)seconds * 1000000000};
    (void)model_update(model, &event);
}

static void lost_contact(struct model *model)
{
    fixture_normal(model);
    nobody(model);
    tick(model, 5);
}

static void long_lost(struct model *model)
{
    lost_contact(model);
    tick(model, 3725);
}

static void paused(struct model *model)
{
    fixture_normal(model);
    fixture_key(model, ' ');
    tick(model, 12);
}

static void fault(struct model *model)
{
    fixture_normal(model);
    fixture_round(model, STATUS_CORRUPT, "store.db: page 7 is damaged");
}

static void file(struct model *model)
{
    fixture_normal(model);
    (void)snprintf(model->name, sizeof model->name, "/var/lib/inferstat/store.db");
    model->is_file = true;
}

static void empty_file(struct model *model)
{
    file(model);
    fixture_empty(model);
}

static void help(struct model *model)
{
    fixture_normal(model);
    fixture_key(model, '?');
}

static void question(struct model *model)
{
    fixture_normal(model);
    fixture_key(model, 'c');
}

static void cleared(struct model *model)
{
    fixture_normal(model);
    fixture_event(model, (struct event){.kind = EVENT_CLEARED, .cleared = 152});
}

static void sorted(struct model *model)
{
    fixture_many(model);
    for (int i = 0; i < 7; i++)
        fixture_key(model, '>');
}

static void enlarged(struct model *model)
{
    fixture_normal(model);
    fixture_key(model, '\t');
    fixture_key(model, '\t');
    fixture_key(model, KEY_CODE_ENTER);
    fixture_key(model, KEY_CODE_PAGE_DOWN);
}

static void runs_alone(struct model *model)
{
    fixture_losses(model);
    fixture_key(model, KEY_CODE_BACK_TAB); // on a small screen it has no room beside others
}

static void type(struct model *model, const char *text)
{
    for (; *text; text++)
        fixture_key(model, (unsigned char)*text);
}

static void prompt(struct model *model)
{
    fixture_normal(model);
    fixture_key(model, '\\');
}

static void prompt_error(struct model *model)
{
    prompt(model);
    type(model, "where modle=x since 1h");
    fixture_key(model, KEY_CODE_ENTER);
}

// A text longer than the line, the cursor in the middle of it.
static void prompt_long(struct model *model)
{
    prompt(model);
    for (int i = 0; i < 12; i++)
        type(model, "0123456789");
    fixture_key(model, 0x65E5);
    fixture_key(model, 0x672C);
    for (int i = 0; i < 12; i++)
        type(model, "abcdefghij");
    for (int i = 0; i < 121; i++)
        fixture_key(model, KEY_CODE_LEFT);
}

static void filtered(struct model *model)
{
    prompt(model);
    type(model, "model=synthetic-15m since 1h");
    fixture_key(model, KEY_CODE_ENTER);
}

// What matches nothing is no empty store.
static void question_filtered(struct model *model)
{
    filtered(model);
    fixture_key(model, 'c');
}

static void filtered_empty(struct model *model)
{
    filtered(model);
    fixture_empty(model);
}

static void pipelines(struct model *model)
{
    fixture_pipelines(model);
    fixture_key(model, '2');
}

static void pipelines_sorted(struct model *model)
{
    pipelines(model);
    for (int i = 0; i < 7; i++)
        fixture_key(model, '>');
    fixture_key(model, 'I');
}

static void pipelines_filtered(struct model *model)
{
    fixture_pipelines(model);
    fixture_key(model, '\\');
    type(model, "host=gpu-17");
    fixture_key(model, KEY_CODE_ENTER);
    fixture_key(model, 'p');
}

static void no_pipelines(struct model *model)
{
    fixture_normal(model);
    fixture_key(model, '2');
}

static void pipelines_empty(struct model *model)
{
    fixture_empty(model);
    fixture_key(model, '2');
}

static const struct {
    const char *name;
    void (*fill)(struct model *model);
    int width, height;
    bool ascii;
} cases[] = {
    {"connecting-80x24", nothing_yet, 80, 24, false},
    {"nobody-80x24", nobody, 80, 24, false},
    {"first-answer-80x24", first_answer, 80, 24, false},
    {"normal-80x24", fixture_normal, 80, 24, false},
    {"normal-60x16", fixture_normal, 60, 16, false},
    {"normal-120x40", fixture_normal, 120, 40, false},
    {"normal-200x60", fixture_normal, 200, 60, false},
    {"normal-ascii-80x24", fixture_normal, 80, 24, true},
    {"empty-80x24", fixture_empty, 80, 24, false},
    {"empty-60x16", fixture_empty, 60, 16, false},
    {"empty-file-80x24", empty_file, 80, 24, false},
    {"file-80x24", file, 80, 24, false},
    {"losses-80x24", fixture_losses, 80, 24, false},
    {"losses-200x60", fixture_losses, 200, 60, false},
    {"names-80x24", fixture_names, 80, 24, false},
    {"names-ascii-120x40", fixture_names, 120, 40, true},
    {"many-80x24", fixture_many, 80, 24, false},
    {"many-120x40", fixture_many, 120, 40, false},
    {"lost-contact-80x24", lost_contact, 80, 24, false},
    {"long-lost-60x16", long_lost, 60, 16, false},
    {"paused-80x24", paused, 80, 24, false},
    {"fault-80x24", fault, 80, 24, false},
    {"unwritable-80x24", fixture_unwritable, 80, 24, false},
    {"sorted-80x24", sorted, 80, 24, false},
    {"enlarged-60x16", enlarged, 60, 16, false},
    {"runs-alone-60x16", runs_alone, 60, 16, false},
    {"help-80x24", help, 80, 24, false},
    {"help-120x40", help, 120, 40, false},
    {"question-80x24", question, 80, 24, false},
    {"question-60x16", question, 60, 16, false},
    {"question-filtered-80x24", question_filtered, 80, 24, false},
    {"prompt-80x24", prompt, 80, 24, false},
    {"prompt-60x16", prompt, 60, 16, false},
    {"prompt-error-80x24", prompt_error, 80, 24, false},
    {"prompt-long-ascii-80x24", prompt_long, 80, 24, true},
    {"filtered-80x24", filtered, 80, 24, false},
    {"filtered-120x40", filtered, 120, 40, false},
    {"filtered-empty-80x24", filtered_empty, 80, 24, false},
    {"cleared-80x24", cleared, 80, 24, false},
    {"pipelines-80x24", pipelines, 80, 24, false},
    {"pipelines-60x16", pipelines, 60, 16, false},
    {"pipelines-120x40", pipelines, 120, 40, false},
    {"pipelines-200x60", pipelines, 200, 60, false},
    {"pipelines-ascii-80x24", pipelines, 80, 24, true},
    {"pipelines-sorted-60x16", pipelines_sorted, 60, 16, false},
    {"pipelines-filtered-60x16", pipelines_filtered, 60, 16, false},
    {"pipelines-none-60x16", no_pipelines, 60, 16, false},
    {"pipelines-empty-60x16", pipelines_empty, 60, 16, false},
    {"too-small-40x10", fixture_normal, 40, 10, false},
    {"too-small-10x2", fixture_normal, 10, 2, false},
};

// Files do not end in empty lines, as screens may.
static void trim(char *text)
{
    size_t size = strlen(text);
    while (size > 1 && text[size - 1] == '\n' && text[size - 2] == '\n')
        text[--size] = '\0';
}

static char *read_golden(const char *path)
{
    FILE *file_read = fopen(path, "r");
    if (!file_read)
        return NULL;
    enum { SIZE_MAX_GOLDEN = 65536 };
    char *text = calloc(1, SIZE_MAX_GOLDEN);
    assert_non_null(text);
    (void)!fread(text, 1, SIZE_MAX_GOLDEN - 1, file_read);
    (void)fclose(file_read);
    return text;
}

static void write_golden(const char *path, const char *text)
{
    FILE *written = fopen(path, "w");
    assert_non_null(written);
    assert_true(fputs(text, written) >= 0);
    assert_int_equal(fclose(written), 0);
}

TEST_CASE(screens_are_as_they_were)
{
    unsigned wrong = 0;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char path[512];
        (void)snprintf(path, sizeof path, GOLDEN_FOLDER "/%s.txt", cases[i].name);
        struct model model;
        fixture_model(&model, cases[i].width, cases[i].height);
        cases[i].fill(&model);
        char *screen = fixture_screen(&model, cases[i].ascii);
        trim(screen);
        if (getenv("INFERSTAT_GOLDEN_UPDATE"))
            write_golden(path, screen);
        char *golden = read_golden(path);
        if (!golden || strcmp(golden, screen) != 0) {
            (void)fprintf(stderr, "%s differs.  Expected:\n%sDrawn:\n%s", path,
                          golden ? golden : "(no file)\n", screen);
            wrong++;
        }
        free(golden);
        free(screen);
        model_deinit(&model);
    }
    assert_int_equal(wrong, 0);
}

// No screen of any size reads or writes outside of itself (sanitizers watch), is
// wider or higher than it may be, or holds a control character.
TEST_CASE(every_size_draws)
{
    void (*const fills[])(struct model *) = {
        nothing_yet, nobody,       fixture_normal, fixture_empty, fixture_names, help,
        question,    prompt_error, prompt_long,    filtered,      pipelines,     pipelines_empty};
    for (size_t fill = 0; fill < COUNT_OF(fills); fill++) {
        struct model model;
        fixture_model(&model, 80, 24);
        fills[fill](&model);
        for (int width = 0; width <= 230; width += width < 70 ? 1 : 13) {
            for (int height = 0; height <= 70; height += height < 30 ? 1 : 9) {
                struct event event = {.kind = EVENT_RESIZE, .x = width, .y = height};
                fixture_event(&model, event);
                char *screen = fixture_screen(&model, width % 2);
                int rows = 0;
                for (char *line = strtok(screen, "\n"); line; line = strtok(NULL, "\n")) {
                    assert_true(glyph_text_width(line) <= width);
                    for (const char *c = line; *c; c++)
                        assert_true((unsigned char)*c >= 0x20 && *c != 0x7F);
                    rows++;
                }
                assert_true(rows <= height);
                free(screen);
            }
        }
        model_deinit(&model);
    }
}

TEST_MAIN(screens_are_as_they_were, every_size_draws)
