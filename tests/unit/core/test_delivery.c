#include "common/core/delivery/delivery.h"

#include "tests/unit/core/delivery_rig.h"
#include "tests/support/test.h"

TEST_CASE(test_reasons_have_words)
{
    assert_string_equal(delivery_reason_text(DELIVERY_REFUSED), "refused");
    assert_string_equal(delivery_reason_text(DELIVERY_ACKNOWLEDGED_ELSEWHERE),
                        "acknowledged_elsewhere");
    assert_string_equal(delivery_reason_text(DELIVERY_RING_FULL), "ring_full");
}

TEST_CASE(test_one_life)
{
    struct rig rig = rig_new(10);
    produce(&rig, 0, 25);
    delivery_producer_names(rig.producer, 3);
    contact_new(&rig);
    expect_batch(&rig, 0, 1, 10);
    assert_int_equal(rig.action.sequence, 1);
    assert_int_equal(rig.action.names_first, 1);
    assert_int_equal(rig.action.names_last, 3);
    expect_batch(&rig, 0, 11, 20);
    expect_batch(&rig, 0, 21, 25);
    assert_int_equal(rig.action.sequence, 3);
    assert_int_equal(rig.action.names_last, 3); // until they are known
    expect_nothing(&rig);

    struct delivery_next wanted = {0, 21};
    assert_int_equal(
        ack(&rig, 'A',
            (struct delivery_ack){
                .sequence = 2, .next = &wanted, .next_count = 1, .names_known = 3, .credit = 1000}),
        STATUS_OK);
    expect_free(&rig, 0, 20);
    assert_int_equal(rig.action.first, 1);
    assert_int_equal(delivery_producer_acknowledged(rig.producer), 20);
    delivery_producer_close(rig.producer);
    expect_nothing(&rig);
    assert_int_equal(ack_one(&rig, 'A', 3, 26), STATUS_OK);
    expect_free(&rig, 0, 25);
    expect(&rig, DELIVERY_SEND_GOODBYE);
    assert_int_equal(rig.action.sequence, 4);
    expect_nothing(&rig);
    assert_int_equal(ack(&rig, 'A', (struct delivery_ack){.sequence = 4, .closed = true}),
                     STATUS_OK);
    expect(&rig, DELIVERY_CLOSED);
    expect_nothing(&rig);
    rig.now_ms += 100000;
    delivery_producer_reconnect(rig.producer);
    expect_nothing(&rig);
    rig_free(&rig);
}

TEST_CASE(test_goodbye_waits_for_the_last_record)
{
    struct rig rig = rig_new(10);
    produce(&rig, 0, 5);
    delivery_producer_close(rig.producer);
    contact_new(&rig);
    expect_batch(&rig, 0, 1, 5);
    assert_int_equal(ack_one(&rig, 'A', 0, 5), STATUS_OK); // one is still missing
    expect_free(&rig, 0, 4);
    expect_nothing(&rig);
    assert_int_equal(ack_one(&rig, 'A', 1, 6), STATUS_OK);
    expect_free(&rig, 0, 5);
    expect(&rig, DELIVERY_SEND_GOODBYE);
    // Answered, but not yet closed: asked again, not at once.
    assert_int_equal(ack(&rig, 'A', (struct delivery_ack){.sequence = 2}), STATUS_OK);
    expect_nothing(&rig);
    rig.now_ms += 1000;
    expect(&rig, DELIVERY_SEND_GOODBYE);
    rig_free(&rig);
}

TEST_CASE(test_an_empty_run_closes)
{
    struct rig rig = rig_new(10);
    delivery_producer_close(rig.producer);
    contact_new(&rig);
    expect(&rig, DELIVERY_SEND_GOODBYE);
    rig_free(&rig);
}

TEST_CASE(test_credit)
{
    struct rig rig = rig_new(10);
    produce(&rig, 0, 100);
    expect(&rig, DELIVERY_SEND_HELLO);
    assert_int_equal(ack(&rig, 'A', (struct delivery_ack){.credit = 25}), STATUS_OK);
    expect(&rig, DELIVERY_CONTACT);
    expect_batch(&rig, 0, 1, 10);
    expect_batch(&rig, 0, 11, 20);
    expect_nothing(&rig); // 5 left would only make a small batch
    struct delivery_next wanted = {0, 11};
    struct delivery_ack answer = {.sequence = 1, .next = &wanted, .next_count = 1, .credit = 4};
    assert_int_equal(ack(&rig, 'A', answer), STATUS_OK);
    expect_free(&rig, 0, 10);
    expect_nothing(&rig);
    wanted.next = 21;
    answer.sequence = 2;
    assert_int_equal(ack(&rig, 'A', answer), STATUS_OK);
    expect_free(&rig, 0, 20);
    expect_batch(&rig, 0, 21, 24); // nothing else is coming: what credit allows
    wanted.next = 25;
    answer.sequence = 3;
    answer.credit = 0;
    assert_int_equal(ack(&rig, 'A', answer), STATUS_OK);
    expect_free(&rig, 0, 24);
    expect_nothing(&rig);
    rig.now_ms += 1000;
    expect(&rig, DELIVERY_SEND_HEARTBEAT); // brings new credit with its answer
    assert_int_equal(ack(&rig, 'A', (struct delivery_ack){.sequence = 4, .credit = 10}), STATUS_OK);
    expect_batch(&rig, 0, 25, 34);
    rig_free(&rig);
}

TEST_CASE(test_streams_take_turns)
{
    struct rig rig = rig_new(2);
    produce(&rig, 7, 100);
    produce(&rig, 0, 3);
    produce(&rig, 9, 100);
    expect(&rig, DELIVERY_SEND_HELLO);
    assert_int_equal(ack(&rig, 'A', (struct delivery_ack){.credit = 12}), STATUS_OK);
    expect(&rig, DELIVERY_CONTACT);
    expect_batch(&rig, 7, 1, 2);
    expect_batch(&rig, 0, 1, 2);
    expect_batch(&rig, 9, 1, 2);
    expect_batch(&rig, 7, 3, 4);
    expect_batch(&rig, 0, 3, 3);
    expect_batch(&rig, 9, 3, 4);
    expect_nothing(&rig);
    rig_free(&rig);
}

TEST_CASE(test_heartbeats)
{
    struct rig rig = rig_new(10);
    contact_new(&rig);
    for (uint64_t sequence = 1; sequence < 5; sequence++) {
        rig.now_ms += 999;
        expect_nothing(&rig);
        rig.now_ms += 1;
        expect(&rig, DELIVERY_SEND_HEARTBEAT);
        assert_int_equal(rig.action.sequence, sequence);
        assert_int_equal(ack(&rig, 'A', (struct delivery_ack){.sequence = sequence}), STATUS_OK);
        expect_nothing(&rig);
    }
    rig_free(&rig);
}

// A hole in what arrived is seen when the latest batch is answered.
TEST_CASE(test_go_back)
{
    struct rig rig = rig_new(10);
    produce(&rig, 0, 30);
    contact_new(&rig);
    expect_batch(&rig, 0, 1, 10);
    expect_batch(&rig, 0, 11, 20);
    expect_batch(&rig, 0, 21, 30);
    assert_int_equal(ack_one(&rig, 'A', 1, 11), STATUS_OK);
    expect_free(&rig, 0, 10);
    assert_int_equal(ack_one(&rig, 'A', 2, 11), STATUS_OK); // the second was lost
    expect_nothing(&rig);
    assert_int_equal(ack_one(&rig, 'A', 3, 11), STATUS_OK);
    expect_batch(&rig, 0, 11, 20);
    expect_batch(&rig, 0, 21, 30);
    rig_free(&rig);
}

TEST_CASE(test_waits_double_and_notices_come_once)
{
    struct rig rig = rig_new(10);
    produce(&rig, 0, 10);
    static const uint64_t waits_ms[] = {1000, 2000, 4000, 4000};
    for (size_t i = 0; i < COUNT_OF(waits_ms); i++) {
        expect(&rig, DELIVERY_SEND_HELLO);
        rig.now_ms += waits_ms[i] - 1;
        expect_nothing(&rig);
        rig.now_ms += 1;
        if (i == 0)
            expect(&rig, DELIVERY_LOST_CONTACT);
    }
    welcome_new(&rig, 'A');
    // Kind words only: the collector's disk may be full.
    expect_batch(&rig, 0, 1, 10);
    rig.now_ms += 4000;
    expect(&rig, DELIVERY_SEND_HELLO);
    assert_int_equal(ack(&rig, 'A', (struct delivery_ack){.credit = 1000}), STATUS_OK);
    expect_batch(&rig, 0, 1, 10);
    assert_int_equal(ack_one(&rig, 'A', 2, 11), STATUS_OK);
    expect_free(&rig, 0, 10);
    expect(&rig, DELIVERY_CONTACT);

    // And the first wait is short again.
    produce(&rig, 0, 11);
    expect_batch(&rig, 0, 11, 11);
    rig.now_ms += 1000;
    expect(&rig, DELIVERY_LOST_CONTACT);
    expect(&rig, DELIVERY_SEND_HELLO);
    rig_free(&rig);
}

// One stream's progress does not hide that another's batch was never answered.
TEST_CASE(test_every_stream_has_its_own_patience)
{
    struct rig rig = rig_new(10);
    produce(&rig, 0, 1000);
    produce(&rig, 1, 1);
    contact_new(&rig);
    expect_batch(&rig, 0, 1, 10);
    expect_batch(&rig, 1, 1, 1);
    expect_batch(&rig, 0, 11, 20);
    rig.now_ms += 600;
    assert_int_equal(ack_one(&rig, 'A', 1, 11), STATUS_OK);
    expect_free(&rig, 0, 10);
    while (next(&rig))
        assert_int_equal(rig.action.kind, DELIVERY_SEND_BATCH);
    rig.now_ms += 300;
    assert_int_equal(ack_one(&rig, 'A', 3, 21), STATUS_OK);
    expect_free(&rig, 0, 20);
    while (next(&rig))
        assert_int_equal(rig.action.kind, DELIVERY_SEND_BATCH);
    rig.now_ms += 99;
    expect_nothing(&rig);
    rig.now_ms += 1;
    expect(&rig, DELIVERY_LOST_CONTACT);
    expect(&rig, DELIVERY_SEND_HELLO);
    rig_free(&rig);
}

TEST_CASE(test_unsent)
{
    struct rig rig = rig_new(10);
    produce(&rig, 0, 20);
    // Nobody is there: Hello is tried again and again, and the loss is told once.
    unsigned hellos = 0, notices = 0;
    for (uint64_t end = rig.now_ms + 10000; rig.now_ms < end; rig.now_ms += 10)
        while (next(&rig)) {
            hellos += rig.action.kind == DELIVERY_SEND_HELLO;
            notices += rig.action.kind == DELIVERY_LOST_CONTACT;
            if (rig.action.kind == DELIVERY_SEND_HELLO)
                unsent(&rig);
        }
    assert_int_equal(hellos, 100);
    assert_int_equal(notices, 1);
    welcome_new(&rig, 'A');
    expect_batch(&rig, 0, 1, 10);
    expect_batch(&rig, 0, 11, 20);
    unsent(&rig);
    expect_nothing(&rig);
    rig.now_ms += 100;
    expect_batch(&rig, 0, 11, 20);
    assert_int_equal(rig.action.sequence, 2); // the number was not used up
    assert_int_equal(ack_one(&rig, 'A', 2, 21), STATUS_OK);
    expect_free(&rig, 0, 20);
    expect(&rig, DELIVERY_CONTACT);
    rig.now_ms += 1000;
    expect(&rig, DELIVERY_SEND_HEARTBEAT);
    unsent(&rig);
    delivery_producer_close(rig.producer);
    rig.now_ms += 100;
    expect(&rig, DELIVERY_SEND_GOODBYE);
    unsent(&rig);
    rig.now_ms += 100;
    expect(&rig, DELIVERY_SEND_GOODBYE);
    rig_free(&rig);
}

TEST_CASE(test_another_store)
{
    struct rig rig = rig_new(10);
    produce(&rig, 0, 20);
    delivery_producer_names(rig.producer, 2);
    contact_new(&rig);
    expect_batch(&rig, 0, 1, 10);
    struct delivery_next wanted = {0, 11};
    struct delivery_ack answer = {
        .sequence = 1, .next = &wanted, .next_count = 1, .names_known = 2, .credit = 1000};
    assert_int_equal(ack(&rig, 'A', answer), STATUS_OK);
    expect_free(&rig, 0, 10);
    expect_batch(&rig, 0, 11, 20);
    assert_true(rig.action.names_last < rig.action.names_first);

    assert_int_equal(ack(&rig, 'B', (struct delivery_ack){.sequence = 2, .hello_wanted = true}),
                     STATUS_OK);
    welcome_new(&rig, 'B');
    size_t count = 0;
    const struct delivery_range *drops = delivery_producer_drops(rig.producer, &count);
    assert_int_equal(count, 1);
    assert_int_equal(drops[0].stream, 0);
    assert_int_equal(drops[0].first, 1);
    assert_int_equal(drops[0].last, 10);
    assert_int_equal(drops[0].reason, DELIVERY_ACKNOWLEDGED_ELSEWHERE);
    assert_int_equal(drops[0].since_ns, 77);
    assert_int_equal(drops[0].until_ns, 77);
    expect_batch(&rig, 0, 11, 20); // still held: sent, not given up
    assert_int_equal(rig.action.names_first, 1);
    assert_int_equal(rig.action.names_last, 2);
    expect_nothing(&rig); // the range went along
    assert_int_equal(ack_one(&rig, 'B', 3, 11), STATUS_OK);
    (void)delivery_producer_drops(rig.producer, &count);
    assert_int_equal(count, 0);
    expect_batch(&rig, 0, 11, 20);
    assert_int_equal(ack_one(&rig, 'B', 4, 21), STATUS_OK);
    expect_free(&rig, 0, 20);
    rig_free(&rig);
}

// The same store, but an older copy: it lacks what it had acknowledged.
TEST_CASE(test_restored_store)
{
    struct rig rig = rig_new(10);
    produce(&rig, 0, 10);
    contact_new(&rig);
    expect_batch(&rig, 0, 1, 10);
    assert_int_equal(ack_one(&rig, 'A', 1, 11), STATUS_OK);
    expect_free(&rig, 0, 10);
    delivery_producer_reconnect(rig.producer);
    expect(&rig, DELIVERY_SEND_HELLO);
    assert_int_equal(ack_one(&rig, 'A', 0, 4), STATUS_OK);
    size_t count = 0;
    const struct delivery_range *drops = delivery_producer_drops(rig.producer, &count);
    assert_int_equal(count, 1);
    assert_int_equal(drops[0].first, 4);
    assert_int_equal(drops[0].last, 10);
    // Nothing else to send: a heartbeat carries it, at once and once.
    expect(&rig, DELIVERY_SEND_HEARTBEAT);
    expect_nothing(&rig);
    delivery_producer_close(rig.producer);
    expect_nothing(&rig);
    assert_int_equal(ack_one(&rig, 'A', 2, 7), STATUS_OK); // a part of it
    drops = delivery_producer_drops(rig.producer, &count);
    assert_int_equal(count, 1);
    assert_int_equal(drops[0].first, 7);
    expect_nothing(&rig);
    assert_int_equal(ack_one(&rig, 'A', 2, 11), STATUS_OK);
    expect(&rig, DELIVERY_SEND_GOODBYE);
    rig_free(&rig);
}

// Acknowledgements that cannot be true change nothing.
TEST_CASE(test_impossible_acks)
{
    struct rig rig = rig_new(10);
    produce(&rig, 0, 20);
    contact_new(&rig);
    expect_batch(&rig, 0, 1, 10);
    expect_batch(&rig, 0, 11, 20);
    assert_int_equal(ack_one(&rig, 'A', 1, 11), STATUS_OK);
    expect_free(&rig, 0, 10);
    struct delivery_next unknown = {5, 2};
    const struct {
        const char *what;
        struct delivery_ack ack;
    } cases[] = {
        {"beyond what was produced",
         {.sequence = 2, .next = &(struct delivery_next){0, 22}, .next_count = 1}},
        {"the largest number",
         {.sequence = 2, .next = &(struct delivery_next){0, UINT64_MAX}, .next_count = 1}},
        {"zero", {.sequence = 2, .next = &(struct delivery_next){0, 0}, .next_count = 1}},
        {"below what was acknowledged",
         {.sequence = 2, .next = &(struct delivery_next){0, 5}, .next_count = 1}},
        {"a stream never told", {.sequence = 2, .next = &unknown, .next_count = 1}},
        {"a sequence never used", {.sequence = 3}},
        {"names never given out", {.sequence = 2, .names_known = 1}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (ack(&rig, 'A', cases[i].ack) != STATUS_INVALID)
            fail_msg("%s was believed", cases[i].what);
        expect_nothing(&rig);
        assert_int_equal(delivery_producer_acknowledged(rig.producer), 10);
    }
    // The right one still counts.
    assert_int_equal(ack_one(&rig, 'A', 2, 21), STATUS_OK);
    expect_free(&rig, 0, 20);

    // An answer from a store never greeted is not believed either.
    assert_int_equal(ack_one(&rig, 'B', 2, 21), STATUS_OK);
    expect(&rig, DELIVERY_SEND_HELLO);
    rig_free(&rig);
}

TEST_CASE(test_many_names_go_ahead)
{
    struct rig rig = rig_new(10);
    produce(&rig, 0, 10);
    delivery_producer_names(rig.producer, 2 * DELIVERY_NAMES_MAX + 5);
    contact_new(&rig);
    for (uint32_t part = 0; part < 2; part++) {
        expect(&rig, DELIVERY_SEND_HEARTBEAT);
        assert_int_equal(rig.action.names_first, part * DELIVERY_NAMES_MAX + 1);
        assert_int_equal(rig.action.names_last, (part + 1) * DELIVERY_NAMES_MAX);
        expect_nothing(&rig);
        assert_int_equal(ack(&rig, 'A',
                             (struct delivery_ack){.sequence = part + 1,
                                                   .names_known = (part + 1) * DELIVERY_NAMES_MAX,
                                                   .credit = 1000}),
                         STATUS_OK);
    }
    expect_batch(&rig, 0, 1, 10);
    assert_int_equal(rig.action.names_first, 2 * DELIVERY_NAMES_MAX + 1);
    assert_int_equal(rig.action.names_last, 2 * DELIVERY_NAMES_MAX + 5);
    rig_free(&rig);
}

TEST_CASE(test_streams)
{
    struct rig rig = rig_new(10);
    struct delivery_stream told = {.stream = 3, .produced = 5, .unnumbered = 2};
    assert_int_equal(delivery_producer_stream(rig.producer, &told, 6), STATUS_INVALID);
    assert_int_equal(delivery_producer_stream(rig.producer, &told, 4), STATUS_OK);
    told.produced = 1;
    told.unnumbered = 1;
    assert_int_equal(delivery_producer_stream(rig.producer, &told, 0), STATUS_OK);
    size_t count = 0;
    const struct delivery_stream *streams = delivery_producer_streams(rig.producer, &count);
    assert_int_equal(count, 1);
    assert_int_equal(streams[0].produced, 5); // figures never go down
    assert_int_equal(streams[0].unnumbered, 2);
    assert_int_equal(delivery_producer_acknowledged(rig.producer), 4);

    // Taken over from a dead process: what it had freed is known to be gone.
    expect(&rig, DELIVERY_SEND_HELLO);
    struct delivery_next wanted = {3, 3};
    assert_int_equal(
        ack(&rig, 'A', (struct delivery_ack){.next = &wanted, .next_count = 1, .credit = 9}),
        STATUS_OK);
    const struct delivery_range *drops = delivery_producer_drops(rig.producer, &count);
    assert_int_equal(count, 1);
    assert_int_equal(drops[0].first, 3);
    assert_int_equal(drops[0].last, 4);
    expect(&rig, DELIVERY_CONTACT);
    expect_batch(&rig, 3, 5, 5);

    for (uint32_t i = 0; i < DELIVERY_STREAMS_MAX - 1; i++) {
        told.stream = 1000000 + i;
        assert_int_equal(delivery_producer_stream(rig.producer, &told, 0), STATUS_OK);
    }
    told.stream = 9;
    assert_int_equal(delivery_producer_stream(rig.producer, &told, 0), STATUS_FULL);
    rig_free(&rig);
}

TEST_MAIN(test_reasons_have_words, test_one_life, test_goodbye_waits_for_the_last_record,
          test_an_empty_run_closes, test_credit, test_streams_take_turns, test_heartbeats,
          test_go_back, test_waits_double_and_notices_come_once,
          test_every_stream_has_its_own_patience, test_unsent, test_another_store,
          test_restored_store, test_impossible_acks, test_many_names_go_ahead, test_streams)
