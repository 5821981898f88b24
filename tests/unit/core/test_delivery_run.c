// The collector's side of the delivery protocol, a message at a time.
#include "common/core/delivery/delivery_run.h"

#include "tests/support/test.h"

static struct delivery_run run;

TEST_FIXTURE(set_up)
{
    run = (struct delivery_run){0};
    return 0;
}

TEST_FIXTURE(tear_down)
{
    delivery_run_deinit(&run);
    return 0;
}

// What a message did, in the order of its steps.
struct taken {
    struct delivery_step steps[8];
    size_t count;
};

static struct taken take(const struct delivery_message *message)
{
    struct taken taken = {0};
    struct delivery_acceptance taking;
    assert_int_equal(delivery_hear(&run, message), DELIVERY_HEARD);
    assert_int_equal(delivery_accept(&taking, &run, message), STATUS_OK);
    while (delivery_accept_next(&taking, &taken.steps[taken.count])) {
        const struct delivery_step *step = &taken.steps[taken.count];
        if (step->kind == DELIVERY_STEP_NAMES)
            run.names_known = (uint32_t)step->last;
        assert_true(++taken.count < COUNT_OF(taken.steps));
    }
    return taken;
}

static void expect_step(const struct taken *taken, size_t at, enum delivery_step_kind kind,
                        uint64_t first, uint64_t last)
{
    assert_true(at < taken->count);
    assert_int_equal(taken->steps[at].kind, kind);
    assert_int_equal(taken->steps[at].first, first);
    assert_int_equal(taken->steps[at].last, last);
}

static void greet(bool replay)
{
    const struct delivery_message hello = {
        .kind = DELIVERY_HELLO, .protocol = DELIVERY_PROTOCOL, .replay = replay};
    assert_int_equal(take(&hello).count, 0);
}

static struct taken take_batch(uint32_t stream, uint64_t first, uint64_t last)
{
    return take(&(struct delivery_message){
        .kind = DELIVERY_BATCH, .stream = stream, .first = first, .last = last});
}

// A Goodbye that says so much was produced by stream 0.
static struct taken part(uint64_t produced, bool killed)
{
    const struct delivery_stream said = {.stream = 0, .produced = produced};
    return take(&(struct delivery_message){.kind = DELIVERY_GOODBYE,
                                           .streams = &said,
                                           .stream_count = 1,
                                           .ended_ns = 77,
                                           .killed = killed});
}

static void restore(uint32_t stream, uint64_t next, uint64_t produced)
{
    const struct delivery_lane lane = {.stream = stream, .next = next, .produced = produced};
    assert_int_equal(delivery_run_restore(&run, &lane), STATUS_OK);
}

TEST_CASE(test_who_is_heard)
{
    struct delivery_run greeted = {.greeted = true};
    static const struct {
        struct delivery_message message;
        bool known, is_greeted;
        enum delivery_hearing hearing;
    } cases[] = {
        {{.kind = DELIVERY_HELLO, .protocol = 1}, false, false, DELIVERY_HEARD},
        {{.kind = DELIVERY_HELLO, .protocol = 2}, true, true, DELIVERY_HEARD},
        {{.kind = DELIVERY_HELLO, .protocol = 3}, false, false, DELIVERY_HEARD},
        {{.kind = DELIVERY_HELLO, .protocol = 4}, false, false, DELIVERY_UNKNOWN_PROTOCOL},
        {{.kind = DELIVERY_HELLO, .protocol = 0}, true, true, DELIVERY_UNKNOWN_PROTOCOL},
        {{.kind = DELIVERY_HELLO, .protocol = 2, .sender = DELIVERY_SENDER_STRANGER},
         true,
         true,
         DELIVERY_FOREIGN},
        {{.kind = DELIVERY_BATCH, .sender = DELIVERY_SENDER_STRANGER},
         true,
         true,
         DELIVERY_FOREIGN},
        {{.kind = DELIVERY_GOODBYE, .sender = DELIVERY_SENDER_STRANGER},
         true,
         false,
         DELIVERY_FOREIGN},
        {{.kind = DELIVERY_HELLO, .protocol = 2, .sender = DELIVERY_SENDER_SECOND},
         true,
         true,
         DELIVERY_BUSY},
        {{.kind = DELIVERY_BATCH, .sender = DELIVERY_SENDER_SECOND}, true, true, DELIVERY_BUSY},
        {{.kind = DELIVERY_HELLO, .protocol = 2, .sender = DELIVERY_SENDER_NEW},
         true,
         true,
         DELIVERY_HEARD},
        {{.kind = DELIVERY_BATCH, .sender = DELIVERY_SENDER_NEW},
         true,
         true,
         DELIVERY_HELLO_WANTED},
        {{.kind = DELIVERY_GOODBYE, .sender = DELIVERY_SENDER_NEW},
         true,
         true,
         DELIVERY_HELLO_WANTED},
        {{.kind = DELIVERY_BATCH}, false, false, DELIVERY_HELLO_WANTED},
        {{.kind = DELIVERY_BATCH}, true, false, DELIVERY_HELLO_WANTED},
        {{.kind = DELIVERY_GOODBYE}, true, false, DELIVERY_HELLO_WANTED},
        {{.kind = DELIVERY_BATCH, .stream = 3, .first = 1, .last = 1}, true, true, DELIVERY_HEARD},
        {{.kind = DELIVERY_GOODBYE}, true, true, DELIVERY_HEARD},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct delivery_run *known = cases[i].is_greeted ? &greeted : &run;
        if (delivery_hear(cases[i].known ? known : NULL, &cases[i].message) != cases[i].hearing)
            fail_msg("message %zu is heard otherwise", i);
    }
}

// Nobody has produced what takes longer than the run's life.
TEST_CASE(test_claims)
{
    enum { BURST = DELIVERY_BURST_RECORDS };
    static const uint64_t large = UINT64_C(1) << 40;
    static const struct {
        int64_t life_ns;
        uint64_t produced, unnumbered, no_room, dropped_to;
        bool is_heard;
    } cases[] = {
        {0, BURST, BURST, BURST, BURST, true},
        {0, BURST + 1, 0, 0, 0, false},
        {0, 0, BURST + 1, 0, 0, false},
        {0, 0, 0, BURST + 1, 0, false},
        {0, 0, 0, 0, BURST + 1, false},
        {999999999, BURST + 1, 0, 0, 0, false},
        {1000000000, BURST + 20000000, BURST + 100000000, 0, BURST + 20000000, true},
        {1000000000, BURST + 20000001, 0, 0, 0, false},
        {1000000000, 0, BURST + 100000001, 0, 0, false},
        {1000000000, 0, 0, 0, BURST + 20000001, false},
        {5000000000, 0, 0, 0, 1000000000, false},
        {INT64_MAX, large, large, large, large, true},
    };
    greet(false);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct delivery_stream streams[] = {{.stream = 1},
                                                  {.produced = cases[i].produced,
                                                   .unnumbered = cases[i].unnumbered,
                                                   .no_room = cases[i].no_room}};
        const struct delivery_range drops[] = {{.stream = 1, .first = 1, .last = 1},
                                               {.first = 1, .last = cases[i].dropped_to}};
        struct delivery_message message = {.protocol = 2,
                                           .streams = streams,
                                           .stream_count = 2,
                                           .drops = drops,
                                           .drop_count = 2,
                                           .life_ns = cases[i].life_ns};
        for (unsigned kind = DELIVERY_HELLO; kind <= DELIVERY_GOODBYE; kind++) {
            message.kind = (enum delivery_message_kind)kind;
            const bool is_heard = delivery_hear(&run, &message) == DELIVERY_HEARD;
            if (is_heard != cases[i].is_heard)
                fail_msg("claim %zu is heard otherwise in message %u", i, kind);
        }
    }
}

TEST_CASE(test_a_life)
{
    greet(false);
    const struct delivery_stream said = {.stream = 0, .produced = 20, .unnumbered = 3};
    struct taken taken = take(&(struct delivery_message){.kind = DELIVERY_BATCH,
                                                         .streams = &said,
                                                         .stream_count = 1,
                                                         .first = 1,
                                                         .last = 10,
                                                         .names_first = 1,
                                                         .name_count = 4});
    assert_int_equal(taken.count, 2);
    expect_step(&taken, 0, DELIVERY_STEP_NAMES, 1, 4);
    expect_step(&taken, 1, DELIVERY_STEP_STORE, 1, 10);
    taken = part(20, false); // too early
    assert_int_equal(taken.count, 0);
    assert_int_equal(run.end, RECORD_RUN_END_OPEN);
    taken = take_batch(0, 5, 20);
    expect_step(&taken, 0, DELIVERY_STEP_STORE, 11, 20);
    assert_int_equal(run.duplicates, 6);
    assert_int_equal(run.lanes[0].unnumbered, 3);
    assert_int_equal(run.risen, 3);
    // The Goodbye waited for it.
    assert_int_equal(run.end, RECORD_RUN_END_CLOSED);
    assert_int_equal(run.ended_ns, 77);
    assert_int_equal(take_batch(0, 1, 20).count, 0); // known: it stays closed
    assert_int_equal(run.end, RECORD_RUN_END_CLOSED);
    taken = take_batch(0, 21, 21); // not known: it was not the end
    assert_int_equal(taken.count, 1);
    assert_int_equal(run.end, RECORD_RUN_END_OPEN);
    assert_int_equal(run.lanes[0].produced, 21);
    (void)part(21, false);
    assert_int_equal(run.end, RECORD_RUN_END_CLOSED);
    const struct delivery_stream more = {.stream = 0, .produced = 22};
    (void)take(
        &(struct delivery_message){.kind = DELIVERY_BATCH, .streams = &more, .stream_count = 1});
    assert_int_equal(run.end, RECORD_RUN_END_OPEN); // it has made more since
}

TEST_CASE(test_names)
{
    greet(false);
    static const struct {
        uint32_t first;
        size_t count;
        uint64_t step_first, step_last; // 0: none
    } cases[] = {{1, 0, 0, 0}, {2, 5, 0, 0}, {1, 3, 1, 3}, {1, 3, 0, 0},
                 {3, 1, 0, 0}, {2, 4, 4, 5}, {7, 1, 0, 0}, {6, 1, 6, 6}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct taken taken = take(&(struct delivery_message){
            .kind = DELIVERY_BATCH, .names_first = cases[i].first, .name_count = cases[i].count});
        assert_int_equal(taken.count, cases[i].step_first != 0);
        if (taken.count)
            expect_step(&taken, 0, DELIVERY_STEP_NAMES, cases[i].step_first, cases[i].step_last);
    }
}

// A producer that counts on names this store has not is asked for Hello, once.
TEST_CASE(test_names_that_are_missing)
{
    greet(false);
    run.names_known = 5;
    static const struct {
        uint32_t first;
        size_t count;
        uint32_t after;
    } cases[] = {{1, 0, 5}, {1, 5, 5}, {1, 9, 9}, {6, 1, 6}, {7, 1, 5}, {UINT32_MAX, 9, 5}};
    struct delivery_message message = {.kind = DELIVERY_BATCH, .first = 1, .last = 9};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        message.names_first = cases[i].first;
        message.name_count = cases[i].count;
        assert_int_equal(delivery_run_names_after(&run, &message), cases[i].after);
    }
    message.name_count = 0;
    for (unsigned round = 0; round < 2; round++) {
        message.names_missing = true;
        assert_int_equal(delivery_hear(&run, &message), DELIVERY_HELLO_WANTED);
        message.names_missing = false;
        assert_int_equal(delivery_hear(&run, &message), DELIVERY_HELLO_WANTED);
        greet(false);
        message.names_missing = true; // and still: it is heard, and refused
        assert_int_equal(delivery_hear(&run, &message), DELIVERY_HEARD);
    }
    // A sound batch clears the doubt; a heartbeat says nothing about it.
    assert_int_equal(delivery_hear(&run, &message), DELIVERY_HELLO_WANTED);
    greet(false);
    const struct delivery_message heartbeat = {.kind = DELIVERY_BATCH};
    assert_int_equal(delivery_hear(&run, &heartbeat), DELIVERY_HEARD);
    assert_true(run.doubted);
    assert_int_equal(take_batch(0, 1, 2).count, 1);
    assert_false(run.doubted);
}

// Ranges before, behind and over the records of their batch.
TEST_CASE(test_drops)
{
    greet(false);
    static const struct delivery_range drops[] = {
        {.stream = 0, .first = 1, .last = 5},
        {.stream = 0, .first = 11, .last = 15},
        {.stream = 7, .first = 1, .last = 2},
        {.stream = 0, .first = 30, .last = 40},
    };
    struct delivery_message message = {.kind = DELIVERY_BATCH,
                                       .stream = 0,
                                       .first = 4,
                                       .last = 10,
                                       .drops = drops,
                                       .drop_count = COUNT_OF(drops)};
    struct taken taken = take(&message);
    assert_int_equal(taken.count, 4);
    expect_step(&taken, 0, DELIVERY_STEP_DROP, 1, 5);
    assert_int_equal(taken.steps[0].index, 0);
    expect_step(&taken, 1, DELIVERY_STEP_DROP, 1, 2);
    assert_int_equal(taken.steps[1].index, 2);
    expect_step(&taken, 2, DELIVERY_STEP_STORE, 6, 10);
    expect_step(&taken, 3, DELIVERY_STEP_DROP, 11, 15);
    assert_int_equal(taken.steps[3].index, 1);
    assert_int_equal(run.lanes[delivery_run_find(&run, 0)].next, 16);

    // Stored wins, where a range begins in what is stored.
    taken = take_batch(0, 16, 33);
    message.first = message.last = 0; // a heartbeat
    taken = take(&message);
    assert_int_equal(taken.count, 1);
    expect_step(&taken, 0, DELIVERY_STEP_DROP, 34, 40);
    assert_int_equal(take(&message).count, 0);
}

// Which records of a batch are stored, and how many were stored already.
TEST_CASE(test_offered_records)
{
    static const struct {
        uint64_t next, first, last;
        uint64_t stored_first; // 0: none
        int64_t duplicates;
    } cases[] = {
        {1, 1, 1, 1, 0},    {1, 1, 10, 1, 0},   {5, 1, 10, 5, 4},
        {10, 1, 10, 10, 9}, {11, 1, 10, 0, 10}, {100, 1, 10, 0, 10},
        {4, 5, 10, 0, 0},   {1, 2, 2, 0, 0},    {INT64_MAX, INT64_MAX - 1, INT64_MAX, INT64_MAX, 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        delivery_run_deinit(&run);
        restore(0, cases[i].next, cases[i].next - 1);
        greet(false);
        const struct taken taken = take_batch(0, cases[i].first, cases[i].last);
        assert_int_equal(taken.count, cases[i].stored_first > 0);
        if (taken.count > 0)
            expect_step(&taken, 0, DELIVERY_STEP_STORE, cases[i].stored_first, cases[i].last);
        assert_int_equal(run.duplicates, cases[i].duplicates);
    }
}

TEST_CASE(test_a_gap)
{
    greet(false);
    assert_int_equal(take_batch(4, 2, 9).count, 0);
    struct delivery_ack ack = {0};
    struct delivery_next next[4];
    delivery_run_answer(&run, false, &ack, next);
    assert_int_equal(ack.next_count, 1); // it is told what is wanted
    assert_int_equal(next[0].stream, 4);
    assert_int_equal(next[0].next, 1);
}

TEST_CASE(test_what_an_ack_names)
{
    restore(9, 5, 4);
    restore(2, 1, 3);
    run.names_known = 8;
    greet(false);
    struct delivery_ack ack = {0};
    struct delivery_next next[4];
    delivery_run_answer(&run, false, &ack, next);
    assert_int_equal(ack.next_count, 0);
    assert_int_equal(ack.names_known, 8);
    assert_int_equal(ack.protocol, DELIVERY_PROTOCOL);
    delivery_run_answer(&run, true, &ack, next);
    assert_int_equal(ack.next_count, 2);
    assert_int_equal(next[0].next, 5);
    (void)take_batch(2, 1, 1);
    for (unsigned i = 0; i < 2; i++) { // two Acks of one transaction say the same
        delivery_run_answer(&run, false, &ack, next);
        assert_int_equal(ack.next_count, 1);
        assert_int_equal(next[0].stream, 2);
        assert_int_equal(next[0].next, 2);
    }
    delivery_run_answered(&run);
    delivery_run_answer(&run, false, &ack, next);
    assert_int_equal(ack.next_count, 0);
    assert_false(ack.closed);
    (void)take_batch(2, 2, 3);
    (void)part(0, false);
    delivery_run_answer(&run, false, &ack, next);
    assert_int_equal(ack.next_count, 3); // a Goodbye is answered with all
    assert_true(ack.closed);
}

// A dead run is replayed: silent, then killed; what went down with its host is told.
TEST_CASE(test_replay)
{
    restore(0, 11, 30);
    restore(1, 1, 0);
    greet(true);
    assert_int_equal(run.end, RECORD_RUN_END_SILENT);
    (void)take_batch(0, 11, 20);
    assert_int_equal(run.end, RECORD_RUN_END_SILENT);
    struct taken taken = part(25, true); // 21..25 are still to come
    assert_int_equal(taken.count, 0);
    assert_int_equal(run.end, RECORD_RUN_END_SILENT);
    (void)take_batch(0, 21, 25);
    assert_int_equal(run.end, RECORD_RUN_END_SILENT);
    taken = part(25, true);
    assert_int_equal(taken.count, 1);
    expect_step(&taken, 0, DELIVERY_STEP_LOST, 26, 30);
    assert_int_equal(run.end, RECORD_RUN_END_KILLED);
    assert_int_equal(part(25, true).count, 0);
    // What it said while it lived comes late: it is dead all the same.
    greet(false);
    assert_true(run.replayed);
    assert_int_equal(take_batch(0, 31, 31).count, 1);
    assert_int_equal(run.end, RECORD_RUN_END_KILLED);
    const struct delivery_stream more = {.stream = 0, .produced = 40};
    taken = take(
        &(struct delivery_message){.kind = DELIVERY_BATCH, .streams = &more, .stream_count = 1});
    assert_int_equal(taken.count, 1); // nobody has those either
    expect_step(&taken, 0, DELIVERY_STEP_LOST, 32, 40);
    assert_int_equal(run.end, RECORD_RUN_END_KILLED);
    assert_int_equal(part(31, false).count, 0);
    assert_int_equal(run.end, RECORD_RUN_END_CLOSED);
    assert_int_equal(part(31, true).count, 0); // it said itself that it was over
    assert_int_equal(run.end, RECORD_RUN_END_CLOSED);
}

// Only a replay knows that nobody has the rest.
TEST_CASE(test_a_goodbye_that_says_less)
{
    restore(0, 11, 30);
    greet(false);
    assert_int_equal(part(10, false).count, 0);
    assert_int_equal(run.end, RECORD_RUN_END_OPEN);
}

TEST_CASE(test_silence)
{
    greet(false);
    for (int64_t ended_ns = 0; ended_ns < 100; ended_ns += 90) { // its connection: open; closed
        run.changed = false;
        delivery_run_silence(&run, ended_ns);
        assert_int_equal(run.end, RECORD_RUN_END_SILENT);
        assert_int_equal(run.ended_ns, ended_ns);
        assert_true(run.changed);
        (void)take(&(struct delivery_message){.kind = DELIVERY_BATCH});
        assert_int_equal(run.end, RECORD_RUN_END_OPEN);
        assert_int_equal(run.ended_ns, 0);
    }
    (void)part(0, false);
    delivery_run_silence(&run, 0);
    assert_int_equal(run.end, RECORD_RUN_END_CLOSED);
}

TEST_CASE(test_streams)
{
    greet(false);
    for (uint32_t i = 0; i < DELIVERY_STREAMS_MAX; i++)
        restore(UINT32_MAX - 3 * (i % 2 ? i : DELIVERY_STREAMS_MAX - i), 1, 0);
    const struct delivery_lane again = {.stream = UINT32_MAX - 3, .next = 1};
    assert_int_equal(delivery_run_restore(&run, &again), STATUS_INVALID);
    const struct delivery_lane beyond = {.stream = 1, .next = 1};
    assert_int_equal(delivery_run_restore(&run, &beyond), STATUS_FULL);
    for (size_t place = 0; place < run.lane_count; place++)
        assert_int_equal(delivery_run_find(&run, run.lanes[place].stream), place);
    struct delivery_message message = {.kind = DELIVERY_BATCH, .stream = 1, .first = 1, .last = 1};
    assert_int_equal(delivery_hear(&run, &message), DELIVERY_TOO_MANY_STREAMS);
    // What is only said of one more is left out.
    const struct delivery_stream said = {.stream = 1, .produced = 9};
    const struct delivery_range drop = {.stream = 1, .first = 1, .last = 2};
    message = (struct delivery_message){.kind = DELIVERY_BATCH,
                                        .streams = &said,
                                        .stream_count = 1,
                                        .drops = &drop,
                                        .drop_count = 1};
    assert_int_equal(take(&message).count, 0);
    assert_int_equal(run.lane_count, DELIVERY_STREAMS_MAX);
}

TEST_MAIN_EACH(set_up, tear_down, test_who_is_heard, test_claims, test_a_life, test_names,
               test_names_that_are_missing, test_drops, test_offered_records, test_a_gap,
               test_what_an_ack_names, test_replay, test_a_goodbye_that_says_less, test_silence,
               test_streams)
