// Codec, table builder and the producer's machine when memory runs out: for each
// N the N-th allocation fails.  The linker sends their calls here (wire.cmake).
#include "common/wire/codec.h"

#include "tests/support/failing_malloc.h"
#include "tests/support/test.h"

// Runs `attempt` with the first, second, ... allocation failing, until it gets by
// with none.  Before that it has to say STATUS_NOMEM.
static void starve(enum status (*attempt)(void))
{
    enum status status = STATUS_NOMEM;
    long n = 0;
    for (; status != STATUS_OK; n++) {
        assert_true(n < 10000);
        left = n;
        status = attempt();
        if (left >= 0) // the N-th was never asked for
            assert_int_equal(status, STATUS_OK);
        else if (status != STATUS_OK)
            assert_int_equal(status, STATUS_NOMEM);
        left = -1;
    }
    assert_true(n > 1);
}

enum { RECORDS = 300 };

static enum status fill(struct table_builder *builder)
{
    enum status status = STATUS_OK;
    for (uint64_t number = 1; number <= RECORDS && status == STATUS_OK; number++) {
        struct record record;
        record_init(&record, RECORD_KIND_OPERATION, 5);
        record_set_name(&record, OPERATION_OPERATION, 1);
        record_set_int(&record, OPERATION_DURATION_NS, 7);
        (void)record_set_text(&record, OPERATION_EXTRA, "{\"a\": 1}", 8);
        status = table_builder_add(builder, number, &record);
    }
    return status;
}

static enum status attempt_build(void)
{
    struct table_builder *builder = NULL;
    enum status status = table_builder_new(&builder);
    if (status == STATUS_OK)
        status = fill(builder);
    table_builder_free(builder);
    return status;
}

static struct message batch;
static unsigned char *frame;
static size_t frame_size;

static enum status attempt_encode(void)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    enum status status = codec_encode(&bytes, &size, &batch, NULL);
    if (status == STATUS_OK)
        assert_int_equal(size, frame_size);
    free(bytes);
    return status;
}

static enum status attempt_decode(void)
{
    struct message message;
    enum status status = codec_decode(&message, frame, frame_size, NULL);
    if (status == STATUS_OK) {
        assert_null(message.batch.fault);
        message_free(&message);
    }
    return status;
}

static enum status attempt_decode_reply(void)
{
    struct message message;
    enum status status = codec_decode(&message, frame, frame_size, NULL);
    if (status == STATUS_OK)
        message_free(&message);
    return status;
}

static enum status attempt_produce(void)
{
    const struct delivery_config config = {
        .batch_records = 10, .resend_after_ns = 1, .resend_max_ns = 1, .heartbeat_ns = 1};
    struct delivery_producer *producer = NULL;
    enum status status = delivery_producer_new(&producer, &config);
    for (uint32_t i = 0; i < 100 && status == STATUS_OK; i++)
        status = delivery_producer_stream(producer,
                                          &(struct delivery_stream){.stream = i, .produced = 1}, 0);
    delivery_producer_free(producer);
    return status;
}

TEST_CASE(test_batch)
{
    starve(attempt_build);
    struct table_builder *builder = NULL;
    assert_int_equal(table_builder_new(&builder), STATUS_OK);
    assert_int_equal(fill(builder), STATUS_OK);
    static const struct wire_bytes names[] = {{6, "decode"}};
    static const struct delivery_stream streams[] = {{0, RECORDS, 0, 0}};
    batch = (struct message){.kind = MESSAGE_BATCH,
                             .batch = {.run = "run",
                                       .first = 1,
                                       .last = RECORDS,
                                       .names_first = 1,
                                       .names = names,
                                       .name_count = 1,
                                       .streams = streams,
                                       .stream_count = 1}};
    batch.batch.tables = table_builder_tables(builder, &batch.batch.table_count);
    assert_int_equal(codec_encode(&frame, &frame_size, &batch, NULL), STATUS_OK);
    starve(attempt_encode);
    starve(attempt_decode);
    free(frame);
    table_builder_free(builder);
}

TEST_CASE(test_reply)
{
    struct result *result = NULL;
    assert_int_equal(result_new(&result), STATUS_OK);
    assert_int_equal(result_add_column(result, "model", UNIT_NONE), STATUS_OK);
    for (int row = 0; row < 100; row++) {
        assert_int_equal(result_add_row(result), STATUS_OK);
        assert_int_equal(result_set_text(result, 0, "stories260K", 11), STATUS_OK);
    }
    const struct message reply = {.kind = MESSAGE_REPLY, .reply = {.id = 1, .result = result}};
    assert_int_equal(codec_encode(&frame, &frame_size, &reply, NULL), STATUS_OK);
    starve(attempt_decode_reply);
    free(frame);
    result_free(result);
}

TEST_CASE(test_producer)
{
    starve(attempt_produce);
}

TEST_MAIN(test_batch, test_reply, test_producer)
