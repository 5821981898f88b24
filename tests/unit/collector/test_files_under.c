// Which files who comes over TCP may name: those below the one folder, wherever the
// path's links and dots lead.
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/store/sqlite/fd_path.h"
#include "server/collector/access/files_under.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

static char folder[FOLDER_PATH_SIZE];

static const char *in_folder(const char *name)
{
    static char paths[4][FOLDER_PATH_SIZE];
    static unsigned at;
    return folder_path(paths[at++ % COUNT_OF(paths)], folder, name);
}

TEST_FIXTURE(set_up)
{
    folder_make(folder);
    assert_int_equal(mkdir(in_folder("files"), 0700), 0);
    assert_int_equal(mkdir(in_folder("files/more"), 0700), 0);
    assert_int_equal(mkdir(in_folder("files2"), 0700), 0);
    write_text(in_folder("files/there"), "");
    write_text(in_folder("files2/there"), "");
    write_text(in_folder("secret"), "");
    assert_int_equal(symlink(in_folder("secret"), in_folder("files/out")), 0);
    assert_int_equal(symlink(in_folder("nothing"), in_folder("files/nowhere")), 0);
    assert_int_equal(symlink(in_folder("files2"), in_folder("files/sideways")), 0);
    assert_int_equal(symlink(in_folder("files/there"), in_folder("files/in")), 0);
    assert_int_equal(symlink(in_folder("files"), in_folder("way")), 0);
    return 0;
}

TEST_FIXTURE(tear_down)
{
    folder_remove(folder);
    return 0;
}

TEST_CASE(test_what_is_below)
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
    struct error err;
    // The folder itself may be named by a link too.
    static const char *const folders[] = {"files", "files/", "way"};
    for (size_t f = 0; f < COUNT_OF(folders); f++)
        for (size_t i = 0; i < COUNT_OF(cases); i++)
            if (files_under_check(in_folder(folders[f]), in_folder(cases[i].path), &err) !=
                cases[i].status)
                fail_msg("%s below %s", cases[i].path, folders[f]);
}

TEST_CASE(test_odd_folders)
{
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

static ino_t folder_of(const struct files_hold *hold)
{
    struct stat about;
    assert_int_equal(fstat(hold->folder, &about), 0);
    return about.st_ino;
}

static ino_t inode_of(const char *path)
{
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    return about.st_ino;
}

// The name of the folder leads out by the time that the file is made.
TEST_CASE(test_a_link_in_the_place_of_a_held_folder)
{
    struct error err = {0};
    struct files_hold hold;
    sqlite3 *db = NULL;
    assert_int_equal(mkdir(in_folder("files/swapped"), 0700), 0);
    assert_int_equal(fd_path_allow(&err), STATUS_OK);
    assert_int_equal(
        files_under_hold(&hold, in_folder("files"), in_folder("files/swapped/new"), &err),
        STATUS_OK);
    assert_int_equal(rename(in_folder("files/swapped"), in_folder("files/moved")), 0);
    assert_int_equal(symlink(in_folder("files2"), in_folder("files/swapped")), 0);
    assert_int_equal(sqlite3_open(hold.path, &db), SQLITE_OK);
    assert_string_equal(sqlite3_db_filename(db, "main"), hold.path);
    assert_int_equal(
        sqlite3_exec(db, "PRAGMA journal_mode=WAL; CREATE TABLE t(x)", NULL, NULL, NULL),
        SQLITE_OK);
    assert_int_equal(access(in_folder("files/moved/new-wal"), F_OK), 0);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(access(in_folder("files/moved/new"), F_OK), 0);
    assert_int_not_equal(access(in_folder("files2/new"), F_OK), 0);
    files_under_release(&hold);
    assert_int_equal(remove(in_folder("files/swapped")), 0);
}

// The file's own name becomes a link.
TEST_CASE(test_a_link_in_the_place_of_the_file)
{
    struct error err = {0};
    struct files_hold hold;
    sqlite3 *db = NULL;
    assert_int_equal(fd_path_allow(&err), STATUS_OK);
    assert_int_equal(files_under_hold(&hold, in_folder("files"), in_folder("files/later"), &err),
                     STATUS_OK);
    assert_int_equal(symlink(in_folder("secret"), in_folder("files/later")), 0);
    assert_int_equal(sqlite3_open_v2(hold.path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_CANTOPEN);
    (void)sqlite3_close(db);
    files_under_release(&hold);
    assert_int_equal(remove(in_folder("files/later")), 0);
}

static atomic_bool enough;

static void *swap(void *context)
{
    char folder_name[FOLDER_PATH_SIZE], link_name[FOLDER_PATH_SIZE];
    (void)context;
    (void)folder_path(folder_name, folder, "files/turning");
    (void)folder_path(link_name, folder, "files/turned");
    while (!atomic_load(&enough))
        (void)renameat2(AT_FDCWD, folder_name, AT_FDCWD, link_name, RENAME_EXCHANGE);
    return NULL;
}

// A folder and a link that leads out change places all the time: what is held is the folder,
// or nothing.
TEST_CASE(test_a_link_that_comes_and_goes)
{
    enum { TRIES = 3000 };
    struct error err = {0};
    pthread_t thread;
    assert_int_equal(mkdir(in_folder("files/turning"), 0700), 0);
    assert_int_equal(symlink(in_folder("files2"), in_folder("files/turned")), 0);
    const ino_t inside = inode_of(in_folder("files/turning"));
    char path[FOLDER_PATH_SIZE], under[FOLDER_PATH_SIZE];
    (void)folder_path(path, folder, "files/turning/new");
    (void)folder_path(under, folder, "files");
    atomic_store(&enough, false);
    assert_int_equal(pthread_create(&thread, NULL, swap, NULL), 0);
    unsigned outside = 0;
    for (unsigned i = 0; i < TRIES; i++) {
        struct files_hold hold;
        if (files_under_hold(&hold, under, path, &err) == STATUS_OK && folder_of(&hold) != inside)
            outside++;
        files_under_release(&hold);
    }
    atomic_store(&enough, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(outside, 0);
}

TEST_MAIN_ONCE(set_up, tear_down, test_what_is_below, test_odd_folders,
               test_a_link_in_the_place_of_a_held_folder, test_a_link_in_the_place_of_the_file,
               test_a_link_that_comes_and_goes)
