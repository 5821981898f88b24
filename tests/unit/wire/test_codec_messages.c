// What the codec has to refuse of messages that are no batches, and of all that are too large.
#include "common/wire/codec.h"

#include "common/wire/codec_parts.h"
#include "tests/support/test.h"

static const unsigned char run_id[MESSAGE_RUN_SIZE] = "0123456789abcdef";

static struct wire_bytes text(const char *string)
{
    return (struct wire_bytes){.size = strlen(string), .bytes = string};
}

// A NUL inside a text would cut it for protobuf-c: it is a fault, not a cut.
TEST_CASE(test_nul_in_a_text)
{
    struct message hello = {.kind = MESSAGE_HELLO, .hello = {.host = text("ab~cd")}};
    memcpy(hello.hello.run, run_id, sizeof run_id);
    unsigned char *bytes = NULL;
    size_t size = 0;
    assert_int_equal(codec_encode(&bytes, &size, &hello, NULL), STATUS_OK);
    struct message out;
    assert_int_equal(codec_decode(&out, bytes, size, NULL), STATUS_OK);
    message_free(&out);
    unsigned char *tilde = memchr(bytes, '~', size);
    assert_non_null(tilde);
    *tilde = '\0';
    assert_int_equal(codec_decode(&out, bytes, size, NULL), STATUS_INVALID);
    free(bytes);
}

TEST_CASE(test_faults_of_other_messages)
{
    static char long_text[MESSAGE_TEXT_SIZE_MAX + 2];
    memset(long_text, 'x', sizeof long_text - 1);
    static char long_name[MESSAGE_NAME_SIZE_MAX + 2];
    memset(long_name, 'x', sizeof long_name - 1);
    static struct delivery_stream many[DELIVERY_STREAMS_MAX + 1];
    const struct delivery_next zero = {0, 0};
    const struct delivery_next beyond = {0, MESSAGE_NUMBER_MAX + 2};
    const struct delivery_stream full = {0, MESSAGE_NUMBER_MAX + 1, 0, 0};
    const struct wire_refused backwards = {.first = 3, .last = 2};
    static struct wire_activity busy[DELIVERY_STREAMS_MAX + 1];
    const struct wire_activity malformed = {.text = text("\xed\xa0\x80")};
    const struct wire_activity endless = {.text = text(long_text)};
    const struct message bad[] = {
        {.kind = MESSAGE_HELLO},
        {.kind = MESSAGE_HELLO, .hello = {.run = "x"}},
        {.kind = MESSAGE_HELLO, .hello = {.run = "x", .host = text(long_name)}},
        {.kind = MESSAGE_HELLO, .hello = {.run = "x", .host = text("\xc0\x80")}},
        {.kind = MESSAGE_HELLO, .hello = {.run = "x", .host = text("h"), .pid = -1}},
        {.kind = MESSAGE_HELLO, .hello = {.run = "x", .host = text("h"), .cuda = text(long_text)}},
        {.kind = MESSAGE_HELLO,
         .hello = {.run = "x", .host = text("h"), .streams = many, .stream_count = COUNT_OF(many)}},
        {.kind = MESSAGE_HELLO,
         .hello = {.run = "x", .host = text("h"), .streams = &full, .stream_count = 1}},
        {.kind = MESSAGE_HELLO,
         .hello = {.run = "x", .host = text("h"), .cpu_count = MESSAGE_VALUE_MAX + 1}},
        {.kind = MESSAGE_HELLO,
         .hello = {.run = "x", .host = text("h"), .host_memory_bytes = INT64_MAX}},
        {.kind = MESSAGE_HELLO,
         .hello = {.run = "x", .host = text("h"), .device_count = INT64_MAX}},
        {.kind = MESSAGE_GOODBYE},
        {.kind = MESSAGE_GOODBYE, .goodbye = {.run = "x", .streams = &full, .stream_count = 1}},
        {.kind = MESSAGE_GOODBYE,
         .goodbye = {.run = "x", .streams = many, .stream_count = COUNT_OF(many)}},
        {.kind = MESSAGE_GOODBYE,
         .goodbye = {.run = "x", .activities = busy, .activity_count = COUNT_OF(busy)}},
        {.kind = MESSAGE_GOODBYE,
         .goodbye = {.run = "x", .activities = &malformed, .activity_count = 1}},
        {.kind = MESSAGE_GOODBYE,
         .goodbye = {.run = "x", .activities = &endless, .activity_count = 1}},
        {.kind = MESSAGE_ACK, .ack = {.delivery = {.next = &zero, .next_count = 1}}},
        {.kind = MESSAGE_ACK, .ack = {.delivery = {.next = &beyond, .next_count = 1}}},
        {.kind = MESSAGE_ACK, .ack = {.delivery = {.names_known = MESSAGE_NAMES_MAX + 1}}},
        {.kind = MESSAGE_ACK, .ack = {.error = text(long_text)}},
        {.kind = MESSAGE_ACK, .ack = {.refused = &backwards, .refused_count = 1}},
        {.kind = MESSAGE_REPLY, .reply = {.error = text(long_text)}},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        unsigned char *bytes = NULL;
        size_t size = 0;
        struct message out;
        struct error err = {0};
        assert_int_equal(codec_encode(&bytes, &size, &bad[i], NULL), STATUS_OK);
        if (codec_decode(&out, bytes, size, &err) != STATUS_INVALID || err.text[0] == '\0')
            fail_msg("case %zu was taken", i);
        assert_null(out.memory);
        free(bytes);
    }
}

// Answers whose columns do not add up.
TEST_CASE(test_faults_of_results)
{
    for (int fault = 0; fault < 9; fault++) {
        Inferstat__Envelope envelope = INFERSTAT__ENVELOPE__INIT;
        Inferstat__Reply reply = INFERSTAT__REPLY__INIT;
        Inferstat__ResultColumn column = INFERSTAT__RESULT_COLUMN__INIT;
        static Inferstat__ResultColumn *columns[MESSAGE_ANSWER_COLUMNS_MAX + 1];
        for (size_t i = 0; i < COUNT_OF(columns); i++)
            columns[i] = &column;
        uint8_t types[] = {VALUE_INT, VALUE_NULL, VALUE_TEXT};
        int64_t ints[] = {1, 2};
        uint8_t malformed[] = {0xff};
        ProtobufCBinaryData texts[] = {{1, malformed}};
        char long_key[80] = {0};
        memset(long_key, 'k', sizeof long_key - 1);
        envelope.body_case = INFERSTAT__ENVELOPE__BODY_REPLY;
        envelope.reply = &reply;
        reply.n_columns = fault == 0 ? COUNT_OF(columns) : fault == 1 ? 0 : 1;
        reply.columns = columns;
        reply.row_count = fault == 2 ? 2 : fault == 3 ? UINT32_MAX : 3;
        column.key = fault == 4 ? long_key : codec_borrow(fault == 5 ? "" : "key");
        column.types = (ProtobufCBinaryData){3, types};
        column.n_ints = fault == 6 ? 2 : 1;
        column.ints = ints;
        column.n_texts = 1;
        column.texts = texts; // case 7: malformed
        if (fault == 8)
            types[1] = 4;
        unsigned char bytes[16384];
        size_t size = inferstat__envelope__pack(&envelope, bytes);
        assert_true(size <= sizeof bytes);
        struct message out;
        assert_int_equal(codec_decode(&out, bytes, size, NULL), STATUS_INVALID);
    }
}

// The smallest things in the largest counts fit; more of them, or parts that are
// empty, take too much memory for the frame's size.
TEST_CASE(test_memory_for_frames_from_anybody)
{
    enum { ROWS = DELIVERY_BATCH_MAX };
    static struct wire_bytes names[DELIVERY_NAMES_MAX], empty[ROWS];
    static struct wire_drop drops[DELIVERY_DROPS_MAX];
    static struct delivery_stream streams[DELIVERY_STREAMS_MAX];
    static uint32_t ids[ROWS];
    static uint64_t numbers[ROWS];
    static int64_t zeros[ROWS];
    for (unsigned i = 0; i < ROWS; i++) {
        numbers[i] = i + 1;
        ids[i] = 1;
        names[i] = text("n");
        drops[i] = (struct wire_drop){.range = {.first = 1, .last = 1}};
    }
    struct wire_column columns[MODEL_COLUMNS];
    const struct record_kind_info *info = record_kind_info(RECORD_KIND_MODEL);
    for (unsigned i = 0; i < MODEL_COLUMNS; i++) {
        columns[i] = (struct wire_column){.index = i};
        if (info->columns[i].type == COLUMN_NAME)
            columns[i].names = ids;
        else if (info->columns[i].type == COLUMN_TEXT)
            columns[i].texts = empty;
        else
            columns[i].ints = zeros;
    }
    const struct wire_table table = {.kind = RECORD_KIND_MODEL,
                                     .count = ROWS,
                                     .numbers = numbers,
                                     .started_ns = zeros,
                                     .columns = columns,
                                     .column_count = MODEL_COLUMNS};
    struct message batch = {.kind = MESSAGE_BATCH,
                            .batch = {.first = 1,
                                      .last = ROWS,
                                      .tables = &table,
                                      .table_count = 1,
                                      .names_first = 1,
                                      .names = names,
                                      .name_count = DELIVERY_NAMES_MAX,
                                      .drops = drops,
                                      .drop_count = DELIVERY_DROPS_MAX,
                                      .streams = streams,
                                      .stream_count = DELIVERY_STREAMS_MAX}};
    memcpy(batch.batch.run, run_id, sizeof run_id);
    unsigned char *bytes = NULL;
    size_t size = 0;
    struct message out;
    struct error err = {0};
    assert_int_equal(codec_encode(&bytes, &size, &batch, NULL), STATUS_OK);
    expect_ok(codec_decode_untrusted(&out, bytes, size, &err), &err);
    assert_null(out.batch.fault);
    assert_int_equal(out.batch.tables[0].count, ROWS);
    const size_t sound_memory = message_memory(&out);
    message_free(&out);
    free(bytes);

    // At fault, what is left of it is there, and no more than that.
    batch.batch.last++;
    batch.batch.first++;
    assert_int_equal(codec_encode(&bytes, &size, &batch, NULL), STATUS_OK);
    assert_int_equal(codec_decode_untrusted(&out, bytes, size, NULL), STATUS_OK);
    assert_string_equal(out.batch.fault, "a number outside the batch's range");
    assert_int_equal(out.batch.name_count, DELIVERY_NAMES_MAX);
    assert_memory_equal(out.batch.names[DELIVERY_NAMES_MAX - 1].bytes, "n", 1);
    assert_int_equal(out.batch.drop_count, DELIVERY_DROPS_MAX);
    assert_int_equal(out.batch.drops[9].range.last, 1);
    assert_int_equal(out.batch.stream_count, DELIVERY_STREAMS_MAX);
    assert_true(message_memory(&out) < sound_memory / 2);
    message_free(&out);
    free(bytes);

    // A megabyte of nothing but empty parts: names, tables, ranges, streams.
    size = 1024 * 1024;
    bytes = malloc(size);
    assert_non_null(bytes);
    static const unsigned char head[] = {0x12, 0xfc, 0xff, 0x3f}; // a batch of size - 4
    for (unsigned field = 8; field <= 11; field++) {
        const unsigned char empty_part[] = {(unsigned char)(field << 3 | 2), 0};
        memcpy(bytes, head, sizeof head);
        for (size_t i = sizeof head; i < size; i += 2)
            memcpy(bytes + i, empty_part, 2);
        assert_int_equal(codec_decode_untrusted(&out, bytes, size, &err), STATUS_INVALID);
        assert_non_null(strstr(err.text, "memory"));
    }
    free(bytes);
}

TEST_CASE(test_too_large)
{
    static char kilobytes[MESSAGE_SIZE_MAX + 1];
    struct message ack = {.kind = MESSAGE_ACK,
                          .ack = {.error = {.size = sizeof kilobytes, .bytes = kilobytes}}};
    memset(kilobytes, 'x', sizeof kilobytes);
    unsigned char *bytes = NULL;
    size_t size = 0;
    struct message out;
    assert_int_equal(codec_encode(&bytes, &size, &ack, NULL), STATUS_FULL);
    assert_null(bytes);
    assert_int_equal(codec_decode(&out, kilobytes, sizeof kilobytes, NULL), STATUS_INVALID);
}

// What makes no sense in a Query decodes, so that it can be answered, and does
// not pass query_check.
TEST_CASE(test_query_faults_are_left_to_query_check)
{
    for (int fault = 0; fault < 11; fault++) {
        Inferstat__Filter filter = INFERSTAT__FILTER__INIT;
        Inferstat__Query query = INFERSTAT__QUERY__INIT;
        Inferstat__Envelope envelope = INFERSTAT__ENVELOPE__INIT;
        envelope.body_case = INFERSTAT__ENVELOPE__BODY_QUERY;
        envelope.query = &query;
        char long_text[QUERY_TEXT_SIZE + 1];
        memset(long_text, 'x', sizeof long_text - 1);
        long_text[sizeof long_text - 1] = '\0';
        uint32_t groups[] = {0, 1, 2, 3, 4, 5, 0};
        query.id = 5;
        query.kind = INFERSTAT__QUERY_KIND__QUERY_RECORDS;
        query.record_kind = RECORD_KIND_LOAD;
        query.filter = &filter;
        if (fault == 0)
            query.kind = (Inferstat__QueryKind)99;
        if (fault == 1)
            query.record_kind = 99;
        if (fault == 2)
            filter.host = long_text;
        if (fault == 3) {
            query.n_group_by = COUNT_OF(groups);
            query.group_by = groups;
        }
        if (fault == 4) {
            groups[0] = QUERY_DIMENSION_COUNT;
            query.n_group_by = 1;
            query.group_by = groups;
        }
        if (fault == 5) {
            filter.stage = long_text;
            long_text[3] = '\xff';
            long_text[4] = '\0';
        }
        if (fault >= 6)
            query.kind = INFERSTAT__QUERY_KIND__QUERY_AUTHORIZE;
        if (fault == 6)
            query.key = long_text;
        if (fault == 7)
            query.name = long_text;
        if (fault == 8)
            query.replaces = long_text;
        if (fault == 9)
            query.roles = 1U << QUERY_ROLE_COUNT;
        if (fault == 10)
            query.key = codec_borrow("two words");
        unsigned char bytes[2048];
        size_t size = inferstat__envelope__pack(&envelope, bytes);
        struct message out;
        assert_int_equal(codec_decode(&out, bytes, size, NULL), STATUS_OK);
        assert_int_equal(out.query.id, 5);
        assert_int_equal(query_check(&out.query.query, NULL), STATUS_INVALID);
        message_free(&out);
    }
}

TEST_MAIN(test_query_faults_are_left_to_query_check, test_nul_in_a_text,
          test_faults_of_other_messages, test_faults_of_results,
          test_memory_for_frames_from_anybody, test_too_large)
