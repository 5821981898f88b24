// The live feed of inferstatd as a process: readers with credit, without, and those
// that want ids only.
#include <signal.h>

#include "tests/integration/collector/collector_fixture.h"

static struct record records[64];

TEST_FIXTURE(set_up)
{
    collector_set_up(state);
    for (uint64_t i = 0; i < COUNT_OF(records); i++)
        producer_inference(&records[i], i + 1);
    collector_start(NULL, NULL);
    producer_open(&producer, endpoint("ingest"), 7);
    producer_hello(&producer, NULL, 0);
    assert_true(producer_await(&producer, 5000));
    return 0;
}

TEST_FIXTURE(tear_down)
{
    producer_close(&producer);
    return collector_tear_down(state);
}

// Sends records first..last of stream 0 and waits until they are acknowledged.
static void store_records(uint64_t first, uint64_t last)
{
    producer_batch(&producer, 0, first, &records[first - 1], (size_t)(last - first + 1));
    assert_true(producer_await_next(&producer, 0, last + 1));
}

// Sends the reader's first message and stores records until one reaches it: until the
// subscription stands they go by.  Returns the number after the last one stored.
static uint64_t subscribe(struct producer *reader, const struct message *credit)
{
    producer_open(reader, endpoint("live"), 2);
    producer_message(reader, credit);
    uint64_t next = 1;
    for (uint32_t ready = 0; !ready && next < 60; next++) {
        store_records(next, next);
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
    store_records(next, next + 2);
    // The feed has let them go by before there is credit again.
    wire_wait(&reader.socket, 1, -1, INT64_C(1000000000), &ready);
    assert_int_equal(ready, 0);
    producer_message(&reader, &credit);
    wire_wait(&reader.socket, 1, -1, INT64_C(300000000), &ready);
    assert_int_equal(ready, 0); // what went by does not come again
    store_records(next + 3, next + 3);
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
    store_records(next, next + 2);
    store_records(next + 3, next + 3);
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
    enum { ROWS = 500 }; // of 16 KB: more than an answer has
    static char longest[MESSAGE_TEXT_SIZE_MAX];
    memset(longest, 'x', sizeof longest);
    static uint64_t numbers[ROWS];
    static int64_t started_ns[ROWS];
    static uint32_t names[ROWS];
    static struct wire_bytes texts[ROWS];
    for (unsigned i = 0; i < ROWS; i++) {
        numbers[i] = i + 1;
        names[i] = 1;
        texts[i] = (struct wire_bytes){sizeof longest, longest};
    }
    const struct wire_column columns[] = {{.index = MODEL_NAME, .names = names},
                                          {.index = MODEL_DIGEST, .texts = texts},
                                          {.index = MODEL_FORMAT, .texts = texts},
                                          {.index = MODEL_ARCHITECTURE, .texts = texts},
                                          {.index = MODEL_QUANTISATION, .texts = texts}};
    enum { PART = ROWS / 4 }; // within what a batch may have
    for (unsigned first = 0; first < ROWS; first += PART) {
        const struct wire_table table = {.kind = RECORD_KIND_MODEL,
                                         .count = PART,
                                         .numbers = numbers + first,
                                         .started_ns = started_ns,
                                         .columns = columns,
                                         .column_count = COUNT_OF(columns)};
        struct message models = {.kind = MESSAGE_BATCH,
                                 .batch = {.sequence = 1000,
                                           .stream = 1,
                                           .first = first + 1,
                                           .last = first + PART,
                                           .tables = &table,
                                           .table_count = 1}};
        memcpy(models.batch.run, producer.run, sizeof producer.run);
        producer_message(&producer, &models);
    }
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

TEST_MAIN_EACH(set_up, tear_down, test_a_reader_without_credit_misses_and_is_told,
               test_a_reader_of_ids_misses_nothing, test_a_reader_gets_long_texts_too)
