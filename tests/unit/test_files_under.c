// Which files who comes over TCP may name: those below the one folder, wherever the
// path's links and dots lead.
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/collector/files_under.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

static char folder[FOLDER_PATH_SIZE];

static const char *in_folder(const char *name)
{
    static char paths[4][FOLDER_PATH_SIZE];
    static unsigned at;
    return folder_path(paths[at++ % COUNT_OF(paths)], folder, name);
}

static void make_file(const char *name)
{
    FILE *file = fopen(in_folder(name), "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
    (void)state;
    folder_make(folder);
    assert_int_equal(mkdir(in_folder("files"), 0700), 0);
    assert_int_equal(mkdir(in_folder("files/more"), 0700), 0);
    assert_int_equal(mkdir(in_folder("files2"), 0700), 0);
    make_file("files/there");
    make_file("files2/there");
    make_file("secret");
    assert_int_equal(symlink(in_folder("secret"), in_folder("files/out")), 0);
    assert_int_equal(symlink(in_folder("nothing"), in_folder("files/nowhere")), 0);
    assert_int_equal(symlink(in_folder("files2"), in_folder("files/sideways")), 0);
    assert_int_equal(symlink(in_folder("files/there"), in_folder("files/in")), 0);
    assert_int_equal(symlink(in_folder("files"), in_folder("way")), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    folder_remove(folder);
    return 0;
}

static void test_what_is_below(void **state)
{
    static const struct {
        const char *path;
        enum status status;
    } cases[] = {
        {"files/there", STATUS_OK},
        {"files/new", STATUS_OK},
        {"files/more/new", STATUS_OK},
        {"files/more/../new", STATUS_OK},
        {"files/in", STATUS_OK},
        {"way/new", STATUS_OK},
        {"files2/there", STATUS_DENIED}, // begins alike
        {"files2/new", STATUS_DENIED},
        {"secret", STATUS_DENIED},
        {"new", STATUS_DENIED},
        {"files/..", STATUS_DENIED},
        {"files/../secret", STATUS_DENIED},
        {"files/../new", STATUS_DENIED},
        {"files/out", STATUS_DENIED},
        {"files/nowhere", STATUS_DENIED},
        {"files/sideways/there", STATUS_DENIED},
        {"files/sideways/new", STATUS_DENIED},
        {"files/none/new", STATUS_DENIED},
        {"files/new/", STATUS_DENIED},
    };
    (void)state;
    struct error err;
    // The folder itself may be named by a link too.
    static const char *const folders[] = {"files", "files/", "way"};
    for (size_t f = 0; f < COUNT_OF(folders); f++)
        for (size_t i = 0; i < COUNT_OF(cases); i++)
            if (files_under_check(in_folder(folders[f]), in_folder(cases[i].path), &err) !=
                cases[i].status)
                fail_msg("%s below %s", cases[i].path, folders[f]);
}

static void test_odd_folders(void **state)
{
    (void)state;
    struct error err;
    const char *there = in_folder("files/there");
    assert_int_equal(files_under_check("/", there, &err), STATUS_OK);
    assert_int_equal(files_under_check(NULL, there, &err), STATUS_DENIED);
    assert_non_null(strstr(err.text, "--files-under"));
    assert_int_equal(files_under_check("", there, &err), STATUS_DENIED);
    assert_int_equal(files_under_check(in_folder("none"), there, &err), STATUS_DENIED);
    assert_int_equal(files_under_check("/", "there", &err), STATUS_DENIED);
    assert_int_equal(files_under_check("/", "", &err), STATUS_DENIED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_below),
        cmocka_unit_test(test_odd_folders),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
