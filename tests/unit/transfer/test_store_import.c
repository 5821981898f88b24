// Records of another store: all of them, once, whatever happens on the way; and none of
// what cannot be.
#include <unistd.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/store/retention/expire.h"
#include "common/store/transfer/import.h"
#include "common/store/store.h"
#include "common/store/schema/database_open.h"
#include "tests/support/store/clear_records.h"
#include "common/store/read/session.h"
#include "tests/support/test.h"
#include "tests/unit/transfer/copy_fixture.h"

// An empty store.
static const char *empty_store(const char *name)
{
    const char *path = copy_path(name);
    sqlite3 *db = NULL;
    struct error err;
    assert_int_equal(database_open_writer(&db, path, &err), STATUS_OK);
    database_close(db);
    return path;
}

static void expect(const char *into, const char *path, int64_t runs, int64_t completed,
                   int64_t there, int64_t records)
{
    struct copy_import counts;
    struct error err;
    expect_ok(copy_import(into, path, &counts, &err), &err);
    assert_string_equal(counts.note, "");
    assert_int_equal(counts.runs, runs);
    assert_int_equal(counts.completed, completed);
    assert_int_equal(counts.there, there);
    assert_int_equal(counts.refused, 0);
    assert_int_equal(counts.records, records);
    assert_true(copy_balances(into));
}

static void bundle(const char *from, const char *to, const struct query_filter *filter)
{
    struct result *answer = NULL;
    struct error err;
    expect_ok(copy_to(from, to, filter, &answer, &err), &err);
    result_free(answer);
}

// ---- All of it -----------------------------------------------------------------------------

TEST_CASE(test_all_is_brought_once)
{
    const char *from = copy_path("s.db"), *into = empty_store("into.db");
    copy_make_store(from, 3, 900); // more records than one transaction takes
    expect(into, from, 3, 0, 0, 3 * 906);
    assert_int_equal(copy_digest(into), copy_digest(from));
    expect(into, from, 0, 0, 3, 0);
    assert_int_equal(copy_digest(into), copy_digest(from));
}

// Into a store with names, runs and records of its own, whose ids are others.
TEST_CASE(test_ids_rise_and_names_are_mapped)
{
    const char *from = copy_path("s.db"), *into = copy_path("into.db");
    copy_make_store(from, 2, 20);
    copy_make_store(into, 1, 5);
    copy_exec(into, "UPDATE run SET uuid = 'ffffffff-0000-4000-8000-000000000000';"
                    "UPDATE inference SET id = id + 1000;"
                    "UPDATE name SET text = 'x' || text WHERE text = 'm-1'");
    expect(into, from, 2, 0, 0, 2 * 26);
    assert_int_equal(copy_integer(into, "SELECT min(id) FROM inference WHERE run > 1"), 1006);
    assert_int_equal(
        copy_integer(into,
                     "SELECT count(*) FROM v_inference WHERE model = 'm-1' AND request % 3 = 1"),
        14);
    assert_int_equal(copy_integer(into, "SELECT count(*) FROM v_inference WHERE model = 'xm-1'"),
                     2);
}

// Of rows that are gone rollups remember the ids: one that is given again would be taken
// for counted.
TEST_CASE(test_ids_of_what_is_gone_are_not_given_again)
{
    const char *from = copy_path("s.db"), *into = empty_store("into.db");
    copy_make_store(from, 1, 20);
    copy_exec(into, format_text("INSERT INTO rollup_state(metric, watermark) VALUES(%d, 5000)",
                                256 * RECORD_KIND_INFERENCE + INFERENCE_TTFT_NS));
    expect(into, from, 1, 0, 0, 26);
    assert_int_equal(copy_integer(into, "SELECT min(id) FROM inference"), 5001);
    assert_int_equal(copy_integer(into, "SELECT min(id) FROM load"), 1);
}

// Two halves of a run, in either order, make the whole; and the second half twice
// nothing more.
TEST_CASE(test_halves_complete_each_other)
{
    const char *from = copy_path("s.db"), *one = copy_path("1.db"), *two = copy_path("2.db"),
               *two_later = copy_path("3.db"), *into = empty_store("into.db"),
               *other = empty_store("other.db");
    copy_make_store(from, 1, 100);
    const struct query_filter first = {.until_ns = COPY_BASE_NS + 60 * COPY_SECOND};
    const struct query_filter second = {.since_ns = COPY_BASE_NS + 40 * COPY_SECOND};
    bundle(from, one, &first);
    bundle(from, two, &second);
    expect(into, one, 1, 0, 0, 66);
    expect(into, two, 0, 1, 0, 40);
    expect(into, two, 0, 0, 1, 0);
    assert_int_equal(copy_digest(into), copy_digest(from));
    expect(other, two, 1, 0, 0, 61); // with its device
    expect(other, one, 0, 1, 0, 45);
    assert_int_equal(copy_digest(other), copy_digest(from));
    expect(two, one, 0, 1, 0, 45); // then the bundle has records of before its time
    bundle(from, two_later, &second);
    expect(one, two_later, 0, 1, 0, 40); // and of after it
    static const char no_time[] = "SELECT count(json_extract(value, '$.since_ns')) +"
                                  " count(json_extract(value, '$.until_ns')) FROM meta"
                                  " WHERE key = 'bundle'";
    assert_int_equal(copy_integer(two, no_time), 0);
    assert_int_equal(copy_integer(one, no_time), 0);
}

// What was cleared here comes back; the ledger knows.
TEST_CASE(test_what_was_cleared_comes_back)
{
    const char *from = copy_path("s.db"), *into = empty_store("into.db");
    const struct query_filter filter = {.since_ns = COPY_BASE_NS + 30 * COPY_SECOND};
    uint64_t cleared = 0;
    struct error err;
    copy_make_store(from, 2, 100);
    expect(into, from, 2, 0, 0, 212);
    assert_int_equal(clear_records(into, &filter, &cleared, &err), STATUS_OK);
    assert_int_equal(cleared, 70 + 106);
    expect(into, from, 0, 2, 0, 176);
    assert_int_equal(copy_digest(into), copy_digest(from));
}

// A file that gives records other starts brings no number twice.
TEST_CASE(test_a_record_with_another_start_is_known)
{
    static const int64_t shifts_ns[] = {1, -400 * 86400 * COPY_SECOND};
    const struct query_filter filter = {.since_ns = COPY_BASE_NS + 30 * COPY_SECOND};
    for (size_t i = 0; i < COUNT_OF(shifts_ns); i++) {
        char from[FOLDER_PATH_SIZE];
        uint64_t cleared = 0;
        struct error err;
        (void)snprintf(from, sizeof from, "%s", copy_path(format_text("s-%zu.db", i)));
        const char *into = empty_store(format_text("into-%zu.db", i));
        copy_make_store(from, 1, 100);
        expect(into, from, 1, 0, 0, 106);
        assert_int_equal(clear_records(into, &filter, &cleared, &err), STATUS_OK);
        assert_int_equal(cleared, 70);
        copy_exec(from, format_text("UPDATE inference SET started_ns = started_ns + %lld",
                                    (long long)shifts_ns[i]));
        expect(into, from, 0, 1, 0, 70);
        assert_int_equal(copy_integer(into, "SELECT count(DISTINCT number) FROM inference"), 100);
    }
}

static void expire(const char *path, int64_t before_ns, unsigned expected)
{
    const struct expire_rows rows = {
        .kind = RECORD_KIND_INFERENCE, .before_ns = before_ns, .last_id = INT64_MAX, .count = 1000};
    struct error err;
    sqlite3 *db = NULL;
    unsigned gone = 0;
    assert_int_equal(database_open_writer(&db, path, &err), STATUS_OK);
    assert_int_equal(expire_slice(db, &rows, &gone, &err), STATUS_OK);
    assert_int_equal(gone, expected);
    database_close(db);
}

// What has expired here stays gone: rollups count it still.  What is newer, and runs
// of which nothing has expired, are completed as ever.
TEST_CASE(test_what_has_expired_stays_gone)
{
    const char *from = copy_path("s.db"), *into = empty_store("into.db"), *late = copy_path("l.db");
    const int64_t minute_ns = 60 * COPY_SECOND;
    const int64_t edge_ns = (COPY_BASE_NS / minute_ns + 1) * minute_ns;
    const unsigned before = (unsigned)((edge_ns - COPY_BASE_NS) / COPY_SECOND);
    const struct query_filter all = {0}, newer = {.since_ns = edge_ns};
    uint64_t cleared = 0;
    struct error err;
    copy_make_store(from, 1, 100);
    expect(into, from, 1, 0, 0, 106);
    expire(into, edge_ns, before);
    expect(into, from, 0, 0, 1, 0);
    assert_int_equal(copy_integer(into, "SELECT count(*) FROM inference"), 100 - before);
    assert_int_equal(clear_records(into, &newer, &cleared, &err), STATUS_OK);
    expect(into, from, 0, 1, 0, (int64_t)cleared);
    assert_int_equal(copy_integer(into, "SELECT count(*) FROM inference"), 100 - before);
    copy_make_store(late, 1, 100);
    copy_exec(late, "UPDATE run SET uuid = 'ffffffff-0000-4000-8000-000000000000'");
    expect(into, late, 1, 0, 0, 106);
    assert_int_equal(clear_records(into, &all, &cleared, &err), STATUS_OK);
    expect(into, late, 0, 1, 0, 106);
}

// The sums of a day that has begun to expire still count what is cleared of it: it stays gone,
// too.  Kinds of which nothing has expired come back.
TEST_CASE(test_what_sums_still_count_stays_gone)
{
    const char *from = copy_path("s.db"), *into = empty_store("into.db");
    const struct query_filter all = {0};
    uint64_t cleared = 0;
    struct error err;
    copy_make_store(from, 1, 100);
    expect(into, from, 1, 0, 0, 106);
    copy_exec(into, format_text("INSERT INTO rollup_state(metric, watermark) VALUES(%d, 100)",
                                256 * RECORD_KIND_INFERENCE + INFERENCE_TTFT_NS));
    expire(into, COPY_BASE_NS + 40 * COPY_SECOND, 40);
    assert_int_equal(clear_records(into, &all, &cleared, &err), STATUS_OK);
    assert_int_equal(cleared, 66);
    assert_int_equal(copy_integer(into, "SELECT expired FROM ledger WHERE cleared = 0"), 100);
    expect(into, from, 0, 1, 0, 6);
    assert_int_equal(copy_integer(into, "SELECT count(*) FROM inference"), 0);
}

// This store has the run as it was before: nothing is mixed.
TEST_CASE(test_an_earlier_state_is_left_alone)
{
    const char *from = copy_path("s.db"), *into = copy_path("into.db");
    struct copy_import counts;
    struct error err;
    copy_make_store(from, 1, 100);
    copy_make_store(into, 1, 50);
    const struct query_filter some = {.since_ns = COPY_BASE_NS + 30 * COPY_SECOND};
    uint64_t cleared = 0;
    assert_int_equal(clear_records(into, &some, &cleared, &err), STATUS_OK);
    const uint64_t before = copy_digest(into);
    assert_int_equal(copy_import(into, from, &counts, &err), STATUS_OK);
    assert_int_equal(counts.records, 0);
    assert_int_equal(counts.there, 1);
    assert_non_null(strstr(counts.note, "knows less of this run"));
    assert_int_equal(copy_digest(into), before);
}

// Also which names its runs used, by which they are found.
TEST_CASE(test_names_of_runs_come)
{
    const char *from = copy_path("s.db"), *to = copy_path("bundle.db"),
               *into = copy_path("into.db");
    copy_make_store(from, 2, 9);
    copy_exec(from, "DELETE FROM run_name;"
                    "INSERT INTO run_name SELECT r.run, n.id, n.id FROM run r, name n"
                    " WHERE n.text LIKE 'm-_' AND (r.run = 1 OR n.text <> 'm-1')");
    copy_make_store(into, 1, 3);
    copy_exec(into, "UPDATE run SET uuid = 'ffffffff-0000-4000-8000-000000000000';"
                    "UPDATE name SET text = 'x' || text WHERE text LIKE 'm-_'");
    bundle(from, to, &(struct query_filter){0});
    expect(into, to, 2, 0, 0, 2 * 15);
#define NAMED "SELECT count(*) FROM run_name r JOIN name n ON n.id = r.name WHERE n.text = "
    assert_int_equal(copy_integer(into, NAMED "'m-1'"), 1);
    assert_int_equal(copy_integer(into, NAMED "'m-2'"), 2);
#undef NAMED
}

static unsigned name_counts; // how often the store's names were counted

static int end_statement(unsigned event, void *context, void *stmt, void *took)
{
    (void)event;
    (void)context;
    (void)took;
    name_counts += strcmp(sqlite3_sql(stmt), "SELECT count(*) FROM name") == 0;
    return 0;
}

static int watch(sqlite3 *db, char **error, const struct sqlite3_api_routines *routines)
{
    (void)error;
    (void)routines;
    return sqlite3_trace_v2(db, SQLITE_TRACE_PROFILE, end_statement, NULL);
}

// Each new name may be one too many; but they are counted once a transaction, however
// many come: to count takes as long as there are names.
TEST_CASE(test_names_are_counted_once)
{
    const char *from = copy_path("s.db"), *into = empty_store("into.db");
    void (*const each)(void) = (void (*)(void))watch; // as SQLite would have it
    copy_make_store(from, 1, 3);
    copy_exec(from, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)"
                    " INSERT INTO name(text) SELECT 'new-' || i FROM n;"
                    "INSERT OR IGNORE INTO run_name SELECT 1, n.id, n.id FROM name n"
                    " WHERE n.text LIKE 'new-%'");
    name_counts = 0;
    assert_int_equal(sqlite3_auto_extension(each), SQLITE_OK);
    expect(into, from, 1, 0, 0, 9);
    assert_int_equal(sqlite3_cancel_auto_extension(each), 1);
    assert_int_equal(copy_integer(into,
                                  "SELECT count(*) FROM run_name r JOIN name n ON n.id = r.name"
                                  " WHERE n.text LIKE 'new-%'"),
                     300);
    assert_in_range(name_counts, 1, RECORD_KIND_COUNT); // runs, and the records of each kind
}

TEST_CASE(test_an_open_run_is_silent_here)
{
    const char *from = copy_path("s.db"), *into = empty_store("into.db");
    copy_make_store(from, 1, 3);
    copy_exec(from, "UPDATE run SET \"end\" = 0, ended_ns = NULL, key = 'whose'");
    expect(into, from, 1, 0, 0, 9);
    assert_int_equal(copy_integer(into, "SELECT \"end\" FROM run WHERE key IS NULL"), 3);
}

// Lets so many batches through.
struct cut {
    sqlite3 *db;
    unsigned left;
};

static enum status apply_some(void *context, struct import_batch *batch, struct error *err)
{
    struct cut *cut = context;
    if (cut->left == 0)
        return error_set(err, STATUS_IO, "cut");
    cut->left--;
    return import_apply(cut->db, batch, 0, err);
}

// The state that a process killed behind any of its transactions leaves: the books
// are right, and doing it again completes it.
TEST_CASE(test_cut_short_anywhere)
{
    const char *from = copy_path("s.db");
    copy_make_store(from, 3, 1500);
    const uint64_t whole = copy_digest(from);
    bool done = false;
    for (unsigned batches = 0; !done; batches++) {
        const char *into = empty_store(format_text("into-%u.db", batches));
        struct error err;
        struct result *answer = NULL;
        struct store *store = NULL;
        struct cut cut = {.left = batches};
        assert_int_equal(store_open(&store, into, &err), STATUS_OK);
        assert_int_equal(database_open_writer(&cut.db, into, &err), STATUS_OK);
        const enum status status =
            import_file(store, from, &(struct import_sink){apply_some, &cut}, &answer, &err);
        done = status == STATUS_OK;
        result_free(answer);
        store_close(store);
        database_close(cut.db);
        assert_true(copy_balances(into));
        struct copy_import counts;
        assert_int_equal(copy_import(into, from, &counts, &err), STATUS_OK);
        assert_int_equal(copy_digest(into), whole);
        assert_true(copy_balances(into));
        assert_true(!done || batches > 5);
    }
}

// ---- Nothing is believed --------------------------------------------------------------------

struct lie {
    const char *sql;
    const char *said; // in the note
    int64_t records;  // that come nevertheless, of 2 runs with 26 each
};

// Each is a change to a good file.
static const struct lie lies[] = {
    {"UPDATE inference SET ttft_ns = -1"
     " WHERE id = 7",
     "inference.ttft_ns", 51},
    {"UPDATE inference SET e2e_ns = 9007199254740993, decode_ns = NULL WHERE id = 7",
     "inference.e2e_ns", 51},
    {"UPDATE inference SET prefill_ns = -9e15 WHERE id = 7", "inference.prefill_ns", 51},
    {"UPDATE inference SET decode_ns = '-1' WHERE id = 7", "inference.decode_ns", 51},
    {"UPDATE inference SET decode_ns = 'x' WHERE id = 7", "inference.decode_ns", 51},
    {"UPDATE inference SET received_ns = x'31' WHERE id = 7", "received_ns", 51},
    {"UPDATE inference SET finish = 4 WHERE id = 7", "inference.finish", 51},
    {"UPDATE inference SET finish = 'stop' WHERE id = 7", "inference.finish", 51},
    {"UPDATE inference SET prompt_tokens = 1.5 WHERE id = 7", "inference.prompt_tokens", 51},
    {"UPDATE inference SET model = 99 WHERE id = 7", "inference.model", 51},
    {"UPDATE inference SET model = 'm' WHERE id = 7", "inference.model", 51},
    {"UPDATE inference SET ttft_ns = zeroblob(2000000) WHERE id = 7", "", -1},
    {"UPDATE name SET text = CAST(x'ff' AS TEXT) WHERE text = 'm-2'", "inference.model", 40},
    {"UPDATE name SET text = printf('%.*c', 300, 'x') WHERE text = 'm-2'", "inference.model", 40},
    {"UPDATE load SET error = CAST(x'41ff' AS TEXT) WHERE id = 1", "load.error", 51},
    {"UPDATE load SET error = printf('%.*c', 5000, 'x') WHERE id = 1", "load.error", 51},
    {"UPDATE itl SET sketch = x'00112233' WHERE id = 1", "itl.sketch", 51},
    {"UPDATE itl SET sketch = 'text' WHERE id = 1", "itl.sketch", 51},
    {"UPDATE process_sample SET cpu_ratio = 9e999 WHERE id = 1", "process_sample.cpu_ratio", 51},
    {"UPDATE process_sample SET cpu_ratio = 'much' WHERE id = 1", "process_sample.cpu_ratio", 51},
    {"UPDATE run SET uuid = 'x' WHERE run = 1", "no UUID", 26},
    {"UPDATE run SET \"end\" = 7 WHERE run = 1", "unknown end 7", 26},
    {"UPDATE run SET cpu = printf('%.*c', 5000, 'x') WHERE run = 1", "run.cpu", 26},
    {"UPDATE run SET refused = -1 WHERE run = 1", "refused", 26},
    {"UPDATE run SET host = 99 WHERE run = 1", "run.host", 26},
    {"UPDATE run SET stored = 25 WHERE run = 1", "run has 25 stored", 26},
    {"UPDATE range SET last = 27 WHERE run = 1", "", 26},
    {"UPDATE range SET last = 4611686018427387904 WHERE run = 1", "", 26},
    {"UPDATE ledger SET stored = 21, cleared = 1 WHERE run = 1 AND kind = 6", "", 26},
    {"UPDATE ledger SET gone_sum = NULL WHERE run = 1 AND kind = 6", "", 26},
    {"UPDATE stream SET stream = 4294967296 WHERE run = 1", "", 26},
    {"UPDATE inference SET number = 3 WHERE id = 7", "", 26},
    {"DELETE FROM inference WHERE id = 7", "", 26},
    {"INSERT INTO inference SELECT 99, run, stream, number, started_ns, received_ns, model, "
     "device,"
     " request, finish, prompt_tokens, cached_prompt_tokens, generated_tokens, queue_ns,"
     " prefill_ns, ttft_ns, decode_ns, e2e_ns, itl_max_ns, itl_p99_ns, "
     "host_memory_bytes,"
     " device_memory_bytes, concurrent_requests, error, items FROM inference WHERE id = 7",
     "", 26},
    {"UPDATE inference SET run = 77 WHERE id = 7", "", 26},
    {"ALTER TABLE inference RENAME TO hidden; CREATE VIEW inference AS SELECT * FROM hidden", "",
     -1},
    {"DROP TABLE itl", "", -1},
    {"PRAGMA user_version = 999", "", -1},
    {"PRAGMA application_id = 1", "", -1},
};

TEST_CASE(test_lies)
{
    for (size_t i = 0; i < COUNT_OF(lies); i++) {
        char path[FOLDER_PATH_SIZE];
        struct copy_import counts;
        struct error err = {.text = ""};
        (void)snprintf(path, sizeof path, "%s", copy_path(format_text("lie-%zu.db", i)));
        const char *into = empty_store(format_text("into-%zu.db", i));
        copy_make_store(path, 2, 20);
        copy_exec(path, lies[i].sql);
        const enum status status = copy_import(into, path, &counts, &err);
        if ((status == STATUS_OK) != (lies[i].records >= 0) ||
            counts.records != (lies[i].records < 0 ? 0 : lies[i].records) ||
            !strstr(counts.note, lies[i].said) ||
            (status == STATUS_OK && (counts.refused == 0 || counts.note[0] == '\0')))
            fail_msg("%s: %s: %lld records, %lld refused: %s", lies[i].sql, status_text(status),
                     (long long)counts.records, (long long)counts.refused,
                     status == STATUS_OK ? counts.note : err.text);
        assert_true(copy_balances(into));
        (void)unlink(path);
    }
}

// A file whose runs may share a UUID: the first of them comes.
TEST_CASE(test_two_runs_of_one_uuid)
{
    const char *path = copy_path("twins.db"), *into = empty_store("into.db");
    copy_make_store(path, 2, 20);
    copy_exec(path, "PRAGMA legacy_alter_table=ON; CREATE TABLE twin AS SELECT * FROM run;"
                    "UPDATE twin SET uuid = (SELECT upper(uuid) FROM run WHERE run = 1);"
                    "DROP TABLE run; ALTER TABLE twin RENAME TO run");
    expect(into, path, 1, 0, 1, 26);
    assert_int_equal(copy_integer(into, "SELECT count(DISTINCT run) FROM inference"), 1);
}

static enum status refuse_batch(void *context, struct import_batch *batch, struct error *err)
{
    (void)context, (void)batch;
    return error_set(err, STATUS_IO, "no batch was expected");
}

// A ledger and ranges that claim 2^62 records are not hashed beyond the query's budget.
TEST_CASE(test_a_claim_of_many_records_meets_the_budget)
{
    const char *path = copy_path("claim.db"), *into = empty_store("into.db");
    const struct import_sink sink = {.apply = refuse_batch};
    struct store *store = NULL;
    struct result *answer = NULL;
    struct error err;
    copy_make_store(path, 1, 20);
    copy_exec(path, "UPDATE range SET last = 4611686018427387904;"
                    "UPDATE ledger SET stored = 4611686018427387904, cleared = 4611686018427387904 "
                    "WHERE kind = 6");
    expect_ok(store_open(&store, into, &err), &err);
    store_set_budget(store, UINT64_C(200000000));
    assert_int_equal(import_file(store, path, &sink, &answer, &err), STATUS_TIMEOUT);
    store_close(store);
}

TEST_CASE(test_what_is_no_store)
{
    const char *into = empty_store("into.db"), *link = copy_path("link.db"),
               *text = copy_path("text"), *huge = copy_path("huge.db"), *good = copy_path("s.db");
    copy_make_store(good, 1, 1);
    write_text(text, "hello, this is no database of any kind, however one looks at it; none at all"
                     " and never was, nor will it be one");
    assert_int_equal(symlink(good, link), 0);
    write_text(huge, "");
    assert_int_equal(truncate(huge, IMPORT_BYTES_MAX + 1), 0);
    const struct {
        const char *path;
        enum status status;
        const char *said;
    } cases[] = {
        {copy_path("missing"), STATUS_NOT_FOUND, "no such file"},
        {link, STATUS_INVALID, "a link"},
        {text, STATUS_CORRUPT, "not an SQLite database"},
        {huge, STATUS_FULL, "larger than 16 GB"},
        {copy_folder, STATUS_IO, "a folder"},
        {into, STATUS_INVALID, "the store itself"},
        {"/dev/null", STATUS_IO, "not a file"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct copy_import counts;
        struct error err = {.text = ""};
        const enum status status = copy_import(into, cases[i].path, &counts, &err);
        if (status != cases[i].status || !strstr(err.text, cases[i].said))
            fail_msg("%s: %s: %s", cases[i].path, status_text(status), err.text);
    }
    assert_true(copy_balances(into));
}

// Bytes turned over anywhere: what comes, if anything does, leaves books that balance.
TEST_CASE(test_flipped_bytes)
{
    const char *good = copy_path("s.db");
    char bad[FOLDER_PATH_SIZE]; // copy_path's places are used again
    (void)snprintf(bad, sizeof bad, "%s", copy_path("bad.db"));
    uint64_t random = 4711;
    copy_make_store(good, 2, 60);
    size_t size;
    unsigned char *bytes = read_file(good, &size);
    for (unsigned i = 0; i < test_volume(8); i++) {
        const char *into = empty_store(format_text("into-%u.db", i));
        const size_t at = (size_t)(test_random(&random) % size);
        const unsigned char was = bytes[at];
        bytes[at] ^= (unsigned char)(1 + test_random(&random) % 255);
        write_file(bad, bytes, size);
        bytes[at] = was;
        struct copy_import counts;
        struct error err;
        (void)!copy_import(into, bad, &counts, &err);
        if (!copy_balances(into))
            fail_msg("byte %zu", at);
        (void)unlink(into);
    }
    free(bytes);
}

// A collector has the store: its lock says so, and nothing is written.
TEST_CASE(test_the_lock_is_kept)
{
    const char *good = copy_path("s.db");
    copy_make_store(good, 1, 1);
    struct copy_import counts;
    struct error err;
    assert_int_equal(copy_import(copy_path("missing.db"), good, &counts, &err), STATUS_NOT_FOUND);
    assert_int_not_equal(access(copy_path("missing.db.lock"), F_OK), 0);
}

TEST_MAIN_EACH(copy_set_up, copy_tear_down, test_all_is_brought_once,
               test_ids_rise_and_names_are_mapped, test_ids_of_what_is_gone_are_not_given_again,
               test_halves_complete_each_other, test_what_was_cleared_comes_back,
               test_a_record_with_another_start_is_known, test_what_has_expired_stays_gone,
               test_an_earlier_state_is_left_alone, test_an_open_run_is_silent_here,
               test_cut_short_anywhere, test_lies, test_two_runs_of_one_uuid,
               test_a_claim_of_many_records_meets_the_budget, test_what_is_no_store,
               test_flipped_bytes, test_the_lock_is_kept, test_names_of_runs_come,
               test_names_are_counted_once, test_what_sums_still_count_stays_gone)
