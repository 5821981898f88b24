// The live feed of inferstatd as a process: readers with credit, without, and those
// that want ids only.

#include "tests/integration/collector/collector_fixture.h"

TEST_FIXTURE(set_up)
{
    collector_run(state);
    say_hello();
    return 0;
}

// Sends the reader's first message and stores records until one reaches it: until the
// subscription stands they go by.  Returns the number after the last one stored.
static uint64_t subscribe(struct producer *reader, const struct message *credit)
{
    producer_open(reader, endpoint("live"), 2);
    producer_message(reader, credit);
    uint64_t next = 1;
    for (uint32_t ready = 0; !ready && next < 60; next++) {
        store_numbers(next, next);
        wire_wait(&reader->socket, 1, -1, INT64_C(100000000), &ready);
    }
    return next;
}

// Receives one LiveRecords; its rows, and how many were missed.
static size_t live_rows_of(enum record_kind kind, struct producer *reader, uint64_t *missed)
{
    uint32_t ready = 0;
    struct wire_bytes frame;
    struct message message;
    wire_wait(&reader->socket, 1, -1, INT64_C(5000000000), &ready);
    assert_int_equal(wire_receive(reader->socket, &frame), STATUS_OK);
    assert_int_equal(codec_decode(&message, frame.bytes, frame.size, NULL), STATUS_OK);
    assert_int_equal(message.kind, MESSAGE_LIVE_RECORDS);
    assert_int_equal(message.live_records.kind, kind);
    if (kind == RECORD_KIND_INFERENCE)
        assert_true(result_find(message.live_records.result, "tokens_per_second") >= 0);
    const size_t rows = result_row_count(message.live_records.result);
    *missed = message.live_records.missed;
    message_free(&message);
    return rows;
}

static size_t live_rows(struct producer *reader, uint64_t *missed)
{
    return live_rows_of(RECORD_KIND_INFERENCE, reader, missed);
}

TEST_CASE(test_a_reader_without_credit_misses_and_is_told)
{
    struct producer reader;
    uint64_t missed = 99;
    struct message credit = {
        .kind = MESSAGE_LIVE_CREDIT,
        .live_credit = {.protocol = 1, .messages = 1, .kinds = 1U << RECORD_KIND_INFERENCE}};
    uint64_t next = subscribe(&reader, &credit);
    uint32_t ready = 0;
    assert_int_equal(live_rows(&reader, &missed), 1);
    assert_int_equal(missed, 0);
    store_numbers(next, next + 2);
    // The feed has let them go by before there is credit again.
    wire_wait(&reader.socket, 1, -1, INT64_C(1000000000), &ready);
    assert_int_equal(ready, 0);
    producer_message(&reader, &credit);
    wire_wait(&reader.socket, 1, -1, INT64_C(300000000), &ready);
    assert_int_equal(ready, 0); // what went by does not come again
    store_numbers(next + 3, next + 3);
    assert_int_equal(live_rows(&reader, &missed), 1);
    assert_int_equal(missed, 3);
    producer_close(&reader);
}

// Receives one LiveRecords of a reader that asked for ids only.
static uint64_t live_id(struct producer *reader)
{
    struct wire_bytes frame;
    struct message message;
    assert_int_equal(wire_receive(reader->socket, &frame), STATUS_OK);
    assert_int_equal(codec_decode(&message, frame.bytes, frame.size, NULL), STATUS_OK);
    assert_int_equal(message.kind, MESSAGE_LIVE_RECORDS);
    assert_int_equal(message.live_records.kind, RECORD_KIND_INFERENCE);
    assert_int_equal(message.live_records.missed, 0);
    assert_int_equal(result_column_count(message.live_records.result), 0);
    const uint64_t last_id = message.live_records.last_id;
    message_free(&message);
    return last_id;
}

TEST_CASE(test_a_reader_of_ids_misses_nothing)
{
    struct producer reader;
    struct message credit = {
        .kind = MESSAGE_LIVE_CREDIT,
        .live_credit = {
            .protocol = 1, .messages = 1, .kinds = 1U << RECORD_KIND_INFERENCE, .ids_only = true}};
    uint64_t next = subscribe(&reader, &credit);
    uint32_t ready = 0;
    const uint64_t first_id = live_id(&reader);
    assert_true(first_id > 0);
    // What goes by without credit is told with the next, all at once.
    store_numbers(next, next + 2);
    store_numbers(next + 3, next + 3);
    wire_wait(&reader.socket, 1, -1, INT64_C(1000000000), &ready);
    assert_int_equal(ready, 0);
    credit.live_credit.messages = 2;
    producer_message(&reader, &credit);
    wire_wait(&reader.socket, 1, -1, INT64_C(5000000000), &ready);
    assert_true(live_id(&reader) >= first_id + 4);
    wire_wait(&reader.socket, 1, -1, INT64_C(300000000), &ready);
    assert_int_equal(ready, 0);
    producer_close(&reader);
}

// Rows whose texts are long come in several messages; none is left out.
TEST_CASE(test_a_reader_gets_long_texts_too)
{
    struct producer reader;
    uint64_t missed = 0;
    const struct message credit = {
        .kind = MESSAGE_LIVE_CREDIT,
        .live_credit = {.protocol = 1,
                        .messages = 500,
                        .kinds = 1U << RECORD_KIND_INFERENCE | 1U << RECORD_KIND_MODEL}};
    (void)subscribe(&reader, &credit);
    assert_int_equal(live_rows(&reader, &missed), 1);
    enum { ROWS = 500, PART = ROWS / 4 }; // more than an answer has, in batches that may be
    for (unsigned first = 0; first < ROWS; first += PART)
        send_models(1, first + 1, PART);
    assert_true(producer_await_next(&producer, 1, ROWS + 1));
    size_t rows = 0;
    unsigned messages = 0;
    for (; rows < ROWS; messages++)
        rows += live_rows_of(RECORD_KIND_MODEL, &reader, &missed);
    assert_int_equal(rows, ROWS);
    assert_true(messages > 1);
    assert_int_equal(missed, 0);
    producer_close(&reader);
}

TEST_MAIN_EACH(set_up, collector_end, test_a_reader_without_credit_misses_and_is_told,
               test_a_reader_of_ids_misses_nothing, test_a_reader_gets_long_texts_too)
