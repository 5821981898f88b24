// What is exported: the screen as text and SVG, rows, and how it fails.
#include "tests/support/folder.h"
#include "tests/support/test.h"

#include <unistd.h>

#include "client/tui/export.h"
#include "tests/support/tui_fixture.h"

static enum status write_rows(FILE *out, const struct export_list *list, bool is_json,
                              struct error *err)
{
    (void)err;
    (void)fprintf(out, "%s %zu\n", is_json ? "json" : "csv", list->count);
    return STATUS_OK;
}

static struct canvas small(void)
{
    struct canvas canvas;
    canvas_init(&canvas, false);
    assert_int_equal(canvas_resize(&canvas, 12, 2), STATUS_OK);
    (void)canvas_put(&canvas, canvas_area(&canvas), 0, 0, STYLE_BAD, "<a&b>");
    (void)canvas_put(&canvas, canvas_area(&canvas), 0, 1, STYLE_PLAIN, "千問 ok");
    canvas_reverse(&canvas, (struct rect){0, 1, 12, 1});
    return canvas;
}

TEST_CASE(the_ending_of_the_name_says_the_format)
{
    static const struct {
        const char *name;
        enum status status;
        const char *has;
    } cases[] = {
        {"a.txt", STATUS_OK, "<a&b>\n千問 ok\n"},
        {"a.svg", STATUS_OK, "&#60;a&#38;b&#62;"},
        {"b.svg", STATUS_OK, "<rect x=\"0\" y=\"17\" width=\"96\""},
        {"a.csv", STATUS_OK, "csv 2\n"},
        {"a.json", STATUS_OK, "json 2\n"},
        {"a.txt", STATUS_BUSY, NULL},     // it exists
        {"+a.txt", STATUS_OK, "<a&b>\n"}, // it may be replaced
        {"a.png", STATUS_INVALID, NULL},
        {".txt", STATUS_INVALID, NULL},
        {"none/a.txt", STATUS_IO, NULL},
    };
    struct canvas canvas = small();
    struct result *result = fixture_result("a\n1\n2\n");
    static const size_t rows[] = {0, 1};
    const struct export_list list = {.result = result, .rows = rows, .count = COUNT_OF(rows)};
    const struct export_list none = {.result = result};
    char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE + 32];
    folder_make(folder);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct error err = {0};
        (void)snprintf(path, sizeof path, "%s/%s", folder, cases[i].name);
        if (cases[i].name[0] == '.')
            (void)snprintf(path, sizeof path, "%s", cases[i].name);
        const bool replaces = cases[i].name[0] == '+';
        if (replaces)
            (void)snprintf(path, sizeof path, "%s/%s", folder, cases[i].name + 1);
        assert_int_equal(export_write(path, replaces, &canvas, &list, write_rows, &err),
                         cases[i].status);
        if (!cases[i].has)
            continue;
        char *text = read_file(path, NULL);
        assert_non_null(strstr(text, cases[i].has));
        free(text);
    }
    struct error err = {0};
    (void)snprintf(path, sizeof path, "%s/c.csv", folder);
    assert_int_equal(export_write(path, false, &canvas, &none, write_rows, &err), STATUS_NO_DATA);
    assert_int_not_equal(access(path, F_OK), 0);
    folder_remove(folder);
    result_free(result);
    canvas_deinit(&canvas);
}

TEST_MAIN(the_ending_of_the_name_says_the_format)
