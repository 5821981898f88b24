// Messages into tables: every kind, and random histories whose ledger must
// balance after each group, also where groups are rolled back.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/database.h"
#include "common/store/store.h"
#include "common/wire/codec.h"
#include "server/collector/work.h"
#include "server/collector/writer_batch.h"
#include "server/collector/writer_refusals.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

static char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE];
static struct sqlite3 *db;
static struct runs *runs;
static struct inserter *inserter;
static struct batches *batches;
static struct queue *acks;
static struct table_builder *builder;

static const unsigned char run_id[16] = {1, 2, 3, 4};
static bool trims = true; // runs are let go of between groups
static char sender;       // of messages: every byte of its key; 0: it has none

static int set_up(void **state)
{
    (void)state;
    struct error err = {0};
    folder_make(folder);
    (void)folder_path(path, folder, "s.db");
    static const unsigned char store[16] = {9};
    if (database_open_writer(&db, path, &err) != STATUS_OK ||
        runs_new(&runs, db, &err) != STATUS_OK || inserter_new(&inserter, db, &err) != STATUS_OK ||
        queue_new(&acks, 64, 1 << 20, &err) != STATUS_OK ||
        batches_new(&batches, runs, inserter, store, acks, &err) != STATUS_OK ||
        table_builder_new(&builder) != STATUS_OK)
        fail_msg("%s", err.text);
    // Nothing here asks what a disk keeps.
    return database_exec(db, "PRAGMA synchronous = OFF", NULL) == STATUS_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    sender = 0;
    trims = true;
    table_builder_free(builder);
    batches_free(batches);
    queue_free(acks, answer_free);
    inserter_free(inserter);
    runs_free(runs);
    database_close(db);
    folder_remove(folder);
    return 0;
}

static int64_t integer(const char *sql)
{
    struct error err = {0};
    int64_t value = 0;
    if (database_integer(db, sql, &value, &err) != STATUS_OK)
        fail_msg("%s: %s", sql, err.text);
    return value;
}

static void exec(const char *sql)
{
    struct error err = {0};
    if (database_exec(db, sql, &err) != STATUS_OK)
        fail_msg("%s: %s", sql, err.text);
}

// Lets go of what can be read again, every other time.
static void trim(void)
{
    static unsigned times;
    size_t complete;
    if (!trims || ++times % 3 == 0)
        return;
    runs_trim(runs, 0);
    (void)runs_size(runs, &complete);
    assert_int_equal(complete, 0);
}

// Takes a message as one group of its own; rolled back where `fail`.
static void group(const struct message *message, bool fail)
{
    struct error err = {0};
    struct work work = {.kind = WORK_MESSAGE, .received_ns = INT64_C(1790000000000000000)};
    work.message = *message;
    work.has_key = sender != 0;
    memset(work.key, sender, sizeof work.key);
    exec("BEGIN");
    batches_begin(batches);
    if (batches_take(batches, &work, &err) != STATUS_OK || runs_flush(runs, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    if (fail) {
        database_rollback(db);
        batches_drop_acks(batches);
        runs_forget(runs);
        assert_int_equal(inserter_reset(inserter, &err), STATUS_OK);
    } else {
        exec("COMMIT");
        batches_send_acks(batches);
        trim();
    }
}

// The Ack that was sent last, to be freed; NULL when there is none.
static struct message *last_ack(void)
{
    struct message *message = NULL;
    struct answer *answer;
    while ((answer = queue_pop(acks)) != NULL) {
        if (!message)
            message = calloc(1, sizeof *message);
        else
            message_free(message);
        assert_int_equal(codec_decode(message, answer->bytes, answer->size, NULL), STATUS_OK);
        answer_free(answer);
    }
    return message;
}

static void free_ack(struct message *message)
{
    if (message)
        message_free(message);
    free(message);
}

static void hello(void)
{
    struct message message = {.kind = MESSAGE_HELLO};
    message.hello = (struct message_hello){
        .protocol = 1, .host = {4, "host"}, .worker_version = {1, "v"}, .cpu_count = 1};
    memcpy(message.hello.run, run_id, sizeof run_id);
    group(&message, false);
    struct message *ack = last_ack();
    assert_non_null(ack);
    assert_int_equal(ack->ack.delivery.sequence, 0);
    free_ack(ack);
}

// A record of the kind with every column set from its position.
static void fill(struct record *record, enum record_kind kind)
{
    const struct record_kind_info *info = record_kind_info(kind);
    record_init(record, kind, INT64_C(1790000000000000000));
    for (unsigned c = 0; c < info->column_count; c++) {
        switch ((int)info->columns[c].type) {
        case COLUMN_REAL:
            record_set_real(record, c, 0.25 + c);
            break;
        case COLUMN_NAME:
            record_set_name(record, c, 1 + c % 2);
            break;
        case COLUMN_TEXT:
            assert_int_equal(record_set_text(record, c, "text", 4), 4);
            break;
        case COLUMN_BLOB:
            assert_int_equal(record_set_blob(record, c, "\0\1\2", 3), 3);
            break;
        case COLUMN_INT:
            record_set_int(record, c, (int64_t)c + 2);
            break;
        default:
            record_set_int(record, c, 1);
        }
    }
}

static const struct wire_bytes two_names[] = {{3, "one"}, {3, "two"}};

// What `fill` puts into a column, as SQL.
static void filled_value(char *sql, size_t size, enum column_type type, unsigned column)
{
    switch ((int)type) {
    case COLUMN_REAL:
        (void)snprintf(sql, size, "%u.25", column);
        break;
    case COLUMN_NAME:
        (void)snprintf(sql, size, "(SELECT id FROM name WHERE text = '%s')",
                       column % 2 ? "two" : "one");
        break;
    case COLUMN_TEXT:
        (void)snprintf(sql, size, "'text'");
        break;
    case COLUMN_BLOB:
        (void)snprintf(sql, size, "x'000102'");
        break;
    case COLUMN_INT:
        (void)snprintf(sql, size, "%u", column + 2);
        break;
    default:
        (void)snprintf(sql, size, "1");
    }
}

static void test_every_kind_goes_into_its_table(void **state)
{
    (void)state;
    hello();
    struct message message = {.kind = MESSAGE_BATCH};
    table_builder_reset(builder);
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT; kind++) {
        struct record record;
        fill(&record, (enum record_kind)kind);
        assert_int_equal(table_builder_add(builder, kind, &record), STATUS_OK);
    }
    message.batch = (struct message_batch){.first = 1,
                                           .last = RECORD_KIND_COUNT - 1,
                                           .names_first = 1,
                                           .names = two_names,
                                           .name_count = 2};
    memcpy(message.batch.run, run_id, sizeof run_id);
    message.batch.tables = table_builder_tables(builder, &message.batch.table_count);
    group(&message, false);
    free_ack(last_ack());
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT; kind++) {
        const struct record_kind_info *info = record_kind_info((enum record_kind)kind);
        char sql[256];
        for (unsigned c = 0; c < info->column_count; c++) {
            char expected[64];
            filled_value(expected, sizeof expected, info->columns[c].type, c);
            (void)snprintf(sql, sizeof sql, "SELECT \"%s\" IS %s FROM %s WHERE number = %u",
                           info->columns[c].name, expected, info->name, kind);
            if (integer(sql) != 1)
                fail_msg("not so: %s", sql);
        }
        (void)snprintf(sql, sizeof sql, "SELECT stored FROM ledger WHERE kind = %u", kind);
        assert_int_equal(integer(sql), 1);
    }
}

// What the run has told, and what the collector's answers said.
struct history {
    uint64_t produced[3], next[3];
    uint64_t random;
    bool named;
};

// A batch or drop somewhere around what is wanted: before, at, beyond; sound or
// not.
static void random_message(struct history *history, struct message *message, struct wire_drop *drop)
{
    struct record record;
    const uint32_t stream = (uint32_t)(test_random(&history->random) % 3);
    const uint64_t next = history->next[stream];
    const uint64_t back = test_random(&history->random) % 4;
    const uint64_t first = next > back ? next - back : 1;
    const uint64_t skip = test_random(&history->random) % 8 == 0 ? 2 : 0;
    const uint64_t last = first + skip + test_random(&history->random) % 6;
    *message = (struct message){.kind = MESSAGE_BATCH};
    memcpy(message->batch.run, run_id, sizeof run_id);
    if (last > history->produced[stream])
        history->produced[stream] = last;
    if (test_random(&history->random) % 4 == 0) {
        *drop = (struct wire_drop){.range = {.stream = stream,
                                             .first = first + skip,
                                             .last = last,
                                             .reason = DELIVERY_SPOOL_FULL}};
        message->batch.drops = drop;
        message->batch.drop_count = 1;
        return;
    }
    table_builder_reset(builder);
    for (uint64_t number = first + skip; number <= last; number++) {
        fill(&record, number % 2 ? RECORD_KIND_OPERATION : RECORD_KIND_ITL);
        assert_int_equal(table_builder_add(builder, number, &record), STATUS_OK);
    }
    message->batch.stream = stream;
    message->batch.first = first + skip;
    message->batch.last = last;
    message->batch.names_first = 1;
    message->batch.names = two_names;
    message->batch.name_count = 2;
    message->batch.tables = table_builder_tables(builder, &message->batch.table_count);
    if (test_random(&history->random) % 8 == 0) {
        message->batch.fault = "on purpose";
        message->batch.table_count = 0;
    }
}

static void expect_ledger(void)
{
    assert_int_equal(
        integer("SELECT count(*) FROM (SELECT run, stream, number FROM operation"
                " UNION SELECT run, stream, number FROM itl)"),
        integer("SELECT coalesce(sum(last - first + 1), 0) FROM range WHERE state = 0"));
    assert_int_equal(
        integer("SELECT (SELECT count(*) FROM operation) + (SELECT count(*) FROM itl)"),
        integer("SELECT coalesce(sum(stored), 0) FROM ledger"));
    assert_int_equal(integer("SELECT stored FROM run"),
                     integer("SELECT coalesce(sum(stored), 0) FROM ledger"));
    assert_int_equal(
        integer("SELECT coalesce(sum(last - first + 1), 0) FROM range WHERE reason = 2"),
        integer("SELECT refused FROM run"));
    // Ranges follow each other up to what is wanted next, and none could be merged.
    assert_int_equal(
        integer("SELECT count(*) FROM (SELECT first, last, state, reason,"
                " lag(last, 1, 0) OVER w AS before, lag(state) OVER w AS s, lag(reason) OVER w AS r"
                " FROM range WINDOW w AS (PARTITION BY stream ORDER BY first))"
                " WHERE first <> before + 1 OR (state = s AND reason IS r)"),
        0);
    assert_int_equal(
        integer("SELECT count(*) FROM stream s WHERE next <> 1 +"
                " coalesce((SELECT max(last) FROM range r WHERE r.stream = s.stream), 0)"),
        0);
}

static void take_next(struct history *history)
{
    struct message *ack = last_ack();
    assert_non_null(ack);
    for (size_t i = 0; i < ack->ack.delivery.next_count; i++) {
        const struct delivery_next *next = &ack->ack.delivery.next[i];
        assert_true(next->next >= history->next[next->stream]); // never goes back
        history->next[next->stream] = next->next;
    }
    free_ack(ack);
}

static void test_random_histories_keep_the_ledger(void **state)
{
    (void)state;
    struct history history = {.next = {1, 1, 1}, .random = 4711};
    hello();
    for (int step = 0; step < 600; step++) {
        struct message message;
        struct wire_drop drop;
        random_message(&history, &message, &drop);
        const bool fail = test_random(&history.random) % 6 == 0;
        group(&message, fail);
        if (!fail) {
            take_next(&history);
        } else {
            assert_null(last_ack());
            hello(); // a producer without an answer begins anew
        }
        if (step % 10 == 0)
            expect_ledger();
    }
    expect_ledger();
    // The end: what is missing is dropped, and the run balances.
    struct wire_drop drops[3];
    struct delivery_stream streams[3];
    for (uint32_t i = 0; i < 3; i++) {
        drops[i] = (struct wire_drop){.range = {.stream = i,
                                                .first = history.next[i],
                                                .last = history.produced[i] + 1,
                                                .reason = DELIVERY_SPOOL_FULL}};
        streams[i] = (struct delivery_stream){.stream = i, .produced = history.produced[i] + 1};
    }
    struct message message = {.kind = MESSAGE_GOODBYE};
    message.goodbye = (struct message_goodbye){
        .ended_ns = 1, .streams = streams, .stream_count = 3, .drops = drops, .drop_count = 3};
    memcpy(message.goodbye.run, run_id, sizeof run_id);
    group(&message, false);
    struct message *ack = last_ack();
    assert_true(ack->ack.delivery.closed);
    free_ack(ack);
    expect_ledger();
    assert_int_equal(integer("SELECT balanced FROM v_ledger"), 1);
}

static void test_names_go_on_where_they_were(void **state)
{
    (void)state;
    static const struct wire_bytes names[] = {{1, "a"}, {1, "b"}, {1, "c"}, {1, "a"}};
    static const struct {
        uint32_t first;
        size_t count;
        uint32_t known;
    } cases[] = {{3, 2, 0}, {1, 2, 2}, {1, 2, 2}, {4, 1, 2}, {2, 3, 4}};
    hello();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct message message = {.kind = MESSAGE_BATCH};
        memcpy(message.batch.run, run_id, sizeof run_id);
        message.batch.names_first = cases[i].first;
        message.batch.names = names + cases[i].first - 1;
        message.batch.name_count = cases[i].count;
        group(&message, false);
        struct message *ack = last_ack();
        assert_int_equal(ack->ack.delivery.names_known, cases[i].known);
        free_ack(ack);
        if (i == 2) { // read anew from the store
            runs_forget(runs);
            hello();
        }
    }
    assert_int_equal(integer("SELECT count(*) FROM name WHERE text IN ('a', 'b', 'c')"), 3);
    assert_int_equal(integer("SELECT (SELECT name FROM run_name WHERE number = 1) ="
                             " (SELECT name FROM run_name WHERE number = 4)"),
                     1);
}

static void test_more_streams_than_allowed(void **state)
{
    (void)state;
    hello();
    for (uint32_t stream = 0; stream <= DELIVERY_STREAMS_MAX; stream++) {
        struct record record;
        struct message message = {.kind = MESSAGE_BATCH};
        fill(&record, RECORD_KIND_OPERATION);
        table_builder_reset(builder);
        assert_int_equal(table_builder_add(builder, 1, &record), STATUS_OK);
        message.batch = (struct message_batch){.stream = stream * 3,
                                               .first = 1,
                                               .last = 1,
                                               .names_first = 1,
                                               .names = two_names,
                                               .name_count = 2};
        memcpy(message.batch.run, run_id, sizeof run_id);
        message.batch.tables = table_builder_tables(builder, &message.batch.table_count);
        group(&message, false);
        struct message *ack = last_ack();
        assert_int_equal(ack->ack.error.size != 0, stream == DELIVERY_STREAMS_MAX);
        free_ack(ack);
    }
    assert_int_equal(integer("SELECT count(*) FROM operation"), DELIVERY_STREAMS_MAX);
}

static struct message operations(uint64_t first, uint64_t last)
{
    struct message message = {.kind = MESSAGE_BATCH};
    struct record record;
    table_builder_reset(builder);
    for (uint64_t number = first; number <= last; number++) {
        fill(&record, RECORD_KIND_OPERATION);
        assert_int_equal(table_builder_add(builder, number, &record), STATUS_OK);
    }
    message.batch = (struct message_batch){
        .first = first, .last = last, .names_first = 1, .names = two_names, .name_count = 2};
    memcpy(message.batch.run, run_id, sizeof run_id);
    message.batch.tables = table_builder_tables(builder, &message.batch.table_count);
    return message;
}

// A run that is closed and makes more records is open until it says Goodbye again.
static void test_a_goodbye_counts_once(void **state)
{
    (void)state;
    hello();
    struct message message = operations(1, 2);
    group(&message, false);
    const struct delivery_stream made[] = {{.produced = 2}};
    struct message goodbye = {.kind = MESSAGE_GOODBYE};
    goodbye.goodbye = (struct message_goodbye){.ended_ns = 1, .streams = made, .stream_count = 1};
    memcpy(goodbye.goodbye.run, run_id, sizeof run_id);
    group(&goodbye, false);
    free_ack(last_ack());
    assert_int_equal(integer("SELECT \"end\" FROM run"), RECORD_RUN_END_CLOSED);
    message = operations(3, 4);
    group(&message, false);
    struct message *ack = last_ack();
    assert_false(ack->ack.delivery.closed);
    free_ack(ack);
    assert_int_equal(integer("SELECT \"end\" FROM run"), RECORD_RUN_END_OPEN);
    group(&goodbye, false);
    free_ack(last_ack());
    assert_int_equal(integer("SELECT \"end\" FROM run"), RECORD_RUN_END_CLOSED);
}

static const struct delivery_stream two_made[] = {{.produced = 2}};
static const struct wire_activity activities[] = {
    {.stream = 1, .text = {6, "decode"}, .since_ns = 70},
    {.stream = 3, .text = {0, ""}},
    {.stream = 4, .text = {10, "load model"}, .since_ns = 80}};

static struct message killed_goodbye(void)
{
    struct message message = {.kind = MESSAGE_GOODBYE};
    message.goodbye = (struct message_goodbye){.ended_ns = 90,
                                               .streams = two_made,
                                               .stream_count = COUNT_OF(two_made),
                                               .killed = true,
                                               .activities = activities,
                                               .activity_count = COUNT_OF(activities)};
    memcpy(message.goodbye.run, run_id, sizeof run_id);
    return message;
}

static void replay_hello(void)
{
    struct message message = {.kind = MESSAGE_HELLO};
    message.hello = (struct message_hello){.protocol = 2, .host = {4, "host"}, .replay = true};
    memcpy(message.hello.run, run_id, sizeof run_id);
    group(&message, false);
    free_ack(last_ack());
}

static bool closed_in_last_ack(void)
{
    struct message *ack = last_ack();
    assert_non_null(ack);
    const bool closed = ack->ack.delivery.closed;
    free_ack(ack);
    return closed;
}

// What another process sends of a dead run does not make it live; once it is all
// there, the run is killed, balances, and says what its threads were doing.
static void test_a_killed_run_is_replayed(void **state)
{
    (void)state;
    replay_hello();
    assert_int_equal(integer("SELECT \"end\" FROM run"), RECORD_RUN_END_SILENT);
    assert_int_equal(runs_open_count(runs), 0);
    const struct message goodbye = killed_goodbye();
    group(&goodbye, false);
    assert_false(closed_in_last_ack());
    assert_int_equal(integer("SELECT \"end\" FROM run"), RECORD_RUN_END_SILENT);
    const struct message rest = operations(1, 2);
    group(&rest, false);
    assert_true(closed_in_last_ack());
    assert_int_equal(integer("SELECT \"end\" = 2 AND ended_ns = 90 AND last_activity ="
                             " 'stream 1: decode; stream 4: load model' FROM run"),
                     1);
    assert_int_equal(integer("SELECT balanced FROM v_ledger"), 1);
    assert_int_equal(integer("SELECT activity_since_ns FROM stream WHERE activity = 'load model'"),
                     80);
    assert_int_equal(integer("SELECT count(activity) FROM stream"), 2);
    runs_forget(runs); // all of it is read back, and told again to who asks again
    replay_hello();
    group(&goodbye, false);
    assert_true(closed_in_last_ack());
    assert_int_equal(integer("SELECT count(activity) + 10 * count(*) FROM stream"), 32);
    assert_int_equal(integer("SELECT \"end\" FROM run"), RECORD_RUN_END_KILLED);
}

// What the run had made and nobody has any longer is in the ledger, with its reason.
static void test_a_host_takes_records_with_it(void **state)
{
    (void)state;
    hello();
    static const struct delivery_stream five_made[] = {{.produced = 5}};
    struct message batch = operations(1, 2);
    batch.batch.streams = five_made;
    batch.batch.stream_count = COUNT_OF(five_made);
    group(&batch, false);
    const struct message goodbye = killed_goodbye();
    group(&goodbye, false); // it may come from a process that has them still
    assert_int_equal(integer("SELECT \"end\" FROM run"), RECORD_RUN_END_OPEN);
    replay_hello();
    group(&goodbye, false);
    assert_true(closed_in_last_ack());
    assert_int_equal(integer("SELECT first = 3 AND last = 5 AND reason = 6 FROM range"
                             " WHERE state = 1"),
                     1);
    assert_int_equal(integer("SELECT balanced FROM v_ledger"), 1);
    assert_int_equal(integer("SELECT \"end\" FROM run"), RECORD_RUN_END_KILLED);
}

static void test_a_run_that_said_goodbye_was_not_killed(void **state)
{
    (void)state;
    hello();
    const struct message all = operations(1, 2);
    group(&all, false);
    struct message goodbye = killed_goodbye();
    group(&goodbye, false);
    assert_true(closed_in_last_ack());
    assert_int_equal(integer("SELECT \"end\" FROM run"), RECORD_RUN_END_KILLED);
    goodbye.goodbye.killed = false;
    goodbye.goodbye.ended_ns = 91;
    group(&goodbye, false);
    assert_true(closed_in_last_ack());
    assert_int_equal(integer("SELECT ended_ns FROM run WHERE \"end\" = 1"), 91);
    goodbye = killed_goodbye();
    group(&goodbye, false);
    assert_true(closed_in_last_ack());
    assert_int_equal(integer("SELECT ended_ns FROM run WHERE \"end\" = 1"), 91);
}

// More threads than one text holds: those that fit are named, whole.
static void test_a_death_of_many_threads(void **state)
{
    (void)state;
    enum { THREADS = 200 };
    static struct wire_activity many[THREADS];
    for (uint32_t i = 0; i < THREADS; i++)
        many[i] = (struct wire_activity){.stream = i, .text = {24, "decode something request"}};
    hello();
    struct message goodbye = killed_goodbye();
    goodbye.goodbye.stream_count = 0;
    goodbye.goodbye.activities = many;
    goodbye.goodbye.activity_count = THREADS;
    group(&goodbye, false);
    assert_true(closed_in_last_ack());
    assert_int_equal(integer("SELECT count(*) FROM stream WHERE activity LIKE '% request'"),
                     THREADS);
    assert_int_equal(integer("SELECT length(last_activity) BETWEEN 4000 AND 4095 AND last_activity"
                             " LIKE '%; stream ___: decode something request' FROM run"),
                     1);
}

static void test_the_clock_is_the_latest_estimate(void **state)
{
    (void)state;
    hello();
    assert_int_equal(integer("SELECT clock_error_ns IS NULL FROM run"), 1);
    struct message batch = {.kind = MESSAGE_BATCH};
    memcpy(batch.batch.run, run_id, sizeof run_id);
    batch.batch.clock_offset_ns = -5;
    batch.batch.clock_error_ns = 7;
    group(&batch, false);
    assert_int_equal(integer("SELECT clock_offset_ns + 100 * clock_error_ns FROM run"), 695);
    struct message more = operations(1, 2);
    more.batch.clock_offset_ns = 3;
    more.batch.clock_error_ns = 2;
    group(&more, false);
    batch.batch.clock_error_ns = 0; // it does not know any longer: what it knew stays
    group(&batch, false);
    assert_int_equal(integer("SELECT clock_offset_ns + 100 * clock_error_ns FROM run"), 203);
    runs_forget(runs);
    hello();
    more = operations(1, 3);
    group(&more, false);
    assert_int_equal(integer("SELECT clock_offset_ns + 100 * clock_error_ns FROM run"), 203);
}

// What is in the store is not new to the live feed after a restart.
static void test_runs_are_numbered_on(void **state)
{
    (void)state;
    assert_int_equal(runs_last_id(runs), 0);
    hello();
    assert_int_equal(runs_last_id(runs), 1);
    struct runs *again = NULL;
    assert_int_equal(runs_new(&again, db, NULL), STATUS_OK);
    assert_int_equal(runs_last_id(again), 1);
    runs_free(again);
}

// Hello leaves before the devices are known: their records count them.
static void test_devices_are_counted(void **state)
{
    (void)state;
    hello();
    assert_int_equal(integer("SELECT device_count FROM run"), 0);
    static const int64_t ordinals[] = {1, 0, 2, -1, INT64_MAX};
    struct message message = {.kind = MESSAGE_BATCH};
    table_builder_reset(builder);
    for (size_t i = 0; i < COUNT_OF(ordinals); i++) {
        struct record record;
        fill(&record, RECORD_KIND_DEVICE);
        record_set_int(&record, DEVICE_ORDINAL, ordinals[i]);
        assert_int_equal(table_builder_add(builder, i + 1, &record), STATUS_OK);
    }
    message.batch = (struct message_batch){.first = 1,
                                           .last = COUNT_OF(ordinals),
                                           .names_first = 1,
                                           .names = two_names,
                                           .name_count = 2};
    memcpy(message.batch.run, run_id, sizeof run_id);
    message.batch.tables = table_builder_tables(builder, &message.batch.table_count);
    group(&message, false);
    free_ack(last_ack());
    assert_int_equal(integer("SELECT device_count FROM run"), 3);
    runs_forget(runs); // read anew, and told more
    hello();
    assert_int_equal(integer("SELECT device_count FROM run"), 3);
    struct message more = {.kind = MESSAGE_HELLO};
    more.hello = (struct message_hello){
        .protocol = 1, .host = {4, "host"}, .device_count = 4, .driver = {3, "550"}};
    memcpy(more.hello.run, run_id, sizeof run_id);
    group(&more, false);
    free_ack(last_ack());
    assert_int_equal(integer("SELECT device_count FROM run WHERE driver = '550'"), 4);
    hello(); // what it does not say stays
    assert_int_equal(integer("SELECT device_count FROM run WHERE driver = '550'"), 4);
}

// A rollback does not make strangers of those who had said Hello before it.
static void test_after_a_rollback_runs_are_greeted(void **state)
{
    (void)state;
    hello();
    struct message message = operations(1, 2);
    group(&message, true);
    assert_null(last_ack());
    hello(); // `group` forgets everything
    exec("BEGIN");
    database_rollback(db);
    assert_int_equal(runs_reload(runs, 1, NULL), STATUS_OK);
    message = operations(1, 2);
    group(&message, false);
    struct message *ack = last_ack();
    assert_false(ack->ack.delivery.hello_wanted);
    assert_int_equal(ack->ack.delivery.next[0].next, 3);
    free_ack(ack);
}

// ---- Owners and limits -------------------------------------------------------------

static struct message hello_of(unsigned char run)
{
    struct message message = {.kind = MESSAGE_HELLO};
    message.hello = (struct message_hello){.protocol = 1, .host = {4, "host"}};
    memset(message.hello.run, run, sizeof message.hello.run);
    return message;
}

// The error in the answer to a message; empty where there is none.
static const char *error_for(const struct message *message)
{
    static char text[128];
    group(message, false);
    struct message *ack = last_ack();
    assert_non_null(ack);
    (void)snprintf(text, sizeof text, "%.*s", (int)ack->ack.error.size,
                   ack->ack.error.size ? ack->ack.error.bytes : "");
    free_ack(ack);
    return text;
}

static void test_a_run_belongs_to_the_key_that_opened_it(void **state)
{
    (void)state;
    static const char others[] = {'b', 0};
    sender = 'a';
    hello();
    struct message all = operations(1, 2);
    assert_string_equal(error_for(&all), "");
    char key[WIRE_KEY_TEXT_SIZE];
    unsigned char bytes[WIRE_KEY_SIZE];
    memset(bytes, 'a', sizeof bytes);
    char sql[256];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM run WHERE key = '%s'",
                   wire_key_text(key, bytes));
    assert_int_equal(integer(sql), 1);
    for (unsigned round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNT_OF(others); i++) {
            sender = others[i];
            struct message said = hello_of(0);
            memcpy(said.hello.run, run_id, sizeof run_id);
            assert_string_equal(error_for(&said), "this run belongs to another key");
            all = operations(3, 4);
            assert_string_equal(error_for(&all), "this run belongs to another key");
            const struct message goodbye = killed_goodbye();
            assert_string_equal(error_for(&goodbye), "this run belongs to another key");
        }
        assert_int_equal(integer("SELECT count(*) FROM operation"), 2);
        assert_int_equal(integer("SELECT \"end\" FROM run"), RECORD_RUN_END_OPEN);
        runs_forget(runs); // as the store has it, too
    }
    sender = 'a';
    hello();
    all = operations(3, 4);
    assert_string_equal(error_for(&all), "");
    // And one without a key goes on without one.
    sender = 0;
    struct message said = hello_of(9);
    assert_string_equal(error_for(&said), "");
    sender = 'a';
    assert_string_equal(error_for(&said), "this run belongs to another key");
}

static void test_runs_of_a_key_that_are_not_over(void **state)
{
    (void)state;
    struct limits limits = LIMITS_DEFAULT;
    limits.runs_per_key = 3;
    batches_set_rules(batches, &(struct batches_rules){.limits = limits});
    for (unsigned char run = 1; run <= 5; run++) {
        const struct message said = hello_of(run);
        assert_int_equal(strlen(error_for(&said)) != 0, run > 3);
    }
    const struct message known = hello_of(2);
    assert_string_equal(error_for(&known), "");
    sender = 'a'; // another one's are counted apart
    const struct message other = hello_of(6);
    assert_string_equal(error_for(&other), "");
    sender = 0;
    struct message goodbye = {.kind = MESSAGE_GOODBYE, .goodbye = {.ended_ns = 1}};
    memset(goodbye.goodbye.run, 2, sizeof goodbye.goodbye.run);
    assert_string_equal(error_for(&goodbye), "");
    const struct message next = hello_of(7);
    assert_string_equal(error_for(&next), "");
    const struct message one_more = hello_of(8);
    assert_string_not_equal(error_for(&one_more), "");
    exec("UPDATE run SET heard_ns = heard_ns - 3600000000001"); // long silent
    assert_string_equal(error_for(&one_more), "");
}

// Those that take much are let go of, those that take little never because of them.
static void test_the_cache_is_bounded(void **state)
{
    (void)state;
    static char texts[300][4];
    static struct wire_bytes names[COUNT_OF(texts)];
    for (unsigned i = 0; i < COUNT_OF(texts); i++) {
        (void)snprintf(texts[i], sizeof texts[i], "%u", i);
        names[i] = (struct wire_bytes){strlen(texts[i]), texts[i]};
    }
    trims = false;
    for (unsigned char run = 1; run <= 20; run++) {
        const struct message said = hello_of(run);
        assert_string_equal(error_for(&said), "");
        struct message batch = {.kind = MESSAGE_BATCH};
        memset(batch.batch.run, run, sizeof batch.batch.run);
        batch.batch.names_first = 1;
        batch.batch.names = names;
        batch.batch.name_count = run % 10 ? 2 : COUNT_OF(names);
        assert_string_equal(error_for(&batch), "");
    }
    size_t complete;
    struct run *run = NULL;
    for (unsigned char i = 1; i <= 20; i++) { // all are here
        unsigned char uuid[16];
        memset(uuid, i, sizeof uuid);
        assert_int_equal(runs_find(runs, uuid, &run, NULL), STATUS_OK);
        assert_int_equal(run->delivery.names_known, i % 10 ? 2 : COUNT_OF(names));
        assert_true(run->delivery.greeted);
    }
    const size_t all = runs_size(runs, &complete);
    assert_int_equal(complete, 20);
    runs_trim(runs, all);
    (void)runs_size(runs, &complete);
    assert_int_equal(complete, 20);
    runs_trim(runs, all - 1);
    assert_true(runs_size(runs, &complete) < all - 1);
    assert_int_equal(complete, 18);
}

// Names beyond the limit are told once and not kept; what refers to them is refused.
static void test_names_beyond_the_limit(void **state)
{
    (void)state;
    static const struct wire_bytes four[] = {{1, "a"}, {1, "b"}, {1, "c"}, {1, "d"}};
    struct limits limits = LIMITS_DEFAULT;
    struct refusals *refusals = NULL;
    assert_int_equal(refusals_new(&refusals, NULL), STATUS_OK);
    limits.names = 2;
    batches_set_rules(batches, &(struct batches_rules){.limits = limits, .refusals = refusals});
    hello();
    struct message message = operations(1, 2);
    message.batch.names = four;
    message.batch.name_count = COUNT_OF(four);
    group(&message, false);
    struct message *ack = last_ack();
    assert_int_equal(ack->ack.delivery.names_known, 4);
    assert_int_equal(ack->ack.refused_count, 0);
    free_ack(ack);
    assert_int_equal(integer("SELECT count(*) FROM run_name"), 2);
    exec("BEGIN");
    assert_int_equal(writer_save_refusals(refusals, db, 7, NULL), STATUS_OK);
    exec("ROLLBACK");
    refusals_saved(refusals, false);
    assert_true(refusals_are_waiting(refusals));
    exec("BEGIN");
    assert_int_equal(writer_save_refusals(refusals, db, 7, NULL), STATUS_OK);
    exec("COMMIT");
    refusals_saved(refusals, true);
    assert_false(refusals_are_waiting(refusals));
    assert_int_equal(integer("SELECT count FROM refusal WHERE reason = 'names' AND last_ns = 7"),
                     2);
    struct record record;
    fill(&record, RECORD_KIND_OPERATION);
    record_set_name(&record, OPERATION_OPERATION, 3);
    table_builder_reset(builder);
    assert_int_equal(table_builder_add(builder, 3, &record), STATUS_OK);
    message.batch.first = message.batch.last = 3;
    message.batch.name_count = 0;
    message.batch.tables = table_builder_tables(builder, &message.batch.table_count);
    group(&message, false);
    ack = last_ack();
    assert_int_equal(ack->ack.refused_count, 1);
    assert_int_equal(ack->ack.delivery.next[0].next, 4);
    free_ack(ack);
    assert_int_equal(integer("SELECT count(*) FROM range WHERE detail LIKE '%--max-names%'"), 1);
    message = operations(4, 5); // those that are kept go on
    group(&message, false);
    free_ack(last_ack());
    assert_int_equal(integer("SELECT count(*) FROM operation"), 4);
    refusals_free(refusals);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_every_kind_goes_into_its_table),
        TEST(test_random_histories_keep_the_ledger),
        TEST(test_names_go_on_where_they_were),
        TEST(test_more_streams_than_allowed),
        TEST(test_a_goodbye_counts_once),
        TEST(test_a_killed_run_is_replayed),
        TEST(test_a_host_takes_records_with_it),
        TEST(test_a_run_that_said_goodbye_was_not_killed),
        TEST(test_a_death_of_many_threads),
        TEST(test_the_clock_is_the_latest_estimate),
        TEST(test_runs_are_numbered_on),
        TEST(test_devices_are_counted),
        TEST(test_after_a_rollback_runs_are_greeted),
        TEST(test_a_run_belongs_to_the_key_that_opened_it),
        TEST(test_runs_of_a_key_that_are_not_over),
        TEST(test_names_beyond_the_limit),
        TEST(test_the_cache_is_bounded),
    };
    return cmocka_run_group_tests_name("writer_batch", tests, NULL, NULL);
}
