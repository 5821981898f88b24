// Settings: made by keys, kept in a file, read at the next start.
#include "tests/support/folder.h"
#include "tests/support/test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "client/tui/key_bindings.h"
#include "client/tui/settings/settings.h"
#include "client/tui/settings/settings_file.h"
#include "client/tui/view.h"
#include "tests/support/tui_scenes.h"

static char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE + 32];

static int set_up(void **state)
{
    (void)state;
    folder_make(folder);
    (void)snprintf(path, sizeof path, "%s/inferstat/top.conf", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    folder_remove(folder);
    return 0;
}

static void put_settings(const char *text)
{
    char place[FOLDER_PATH_SIZE];
    (void)mkdir(folder_path(place, folder, "inferstat"), 0700);
    (void)write_text(path, text);
}

static void press(struct model *model, const uint32_t *codes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)fixture_key(model, codes[i]);
}

// Goes to the row whose label it is.
static void find_row(struct model *model, const char *wanted)
{
    const char *label = "", *value;
    for (size_t row = 0; row < settings_rows(model); row++)
        fixture_key(model, KEY_CODE_UP);
    for (size_t row = 0; row < settings_rows(model); row++) {
        settings_row(model, model->settings.cursor, &label, &value);
        if (strcmp(label, wanted) == 0)
            return;
        fixture_key(model, KEY_CODE_DOWN);
    }
    fail_msg("no row %s", wanted);
}

static const char *value_now(const struct model *model)
{
    const char *label, *value;
    settings_row(model, model->settings.cursor, &label, &value);
    return value;
}

TEST_CASE(keys_change_them_at_once)
{
    struct model *model = fixture_new(80, 24, scene_many);
    assert_int_equal(fixture_key(model, KEY_CODE_F2), 0);
    assert_int_equal(model->overlay, OVERLAY_SETUP);
    assert_string_equal(value_now(model), "default");
    assert_true(fixture_key(model, KEY_CODE_RIGHT) & EFFECT_LOOK);
    assert_int_equal(model->settings.theme, THEME_LIGHT);
    (void)fixture_key(model, KEY_CODE_LEFT);
    (void)fixture_key(model, KEY_CODE_LEFT);
    assert_int_equal(model->settings.theme, THEME_MONO);
    find_row(model, "refresh");
    (void)fixture_key(model, KEY_CODE_ENTER);
    assert_true(model->interval_seconds == 5);
    find_row(model, "temperatures");
    assert_true(fixture_key(model, KEY_CODE_ESCAPE) & EFFECT_SAVE);
    assert_int_equal(model->overlay, OVERLAY_NONE);

    // Columns are of the table that has the keys; its first one stays.
    fixture_key(model, '2');
    const struct grid_state *hosts = &model->views[VIEW_HOSTS].panels[0];
    fixture_key(model, KEY_CODE_F2);
    for (int i = 0; i < 4; i++)
        fixture_key(model, KEY_CODE_DOWN);
    const char *label, *value;
    settings_row(model, model->settings.cursor, &label, &value);
    assert_string_equal(label, view_current(model)->panels[0].grid->columns[0].heading);
    fixture_key(model, KEY_CODE_LEFT);
    assert_int_equal(hosts->hidden, 0);
    fixture_key(model, KEY_CODE_DOWN);
    fixture_key(model, KEY_CODE_LEFT);
    assert_int_equal(hosts->hidden, 2);
    fixture_key(model, KEY_CODE_LEFT);
    assert_int_equal(hosts->hidden, 0);
    assert_int_equal(hosts->pinned & 2, 2);

    // The mouse: a press on a row, and one more on it.
    (void)fixture_key(model, KEY_CODE_ESCAPE);
    fixture_key(model, KEY_CODE_F2);
    char *screen = fixture_screen(model, false);
    int y = 0;
    const char *line = strstr(screen, "temperatures");
    assert_non_null(line);
    for (const char *c = screen; c < line; c++)
        y += *c == '\n';
    free(screen);
    const struct event there = {.kind = EVENT_PRESS, .x = 30, .y = y};
    (void)fixture_event(model, there);
    assert_int_equal(model->settings.cursor, 1);
    (void)fixture_event(model, there);
    assert_true(model->choice.fahrenheit);
    (void)fixture_event(model, (struct event){.kind = EVENT_PRESS, .x = 0, .y = 0});
    assert_int_equal(model->overlay, OVERLAY_SETUP);
    fixture_free(model);
}

TEST_CASE(the_file_keeps_what_it_does_not_know)
{
    struct error err = {0};
    put_settings("# mine\n\nshape = round\n theme=default # of old\nrefresh = 1s\nrefresh = 10s");
    struct model *model = fixture_new(80, 24, scene_many);
    settings_load(model, path);
    assert_true(model->interval_seconds == 10);
    const uint32_t codes[] = {KEY_CODE_F2,   KEY_CODE_RIGHT, KEY_CODE_RIGHT, KEY_CODE_DOWN,
                              KEY_CODE_DOWN, KEY_CODE_DOWN,  KEY_CODE_RIGHT, KEY_CODE_ESCAPE,
                              '2',           KEY_CODE_F2};
    press(model, codes, COUNT_OF(codes));
    find_row(model, "load");
    fixture_key(model, KEY_CODE_LEFT);
    assert_int_equal(settings_save(model, path, &err), STATUS_OK);
    char *text = read_file(path, NULL);
    assert_string_equal(text, "# mine\n\nshape = round\ntheme = colour-blind\nrefresh = 30s\n"
                              "columns.hosts.1 = -load_1m\n");
    free(text);

    struct model *next = fixture_new(80, 24, scene_many);
    settings_load(next, path);
    assert_string_equal(next->settings.error, "");
    assert_int_equal(next->settings.theme, THEME_SAFE);
    assert_int_equal(next->views[VIEW_HOSTS].panels[0].hidden,
                     model->views[VIEW_HOSTS].panels[0].hidden);
    assert_int_equal(settings_save(next, path, &err), STATUS_OK); // nothing was changed
    text = read_file(path, NULL);
    assert_non_null(strstr(text, "shape = round\ntheme = colour-blind\n"));
    free(text);
    fixture_free(next);
    fixture_free(model);
}

// A link to a file elsewhere stays one, and that file keeps its mode.
TEST_CASE(a_link_stays_one)
{
    struct error err = {0};
    struct stat info;
    char target[sizeof path + 8], old[sizeof path + 8];
    put_settings("refresh = 1s\n");
    (void)snprintf(target, sizeof target, "%s.mine", path);
    assert_int_equal(rename(path, target), 0);
    assert_int_equal(chmod(target, 0640), 0);
    assert_int_equal(symlink(target, path), 0);
    struct model *model = fixture_new(80, 24, scene_many);
    const uint32_t codes[] = {KEY_CODE_F2, KEY_CODE_RIGHT, KEY_CODE_RIGHT, KEY_CODE_ESCAPE};
    press(model, codes, COUNT_OF(codes));
    assert_int_equal(settings_save(model, path, &err), STATUS_OK);
    assert_true(readlink(path, old, sizeof old) > 0);
    char *text = read_file(target, NULL);
    assert_string_equal(text, "refresh = 1s\ntheme = colour-blind\n");
    free(text);
    assert_int_equal(stat(target, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    assert_int_equal(unlink(path), 0);
    fixture_free(model);
}

TEST_CASE(a_broken_file_is_told_and_kept)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"theme = purple\ntemperature = fahrenheit\n", "no such value: \"purple\""},
        {"nonsense\ntemperature = fahrenheit\n", "top.conf:1"},
        {"columns.now.1 = - + -nothing +\ntemperature = fahrenheit\n",
         "columns.now.1: no such column: \"-\""},
        {"columns.hosts.1 = -ratio_high +load_1m -load\ntemperature = fahrenheit\n",
         "top.conf:1: columns.hosts.1: no such column: \"-ratio_high\""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct error err = {0};
        put_settings(cases[i].text);
        struct model *model = fixture_new(80, 24, scene_many);
        settings_load(model, path);
        assert_true(strstr(model->settings.error, cases[i].error) != NULL);
        assert_int_equal(model->notice[0] != '\0', cases[i].error[0] != '\0');
        assert_true(model->choice.fahrenheit); // the other lines hold, and known columns
        assert_int_equal(model->views[VIEW_HOSTS].panels[0].pinned != 0, i == 3);
        assert_int_equal(model->views[VIEW_HOSTS].panels[0].hidden, 0);
        fixture_key(model, KEY_CODE_F2);
        assert_int_equal(fixture_shows(model, "settings:"), cases[i].error[0] != '\0');
        model->settings.changed = 1u << 2;
        assert_int_equal(settings_save(model, path, &err), STATUS_OK);
        char *text = read_file(path, NULL);
        assert_int_equal(strncmp(text, cases[i].text, strlen(cases[i].text)), 0);
        assert_string_equal(text + strlen(cases[i].text), "times = local\n");
        free(text);
        fixture_free(model);
    }
}

TEST_CASE(what_cannot_be_written_is_told)
{
    struct error err = {0};
    struct model *model = fixture_new(80, 24, scene_many);
    settings_load(model, path); // there is none
    assert_string_equal(model->settings.error, "");
    model->settings.changed = 1;
    assert_int_equal(settings_save(model, path, &err), STATUS_OK);
    char *text = read_file(path, NULL);
    assert_string_equal(text, "# inferstat top (F2 changes these lines)\ntheme = default\n");
    free(text);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0); // a folder of that name
    model->settings.changed = 1;
    assert_int_not_equal(settings_save(model, path, &err), STATUS_OK);
    assert_true(err.text[0] != '\0');
    settings_load(model, path);
    assert_true(model->settings.error[0] != '\0');
    fixture_free(model);
}

TEST_MAIN_EACH(set_up, tear_down, keys_change_them_at_once, the_file_keeps_what_it_does_not_know,
               a_link_stays_one, a_broken_file_is_told_and_kept, what_cannot_be_written_is_told)
