// inferstatd as a process, over real sockets: what is acknowledged is in the
// store exactly once, and the ledger says what is not.
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/store/sqlite/database.h"
#include "common/store/store.h"
#include "common/sys/clock.h"
#include "common/store/schema/database_open.h"
#include "tests/integration/collector/collector_fixture.h"

// Numbers 1..count are there, each once.
static void expect_numbers(uint64_t count)
{
    assert_int_equal(integer("SELECT count(*) FROM inference"), count);
    assert_int_equal(integer("SELECT count(DISTINCT number) FROM inference"), count);
    assert_int_equal(integer("SELECT coalesce(max(number), 0) FROM inference"), count);
}

// ---- Exactly once -----------------------------------------------------------------------

TEST_CASE(test_acknowledged_is_stored)
{
    say_hello();
    assert_true(producer.credit > 0);
    store_numbers(1, 20);
    expect_numbers(20);
    assert_int_equal(producer.names_known, 2);
    assert_int_equal(integer("SELECT count(*) FROM v_inference WHERE model = 'name-1'"
                             " AND device = 'name-2' AND finish IN ('stop', 'length')"),
                     20);
    assert_int_equal(integer("SELECT stored FROM ledger WHERE kind = 6"), 20);
    assert_int_equal(integer("SELECT last FROM range WHERE state = 0 AND first = 1"), 20);
    assert_int_equal(integer("SELECT count(device_memory_bytes) FROM inference"), 15);
}

TEST_CASE(test_values_arrive_as_they_were_sent)
{
    say_hello();
    store_numbers(1, 64);
    for (unsigned i = 0; i < 64; i++) {
        for (unsigned c = INFERENCE_REQUEST; c < INFERENCE_COLUMNS; c++) {
            assert_int_equal(integer(format_text(
                                 "SELECT coalesce(\"%s\", -1) FROM inference WHERE number = %u",
                                 record_kind_info(RECORD_KIND_INFERENCE)->columns[c].name, i + 1)),
                             record_has(&records[i], c) ? records[i].values[c].i : -1);
        }
    }
}

TEST_CASE(test_repeated_records_are_skipped)
{
    say_hello();
    store_numbers(1, 10);
    producer_batch(&producer, 0, 1, records, 10);
    assert_true(producer_await(&producer, 5000));
    store_numbers(6, 15);
    expect_numbers(15);
    assert_int_equal(integer("SELECT duplicates FROM run"), 15);
    assert_int_equal(integer("SELECT count(*) FROM range"), 1);
}

TEST_CASE(test_a_gap_is_answered_with_what_is_wanted)
{
    say_hello();
    store_numbers(1, 5);
    producer_batch(&producer, 0, 9, &records[8], 4);
    producer.next[0] = 0;
    assert_true(producer_await(&producer, 5000));
    assert_int_equal(producer.next[0], 6);
    expect_numbers(5);
}

TEST_CASE(test_streams_are_apart)
{
    say_hello();
    for (uint32_t stream = 0; stream < 4; stream++) {
        producer_batch(&producer, stream, 1, records, 8);
        assert_true(producer_await_next(&producer, stream, 9));
    }
    assert_int_equal(integer("SELECT count(*) FROM inference"), 32);
    assert_int_equal(integer("SELECT count(*) FROM range"), 4);
}

TEST_CASE(test_an_unknown_run_is_asked_for_hello)
{
    producer_batch(&producer, 0, 1, records, 3);
    assert_true(producer_await(&producer, 5000));
    assert_true(producer.hello_wanted);
    say_hello();
    assert_false(producer.hello_wanted);
    store_numbers(1, 3);
    expect_numbers(3);
}

TEST_CASE(test_killed_between_batches)
{
    say_hello();
    store_numbers(1, 10);
    assert_int_equal(daemon_end(&collector, SIGKILL), -SIGKILL);
    collector_start(NULL, NULL);
    expect_numbers(10);
    // The run is known to the store: it goes on where it was.
    producer.next[0] = 0;
    say_hello();
    assert_int_equal(producer.next[0], 11);
    assert_int_equal(producer.names_known, 2);
    producer_batch(&producer, 0, 6, &records[5], 10);
    assert_true(producer_await_next(&producer, 0, 16));
    expect_numbers(15);
    assert_int_equal(integer("SELECT count(*) FROM range"), 1);
}

TEST_CASE(test_killed_under_load)
{
    say_hello();
    uint64_t acknowledged = 0;
    for (int life = 0; life < 5; life++) {
        for (uint64_t i = 0; i < 200; i++)
            producer_batch(&producer, 0, producer.next[0] ? producer.next[0] + i * 8 : 1 + i * 8,
                           records, 8);
        (void)producer_await(&producer, 5000);
        if (producer.next[0] > acknowledged + 1)
            acknowledged = producer.next[0] - 1;
        assert_int_equal(daemon_end(&collector, SIGKILL), -SIGKILL);
        collector_start(NULL, NULL);
        // All that was acknowledged is there, nothing twice, ranges in order.
        const int64_t stored = integer("SELECT count(*) FROM inference");
        assert_true(stored >= (int64_t)acknowledged);
        assert_int_equal(integer("SELECT count(DISTINCT number) FROM inference"), stored);
        assert_int_equal(integer("SELECT sum(last - first + 1) FROM range WHERE state = 0"),
                         stored);
        assert_int_equal(integer("SELECT sum(stored) FROM ledger"), stored);
        assert_int_equal(integer("SELECT stored FROM run"), stored);
        producer_close(&producer);
        producer_open(&producer, endpoint("ingest"), 7);
        say_hello();
    }
    assert_true(acknowledged > 0);
}

// A disk that is full for a while: the collector may not make files any longer.
TEST_CASE(test_a_full_disk_is_no_refusal)
{
    assert_int_equal(daemon_end(&collector, SIGTERM), 0);
    void (*const before)(int) = signal(SIGXFSZ, SIG_IGN); // the child inherits it
    collector_start(NULL, NULL);
    (void)signal(SIGXFSZ, before);
    say_hello();
    store_numbers(1, 10);
    const struct rlimit none = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
    const struct rlimit all = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    assert_int_equal(prlimit(collector.pid, RLIMIT_FSIZE, &none, NULL), 0);
    for (int i = 0; i < 3; i++) {
        producer_batch(&producer, 0, 11, &records[10], 10);
        if (producer_await(&producer, 200)) // asked for Hello at most
            assert_true(producer.hello_wanted);
        assert_int_equal(producer.next[0], 11);
    }
    expect_numbers(10); // readers are served meanwhile
    assert_int_equal(prlimit(collector.pid, RLIMIT_FSIZE, &all, NULL), 0);
    while (producer_await(&producer, 50)) {
        // Answers that were under way.
    }
    say_hello();
    store_numbers(11, 20);
    expect_numbers(20);
    assert_int_equal(integer("SELECT count(*) FROM range"), 1);
    assert_int_equal(integer("SELECT refused FROM run"), 0);
    assert_int_equal(daemon_end(&collector, SIGTERM), 0);
    const char *const said = strstr(collector.output, "nothing is acknowledged");
    assert_non_null(said);
    assert_null(strstr(said + 1, "nothing is acknowledged")); // once
    assert_non_null(strstr(said, "is writable again"));
}

TEST_CASE(test_a_fresh_store_gets_what_is_still_held)
{
    unsigned char store[16];
    say_hello();
    memcpy(store, producer.store, sizeof store);
    store_numbers(1, 10);
    assert_int_equal(daemon_end(&collector, SIGTERM), 0);
    assert_int_equal(unlink(path), 0);
    collector_start(NULL, NULL);
    producer_batch(&producer, 0, 11, &records[10], 5);
    do
        assert_true(producer_await(&producer, 5000));
    while (!producer.hello_wanted);
    assert_memory_not_equal(store, producer.store, sizeof store);
    producer.names_known = 0;
    say_hello();
    // 1..10 are held no more: acknowledged elsewhere.
    struct message message = {.kind = MESSAGE_BATCH};
    const struct wire_drop drop = {
        .range = {.first = 1, .last = 10, .reason = DELIVERY_ACKNOWLEDGED_ELSEWHERE}};
    memcpy(message.batch.run, producer.run, sizeof producer.run);
    message.batch.drops = &drop;
    message.batch.drop_count = 1;
    producer_message(&producer, &message);
    assert_true(producer_await_next(&producer, 0, 11));
    store_numbers(11, 15);
    assert_int_equal(integer("SELECT count(*) FROM inference"), 5);
    assert_int_equal(integer("SELECT last FROM range WHERE state = 1 AND reason = 3"), 10);
}

static void send_drops(const struct wire_drop *drops, size_t count)
{
    struct message message = {.kind = MESSAGE_BATCH};
    memcpy(message.batch.run, producer.run, sizeof producer.run);
    message.batch.sequence = ++producer.sequence;
    message.batch.drops = drops;
    message.batch.drop_count = count;
    producer_message(&producer, &message);
    assert_true(producer_await(&producer, 5000));
}

TEST_CASE(test_stored_wins_over_dropped)
{
    say_hello();
    store_numbers(1, 10);
    const struct wire_drop drops[] = {
        {.range = {.first = 1, .last = 4, .reason = DELIVERY_SPOOL_FULL}},
        {.range = {.first = 8, .last = 20, .reason = DELIVERY_SPOOL_FULL}},
        {.range = {.first = 21, .last = 25, .reason = DELIVERY_SPOOL_FULL}},
        {.range = {.first = 26, .last = 30, .reason = DELIVERY_SPOOL_FULL}, .detail = {4, "disk"}},
        {.range = {.first = 40, .last = 41, .reason = DELIVERY_SPOOL_FULL}},
    };
    send_drops(drops, COUNT_OF(drops));
    assert_int_equal(producer.next[0], 31);
    send_drops(drops, COUNT_OF(drops)); // as long as they are not acknowledged
    assert_int_equal(producer.next[0], 31);
    expect_numbers(10);
    // 11..25 are one range, 26..30 another: its detail differs.
    assert_int_equal(integer("SELECT count(*) FROM range"), 3);
    assert_int_equal(integer("SELECT last FROM range WHERE first = 11 AND state = 1"), 25);
    assert_int_equal(integer("SELECT last FROM range WHERE first = 26 AND detail = 'disk'"), 30);
    store_numbers(31, 40);
    assert_int_equal(integer("SELECT count(*) FROM inference"), 20);
}

TEST_CASE(test_goodbye_closes_what_is_complete)
{
    say_hello();
    store_numbers(1, 10);
    const struct delivery_stream more[] = {{.stream = 0, .produced = 12, .unnumbered = 3}};
    producer_goodbye(&producer, more, 1);
    assert_true(producer_await(&producer, 5000));
    assert_false(producer.closed);
    assert_int_equal(producer.next[0], 11);
    assert_int_equal(integer("SELECT in_flight FROM v_ledger"), 2);
    assert_int_equal(integer("SELECT balanced IS NULL FROM v_ledger"), 1);
    store_numbers(11, 12);
    assert_true(producer.closed);
    assert_int_equal(integer("SELECT balanced FROM v_ledger"), 1);
    assert_int_equal(integer("SELECT unnumbered FROM v_ledger"), 3);
    assert_int_equal(integer("SELECT lost FROM unnumbered WHERE since_ns <= until_ns"), 3);
    assert_int_equal(integer("SELECT \"end\" FROM run WHERE ended_ns > 0"), RECORD_RUN_END_CLOSED);
    // A Goodbye that comes again is answered again.
    producer.closed = false;
    producer_goodbye(&producer, more, 1);
    assert_true(producer_await(&producer, 5000));
    assert_true(producer.closed);
    // A Hello that has made more since opens the run again.
    const struct delivery_stream still_more[] = {{.stream = 0, .produced = 13, .unnumbered = 3}};
    producer_hello(&producer, still_more, 1);
    assert_true(producer_await(&producer, 5000));
    assert_false(producer.closed);
    assert_int_equal(integer("SELECT balanced IS NULL FROM v_ledger"), 1);
}

TEST_CASE(test_implausible_clocks_are_stored_and_counted)
{
    say_hello();
    const int64_t now = clock_wall_ns();
    static const int64_t minute = INT64_C(60000000000);
    const int64_t times[] = {0, 1, INT64_MIN / 2, now + 1500 * minute, now + 3 * minute, now};
    for (size_t i = 0; i < COUNT_OF(times); i++)
        records[i].started_ns = times[i];
    store_numbers(1, COUNT_OF(times));
    expect_numbers(COUNT_OF(times));
    assert_int_equal(integer("SELECT clock_suspects FROM run"), 4);
    assert_int_equal(integer("SELECT sum(clock_suspect) FROM v_inference"), 4);
}

// Sends one query and decodes the answer into `message`.
static void ask(const char *service, const struct query *query, struct message *message)
{
    struct producer asker;
    const struct message question = {.kind = MESSAGE_QUERY,
                                     .query = {.id = 42, .protocol = 1, .query = *query}};
    producer_open(&asker, endpoint(service), 1);
    producer_message(&asker, &question);
    uint32_t ready = 0;
    wire_wait(&asker.socket, 1, -1, INT64_C(5000000000), &ready);
    struct wire_bytes frame;
    assert_int_equal(wire_receive(asker.socket, &frame), STATUS_OK);
    assert_int_equal(codec_decode(message, frame.bytes, frame.size, NULL), STATUS_OK);
    assert_int_equal(message->kind, MESSAGE_REPLY);
    assert_int_equal(message->reply.id, 42);
    producer_close(&asker);
}

// ---- Bad input -----------------------------------------------------------------------------

TEST_CASE(test_a_batch_that_can_never_be_taken)
{
    say_hello();
    store_numbers(1, 5);
    struct record broken[4];
    memcpy(broken, records, sizeof broken);
    record_set_name(&broken[2], INFERENCE_MODEL, 9); // never told
    producer_batch(&producer, 0, 6, broken, 4);
    assert_true(producer_await(&producer, 5000));
    assert_true(producer.hello_wanted); // the store may have forgotten it
    say_hello();
    producer_batch(&producer, 0, 6, broken, 4);
    assert_true(producer_await_next(&producer, 0, 10));
    assert_int_equal(producer.refused, 1);
    assert_non_null(strstr(producer.refused_reason, "name"));
    // A value that is not finite, found by the codec.
    record_init(&broken[0], RECORD_KIND_PROCESS_SAMPLE, clock_wall_ns());
    record_set_real(&broken[0], PROCESS_SAMPLE_CPU, (double)NAN);
    record_set_int(&broken[0], PROCESS_SAMPLE_HOST_MEMORY, 1);
    producer_batch(&producer, 0, 10, broken, 1);
    assert_true(producer_await_next(&producer, 0, 11));
    assert_int_equal(producer.refused, 1);
    store_numbers(11, 20); // the connection lives on
    assert_int_equal(integer("SELECT count(*) FROM inference"), 15);
    assert_int_equal(integer("SELECT refused FROM run"), 5);
    assert_int_equal(integer("SELECT sum(last - first + 1) FROM range WHERE reason = 2"), 5);
    assert_int_equal(integer("SELECT count(*) FROM range WHERE detail LIKE '%name%'"), 1);
}

// Numbers near 2^63 once made every query of the ledger overflow for ever.
TEST_CASE(test_numbers_that_cannot_be)
{
    static const uint64_t huge = (uint64_t)INT64_MAX - 1;
    const struct delivery_stream streams[] = {{0, huge, 0, 0}, {1, huge, 0, 0}};
    producer_hello(&producer, streams, 2);
    assert_true(producer_await(&producer, 5000));
    assert_non_null(strstr(producer.error, "out of range"));
    say_hello();
    static const uint64_t lasts[] = {DELIVERY_BATCH_MAX + 1, huge};
    for (size_t i = 0; i < COUNT_OF(lasts); i++) {
        struct message message = {
            .kind = MESSAGE_BATCH,
            .batch = {.sequence = ++producer.sequence, .first = 1, .last = lasts[i]}};
        memcpy(message.batch.run, producer.run, sizeof producer.run);
        producer_message(&producer, &message);
        assert_true(producer_await(&producer, 5000));
        assert_string_not_equal(producer.error, "");
    }
    record_set_int(&records[1], INFERENCE_GENERATED_TOKENS, INT64_MAX);
    producer_batch(&producer, 0, 1, records, 2);
    assert_true(producer_await_next(&producer, 0, 3));
    assert_int_equal(producer.refused, 1);
    store_numbers(3, 5);
    assert_int_equal(integer("SELECT refused FROM run"), 2);
    assert_int_equal(integer("SELECT produced FROM v_ledger"), 5);
    struct message message;
    const struct query summary = {.kind = QUERY_SUMMARY};
    ask("query", &summary, &message);
    assert_int_equal(message.reply.status, REPLY_OK);
    assert_int_equal(result_integer(message.reply.result, 0, "produced", 0), 5);
    message_free(&message);
}

TEST_CASE(test_frames_that_are_no_messages)
{
    say_hello();
    for (int i = 0; i < 5; i++) {
        producer_send(&producer, "no protobuf at all", 18);
        assert_true(producer_await(&producer, 5000));
        assert_string_not_equal(producer.error, "");
    }
    const struct message query = {.kind = MESSAGE_QUERY, .query = {.protocol = 1}};
    producer_message(&producer, &query);
    assert_true(producer_await(&producer, 5000));
    store_numbers(1, 5);
    assert_int_equal(integer("SELECT count FROM refusal WHERE reason = 'undecodable'"), 6);
}

TEST_CASE(test_a_protocol_from_the_future)
{
    struct message message = {.kind = MESSAGE_HELLO,
                              .hello = {.protocol = 77, .host = {4, "host"}}};
    memcpy(message.hello.run, producer.run, sizeof producer.run);
    producer_message(&producer, &message);
    assert_true(producer_await(&producer, 5000));
    assert_non_null(strstr(producer.error, "version"));
    assert_int_equal(integer("SELECT count(*) FROM run"), 0);
}

TEST_CASE(test_queries_while_it_collects)
{
    say_hello();
    store_numbers(1, 10);
    struct message message;
    const struct query ping = {.kind = QUERY_PING};
    ask("query", &ping, &message);
    assert_int_equal(message.reply.status, REPLY_OK);
    assert_true(result_integer(message.reply.result, 0, "uptime_ns", 0) > 0);
    assert_int_equal(result_integer(message.reply.result, 0, "runs_open", 0), 1);
    message_free(&message);
    const struct query list = {.kind = QUERY_RECORDS, .records.kind = RECORD_KIND_INFERENCE};
    ask("query", &list, &message);
    assert_int_equal(result_row_count(message.reply.result), 10);
    message_free(&message);
    struct query average = {.kind = QUERY_AVERAGE, .metric = "load.duration_ns"};
    ask("query", &average, &message);
    assert_int_equal(message.reply.status, REPLY_NO_DATA);
    message_free(&message);
    (void)snprintf(average.metric, sizeof average.metric, "nonsense");
    ask("query", &average, &message);
    assert_int_equal(message.reply.status, REPLY_INVALID);
    message_free(&message);
}

// One after another, as fast as they are answered.
TEST_CASE(test_every_admin_query_is_answered)
{
    struct producer asker;
    struct message message = {.kind = MESSAGE_QUERY,
                              .query = {.protocol = MESSAGE_PROTOCOL, .query.kind = QUERY_PING}};
    producer_open(&asker, endpoint("admin"), 1);
    for (uint64_t id = 1; id <= 30000; id++) {
        message.query.id = id;
        producer_message(&asker, &message);
        uint32_t ready = 0;
        wire_wait(&asker.socket, 1, -1, INT64_C(5000000000), &ready);
        struct wire_bytes frame;
        assert_int_equal(wire_receive(asker.socket, &frame), STATUS_OK);
        struct message reply;
        assert_int_equal(codec_decode(&reply, frame.bytes, frame.size, NULL), STATUS_OK);
        assert_int_equal(reply.reply.id, id);
        message_free(&reply);
    }
    producer_close(&asker);
}

TEST_CASE(test_clearing_is_the_owners)
{
    say_hello();
    store_numbers(1, 10);
    struct message message;
    const struct query clear = {.kind = QUERY_CLEAR};
    ask("query", &clear, &message);
    assert_int_equal(message.reply.status, REPLY_DENIED);
    message_free(&message);
    expect_numbers(10);
    ask("admin", &clear, &message);
    assert_int_equal(message.reply.status, REPLY_OK);
    assert_int_equal(result_integer(message.reply.result, 0, "cleared", -1), 10);
    message_free(&message);
    assert_int_equal(integer("SELECT count(*) FROM inference"), 0);
    assert_int_equal(integer("SELECT cleared FROM ledger"), 10);
    // The run goes on, and still balances at its end.
    store_numbers(11, 15);
    const struct delivery_stream all[] = {{.stream = 0, .produced = 15}};
    producer_goodbye(&producer, all, 1);
    assert_true(producer_await(&producer, 5000));
    assert_true(producer.closed);
    assert_int_equal(integer("SELECT balanced FROM v_ledger"), 1);
}

static enum reply_status edit(const char *service, struct query query, int64_t *id)
{
    struct message message;
    query.kind = QUERY_ALERT_EDIT;
    ask(service, &query, &message);
    const enum reply_status status = message.reply.status;
    if (status == REPLY_OK)
        *id = result_integer(message.reply.result, 0, "id", -1);
    message_free(&message);
    return status;
}

// Acknowledgements and silences through the sockets of a running collector.
TEST_CASE(test_editing_alerts_is_the_owners)
{
    const struct query ack = {.alert = {.edit = QUERY_ALERT_ACK, .id = 7, .text = "it's mine"}};
    struct query silence = {.alert = {.edit = QUERY_ALERT_SILENCE,
                                      .for_ns = INT64_C(3600000000000),
                                      .rule = "run_kill"}};
    int64_t id = 0;
    assert_int_equal(edit("query", ack, &id), REPLY_DENIED);
    assert_int_equal(edit("query", silence, &id), REPLY_DENIED);
    assert_int_equal(integer("SELECT count(*) FROM alert_silence"), 0);
    assert_int_equal(edit("admin", ack, &id), REPLY_NO_DATA);
    assert_int_equal(edit("admin", silence, &id), REPLY_NO_DATA); // a typing error
    (void)snprintf(silence.alert.rule, sizeof silence.alert.rule, "run_killed");
    assert_int_equal(edit("admin", silence, &id), REPLY_OK);
    assert_int_equal(integer("SELECT count(*) FROM alert_silence WHERE rule = 'run_killed'"
                             " AND until_ns > since_ns"),
                     1);
    silence.alert.rule[0] = '\0'; // of all by mistake, also with a filter that alerts do not have
    assert_int_equal(edit("admin", silence, &id), REPLY_INVALID);
    (void)snprintf(silence.filter.by[QUERY_BY_STAGE], QUERY_TEXT_SIZE, "e");
    assert_int_equal(edit("admin", silence, &id), REPLY_INVALID);
    assert_int_equal(integer("SELECT count(*) FROM alert_silence"), 1);
    (void)snprintf(silence.alert.rule, sizeof silence.alert.rule, "*");
    assert_int_equal(edit("admin", silence, &id), REPLY_OK);
    assert_int_equal(integer("SELECT count(*) FROM alert_silence WHERE rule IS NULL"), 1);
    const struct query end = {.alert = {.edit = QUERY_ALERT_UNSILENCE, .id = id}};
    assert_int_equal(edit("query", end, &id), REPLY_DENIED);
    assert_int_equal(edit("admin", end, &id), REPLY_OK);
    assert_int_equal(edit("admin", end, &id), REPLY_NO_DATA);
    silence.alert.edit = QUERY_ALERT_EDIT_COUNT;
    assert_int_equal(edit("admin", silence, &id), REPLY_INVALID);
}

TEST_MAIN_EACH(collector_run, collector_end, test_acknowledged_is_stored,
               test_values_arrive_as_they_were_sent, test_repeated_records_are_skipped,
               test_a_gap_is_answered_with_what_is_wanted, test_streams_are_apart,
               test_an_unknown_run_is_asked_for_hello, test_killed_between_batches,
               test_killed_under_load, test_a_full_disk_is_no_refusal,
               test_a_fresh_store_gets_what_is_still_held, test_stored_wins_over_dropped,
               test_goodbye_closes_what_is_complete, test_implausible_clocks_are_stored_and_counted,
               test_a_batch_that_can_never_be_taken, test_numbers_that_cannot_be,
               test_frames_that_are_no_messages, test_a_protocol_from_the_future,
               test_queries_while_it_collects, test_every_admin_query_is_answered,
               test_clearing_is_the_owners, test_editing_alerts_is_the_owners)
