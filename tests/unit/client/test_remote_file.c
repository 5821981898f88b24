#include "tests/support/test.h"

#include <unistd.h>

#include <sqlite3.h>

#include "client/remote/remote.h"
#include "common/store/sqlite/database.h"
#include "common/store/sqlite/lock.h"
#include "common/store/schema/database_open.h"
#include "tests/support/folder.h"

#define SECOND_NS UINT64_C(1000000000)

static const uint64_t patience_ns = 30 * SECOND_NS; // where an answer is sure to come
static const uint64_t brief_ns = SECOND_NS / 10;    // where none will

// A store with one run, and a writer on it as a collector would be.
struct scene {
    char folder[FOLDER_PATH_SIZE];
    char path[FOLDER_PATH_SIZE];
    struct sqlite3 *db;
};

static void execute(struct scene *scene, const char *sql)
{
    struct error err = {0};
    expect_ok(database_exec(scene->db, sql, &err), &err);
}

static void set_up(struct scene *scene)
{
    folder_make(scene->folder);
    (void)folder_path(scene->path, scene->folder, "store.db");
    assert_int_equal(database_open_writer(&scene->db, scene->path, NULL), STATUS_OK);
    execute(scene, "INSERT INTO name(id, text) VALUES(1, 'host'), (2, 'tokenize')");
    execute(scene, "INSERT INTO run(run, started_ns, received_ns, heard_ns, uuid, host, pid,"
                   " \"end\", worker_version, protocol, os, kernel, cpu, cpu_count,"
                   " host_memory_bytes, device_count, produced, stored, duplicates)"
                   " VALUES(1, 1, 1, 1, '11111111-2222-4333-8444-555555555555', 1, 1, 0, '', 1,"
                   " '', '', '', 1, 1, 0, 0, 0, 0)");
}

static void tear_down(struct scene *scene)
{
    database_close(scene->db);
    folder_remove(scene->folder);
}

// Adds operations first..last, each as long as its number; a later one has
// begun earlier, which must not matter to who follows.
static void add_operations(struct scene *scene, int first, int last)
{
    char *sql = sqlite3_mprintf(
        "WITH RECURSIVE n(i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
        " INSERT INTO operation(run, stream, number, started_ns, received_ns, operation,"
        " duration_ns) SELECT 1, 0, i, 1000000 - i, 1000001 - i, 2, i FROM n",
        first, last);
    execute(scene, sql);
    sqlite3_free(sql);
}

static struct remote *follow(struct scene *scene, uint32_t kinds, enum remote_live_mode mode)
{
    struct remote *live;
    struct remote_target target = {.db = scene->path};
    assert_int_equal(remote_open(&live, &target, NULL), STATUS_OK);
    assert_int_equal(remote_subscribe(live, kinds, mode, NULL), STATUS_OK);
    return live;
}

// Expects operations first..last to come, in order, in however many pages.
static void expect_operations(struct remote *live, int first, int last)
{
    for (int number = first; number <= last;) {
        enum record_kind kind;
        struct result *result;
        uint64_t missed;
        assert_int_equal(remote_live_next(live, patience_ns, -1, &kind, &result, &missed, NULL),
                         STATUS_OK);
        assert_int_equal(kind, RECORD_KIND_OPERATION);
        assert_int_equal(missed, 0);
        assert_true(result_row_count(result) > 0);
        for (size_t row = 0; row < result_row_count(result); row++, number++)
            assert_int_equal(result_integer(result, row, "number", -1), number);
        assert_true(number <= last + 1);
        result_free(result);
    }
}

static void expect_nothing(struct remote *live)
{
    enum record_kind kind;
    struct result *result;
    uint64_t missed;
    assert_int_equal(remote_live_next(live, brief_ns, -1, &kind, &result, &missed, NULL),
                     STATUS_TIMEOUT);
}

TEST_CASE(test_follow)
{
    struct scene scene;
    set_up(&scene);
    add_operations(&scene, 1, 3);
    struct remote *live = follow(&scene, 0, REMOTE_LIVE_RECORDS);
    expect_nothing(live); // what was there before is not live
    add_operations(&scene, 4, 4);
    expect_operations(live, 4, 4);
    expect_nothing(live);
    add_operations(&scene, 5, 2600); // more than a page
    expect_operations(live, 5, 2600);
    execute(&scene, "DELETE FROM operation WHERE number > 10");
    expect_nothing(live);

    // Ids that a clear has freed are given out again.
    execute(&scene, "DELETE FROM operation");
    struct remote *later = follow(&scene, 1U << RECORD_KIND_OPERATION, REMOTE_LIVE_RECORDS);
    add_operations(&scene, 3000, 3001);
    expect_operations(later, 3000, 3001);
    remote_close(later);
    remote_close(live);
    tear_down(&scene);
}

TEST_CASE(test_other_kinds_are_left_out)
{
    struct scene scene;
    set_up(&scene);
    struct remote *live = follow(&scene, 1U << RECORD_KIND_INFERENCE, REMOTE_LIVE_RECORDS);
    add_operations(&scene, 1, 3);
    expect_nothing(live);
    remote_close(live);
    tear_down(&scene);
}

// Who wants no records is told of their kind alone, once whatever their count.
TEST_CASE(test_ids_only)
{
    struct scene scene;
    set_up(&scene);
    struct remote *live = follow(&scene, 0, REMOTE_LIVE_NOTIFICATIONS);
    expect_nothing(live);
    add_operations(&scene, 1, 3000);
    enum record_kind kind;
    struct result *result;
    uint64_t missed;
    assert_int_equal(remote_live_next(live, patience_ns, -1, &kind, &result, &missed, NULL),
                     STATUS_OK);
    assert_int_equal(kind, RECORD_KIND_OPERATION);
    assert_null(result);
    expect_nothing(live);
    remote_close(live);
    tear_down(&scene);
}

TEST_CASE(test_queries)
{
    struct scene scene;
    set_up(&scene);
    add_operations(&scene, 1, 3);
    struct remote *remote;
    struct remote_target target = {.db = scene.path};
    assert_int_equal(remote_open(&remote, &target, NULL), STATUS_OK);
    assert_true(remote_is_file(remote));
    assert_string_equal(remote_name(remote), scene.path);

    struct query query = {.kind = QUERY_RECORDS, .records.kind = RECORD_KIND_OPERATION, .limit = 2};
    struct result *result;
    assert_int_equal(remote_query(remote, &query, &result, NULL), STATUS_OK);
    assert_int_equal(result_row_count(result), 2);
    assert_true(result_next_cursor(result) != 0);
    result_free(result);

    // With nobody else on the store it can be cleared through the file.
    query = (struct query){.kind = QUERY_CLEAR};
    assert_int_equal(remote_query(remote, &query, &result, NULL), STATUS_OK);
    assert_int_equal(result_integer(result, 0, "cleared", -1), 3);
    result_free(result);

    struct lock lock;
    assert_int_equal(lock_acquire_store(&lock, scene.path, NULL), STATUS_OK);
    assert_int_equal(remote_query(remote, &query, &result, NULL), STATUS_BUSY);
    lock_release(&lock);
    remote_close(remote);
    tear_down(&scene);
}

TEST_MAIN(test_follow, test_other_kinds_are_left_out, test_ids_only, test_queries)
