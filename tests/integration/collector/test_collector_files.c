// The files around inferstatd: what a refusal and an orderly end leave behind,
// and that a store copied while it collects has the records.
#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/store/store.h"
#include "common/sys/clock.h"
#include "common/store/schema/database_open.h"
#include "tests/integration/collector/collector_fixture.h"

static void start(struct daemon *daemon, const char *db)
{
    const char *const argv[] = {INFERSTATD, "--db", db, "--listen", address, NULL};
    if (!daemon_start(daemon, argv))
        fail_msg("%s", daemon->output);
}

// The names in a folder of the test's, sorted, each followed by a space.
static void expect_names(const char *name, const char *expected)
{
    char full[FOLDER_PATH_SIZE], names[512] = "";
    struct dirent **entries = NULL;
    const int count = scandir(folder_path(full, folder, name), &entries, NULL, alphasort);
    assert_true(count >= 2);
    for (int i = 0; i < count; i++) {
        const size_t used = strlen(names);
        if (entries[i]->d_name[0] != '.')
            (void)snprintf(names + used, sizeof names - used, "%s ", entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    assert_string_equal(names, expected);
}

static void make_text(void)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 1000; i++)
        assert_true(fputs("this is no database\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void make_folder(void)
{
    assert_int_equal(mkdir(path, 0755), 0);
}

static void make_store(const char *sql)
{
    struct sqlite3 *db = NULL;
    assert_int_equal(database_open_writer(&db, path, NULL), STATUS_OK);
    assert_int_equal(database_exec(db, sql, NULL), STATUS_OK);
    database_close(db);
}

static void make_newer(void)
{
    make_store("PRAGMA user_version = 99");
}

static void make_truncated(void)
{
    struct stat st;
    make_store("SELECT 1");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size / 2), 0);
}

static void make_foreign(void)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE t(x)", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

TEST_CASE(test_a_refused_store_is_left_alone)
{
    static const struct {
        void (*make)(void);
        const char *words;
    } cases[] = {
        {make_text, "not an SQLite database"}, {make_folder, "a folder, not a file"},
        {make_newer, "schema is version 99"},  {make_truncated, "damaged"},
        {make_foreign, "of another program"},
    };
    const char *const argv[] = {INFERSTATD, "--db", path, "--listen", address, NULL};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        cases[i].make();
        expect_refusal(argv, 4, cases[i].words);
        char lock[FOLDER_PATH_SIZE];
        if (access(folder_path(lock, folder, "s.db.lock"), F_OK) == 0)
            fail_msg("%s: a lock file is left", cases[i].words);
        if (access(folder_path(lock, folder, "c/lock"), F_OK) == 0)
            fail_msg("%s: the address's lock file is left", cases[i].words);
        assert_int_equal(remove(path), 0);
    }
}

TEST_CASE(test_a_refused_address_leaves_no_lock)
{
    struct daemon daemon;
    char other[FOLDER_PATH_SIZE];
    start(&daemon, path);
    const char *const argv[] = {INFERSTATD, "--db",  folder_path(other, folder, "other.db"),
                                "--listen", address, NULL};
    expect_refusal(argv, 4, "another collector listens there");
    expect_names("", "c s.db s.db-shm s.db-wal s.db.lock ");
    assert_int_equal(daemon_end(&daemon, SIGTERM), 0);
}

TEST_CASE(test_two_names_of_one_store)
{
    struct daemon daemon;
    char other[FOLDER_PATH_SIZE], there[FOLDER_PATH_SIZE + 8];
    start(&daemon, path); // a new store: locked as soon as it is made
    assert_int_equal(link(path, folder_path(other, folder, "other.db")), 0);
    (void)snprintf(there, sizeof there, "ipc://%s/d", folder);
    const char *const argv[] = {INFERSTATD, "--db", other, "--listen", there, NULL};
    expect_refusal(argv, 4, "under another name");
    struct error err = {0};
    struct store *store = NULL;
    if (store_open(&store, path, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    store_close(store);
    assert_int_equal(daemon_end(&daemon, SIGTERM), 0);
}

static void expect_mode(const char *name, unsigned mode)
{
    char full[FOLDER_PATH_SIZE];
    struct stat about;
    assert_int_equal(stat(folder_path(full, folder, name), &about), 0);
    if ((about.st_mode & 07777) != mode)
        fail_msg("%s: %04o, not %04o", name, (unsigned)about.st_mode & 07777, mode);
}

// Whoever may read the index of the log may lock it, and so stop the writer.
TEST_CASE(test_who_may_read_the_store)
{
    static const char *const names[] = {"s.db", "s.db-wal", "s.db-shm"};
    const char *const alone[] = {INFERSTATD, "--db", path, "--listen", address, NULL};
    const char *const group[] = {INFERSTATD, "--db",         path, "--listen",
                                 address,    "--group-read", NULL};
    static const struct {
        bool group, old; // old: the store was made by an earlier version and not closed
        unsigned mode;
    } cases[] = {
        {false, false, 0600}, {true, true, 0640}, {false, true, 0600}, {true, false, 0640}};
    const mode_t before = umask(022);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct daemon daemon;
        char name[FOLDER_PATH_SIZE];
        if (!cases[i].old)
            (void)remove(path);
        if (!daemon_start(&daemon, cases[i].group ? group : alone))
            fail_msg("%s", daemon.output);
        for (size_t n = 0; n < COUNT_OF(names); n++)
            expect_mode(names[n], cases[i].mode);
        assert_int_equal(daemon_end(&daemon, SIGKILL), -SIGKILL);
        for (size_t n = 0; n < COUNT_OF(names); n++)
            assert_int_equal(chmod(folder_path(name, folder, names[n]), 0644), 0);
        if (i + 1 < COUNT_OF(cases) && !cases[i + 1].old)
            for (size_t n = 0; n < COUNT_OF(names); n++)
                assert_int_equal(remove(folder_path(name, folder, names[n])), 0);
    }
    (void)umask(before);
}

TEST_CASE(test_two_paths_to_one_store)
{
    struct daemon daemon;
    char link[FOLDER_PATH_SIZE], there[FOLDER_PATH_SIZE + 8];
    start(&daemon, path);
    assert_int_equal(symlink("s.db", folder_path(link, folder, "link.db")), 0);
    (void)snprintf(there, sizeof there, "ipc://%s/d", folder);
    const char *const argv[] = {INFERSTATD, "--db", link, "--listen", there, NULL};
    expect_refusal(argv, 4, "in use by process");
    assert_int_equal(daemon_end(&daemon, SIGTERM), 0);
}

TEST_CASE(test_only_the_last_folder_is_made)
{
    struct daemon daemon;
    char deep[FOLDER_PATH_SIZE], one[FOLDER_PATH_SIZE];
    const char *const argv[] = {INFERSTATD, "--db",  folder_path(deep, folder, "no/such/x.db"),
                                "--listen", address, NULL};
    expect_refusal(argv, 4, "there is no folder");
    expect_names("", "");
    start(&daemon, folder_path(one, folder, "one/x.db"));
    assert_int_equal(access(one, F_OK), 0);
    assert_int_equal(daemon_end(&daemon, SIGTERM), 0);
}

// The default path's folders are all made.
TEST_CASE(test_the_default_store)
{
    struct daemon daemon;
    char data[FOLDER_PATH_SIZE];
    assert_int_equal(setenv("XDG_DATA_HOME", folder_path(data, folder, "home/share"), 1), 0);
    const char *const argv[] = {INFERSTATD, "--listen", address, NULL};
    const bool started = daemon_start(&daemon, argv);
    assert_int_equal(unsetenv("XDG_DATA_HOME"), 0);
    if (!started)
        fail_msg("%s", daemon.output);
    assert_int_equal(daemon_end(&daemon, SIGTERM), 0);
    expect_names("home/share/inferstat", "inferstat.db inferstat.db.lock ");
}

static void copy_file(const char *from, const char *to)
{
    static unsigned char bytes[1 << 16];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_non_null(in);
    assert_non_null(out);
    size_t size;
    while ((size = fread(bytes, 1, sizeof bytes, in)) > 0)
        assert_int_equal(fwrite(bytes, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
    (void)fclose(in);
}

// The inferences in a copy of the store's file alone; -1 while it cannot be read.
static int64_t copied_rows(void)
{
    char copy[FOLDER_PATH_SIZE];
    const struct query query = {.kind = QUERY_SUMMARY};
    struct store *store = NULL;
    struct result *result = NULL;
    int64_t rows = -1;
    copy_file(path, folder_path(copy, folder, "copy.db"));
    if (store_open(&store, copy, NULL) != STATUS_OK)
        return -1;
    if (store_query(store, &query, &result, NULL) == STATUS_OK)
        rows = result_integer(result, 0, "inferences", -1);
    result_free(result);
    store_close(store);
    return rows;
}

// How soon is the unit test's matter; here the time is only bounded.
TEST_CASE(test_a_copy_has_the_records)
{
    collector_start(NULL, NULL);
    producer_open(&producer, endpoint("ingest"), 1);
    say_hello();
    store_numbers(1, 20);
    const uint64_t deadline = clock_monotonic_ns() + UINT64_C(15000000000);
    while (copied_rows() != 20 && clock_monotonic_ns() < deadline)
        clock_sleep_until_ns(clock_monotonic_ns() + 100000000);
    assert_int_equal(copied_rows(), 20);
    producer_close(&producer);
}

TEST_CASE(test_an_orderly_end_takes_the_sockets_away)
{
    struct daemon daemon;
    start(&daemon, path);
    char mine[FOLDER_PATH_SIZE];
    copy_file("/dev/null", folder_path(mine, folder, "c/mine"));
    expect_names("c", "admin ingest live lock mine query ");
    assert_int_equal(daemon_end(&daemon, SIGTERM), 0);
    expect_names("c", "lock mine ");
    expect_names("", "c s.db s.db.lock ");
}

TEST_MAIN_EACH(collector_set_up, collector_tear_down, test_a_refused_store_is_left_alone,
               test_a_refused_address_leaves_no_lock, test_two_paths_to_one_store,
               test_two_names_of_one_store, test_who_may_read_the_store,
               test_only_the_last_folder_is_made, test_the_default_store,
               test_a_copy_has_the_records, test_an_orderly_end_takes_the_sockets_away)
