// The lane for slow queries: one at a time, ended when the collector ends.
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/store/compare/baseline.h"
#include "common/store/sqlite/database.h"
#include "common/store/store.h"
#include "common/sys/clock.h"
#include "common/wire/codec.h"
#include "common/store/schema/database_open.h"
#include "server/collector/services/query_worker.h"
#include "tests/support/folder.h"
#include "tests/support/store/measured.h"
#include "tests/support/test.h"

static char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE];
static struct channels *channels;
static struct query_worker *lane;

TEST_FIXTURE(set_up)
{
    struct error err = {0};
    sqlite3 *db = NULL;
    folder_make(folder);
    (void)folder_path(path, folder, "s.db");
    if (database_open_writer(&db, path, &err) != STATUS_OK ||
        channels_new(&channels, &err) != STATUS_OK ||
        query_worker_start(&lane, path, 1, channels, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    database_close(db);
    return 0;
}

TEST_FIXTURE(tear_down)
{
    query_worker_stop(lane);
    channels_free(channels);
    folder_remove(folder);
    return 0;
}

static enum status ask(uint64_t id, struct error *err)
{
    const struct job_return to = {.socket = 3, .route = {.connection = 1}};
    const struct message_query asked = {
        .id = id, .protocol = MESSAGE_PROTOCOL, .query.kind = QUERY_AUDIT};
    return query_worker_ask(lane, &to, &asked, NULL, NULL, err);
}

// An error that is cut at its largest size, or quotes bytes that are no text, arrives as text.
TEST_CASE(test_any_error_is_answered)
{
    char accents[2 * ERROR_TEXT_SIZE + 1];
    for (unsigned i = 0; i < ERROR_TEXT_SIZE; i++)
        memcpy(accents + 2 * (size_t)i, "\xc3\xa9", 3);
    const char *const quoted[] = {accents, accents + 1, "\xff\xfe"};
    for (size_t i = 0; i < COUNT_OF(quoted); i++) {
        struct error err = {0};
        for (unsigned shift = 0; shift < 2; shift++) {
            const enum status status =
                error_set(&err, STATUS_INVALID, "%s%s", shift ? "x" : "", quoted[i]);
            struct answer *answer = reply_encode(&(struct job_return){0}, 7, status, NULL, &err);
            assert_non_null(answer);
            struct message message;
            assert_int_equal(codec_decode(&message, answer->bytes, answer->size, NULL), STATUS_OK);
            assert_int_equal(message.reply.status, REPLY_INVALID);
            assert_true(message.reply.error.size > 0);
            message_free(&message);
            answer_free(answer);
        }
    }
}

// Waits for the answer and takes what it is to.
static void expect_answer(uint64_t id, enum reply_status status)
{
    queue_wait(channels->replies, INT64_C(60000000000));
    struct answer *answer = queue_pop(channels->replies);
    assert_non_null(answer);
    assert_int_equal(answer->to.socket, 3);
    struct message message;
    assert_int_equal(codec_decode(&message, answer->bytes, answer->size, NULL), STATUS_OK);
    assert_int_equal(message.kind, MESSAGE_REPLY);
    assert_int_equal(message.reply.id, id);
    assert_int_equal(message.reply.status, status);
    message_free(&message);
    answer_free(answer);
}

// Asks as soon as the one before is done with.
static void ask_next(uint64_t id)
{
    struct error err;
    enum status status;
    const uint64_t until_ns = clock_monotonic_ns() + UINT64_C(60000000000);
    do
        status = ask(id, &err);
    while (status == STATUS_BUSY && clock_monotonic_ns() < until_ns);
    assert_int_equal(status, STATUS_OK);
}

TEST_CASE(test_one_at_a_time)
{
    // A reader waits for whoever has the store to himself.
    sqlite3 *db = NULL;
    struct error err = {0};
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(database_exec(db, "PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE", &err),
                     STATUS_OK);
    assert_int_equal(ask(7, &err), STATUS_OK);
    assert_int_equal(ask(8, &err), STATUS_BUSY);
    assert_non_null(strstr(err.text, "another audit is under way"));
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    expect_answer(7, REPLY_OK);
    ask_next(9);
    expect_answer(9, REPLY_OK);
}

// While the log is to be reset no query begins (reader_gate.h).
TEST_CASE(test_a_query_waits_at_the_gate)
{
    struct error err = {0};
    assert_true(reader_gate_close(&channels->gate));
    assert_int_equal(ask(7, &err), STATUS_OK);
    queue_wait(channels->replies, INT64_C(100000000));
    assert_false(queue_is_nonempty(channels->replies));
    reader_gate_open(&channels->gate, false);
    expect_answer(7, REPLY_OK);
}

// Averages of all records wait for each other, as many as there is room for, and are answered
// in the order in which they came.
TEST_CASE(test_a_few_wait)
{
    struct error err = {0};
    sqlite3 *db = NULL;
    query_worker_stop(lane);
    assert_int_equal(query_worker_start(&lane, path, QUERY_WORKER_ROOM_MAX, channels, &err),
                     STATUS_OK);
    const struct job_return to = {.socket = 3, .route = {.connection = 1}};
    struct message_query asked = {
        .protocol = MESSAGE_PROTOCOL,
        .query = {.kind = QUERY_AVERAGE, .metric = "goodput_per_second", .average.slo = "ttft=1s"}};
    for (uint64_t round = 0; round < 3; round++) { // around the ring
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        assert_int_equal(database_exec(db, "PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE", &err),
                         STATUS_OK);
        for (uint64_t i = 0; i < QUERY_WORKER_ROOM_MAX; i++) {
            asked.id = 100 * round + i;
            // The one before may have been answered, and not be gone yet.
            const uint64_t until_ns = clock_monotonic_ns() + UINT64_C(60000000000);
            enum status status;
            do
                status = query_worker_ask(lane, &to, &asked, NULL, NULL, &err);
            while (status == STATUS_BUSY && clock_monotonic_ns() < until_ns);
            assert_int_equal(status, STATUS_OK);
        }
        assert_int_equal(query_worker_ask(lane, &to, &asked, NULL, NULL, &err), STATUS_BUSY);
        assert_non_null(strstr(err.text, "4 others that read all records are under way"));
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        for (uint64_t i = 0; i < QUERY_WORKER_ROOM_MAX; i++)
            expect_answer(100 * round + i, REPLY_NO_DATA);
    }
}

// What rollups tell is no matter for a lane, however large the store is.
TEST_CASE(test_what_reads_all_records)
{
    const struct {
        struct query query;
        bool scans;
    } cases[] = {
        {{.kind = QUERY_AVERAGE, .metric = "ttft_ns"}, false},
        {{.kind = QUERY_AVERAGE, .metric = "load.duration_ns"}, false},
        {{.kind = QUERY_AVERAGE,
          .metric = "ttft_ns",
          .group_count = 2,
          .group_by = {QUERY_BY_MODEL, QUERY_BY_HOST}},
         false},
        {{.kind = QUERY_AVERAGE, .metric = "ttft_ns", .group_count = 1, .group_by = {QUERY_BY_RUN}},
         true},
        {{.kind = QUERY_AVERAGE, .metric = "ttft_ns", .filter.by[QUERY_BY_STATUS] = "ok"}, true},
        {{.kind = QUERY_AVERAGE, .metric = "goodput_per_second"}, true},
        {{.kind = QUERY_AVERAGE, .metric = "mbu_ratio"}, true},
        {{.kind = QUERY_AVERAGE, .metric = "mfu_ratio"}, true},
        {{.kind = QUERY_AVERAGE, .metric = "output_token_rate"}, false},
        {{.kind = QUERY_AVERAGE, .metric = "tokens_per_joule"}, false},
        {{.kind = QUERY_AVERAGE, .metric = "error_ratio", .filter.by[QUERY_BY_RUN] = "1234"}, true},
        {{.kind = QUERY_AVERAGE, .metric = "no_such"}, false},
        {{.kind = QUERY_SUMMARY}, false},
        {{.kind = QUERY_AVERAGE, .metric = "e2e_ns", .group_count = QUERY_DIMENSION_COUNT + 1},
         false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (query_worker_scans(&cases[i].query) != cases[i].scans)
            fail_msg("case %zu", i);
}

// What a baseline is to keep goes to the writer, and what there is none of is answered.
TEST_CASE(test_baselines_are_passed_on)
{
    struct error err;
    const struct job_return to = {.socket = 3};
    const struct message_query asked = {
        .id = 11,
        .protocol = MESSAGE_PROTOCOL,
        .query = {.kind = QUERY_BASELINE_SAVE, .baseline = {.name = "june", .force = true}}};
    assert_int_equal(query_worker_ask(lane, &to, &asked, NULL, NULL, &err), STATUS_OK);
    expect_answer(11, REPLY_NO_DATA);
    sqlite3 *db = NULL;
    assert_int_equal(database_open_writer(&db, path, &err), STATUS_OK);
    assert_true(measured_add(db, &(struct measured){.run = 1, .requests = 5}));
    database_close(db);
    enum status status;
    do
        status = query_worker_ask(lane, &to, &asked, NULL, NULL, &err);
    while (status == STATUS_BUSY);
    assert_int_equal(status, STATUS_OK);
    queue_wait(channels->inbox, INT64_C(60000000000));
    struct job *job = queue_pop(channels->inbox);
    assert_non_null(job);
    assert_int_equal(job->kind, JOB_BASELINE);
    assert_int_equal(job->query_id, 11);
    assert_int_equal(job->from.socket, 3);
    assert_true(job->query->baseline.force);
    assert_string_equal(job->baseline->name, "june");
    assert_int_equal(job->baseline->environment.runs, 1);
    job_free(job);
    assert_null(queue_pop(channels->replies));
}

TEST_CASE(test_failures_are_answers)
{
    assert_int_equal(remove(path), 0);
    ask_next(4);
    expect_answer(4, REPLY_FAILED);
    struct error err;
    const struct job_return to = {.socket = 3};
    struct message_query asked = {.id = 5, .protocol = MESSAGE_PROTOCOL};
    asked.query.kind = QUERY_AUDIT;
    asked.query.cursor = UINT64_MAX;
    sqlite3 *db = NULL;
    assert_int_equal(database_open_writer(&db, path, &err), STATUS_OK);
    database_close(db);
    enum status status;
    do
        status = query_worker_ask(lane, &to, &asked, NULL, NULL, &err);
    while (status == STATUS_BUSY);
    expect_answer(5, REPLY_INVALID);
}

TEST_CASE(test_the_end_waits_for_no_query)
{
    sqlite3 *db = NULL;
    struct error err;
    assert_int_equal(database_open_writer(&db, path, &err), STATUS_OK);
    assert_int_equal(
        database_exec(
            db,
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE"
            " i < 200000) INSERT INTO process_sample(run, stream, number, started_ns,"
            " received_ns, cpu_ratio, host_memory_bytes) SELECT 1, 0, i, 0, 0, 0, 0 FROM n",
            &err),
        STATUS_OK);
    database_close(db);
    ask_next(6);
    query_worker_stop(lane); // and so does the thread, whatever it was at
    lane = NULL;
    struct answer *answer = queue_pop(channels->replies);
    answer_free(answer); // none, or a whole one: it may have been faster
    assert_null(queue_pop(channels->replies));
}

// What is cancelled stays so.
TEST_CASE(test_a_cancelled_store)
{
    struct error err = {0};
    struct store *store = NULL;
    struct result *result = NULL;
    const struct query query = {.kind = QUERY_AUDIT};
    sqlite3 *db = NULL;
    assert_int_equal(database_open_writer(&db, path, &err), STATUS_OK);
    assert_int_equal(
        database_exec(
            db,
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE"
            " i < 50000) INSERT INTO process_sample(run, stream, number, started_ns,"
            " received_ns, cpu_ratio, host_memory_bytes) SELECT 1, 0, i, 0, 0, 0, 0 FROM n",
            &err),
        STATUS_OK);
    database_close(db);
    assert_int_equal(store_open(&store, path, &err), STATUS_OK);
    store_cancel(store);
    for (int i = 0; i < 2; i++)
        assert_int_equal(store_query(store, &query, &result, &err), STATUS_CANCELLED);
    store_close(store);
}

// Copies the store to a file that is to be below `files`, and takes the answer's path or
// what went wrong.
static enum reply_status copy_to(const char *to_path, uint64_t id, char said[ERROR_TEXT_SIZE])
{
    static char files[FOLDER_PATH_SIZE];
    struct error err;
    const struct job_return to = {.socket = 3};
    struct message_query asked = {.id = id, .protocol = MESSAGE_PROTOCOL};
    asked.query.kind = QUERY_COPY;
    (void)snprintf(asked.query.file.path, sizeof asked.query.file.path, "%s", to_path);
    enum status status;
    do
        status =
            query_worker_ask(lane, &to, &asked, folder_path(files, folder, "files"), NULL, &err);
    while (status == STATUS_BUSY);
    assert_int_equal(status, STATUS_OK);
    queue_wait(channels->replies, INT64_C(60000000000));
    struct answer *answer = queue_pop(channels->replies);
    assert_non_null(answer);
    struct message message;
    assert_int_equal(codec_decode(&message, answer->bytes, answer->size, NULL), STATUS_OK);
    const enum reply_status is = message.reply.status;
    (void)snprintf(said, ERROR_TEXT_SIZE, "%.*s", (int)message.reply.error.size,
                   (const char *)message.reply.error.bytes);
    if (is == REPLY_OK) {
        const int column = result_find(message.reply.result, "path");
        assert_true(column >= 0);
        const struct value value = result_cell(message.reply.result, 0, (unsigned)column);
        (void)snprintf(said, ERROR_TEXT_SIZE, "%.*s", (int)value.text.size, value.text.bytes);
    }
    message_free(&message);
    answer_free(answer);
    return is;
}

// Where names lead is looked at where the file is used, not only where it was asked for;
// and whoever asked hears of the file by the name that he gave.
TEST_CASE(test_files_below_a_folder)
{
    char files[FOLDER_PATH_SIZE], more[FOLDER_PATH_SIZE], copy[FOLDER_PATH_SIZE];
    char outside[FOLDER_PATH_SIZE], said[ERROR_TEXT_SIZE];
    assert_int_equal(mkdir(folder_path(files, folder, "files"), 0700), 0);
    assert_int_equal(mkdir(folder_path(more, folder, "files/more"), 0700), 0);
    (void)folder_path(copy, folder, "files/more/copy.db");
    assert_int_equal(copy_to(copy, 21, said), REPLY_OK);
    assert_string_equal(said, copy);
    assert_int_equal(access(copy, F_OK), 0);
    assert_int_equal(copy_to(copy, 22, said), REPLY_FAILED);
    assert_non_null(strstr(said, copy));
    assert_null(strstr(said, "/proc/"));
    assert_int_equal(remove(copy), 0);
    assert_int_equal(rmdir(more), 0);
    assert_int_equal(symlink(folder, more), 0); // it leads out of the folder now
    assert_int_equal(copy_to(copy, 23, said), REPLY_DENIED);
    assert_int_not_equal(access(folder_path(outside, folder, "copy.db"), F_OK), 0);
}

TEST_MAIN_EACH(set_up, tear_down, test_one_at_a_time, test_a_query_waits_at_the_gate,
               test_a_few_wait, test_what_reads_all_records, test_baselines_are_passed_on,
               test_failures_are_answers, test_the_end_waits_for_no_query, test_a_cancelled_store,
               test_files_below_a_folder, test_any_error_is_answered)
