// Loss of power under the collector's writer.  The real writer commits and folds its
// log on a disk that remembers every write (tests/support/store/power_vfs.h); the power then
// goes at many points, and each time the store is opened again as it lies there:
// whatever had been acknowledged must be in it, nothing twice, and the producers, who
// send the rest again, must end with every record exactly once.
//
// The power goes INFERSTAT_TEST_VOLUME times 48 times.
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/core/base/text.h"
#include "common/store/sqlite/database.h"
#include "common/store/rollup/rollup.h"
#include "common/store/store.h"
#include "common/sys/clock.h"
#include "common/store/schema/database_open.h"
#include "server/collector/threads/job.h"
#include "server/collector/writer/writer.h"
#include "tests/support/folder.h"
#include "tests/support/store/power_vfs.h"
#include "tests/support/producer.h"
#include "tests/support/test.h"

enum {
    RUNS = 2,
    STREAMS = 2, // of each
    ROUNDS = 240,
    BATCH_MAX = 60,
    ACKS_MAX = 1 << 16,
    CUTS = 48,
    RESENT_EVERY = 16, // after so many cuts the rest is sent again
};

static const char store_name[] = "s.db";

static bool forgetful;

enum status __wrap_database_open_writer(sqlite3 **out, const char *path, struct error *err);
enum status __real_database_open_writer(sqlite3 **out, const char *path, struct error *err);

enum status __wrap_database_open_writer(sqlite3 **out, const char *path, struct error *err)
{
    enum status status = __real_database_open_writer(out, path, err);
    if (status == STATUS_OK && forgetful)
        status = database_exec(*out, "PRAGMA synchronous=NORMAL", err);
    return status;
}

static struct power_tape *recording;

int __wrap_fsync(int fd);
int __real_fsync(int fd);
int __wrap_renameat2(int from_folder, const char *from, int to_folder, const char *to,
                     unsigned flags);
int __real_renameat2(int from_folder, const char *from, int to_folder, const char *to,
                     unsigned flags);

int __wrap_fsync(int fd)
{
    char path[FOLDER_PATH_SIZE];
    struct stat st;
    const int rc = __real_fsync(fd);
    if (rc != 0 || !recording || fstat(fd, &st) != 0)
        return rc;
    const ssize_t size = readlink(format_text("/proc/self/fd/%d", fd), path, sizeof path - 1);
    if (S_ISDIR(st.st_mode)) {
        power_tape_sync_folder(recording);
    } else if (size > 0) {
        path[size] = '\0';
        power_tape_sync_file(recording, path);
    }
    return rc;
}

int __wrap_renameat2(int from_folder, const char *from, int to_folder, const char *to,
                     unsigned flags)
{
    const int rc = __real_renameat2(from_folder, from, to_folder, to, flags);
    if (rc == 0 && recording)
        power_tape_rename(recording, from, to);
    return rc;
}

// ---- The writer and what it acknowledged ----------------------------------------------

struct acked {
    size_t steps; // of the tape, when it was acknowledged
    unsigned run, stream;
    uint64_t next;
};

struct rig {
    struct writer *writer;
    struct channels *channels;
    struct producer producers[RUNS];
    pthread_mutex_t lock; // of what follows, and of taking from `acks`
    struct acked *acked;
    size_t acked_count;
    uint64_t next[RUNS][STREAMS]; // as acknowledged last
    bool complained;
};

static void take_ack(struct rig *rig, const struct message_ack *ack, size_t steps)
{
    rig->complained = rig->complained || ack->error.size || ack->delivery.hello_wanted;
    for (unsigned run = 0; run < RUNS; run++) {
        if (memcmp(ack->run, rig->producers[run].run, sizeof ack->run) != 0)
            continue;
        for (size_t i = 0; i < ack->delivery.next_count; i++) {
            const struct delivery_next *next = &ack->delivery.next[i];
            if (next->stream >= STREAMS || rig->acked_count == ACKS_MAX)
                abort();
            rig->next[run][next->stream] = next->next;
            rig->acked[rig->acked_count++] = (struct acked){
                .steps = steps, .run = run, .stream = next->stream, .next = next->next};
        }
    }
}

// Takes what was acknowledged until now.  Where `tape` is given, it is looked at after
// each answer was taken: the writer goes on beside, and what it wrote for an answer
// must not count as later than the answer.
static void take_acks(struct rig *rig, size_t steps, struct power_tape *tape)
{
    struct answer *answer;
    (void)pthread_mutex_lock(&rig->lock);
    while ((answer = queue_pop(rig->channels->acks)) != NULL) {
        struct message message;
        if (codec_decode(&message, answer->bytes, answer->size, NULL) != STATUS_OK)
            abort();
        take_ack(rig, &message.ack, tape ? power_tape_steps(tape) : steps);
        message_free(&message);
        answer_free(answer);
    }
    (void)pthread_mutex_unlock(&rig->lock);
}

// On the writer's thread before each step: everything acknowledged until now was
// acknowledged before this one.
static void before_step(void *context, size_t steps)
{
    take_acks(context, steps, NULL);
}

static void rig_open(struct rig *rig, const char *path)
{
    struct error err = {0};
    *rig = (struct rig){.acked = calloc(ACKS_MAX, sizeof *rig->acked)};
    assert_non_null(rig->acked);
    (void)pthread_mutex_init(&rig->lock, NULL);
    for (unsigned run = 0; run < RUNS; run++) {
        memset(rig->producers[run].run, (int)run + 1, sizeof rig->producers[run].run);
        rig->producers[run].names_told = 2;
        assert_int_equal(table_builder_new(&rig->producers[run].builder), STATUS_OK);
    }
    expect_ok(channels_new(&rig->channels, &err), &err);
    const struct writer_config config = {.path = path,
                                         .channels = rig->channels,
                                         .limits = LIMITS_DEFAULT,
                                         .retention = retention_rules_default()};
    expect_ok(writer_start(&rig->writer, &config, &err), &err);
}

static void push(struct rig *rig, enum job_kind kind, unsigned char *bytes, size_t size)
{
    struct job *job = job_new(kind);
    assert_non_null(job);
    job->received_ns = clock_wall_ns();
    if (bytes)
        assert_int_equal(codec_decode(&job->message, bytes, size, NULL), STATUS_OK);
    free(bytes);
    while (!queue_push(rig->channels->inbox, job, size + sizeof *job))
        clock_sleep_until_ns(clock_monotonic_ns() + 1000000);
}

// Stops the writer and frees all but what was acknowledged.
static void rig_close(struct rig *rig, struct power_tape *tape)
{
    push(rig, JOB_STOP, NULL, 0);
    writer_join(rig->writer);
    take_acks(rig, 0, tape);
    assert_false(rig->complained);
    for (unsigned run = 0; run < RUNS; run++)
        table_builder_free(rig->producers[run].builder);
    channels_free(rig->channels);
    (void)pthread_mutex_destroy(&rig->lock);
}

// ---- What is sent ----------------------------------------------------------------------

static struct wire_bytes text(const char *bytes)
{
    return (struct wire_bytes){strlen(bytes), bytes};
}

static void send_hello(struct rig *rig, unsigned run)
{
    struct message message = {.kind = MESSAGE_HELLO};
    message.hello = (struct message_hello){.protocol = MESSAGE_PROTOCOL,
                                           .host = text("host"),
                                           .worker_version = text("test"),
                                           .os = text("os"),
                                           .kernel = text("kernel"),
                                           .cpu = text("cpu"),
                                           .pid = 4711,
                                           .started_ns = clock_wall_ns(),
                                           .cpu_count = 2,
                                           .host_memory_bytes = 1 << 30};
    memcpy(message.hello.run, rig->producers[run].run, sizeof message.hello.run);
    unsigned char *bytes = NULL;
    size_t size = 0;
    assert_int_equal(codec_encode(&bytes, &size, &message, NULL), STATUS_OK);
    push(rig, JOB_MESSAGE, bytes, size);
}

static void send_records(struct rig *rig, unsigned run, unsigned stream, uint64_t first,
                         uint64_t count)
{
    static struct record records[BATCH_MAX];
    for (uint64_t i = 0; i < count; i++)
        producer_inference(&records[i], first + i);
    size_t size = 0;
    unsigned char *bytes =
        producer_encode(&rig->producers[run], stream, first, records, (size_t)count, &size);
    push(rig, JOB_MESSAGE, bytes, size);
}

static bool is_acked(struct rig *rig, unsigned run, unsigned stream, uint64_t last)
{
    (void)pthread_mutex_lock(&rig->lock);
    const bool done = rig->next[run][stream] > last, complained = rig->complained;
    (void)pthread_mutex_unlock(&rig->lock);
    assert_false(complained);
    return done;
}

static void await_acked(struct rig *rig, struct power_tape *tape, unsigned run, unsigned stream,
                        uint64_t last)
{
    const uint64_t deadline = clock_monotonic_ns() + UINT64_C(60000000000);
    while (!is_acked(rig, run, stream, last)) {
        assert_true(clock_monotonic_ns() < deadline);
        clock_sleep_until_ns(clock_monotonic_ns() + 200000);
        take_acks(rig, 0, tape);
    }
}

// The log has been folded into the file once more.
static void await_checkpoint(struct power_tape *tape)
{
    const size_t before = power_tape_syncs(tape, store_name);
    const uint64_t deadline = clock_monotonic_ns() + UINT64_C(60000000000);
    while (power_tape_syncs(tape, store_name) == before) {
        assert_true(clock_monotonic_ns() < deadline);
        clock_sleep_until_ns(clock_monotonic_ns() + 10000000);
    }
}

struct history {
    struct power_tape *tape;
    struct acked *acked;
    size_t acked_count;
    uint64_t made[RUNS][STREAMS]; // records sent in all
};

// A store's first life: made, written to by several streams, folded in between.
static void live(struct history *history, const char *folder, uint64_t seed)
{
    static struct rig rig;
    char path[FOLDER_PATH_SIZE];
    *history = (struct history){.tape = power_tape_start(before_step, &rig)};
    recording = history->tape;
    rig_open(&rig, folder_path(path, folder, store_name));
    for (unsigned run = 0; run < RUNS; run++)
        send_hello(&rig, run);
    for (unsigned round = 1; round <= ROUNDS; round++) {
        const unsigned run = (unsigned)(test_random(&seed) % RUNS);
        const unsigned stream = (unsigned)(test_random(&seed) % STREAMS);
        const uint64_t count = 1 + test_random(&seed) % BATCH_MAX;
        uint64_t *made = &history->made[run][stream];
        send_records(&rig, run, stream, *made + 1, count);
        *made += count;
        if (test_random(&seed) % 8 == 0) // and once more
            send_records(&rig, run, stream, *made - count + 1, count);
        if (test_random(&seed) % 3 == 0)
            await_acked(&rig, history->tape, run, stream, *made);
        if (round % (ROUNDS / 3) == 0)
            await_checkpoint(history->tape);
    }
    rig_close(&rig, history->tape);
    power_tape_stop(history->tape);
    recording = NULL;
    history->acked = rig.acked;
    history->acked_count = rig.acked_count;
}

// ---- After the power came back -----------------------------------------------------------

static int64_t integer(sqlite3 *db, const char *format, unsigned run, unsigned stream)
{
    char uuid[37], sql[512];
    unsigned char id[16];
    memset(id, (int)run + 1, sizeof id);
    text_from_uuid(uuid, id);
    (void)snprintf(
        sql, sizeof sql,
        "SELECT %s AND t.stream = %u AND t.run = (SELECT run FROM run WHERE uuid = '%s')", format,
        stream, uuid);
    int64_t value = 0;
    struct error err = {0};
    if (database_integer(db, sql, &value, &err) != STATUS_OK)
        fail_msg("%s: %s", sql, err.text);
    return value;
}

static void check_integrity(sqlite3 *db)
{
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(stmt, 0), "ok");
    (void)sqlite3_finalize(stmt);
}

static void check_audit(const char *path)
{
    struct store *store = NULL;
    struct result *result = NULL;
    struct error err = {0};
    const struct query query = {.kind = QUERY_AUDIT};
    expect_ok(store_open(&store, path, &err), &err);
    const enum status status = store_query(store, &query, &result, &err);
    if (status != STATUS_OK && status != STATUS_NO_DATA)
        fail_msg("%s", err.text);
    const unsigned verdict = status == STATUS_OK ? (unsigned)result_find(result, "verdict") : 0;
    for (size_t row = 0; status == STATUS_OK && row < result_row_count(result); row++) {
        const struct value value = result_cell(result, row, verdict);
        assert_int_equal(value.type, VALUE_TEXT);
        assert_true(value.text.size == 4 && memcmp(value.text.bytes, "open", 4) == 0);
    }
    result_free(result);
    store_close(store);
}

// What had been acknowledged before the cut, of one stream.
static uint64_t acked_before(const struct history *history, size_t cut, unsigned run,
                             unsigned stream)
{
    uint64_t next = 1;
    for (size_t i = 0; i < history->acked_count; i++) {
        const struct acked *acked = &history->acked[i];
        if (acked->steps <= cut && acked->run == run && acked->stream == stream &&
            acked->next > next)
            next = acked->next;
    }
    return next;
}

// The rest is sent again, all of it, as by producers that held it.
static void send_again(const struct history *history, const char *path)
{
    static struct rig rig;
    rig_open(&rig, path);
    for (unsigned run = 0; run < RUNS; run++) {
        send_hello(&rig, run);
        for (unsigned stream = 0; stream < STREAMS; stream++)
            for (uint64_t first = 1; first <= history->made[run][stream]; first += BATCH_MAX) {
                const uint64_t left = history->made[run][stream] - first + 1;
                send_records(&rig, run, stream, first, left < BATCH_MAX ? left : BATCH_MAX);
            }
    }
    for (unsigned run = 0; run < RUNS; run++)
        for (unsigned stream = 0; stream < STREAMS; stream++)
            await_acked(&rig, NULL, run, stream, history->made[run][stream]);
    rig_close(&rig, NULL);
    free(rig.acked);
}

// Whether all that was acknowledged is there.  Fails where anything is there twice, or
// with a hole.
static bool check_streams(const struct history *history, size_t cut, sqlite3 *db)
{
    bool kept = true;
    for (unsigned run = 0; run < RUNS; run++)
        for (unsigned stream = 0; stream < STREAMS; stream++) {
            const int64_t next = integer(db, "next FROM stream t WHERE 1", run, stream);
            const int64_t stored = next ? next - 1 : 0;
            assert_int_equal(integer(db, "count(*) FROM inference t WHERE 1", run, stream), stored);
            assert_int_equal(
                integer(db, "count(DISTINCT number) FROM inference t WHERE 1", run, stream),
                stored);
            assert_int_equal(integer(db, "max(number) FROM inference t WHERE 1", run, stream),
                             stored);
            kept = kept && (uint64_t)stored + 1 >= acked_before(history, cut, run, stream);
        }
    return kept;
}

// Rollups hold the records up to their watermark, and no others: months are never too
// few records to be kept.
static void check_rollups(sqlite3 *db)
{
    struct error err = {0};
    for (unsigned grouping = 0; grouping < ROLLUP_GROUPING_COUNT; grouping++) {
        int64_t wrong = 0;
        expect_ok(
            database_integer(
                db,
                format_text("SELECT count(*) FROM rollup_state s WHERE metric = %d AND"
                            " (SELECT total(r.count) FROM rollup r WHERE r.metric = s.metric"
                            " AND r.grouping = %u AND r.level = %d) <>"
                            " (SELECT count(*) FROM inference WHERE id <= s.watermark)",
                            256 * RECORD_KIND_INFERENCE + INFERENCE_E2E_NS, grouping, ROLLUP_MONTH),
                &wrong, &err),
            &err);
        assert_int_equal(wrong, 0);
    }
}

static bool store_is_there(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file)
        (void)fclose(file);
    return file != NULL;
}

// Takes the power away and looks.  Returns whether all that was acknowledged is there.
static bool lose_power(const struct history *history, size_t cut, enum power_mercy mercy,
                       uint64_t seed, bool resend)
{
    char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE];
    struct error err = {0};
    sqlite3 *db = NULL;
    folder_make(folder);
    power_tape_replay(history->tape, cut, mercy, seed, folder);
    bool kept = store_is_there(folder_path(path, folder, store_name));
    if (database_open_writer(&db, path, &err) != STATUS_OK)
        fail_msg("cut %zu, mercy %d, seed %llu: %s", cut, (int)mercy, (unsigned long long)seed,
                 err.text);
    check_integrity(db);
    kept = check_streams(history, cut, db) && kept;
    check_rollups(db);
    database_close(db);
    check_audit(path);
    if (resend) {
        send_again(history, path);
        assert_int_equal(database_open_writer(&db, path, &err), STATUS_OK);
        assert_true(check_streams(history, SIZE_MAX, db));
        check_rollups(db);
        database_close(db);
    }
    folder_remove(folder);
    return kept;
}

// ---- Tests ---------------------------------------------------------------------------------

// The first step after which something is on the disk for good.
static size_t first_ack(const struct history *history)
{
    return history->acked_count ? history->acked[0].steps : 0;
}

// Returns how many cuts lost something acknowledged.
static unsigned lose_power_often(const struct history *history, unsigned cuts, uint64_t seed,
                                 bool resend)
{
    const size_t from = first_ack(history), steps = power_tape_steps(history->tape);
    unsigned losses = 0;
    for (unsigned i = 0; i < cuts; i++) {
        // Anywhere, or right after something was acknowledged.
        size_t cut = from + (size_t)(test_random(&seed) % (steps - from + 1));
        if (i % 2 == 0)
            cut = history->acked[test_random(&seed) % history->acked_count].steps;
        const enum power_mercy mercy = (enum power_mercy)(test_random(&seed) % POWER_MERCIES);
        const uint64_t luck = test_random(&seed);
        const bool kept = lose_power(history, cut, mercy, luck, resend && i % RESENT_EVERY == 0);
        if (!kept && !forgetful)
            print_error("cut before step %zu of %zu, mercy %d, seed %llu: acknowledged and gone\n",
                        cut, steps, (int)mercy, (unsigned long long)luck);
        losses += !kept;
    }
    return losses;
}

static void free_history(struct history *history, const char *folder)
{
    power_tape_free(history->tape);
    free(history->acked);
    folder_remove(folder);
}

static const char *partial_of(const char *path)
{
    static char partial[FOLDER_PATH_SIZE + 32];
    (void)snprintf(partial, sizeof partial, "%s.inferstat-partial", path);
    return partial;
}

static void before_nothing(void *context, size_t steps)
{
    (void)context;
    (void)steps;
}

// While a store is made there is none, or one that is whole; then it is made again.
TEST_CASE(a_new_store_is_whole_or_not_there)
{
    char first[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE];
    struct error err = {0};
    sqlite3 *db = NULL;
    folder_make(first);
    struct power_tape *tape = power_tape_start(before_nothing, NULL);
    recording = tape;
    assert_int_equal(database_open_writer(&db, folder_path(path, first, store_name), &err),
                     STATUS_OK);
    database_close(db);
    power_tape_stop(tape);
    recording = NULL;
    folder_remove(first);
    const size_t steps = power_tape_steps(tape);
    assert_true(steps > 20);
    // At every step, with one mercy after the other; with all where the volume allows.
    const size_t mercies = test_volume(1) < POWER_MERCIES ? test_volume(1) : POWER_MERCIES;
    for (size_t i = 0; i < (steps + 1) * mercies; i++) {
        char folder[FOLDER_PATH_SIZE];
        folder_make(folder);
        const size_t cut = i / mercies;
        power_tape_replay(tape, cut, (enum power_mercy)((cut + i % mercies) % POWER_MERCIES), i,
                          folder);
        (void)folder_path(path, folder, store_name);
        if (store_is_there(path) && database_open_reader(&db, path, &err) != STATUS_OK)
            fail_msg("cut %zu of %zu: %s", cut, steps, err.text);
        if (store_is_there(path))
            database_close(db);
        if (database_open_writer(&db, path, &err) != STATUS_OK)
            fail_msg("cut %zu of %zu: %s", cut, steps, err.text);
        check_integrity(db);
        database_close(db);
        assert_false(store_is_there(partial_of(path)));
        folder_remove(folder);
    }
    power_tape_free(tape);
}

TEST_CASE(commits_survive)
{
    static struct history history;
    char folder[FOLDER_PATH_SIZE];
    folder_make(folder);
    live(&history, folder, 20261);
    assert_int_equal(lose_power_often(&history, test_volume(CUTS), 7, true), 0);
    free_history(&history, folder);
}

// With less than synchronous=FULL the same store loses what it acknowledged, and is
// sound all the same: the test sees the difference.
TEST_CASE(less_than_full_is_seen)
{
    static struct history history;
    char folder[FOLDER_PATH_SIZE];
    folder_make(folder);
    forgetful = true;
    live(&history, folder, 20262);
    const unsigned losses = lose_power_often(&history, 40, 8, false);
    forgetful = false;
    assert_true(losses > 0);
    free_history(&history, folder);
}

TEST_MAIN(a_new_store_is_whole_or_not_there, commits_survive, less_than_full_is_seen)
