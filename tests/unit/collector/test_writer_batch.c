// Messages into tables: every kind, and random histories whose ledger must
// balance after each group, also where groups are rolled back.

#include "common/store/sqlite/database.h"
#include "common/store/store.h"
#include "server/collector/threads/job.h"
#include "tests/support/test.h"
#include "tests/unit/collector/writer_rig.h"

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

TEST_CASE(test_every_kind_goes_into_its_table)
{
    rig_hello();
    struct message message = {.kind = MESSAGE_BATCH};
    table_builder_reset(rig.builder);
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT; kind++) {
        struct record record;
        rig_fill(&record, (enum record_kind)kind);
        assert_int_equal(table_builder_add(rig.builder, kind, &record), STATUS_OK);
    }
    message.batch = (struct message_batch){.first = 1,
                                           .last = RECORD_KIND_COUNT - 1,
                                           .names_first = 1,
                                           .names = rig_two_names,
                                           .name_count = 2};
    memcpy(message.batch.run, rig_run, sizeof rig_run);
    message.batch.tables = table_builder_tables(rig.builder, &message.batch.table_count);
    rig_group(&message, false);
    rig_free_ack(rig_last_ack());
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT; kind++) {
        const struct record_kind_info *info = record_kind_info((enum record_kind)kind);
        char sql[256];
        for (unsigned c = 0; c < info->column_count; c++) {
            char expected[64];
            filled_value(expected, sizeof expected, info->columns[c].type, c);
            (void)snprintf(sql, sizeof sql, "SELECT \"%s\" IS %s FROM %s WHERE number = %u",
                           info->columns[c].name, expected, info->name, kind);
            if (rig_integer(sql) != 1)
                fail_msg("not so: %s", sql);
        }
        assert_int_equal(
            rig_integer(format_text("SELECT stored FROM ledger WHERE kind = %u", kind)), 1);
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
    memcpy(message->batch.run, rig_run, sizeof rig_run);
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
    table_builder_reset(rig.builder);
    for (uint64_t number = first + skip; number <= last; number++) {
        rig_fill(&record, number % 2 ? RECORD_KIND_OPERATION : RECORD_KIND_ITL);
        assert_int_equal(table_builder_add(rig.builder, number, &record), STATUS_OK);
    }
    message->batch.stream = stream;
    message->batch.first = first + skip;
    message->batch.last = last;
    message->batch.names_first = 1;
    message->batch.names = rig_two_names;
    message->batch.name_count = 2;
    message->batch.tables = table_builder_tables(rig.builder, &message->batch.table_count);
    if (test_random(&history->random) % 8 == 0) {
        message->batch.fault = "on purpose";
        message->batch.table_count = 0;
    }
}

static void expect_ledger(void)
{
    assert_int_equal(
        rig_integer("SELECT count(*) FROM (SELECT run, stream, number FROM operation"
                    " UNION SELECT run, stream, number FROM itl)"),
        rig_integer("SELECT coalesce(sum(last - first + 1), 0) FROM range WHERE state = 0"));
    assert_int_equal(
        rig_integer("SELECT (SELECT count(*) FROM operation) + (SELECT count(*) FROM itl)"),
        rig_integer("SELECT coalesce(sum(stored), 0) FROM ledger"));
    assert_int_equal(rig_integer("SELECT stored FROM run"),
                     rig_integer("SELECT coalesce(sum(stored), 0) FROM ledger"));
    assert_int_equal(
        rig_integer("SELECT coalesce(sum(last - first + 1), 0) FROM range WHERE reason = 2"),
        rig_integer("SELECT refused FROM run"));
    // Ranges follow each other up to what is wanted next, and none could be merged.
    assert_int_equal(
        rig_integer(
            "SELECT count(*) FROM (SELECT first, last, state, reason,"
            " lag(last, 1, 0) OVER w AS before, lag(state) OVER w AS s, lag(reason) OVER w AS r"
            " FROM range WINDOW w AS (PARTITION BY stream ORDER BY first))"
            " WHERE first <> before + 1 OR (state = s AND reason IS r)"),
        0);
    assert_int_equal(
        rig_integer("SELECT count(*) FROM stream s WHERE next <> 1 +"
                    " coalesce((SELECT max(last) FROM range r WHERE r.stream = s.stream), 0)"),
        0);
}

static void take_next(struct history *history)
{
    struct message *ack = rig_last_ack();
    assert_non_null(ack);
    for (size_t i = 0; i < ack->ack.delivery.next_count; i++) {
        const struct delivery_next *next = &ack->ack.delivery.next[i];
        assert_true(next->next >= history->next[next->stream]); // never goes back
        history->next[next->stream] = next->next;
    }
    rig_free_ack(ack);
}

TEST_CASE(test_random_histories_keep_the_ledger)
{
    struct history history = {.next = {1, 1, 1}, .random = 4711};
    rig_hello();
    for (int step = 0; step < 600; step++) {
        struct message message;
        struct wire_drop drop;
        random_message(&history, &message, &drop);
        const bool fail = test_random(&history.random) % 6 == 0;
        rig_group(&message, fail);
        if (!fail) {
            take_next(&history);
        } else {
            assert_null(rig_last_ack());
            rig_hello(); // a producer without an answer begins anew
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
    memcpy(message.goodbye.run, rig_run, sizeof rig_run);
    rig_group(&message, false);
    struct message *ack = rig_last_ack();
    assert_true(ack->ack.delivery.closed);
    rig_free_ack(ack);
    expect_ledger();
    assert_int_equal(rig_integer("SELECT balanced FROM v_ledger"), 1);
}

TEST_CASE(test_names_go_on_where_they_were)
{
    static const struct wire_bytes names[] = {{1, "a"}, {1, "b"}, {1, "c"}, {1, "a"}};
    static const struct {
        uint32_t first;
        size_t count;
        uint32_t known;
    } cases[] = {{3, 2, 0}, {1, 2, 2}, {1, 2, 2}, {4, 1, 2}, {2, 3, 4}};
    rig_hello();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct message message = {.kind = MESSAGE_BATCH};
        memcpy(message.batch.run, rig_run, sizeof rig_run);
        message.batch.names_first = cases[i].first;
        message.batch.names = names + cases[i].first - 1;
        message.batch.name_count = cases[i].count;
        rig_group(&message, false);
        struct message *ack = rig_last_ack();
        assert_int_equal(ack->ack.delivery.names_known, cases[i].known);
        rig_free_ack(ack);
        if (i == 2) { // read anew from the store
            runs_forget(rig.runs);
            rig_hello();
        }
    }
    assert_int_equal(rig_integer("SELECT count(*) FROM name WHERE text IN ('a', 'b', 'c')"), 3);
    assert_int_equal(rig_integer("SELECT (SELECT name FROM run_name WHERE number = 1) ="
                                 " (SELECT name FROM run_name WHERE number = 4)"),
                     1);
}

TEST_CASE(test_more_streams_than_allowed)
{
    rig_hello();
    for (uint32_t stream = 0; stream <= DELIVERY_STREAMS_MAX; stream++) {
        struct record record;
        struct message message = {.kind = MESSAGE_BATCH};
        rig_fill(&record, RECORD_KIND_OPERATION);
        table_builder_reset(rig.builder);
        assert_int_equal(table_builder_add(rig.builder, 1, &record), STATUS_OK);
        message.batch = (struct message_batch){.stream = stream * 3,
                                               .first = 1,
                                               .last = 1,
                                               .names_first = 1,
                                               .names = rig_two_names,
                                               .name_count = 2};
        memcpy(message.batch.run, rig_run, sizeof rig_run);
        message.batch.tables = table_builder_tables(rig.builder, &message.batch.table_count);
        rig_group(&message, false);
        struct message *ack = rig_last_ack();
        assert_int_equal(ack->ack.error.size != 0, stream == DELIVERY_STREAMS_MAX);
        rig_free_ack(ack);
    }
    assert_int_equal(rig_integer("SELECT count(*) FROM operation"), DELIVERY_STREAMS_MAX);
}

// A run that is closed and makes more records is open until it says Goodbye again.
TEST_CASE(test_a_goodbye_counts_once)
{
    rig_hello();
    struct message message = rig_operations(1, 2);
    rig_group(&message, false);
    const struct delivery_stream made[] = {{.produced = 2}};
    struct message goodbye = {.kind = MESSAGE_GOODBYE};
    goodbye.goodbye = (struct message_goodbye){.ended_ns = 1, .streams = made, .stream_count = 1};
    memcpy(goodbye.goodbye.run, rig_run, sizeof rig_run);
    rig_group(&goodbye, false);
    rig_free_ack(rig_last_ack());
    assert_int_equal(rig_integer("SELECT \"end\" FROM run"), RECORD_RUN_END_CLOSED);
    message = rig_operations(3, 4);
    rig_group(&message, false);
    struct message *ack = rig_last_ack();
    assert_false(ack->ack.delivery.closed);
    rig_free_ack(ack);
    assert_int_equal(rig_integer("SELECT \"end\" FROM run"), RECORD_RUN_END_OPEN);
    rig_group(&goodbye, false);
    rig_free_ack(rig_last_ack());
    assert_int_equal(rig_integer("SELECT \"end\" FROM run"), RECORD_RUN_END_CLOSED);
}

static void replay_hello(void)
{
    struct message message = {.kind = MESSAGE_HELLO};
    message.hello = (struct message_hello){.protocol = 2, .host = {4, "host"}, .replay = true};
    memcpy(message.hello.run, rig_run, sizeof rig_run);
    rig_group(&message, false);
    rig_free_ack(rig_last_ack());
}

// Stores the message; returns whether the answer says that the run is closed.
static bool closes_run(const struct message *message)
{
    rig_group(message, false);
    struct message *ack = rig_last_ack();
    assert_non_null(ack);
    const bool closed = ack->ack.delivery.closed;
    rig_free_ack(ack);
    return closed;
}

// What another process sends of a dead run does not make it live; once it is all
// there, the run is killed, balances, and says what its threads were doing.
TEST_CASE(test_a_killed_run_is_replayed)
{
    replay_hello();
    assert_int_equal(rig_integer("SELECT \"end\" FROM run"), RECORD_RUN_END_SILENT);
    assert_int_equal(runs_open_count(rig.runs), 0);
    const struct message goodbye = rig_killed_goodbye();
    assert_false(closes_run(&goodbye));
    assert_int_equal(rig_integer("SELECT \"end\" FROM run"), RECORD_RUN_END_SILENT);
    const struct message rest = rig_operations(1, 2);
    assert_true(closes_run(&rest));
    assert_int_equal(rig_integer("SELECT \"end\" = 2 AND ended_ns = 90 AND last_activity ="
                                 " 'stream 1: decode; stream 4: load model' FROM run"),
                     1);
    assert_int_equal(rig_integer("SELECT balanced FROM v_ledger"), 1);
    assert_int_equal(
        rig_integer("SELECT activity_since_ns FROM stream WHERE activity = 'load model'"), 80);
    assert_int_equal(rig_integer("SELECT count(activity) FROM stream"), 2);
    runs_forget(rig.runs); // all of it is read back, and told again to who asks again
    replay_hello();
    assert_true(closes_run(&goodbye));
    assert_int_equal(rig_integer("SELECT count(activity) + 10 * count(*) FROM stream"), 32);
    assert_int_equal(rig_integer("SELECT \"end\" FROM run"), RECORD_RUN_END_KILLED);
}

TEST_CASE(test_a_run_that_was_killed_at_rest_was_idle)
{
    replay_hello();
    const struct message all = rig_operations(1, 2);
    rig_group(&all, false);
    struct message goodbye = rig_killed_goodbye();
    goodbye.goodbye.activity_count = 0;
    rig_group(&goodbye, false);
    assert_int_equal(rig_integer("SELECT \"end\" = 2 AND last_activity = 'idle' FROM run"), 1);
}

// What the run had made and nobody has any longer is in the ledger, with its reason.
TEST_CASE(test_a_host_takes_records_with_it)
{
    rig_hello();
    static const struct delivery_stream five_made[] = {
        {.produced = 5, .unnumbered = 4, .no_room = 3}};
    struct message batch = rig_operations(1, 2);
    batch.batch.streams = five_made;
    batch.batch.stream_count = COUNT_OF(five_made);
    rig_group(&batch, false);
    const struct message goodbye = rig_killed_goodbye();
    rig_group(&goodbye, false); // it may come from a process that has them still
    assert_int_equal(rig_integer("SELECT \"end\" FROM run"), RECORD_RUN_END_OPEN);
    replay_hello();
    assert_true(closes_run(&goodbye));
    assert_int_equal(rig_integer("SELECT first = 3 AND last = 5 AND reason = 6 FROM range"
                                 " WHERE state = 1"),
                     1);
    assert_int_equal(rig_integer("SELECT balanced FROM v_ledger"), 1);
    assert_int_equal(rig_integer("SELECT unnumbered = 4 AND no_room = 3 FROM stream"), 1);
    assert_int_equal(rig_integer("SELECT \"end\" FROM run"), RECORD_RUN_END_KILLED);
}

TEST_CASE(test_a_run_that_said_goodbye_was_not_killed)
{
    rig_hello();
    const struct message all = rig_operations(1, 2);
    rig_group(&all, false);
    struct message goodbye = rig_killed_goodbye();
    assert_true(closes_run(&goodbye));
    assert_int_equal(rig_integer("SELECT \"end\" FROM run"), RECORD_RUN_END_KILLED);
    goodbye.goodbye.killed = false;
    goodbye.goodbye.ended_ns = 91;
    assert_true(closes_run(&goodbye));
    assert_int_equal(rig_integer("SELECT ended_ns FROM run WHERE \"end\" = 1"), 91);
    goodbye = rig_killed_goodbye();
    assert_true(closes_run(&goodbye));
    assert_int_equal(rig_integer("SELECT ended_ns FROM run WHERE \"end\" = 1"), 91);
}

// More threads than one text holds: those that fit are named, whole.
TEST_CASE(test_a_death_of_many_threads)
{
    enum { THREADS = 200 };
    static struct wire_activity many[THREADS];
    for (uint32_t i = 0; i < THREADS; i++)
        many[i] = (struct wire_activity){.stream = i, .text = {24, "decode something request"}};
    rig_hello();
    struct message goodbye = rig_killed_goodbye();
    goodbye.goodbye.stream_count = 0;
    goodbye.goodbye.activities = many;
    goodbye.goodbye.activity_count = THREADS;
    assert_true(closes_run(&goodbye));
    assert_int_equal(rig_integer("SELECT count(*) FROM stream WHERE activity LIKE '% request'"),
                     THREADS);
    assert_int_equal(
        rig_integer("SELECT length(last_activity) BETWEEN 4000 AND 4095 AND last_activity"
                    " LIKE '%; stream ___: decode something request' FROM run"),
        1);
}

TEST_CASE(test_the_clock_is_the_latest_estimate)
{
    rig_hello();
    assert_int_equal(rig_integer("SELECT clock_error_ns IS NULL FROM run"), 1);
    struct message batch = {.kind = MESSAGE_BATCH};
    memcpy(batch.batch.run, rig_run, sizeof rig_run);
    batch.batch.clock_offset_ns = -5;
    batch.batch.clock_error_ns = 7;
    rig_group(&batch, false);
    assert_int_equal(rig_integer("SELECT clock_offset_ns + 100 * clock_error_ns FROM run"), 695);
    struct message more = rig_operations(1, 2);
    more.batch.clock_offset_ns = 3;
    more.batch.clock_error_ns = 2;
    rig_group(&more, false);
    batch.batch.clock_error_ns = 0; // it does not know any longer: what it knew stays
    rig_group(&batch, false);
    assert_int_equal(rig_integer("SELECT clock_offset_ns + 100 * clock_error_ns FROM run"), 203);
    runs_forget(rig.runs);
    rig_hello();
    more = rig_operations(1, 3);
    rig_group(&more, false);
    assert_int_equal(rig_integer("SELECT clock_offset_ns + 100 * clock_error_ns FROM run"), 203);
}

// What is in the store is not new to the live feed after a restart.
TEST_CASE(test_runs_are_numbered_on)
{
    assert_int_equal(runs_last_id(rig.runs), 0);
    rig_hello();
    assert_int_equal(runs_last_id(rig.runs), 1);
    struct runs *again = NULL;
    assert_int_equal(runs_new(&again, rig.db, NULL), STATUS_OK);
    assert_int_equal(runs_last_id(again), 1);
    runs_free(again);
}

// Hello leaves before the devices are known: their records count them.
TEST_CASE(test_devices_are_counted)
{
    rig_hello();
    assert_int_equal(rig_integer("SELECT device_count FROM run"), 0);
    static const int64_t ordinals[] = {1, 0, 2, -1, INT64_MAX};
    struct message message = {.kind = MESSAGE_BATCH};
    table_builder_reset(rig.builder);
    for (size_t i = 0; i < COUNT_OF(ordinals); i++) {
        struct record record;
        rig_fill(&record, RECORD_KIND_DEVICE);
        record_set_int(&record, DEVICE_ORDINAL, ordinals[i]);
        assert_int_equal(table_builder_add(rig.builder, i + 1, &record), STATUS_OK);
    }
    message.batch = (struct message_batch){.first = 1,
                                           .last = COUNT_OF(ordinals),
                                           .names_first = 1,
                                           .names = rig_two_names,
                                           .name_count = 2};
    memcpy(message.batch.run, rig_run, sizeof rig_run);
    message.batch.tables = table_builder_tables(rig.builder, &message.batch.table_count);
    rig_group(&message, false);
    rig_free_ack(rig_last_ack());
    assert_int_equal(rig_integer("SELECT device_count FROM run"), 3);
    runs_forget(rig.runs); // read anew, and told more
    rig_hello();
    assert_int_equal(rig_integer("SELECT device_count FROM run"), 3);
    struct message more = {.kind = MESSAGE_HELLO};
    more.hello = (struct message_hello){
        .protocol = 1, .host = {4, "host"}, .device_count = 4, .driver = {3, "550"}};
    memcpy(more.hello.run, rig_run, sizeof rig_run);
    rig_group(&more, false);
    rig_free_ack(rig_last_ack());
    assert_int_equal(rig_integer("SELECT device_count FROM run WHERE driver = '550'"), 4);
    rig_hello(); // what it does not say stays
    assert_int_equal(rig_integer("SELECT device_count FROM run WHERE driver = '550'"), 4);
}

// What is rolled back is not counted as stored.
TEST_CASE(test_count_of_stored_records)
{
    rig_hello();
    struct message message = rig_operations(1, 2);
    rig_group(&message, true);
    assert_int_equal(inserter_take_count(rig.inserter, RECORD_KIND_OPERATION), 0);
    rig_hello();
    message = rig_operations(1, 2);
    rig_group(&message, false);
    assert_int_equal(inserter_take_count(rig.inserter, RECORD_KIND_OPERATION), 2);
    assert_int_equal(inserter_take_count(rig.inserter, RECORD_KIND_OPERATION), 0);
}

// A rollback does not make strangers of those who had said Hello before it.
TEST_CASE(test_after_a_rollback_runs_are_greeted)
{
    rig_hello();
    struct message message = rig_operations(1, 2);
    rig_group(&message, true);
    assert_null(rig_last_ack());
    rig_hello(); // `group` forgets everything
    rig_exec("BEGIN");
    database_rollback(rig.db);
    assert_int_equal(runs_reload(rig.runs, 1, NULL), STATUS_OK);
    message = rig_operations(1, 2);
    rig_group(&message, false);
    struct message *ack = rig_last_ack();
    assert_false(ack->ack.delivery.hello_wanted);
    assert_int_equal(ack->ack.delivery.next[0].next, 3);
    rig_free_ack(ack);
}

// Losses without numbers that a heartbeat tells, in a group that is rolled back, count once.
TEST_CASE(test_a_heartbeats_losses_count_once)
{
    static const struct delivery_stream streams[] = {{.produced = 2, .unnumbered = 5}};
    struct message heartbeat = rig_operations(1, 2);
    heartbeat.batch = (struct message_batch){.streams = streams, .stream_count = 1};
    memcpy(heartbeat.batch.run, rig_run, sizeof rig_run);
    rig_hello();
    rig_group(&heartbeat, true);
    rig_hello();
    rig_group(&heartbeat, false);
    rig_free_ack(rig_last_ack());
    assert_int_equal(rig_integer("SELECT sum(lost) FROM unnumbered"), 5);
}

TEST_MAIN_EACH(rig_set_up, rig_tear_down, test_every_kind_goes_into_its_table,
               test_random_histories_keep_the_ledger, test_names_go_on_where_they_were,
               test_more_streams_than_allowed, test_a_goodbye_counts_once,
               test_a_killed_run_is_replayed, test_a_run_that_was_killed_at_rest_was_idle,
               test_a_host_takes_records_with_it, test_a_run_that_said_goodbye_was_not_killed,
               test_a_death_of_many_threads, test_the_clock_is_the_latest_estimate,
               test_runs_are_numbered_on, test_devices_are_counted, test_count_of_stored_records,
               test_after_a_rollback_runs_are_greeted, test_a_heartbeats_losses_count_once)
