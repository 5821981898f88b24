#include "common/wire/codec.h"

#include "tests/support/test.h"

static struct wire_bytes text(const char *string)
{
    return (struct wire_bytes){.size = strlen(string), .bytes = string};
}

static void assert_text(struct wire_bytes bytes, const char *string)
{
    assert_int_equal(bytes.size, strlen(string));
    if (bytes.size)
        assert_memory_equal(bytes.bytes, string, bytes.size);
}

// Encodes, decodes into `out` and checks that the second encoding is the first.
static void round_trip(struct message *out, const struct message *message)
{
    unsigned char *bytes = NULL, *again = NULL;
    size_t size = 0, again_size = 0;
    struct error err = {0};
    expect_ok(codec_encode(&bytes, &size, message, &err), &err);
    expect_ok(codec_decode(out, bytes, size, &err), &err);
    assert_int_equal(out->kind, message->kind);
    if (out->kind == MESSAGE_BATCH && out->batch.fault)
        fail_msg("%s", out->batch.fault);
    assert_int_equal(codec_encode(&again, &again_size, out, NULL), STATUS_OK);
    assert_int_equal(again_size, size);
    assert_memory_equal(again, bytes, size);
    free(bytes);
    free(again);
}

static const unsigned char run_id[MESSAGE_RUN_SIZE] = "0123456789abcdef";

TEST_CASE(test_hello)
{
    const struct delivery_stream streams[] = {{0, 7, 3, 2}, {5, MESSAGE_NUMBER_MAX, 0, 0}};
    struct message hello = {.kind = MESSAGE_HELLO,
                            .hello = {.protocol = 1,
                                      .host = text("gpu-17"),
                                      .os = text("linux"),
                                      .cpu = text("Prozessor \xc3\xa4"),
                                      .cuda = text("12.4"),
                                      .huge_pages = text("madvise"),
                                      .allocator = text("glibc 2.36"),
                                      .build_flags = text("Release -O2"),
                                      .pid = 4711,
                                      .started_ns = -5,
                                      .cpu_count = 2,
                                      .host_memory_bytes = MESSAGE_VALUE_MAX,
                                      .device_count = 1,
                                      .streams = streams,
                                      .stream_count = 2,
                                      .replay = true}};
    memcpy(hello.hello.run, run_id, sizeof run_id);
    struct message out;
    round_trip(&out, &hello);
    assert_memory_equal(out.hello.run, run_id, sizeof run_id);
    assert_int_equal(out.hello.protocol, 1);
    assert_text(out.hello.host, "gpu-17");
    assert_text(out.hello.os, "linux");
    assert_text(out.hello.cpu, "Prozessor \xc3\xa4");
    assert_text(out.hello.cuda, "12.4");
    assert_text(out.hello.huge_pages, "madvise");
    assert_text(out.hello.allocator, "glibc 2.36");
    assert_text(out.hello.build_flags, "Release -O2");
    assert_text(out.hello.kernel, "");
    assert_int_equal(out.hello.pid, 4711);
    assert_int_equal(out.hello.started_ns, -5);
    assert_int_equal(out.hello.cpu_count, 2);
    assert_true(out.hello.host_memory_bytes == MESSAGE_VALUE_MAX);
    assert_int_equal(out.hello.stream_count, 2);
    assert_true(out.hello.streams[1].produced == MESSAGE_NUMBER_MAX);
    assert_int_equal(out.hello.streams[0].unnumbered, 3);
    assert_int_equal(out.hello.streams[0].no_room, 2);
    assert_true(out.hello.replay);
    message_free(&out);
    hello.hello.replay = false;
    round_trip(&out, &hello);
    assert_false(out.hello.replay);
    message_free(&out);
}

TEST_CASE(test_goodbye)
{
    const struct delivery_stream streams[] = {{3, 9, 2, 0}};
    const struct wire_drop drops[] = {
        {.range = {3, 1, 4, DELIVERY_SPOOL_FULL, 10, 20}, .detail = text("disk full")},
        {.range = {3, 5, 5, DELIVERY_ACKNOWLEDGED_ELSEWHERE, -1, INT64_MIN}},
        {.range = {3, 6, 8, DELIVERY_SPOOL_DAMAGED, 0, 0}},
    };
    const struct wire_activity activities[] = {{3, text("decode stories260K request 17"), 5},
                                               {UINT32_MAX, {0}, INT64_MIN}};
    struct message goodbye = {.kind = MESSAGE_GOODBYE,
                              .goodbye = {.sequence = UINT64_MAX,
                                          .ended_ns = 99,
                                          .streams = streams,
                                          .stream_count = 1,
                                          .drops = drops,
                                          .drop_count = 3,
                                          .killed = true,
                                          .activities = activities,
                                          .activity_count = 2}};
    memcpy(goodbye.goodbye.run, run_id, sizeof run_id);
    struct message out;
    round_trip(&out, &goodbye);
    assert_true(out.goodbye.sequence == UINT64_MAX);
    assert_int_equal(out.goodbye.ended_ns, 99);
    assert_int_equal(out.goodbye.drop_count, 3);
    assert_int_equal(out.goodbye.drops[1].range.stream, 3);
    assert_int_equal(out.goodbye.drops[1].range.first, 5);
    assert_int_equal(out.goodbye.drops[1].range.last, 5);
    assert_int_equal(out.goodbye.drops[1].range.reason, DELIVERY_ACKNOWLEDGED_ELSEWHERE);
    assert_int_equal(out.goodbye.drops[1].range.since_ns, -1);
    assert_true(out.goodbye.drops[1].range.until_ns == INT64_MIN);
    assert_text(out.goodbye.drops[0].detail, "disk full");
    assert_int_equal(out.goodbye.drops[2].range.reason, DELIVERY_SPOOL_DAMAGED);
    assert_true(out.goodbye.killed);
    assert_int_equal(out.goodbye.activity_count, 2);
    assert_int_equal(out.goodbye.activities[0].stream, 3);
    assert_text(out.goodbye.activities[0].text, "decode stories260K request 17");
    assert_int_equal(out.goodbye.activities[0].since_ns, 5);
    assert_true(out.goodbye.activities[1].stream == UINT32_MAX);
    assert_true(out.goodbye.activities[1].since_ns == INT64_MIN);
    message_free(&out);
}

TEST_CASE(test_ack)
{
    const struct delivery_next next[] = {{0, 1}, {9, MESSAGE_NUMBER_MAX + 1}};
    const struct wire_refused refused[] = {{4, 2, 3, text("numbers that do not rise")}};
    struct message ack = {.kind = MESSAGE_ACK,
                          .ack = {.protocol = 1,
                                  .delivery = {.store = "storestorestore",
                                               .sequence = 12,
                                               .next = next,
                                               .next_count = 2,
                                               .names_known = MESSAGE_NAMES_MAX,
                                               .credit = 5000,
                                               .hello_wanted = true,
                                               .closed = true},
                                  .refused = refused,
                                  .refused_count = 1,
                                  .sent_ns = -1,
                                  .echo_sent_ns = 7,
                                  .error = text("why")}};
    memcpy(ack.ack.run, run_id, sizeof run_id);
    struct message out;
    round_trip(&out, &ack);
    assert_memory_equal(out.ack.delivery.store, "storestorestore", 16);
    assert_int_equal(out.ack.delivery.sequence, 12);
    assert_int_equal(out.ack.delivery.next_count, 2);
    assert_int_equal(out.ack.delivery.next[1].stream, 9);
    assert_true(out.ack.delivery.next[1].next == MESSAGE_NUMBER_MAX + 1);
    assert_int_equal(out.ack.delivery.names_known, MESSAGE_NAMES_MAX);
    assert_int_equal(out.ack.delivery.credit, 5000);
    assert_true(out.ack.delivery.hello_wanted && out.ack.delivery.closed);
    assert_text(out.ack.refused[0].reason, "numbers that do not rise");
    assert_text(out.ack.error, "why");
    message_free(&out);
}

TEST_CASE(test_query)
{
    struct message query = {.kind = MESSAGE_QUERY,
                            .query = {.id = 77,
                                      .protocol = 1,
                                      .query = {.kind = QUERY_RECORDS,
                                                .records = {RECORD_KIND_INFERENCE, true},
                                                .metric = "ttft_ns",
                                                .group_by = {QUERY_BY_HOST, QUERY_BY_MODEL},
                                                .group_count = 2,
                                                .filter = {.since_ns = -1, .until_ns = INT64_MAX},
                                                .limit = 10,
                                                .cursor = UINT64_MAX}}};
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        memset(query.query.query.filter.by[i], 'a' + (int)i, 36);
    memset(query.query.query.filter.by[QUERY_BY_MODEL], 'm', QUERY_TEXT_SIZE - 1);
    struct message out;
    round_trip(&out, &query);
    assert_int_equal(out.query.id, 77);
    const struct query *sent = &query.query.query, *got = &out.query.query;
    assert_int_equal(got->kind, sent->kind);
    assert_int_equal(got->records.kind, sent->records.kind);
    assert_string_equal(got->metric, sent->metric);
    assert_int_equal(got->group_count, 2);
    assert_int_equal(got->group_by[0], QUERY_BY_HOST);
    assert_int_equal(got->group_by[1], QUERY_BY_MODEL);
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        assert_string_equal(got->filter.by[i], sent->filter.by[i]);
    assert_int_equal(got->filter.since_ns, -1);
    assert_true(got->filter.until_ns == INT64_MAX);
    assert_int_equal(got->limit, 10);
    assert_true(got->records.oldest_first);
    assert_true(got->cursor == UINT64_MAX);
    message_free(&out);
}

TEST_CASE(test_queries_about_keys)
{
    static const enum query_kind kinds[] = {QUERY_AUTHORIZE, QUERY_REVOKE};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        struct message query = {
            .kind = MESSAGE_QUERY,
            .query.query = {.kind = kinds[i],
                            .key = {.text = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID",
                                    .name = "gpu-17.example",
                                    .replaces = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7",
                                    .expires_ns = INT64_C(1803081600000000000),
                                    .roles = 1U << QUERY_ROLE_PRODUCER | 1U << QUERY_ROLE_ADMIN}}};
        struct message out;
        round_trip(&out, &query);
        assert_int_equal(out.query.query.kind, kinds[i]);
        assert_string_equal(out.query.query.key.text, query.query.query.key.text);
        assert_string_equal(out.query.query.key.name, "gpu-17.example");
        assert_string_equal(out.query.query.key.replaces, query.query.query.key.replaces);
        assert_int_equal(out.query.query.key.expires_ns, query.query.query.key.expires_ns);
        assert_int_equal(out.query.query.key.roles, 5);
        assert_int_equal(query_check(&out.query.query, NULL), STATUS_OK);
        message_free(&out);
    }
}

TEST_CASE(test_comparisons)
{
    struct message query = {
        .kind = MESSAGE_QUERY,
        .query.query = {.kind = QUERY_COMPARE,
                        .metric = "tpot_ns",
                        .filter = {.since_ns = 7},
                        .compare = {.baseline = {"before", ""},
                                    .other = {.by = {[QUERY_BY_HOST] = "a"}, .until_ns = 9},
                                    .margin = 0.02,
                                    .force = true}}};
    struct message out;
    round_trip(&out, &query);
    const struct query *got = &out.query.query;
    assert_string_equal(got->metric, "tpot_ns");
    assert_int_equal(got->filter.since_ns, 7);
    assert_string_equal(got->compare.baseline[0], "before");
    assert_string_equal(got->compare.baseline[1], "");
    assert_string_equal(got->compare.other.by[QUERY_BY_HOST], "a");
    assert_int_equal(got->compare.other.until_ns, 9);
    assert_true(got->compare.margin == 0.02);
    assert_true(got->compare.force);
    message_free(&out);
}

// An estimate comes as it went; an error that cannot be means there is none.
TEST_CASE(test_clock_estimates)
{
    static const struct {
        int64_t offset_ns, error_ns, read_offset_ns, read_error_ns;
    } cases[] = {
        {-5, 3, -5, 3}, {INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX},
        {0, 1, 0, 1},   {7, 0, 0, 0},
        {7, -1, 0, 0},  {7, INT64_MIN, 0, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct message batch = {.kind = MESSAGE_BATCH,
                                .batch = {.sequence = 1,
                                          .clock_offset_ns = cases[i].offset_ns,
                                          .clock_error_ns = cases[i].error_ns}};
        memcpy(batch.batch.run, run_id, sizeof run_id);
        unsigned char *bytes = NULL;
        size_t size = 0;
        struct message out;
        assert_int_equal(codec_encode(&bytes, &size, &batch, NULL), STATUS_OK);
        assert_int_equal(codec_decode(&out, bytes, size, NULL), STATUS_OK);
        assert_true(out.batch.clock_offset_ns == cases[i].read_offset_ns);
        assert_true(out.batch.clock_error_ns == cases[i].read_error_ns);
        message_free(&out);
        free(bytes);
    }
}

static struct result *example_result(void)
{
    struct result *result = NULL;
    assert_int_equal(result_new(&result), STATUS_OK);
    assert_int_equal(result_add_column(result, "model", UNIT_NONE), STATUS_OK);
    assert_int_equal(result_add_column(result, "ttft_ns", UNIT_DURATION), STATUS_OK);
    assert_int_equal(result_add_column(result, "tokens_per_second", UNIT_TOKENS_PER_SECOND),
                     STATUS_OK);
    for (int row = 0; row < 300; row++) {
        assert_int_equal(result_add_row(result), STATUS_OK);
        char name[32];
        int length = snprintf(name, sizeof name, "model-%d", row);
        if (row % 3)
            assert_int_equal(result_set_text(result, 0, name, (size_t)length), STATUS_OK);
        if (row % 5)
            result_set_int(result, 1, INT64_MIN + row);
        if (row % 7)
            result_set_real(result, 2, 1.0 / (row + 1));
        else
            result_set_int(result, 2, row);
    }
    result_set_next_cursor(result, 42);
    result_set_cpu_ns(result, 43);
    return result;
}

static void assert_results_equal(const struct result *left, const struct result *right)
{
    assert_int_equal(result_column_count(left), result_column_count(right));
    assert_int_equal(result_row_count(left), result_row_count(right));
    for (unsigned column = 0; column < result_column_count(left); column++) {
        const struct result_column *a = result_column(left, column);
        const struct result_column *b = result_column(right, column);
        assert_string_equal(a->key, b->key);
        assert_int_equal(a->unit, b->unit);
        for (size_t row = 0; row < result_row_count(left); row++) {
            struct value x = result_cell(left, row, column), y = result_cell(right, row, column);
            assert_int_equal(x.type, y.type);
            if (x.type == VALUE_TEXT) {
                assert_int_equal(x.text.size, y.text.size);
                assert_memory_equal(x.text.bytes, y.text.bytes, x.text.size);
            } else if (x.type == VALUE_REAL) {
                assert_memory_equal(&x.r, &y.r, sizeof x.r);
            } else if (x.type == VALUE_INT) {
                assert_true(x.i == y.i);
            }
        }
    }
}

TEST_CASE(test_reply_and_live)
{
    struct result *result = example_result();
    struct message reply = {
        .kind = MESSAGE_REPLY,
        .reply = {.id = 3, .status = REPLY_OK, .error = text("none"), .result = result}};
    struct message out;
    round_trip(&out, &reply);
    assert_int_equal(out.reply.id, 3);
    assert_text(out.reply.error, "none");
    assert_results_equal(result, out.reply.result);
    assert_int_equal(result_next_cursor(out.reply.result), 42);
    assert_int_equal(result_cpu_ns(out.reply.result), 43);

    // Taken by the receiver, it outlives the message.
    struct result *taken = out.reply.result;
    out.reply.result = NULL;
    message_free(&out);
    assert_results_equal(result, taken);
    result_free(taken);

    struct message live = {
        .kind = MESSAGE_LIVE_RECORDS,
        .live_records = {.kind = RECORD_KIND_LOAD, .missed = 8, .result = result}};
    round_trip(&out, &live);
    assert_int_equal(out.live_records.kind, RECORD_KIND_LOAD);
    assert_int_equal(out.live_records.missed, 8);
    assert_results_equal(result, out.live_records.result);
    message_free(&out);
    result_free(result);

    live.live_records =
        (struct message_live_records){.kind = RECORD_KIND_ITL, .last_id = UINT64_MAX};
    round_trip(&out, &live);
    assert_int_equal(out.live_records.kind, RECORD_KIND_ITL);
    assert_true(out.live_records.last_id == UINT64_MAX);
    assert_int_equal(result_column_count(out.live_records.result), 0);
    message_free(&out);

    struct message failed = {
        .kind = MESSAGE_REPLY,
        .reply = {.id = 4, .status = REPLY_NO_DATA, .error = text("no"), .expired_ns = INT64_MAX}};
    round_trip(&out, &failed);
    assert_int_equal(out.reply.status, REPLY_NO_DATA);
    assert_true(out.reply.expired_ns == INT64_MAX);
    assert_int_equal(result_row_count(out.reply.result), 0);
    message_free(&out);
}

TEST_CASE(test_live_credit)
{
    static const uint32_t kinds[] = {0, 1u << RECORD_KIND_INFERENCE, (1u << RECORD_KIND_COUNT) - 1};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        struct message credit = {
            .kind = MESSAGE_LIVE_CREDIT,
            .live_credit = {.protocol = 1, .messages = 100, .kinds = kinds[i], .ids_only = i == 1}};
        struct message out;
        round_trip(&out, &credit);
        assert_int_equal(out.live_credit.messages, 100);
        assert_int_equal(out.live_credit.kinds, kinds[i]);
        assert_int_equal(out.live_credit.ids_only, i == 1);
        message_free(&out);
    }
}

// ---- Records ---------------------------------------------------------------------

static uint64_t random_state;

static uint64_t random_next(void)
{
    random_state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = random_state;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static int64_t random_int(const struct record_column *column)
{
    if (column_type_is_enum(column->type)) {
        int64_t count = 0;
        while (column_enum_text(column->type, count))
            count++;
        assert_true(count > 0);
        return (int64_t)(random_next() % (uint64_t)(count ? count : 1));
    }
    int64_t value = (int64_t)(random_next() >> random_next() % 64);
    if (column->unit == UNIT_NONE || column->unit == UNIT_TIME || column->unit == UNIT_HERTZ)
        return value;
    return value < 0 || value > MESSAGE_VALUE_MAX ? MESSAGE_VALUE_MAX : value;
}

// A record of the kind with every column it must have and some it may have.
static void random_record(struct record *record, enum record_kind kind)
{
    const struct record_kind_info *info = record_kind_info(kind);
    record_init(record, kind, (int64_t)random_next());
    unsigned shape = (unsigned)(random_next() % 3); // none, some or all of those that may be absent
    for (unsigned i = 0; i < info->column_count; i++) {
        const struct record_column *column = &info->columns[i];
        if (column->maybe && (shape == 0 || (shape == 1 && random_next() % 2)))
            continue;
        char bytes[8] = "\xc3\xa4 text";
        switch (column->type) {
        case COLUMN_REAL:
            record_set_real(record, i, (double)random_next() / 3 - 1e18);
            break;
        case COLUMN_NAME:
            record_set_name(record, i, 1 + (uint32_t)(random_next() % MESSAGE_NAMES_MAX));
            break;
        case COLUMN_TEXT:
            (void)record_set_text(record, i, bytes, random_next() % 2 ? 7 : 0);
            break;
        case COLUMN_BLOB:
            bytes[3] = '\0';
            (void)record_set_blob(record, i, bytes, sizeof bytes);
            break;
        case COLUMN_INT:
        case COLUMN_STATUS:
        case COLUMN_FINISH:
        case COLUMN_RUN_END:
        case COLUMN_SYNC:
            record_set_int(record, i, random_int(column));
            break;
        }
    }
}

// The table a number is in, and its row.
static const struct wire_table *find_row(const struct message_batch *batch, uint64_t number,
                                         size_t *row)
{
    for (size_t i = 0; i < batch->table_count; i++)
        for (*row = 0; *row < batch->tables[i].count; ++*row)
            if (batch->tables[i].numbers[*row] == number)
                return &batch->tables[i];
    fail_msg("number %llu is in no table", (unsigned long long)number);
    abort();
}

static const struct wire_column *find_column(const struct wire_table *table, unsigned index)
{
    for (size_t i = 0; i < table->column_count; i++)
        if (table->columns[i].index == index)
            return &table->columns[i];
    return NULL;
}

static void assert_value(const struct wire_column *column, size_t row, enum column_type type,
                         const struct record *record, unsigned index)
{
    size_t size;
    const char *bytes;
    switch (type) {
    case COLUMN_REAL:
        assert_memory_equal(&column->reals[row], &record->values[index].r, sizeof(double));
        break;
    case COLUMN_NAME:
        assert_int_equal(column->names[row], record->values[index].name);
        break;
    case COLUMN_TEXT:
    case COLUMN_BLOB:
        bytes = record_get_text(record, index, &size);
        assert_int_equal(column->texts[row].size, size);
        if (size)
            assert_memory_equal(column->texts[row].bytes, bytes, size);
        break;
    case COLUMN_INT:
    case COLUMN_STATUS:
    case COLUMN_FINISH:
    case COLUMN_RUN_END:
    case COLUMN_SYNC:
        assert_true(column->ints[row] == record->values[index].i);
        break;
    }
}

static void assert_record_in(const struct message_batch *batch, uint64_t number,
                             const struct record *record)
{
    size_t row = 0;
    const struct wire_table *table = find_row(batch, number, &row);
    assert_int_equal(table->kind, record->kind);
    assert_true(table->started_ns[row] == record->started_ns);
    const struct record_kind_info *info = record_kind_info(table->kind);
    for (unsigned i = 0; i < info->column_count; i++) {
        const struct wire_column *column = find_column(table, i);
        bool has = column && (!column->present || (column->present[row / 8] >> row % 8 & 1));
        assert_int_equal(has, record_has(record, i));
        if (has)
            assert_value(column, row, info->columns[i].type, record, i);
    }
}

TEST_CASE(test_records_of_every_kind)
{
    struct table_builder *builder = NULL;
    assert_int_equal(table_builder_new(&builder), STATUS_OK);
    static struct record records[DELIVERY_BATCH_MAX];
    static const size_t counts[] = {1, 2, 7, 8, 9, 63, 64, 65, 500, DELIVERY_BATCH_MAX};
    for (uint64_t seed = 0; seed < 3 * COUNT_OF(counts); seed++) {
        random_state = seed;
        size_t count = counts[seed % COUNT_OF(counts)];
        uint64_t first = seed % 2 ? 1 : MESSAGE_NUMBER_MAX - count + 1;
        table_builder_reset(builder);
        for (size_t i = 0; i < count; i++) {
            unsigned kind = 1 + (unsigned)(random_next() % (RECORD_KIND_COUNT - 1));
            random_record(&records[i], (enum record_kind)kind);
            // Times that cannot be expressed as differences are tested apart.
            records[i].started_ns >>= 1;
            assert_int_equal(table_builder_add(builder, first + i, &records[i]), STATUS_OK);
        }
        const struct wire_bytes names[] = {text("stories260K"), text("cpu")};
        struct message batch = {.kind = MESSAGE_BATCH,
                                .batch = {.sequence = seed,
                                          .sent_ns = INT64_MIN,
                                          .stream = UINT32_MAX,
                                          .first = first,
                                          .last = first + count - 1,
                                          .names_first = MESSAGE_NAMES_MAX - 1,
                                          .names = names,
                                          .name_count = 2,
                                          .activity = text("decode")}};
        memcpy(batch.batch.run, run_id, sizeof run_id);
        batch.batch.tables = table_builder_tables(builder, &batch.batch.table_count);
        struct message out;
        round_trip(&out, &batch);
        assert_null(out.batch.fault);
        assert_int_equal(out.batch.unknown_columns, 0);
        assert_text(out.batch.names[1], "cpu");
        assert_text(out.batch.activity, "decode");
        for (size_t i = 0; i < count; i += 1 + count / 50)
            assert_record_in(&out.batch, first + i, &records[i]);
        message_free(&out);
    }
    table_builder_free(builder);
}

// A pipeline that measured nothing, beside one that did: what is absent goes as absent, and
// what stands in its place is not looked at.  (A collector that must have these columns
// refuses such a table, as one without any value it must have.)
TEST_CASE(test_a_pipeline_without_figures)
{
    const struct record_kind_info *info = record_kind_info(RECORD_KIND_PIPELINE);
    struct table_builder *builder = NULL;
    assert_int_equal(table_builder_new(&builder), STATUS_OK);
    struct record records[2];
    for (unsigned i = 0; i < COUNT_OF(records); i++) {
        record_init(&records[i], RECORD_KIND_PIPELINE, 5);
        for (unsigned column = 0; column < info->column_count; column++) {
            if (info->columns[column].maybe && i == 0)
                continue;
            if (info->columns[column].type == COLUMN_NAME)
                record_set_name(&records[i], column, 1);
            else
                record_set_int(&records[i], column, 1);
        }
    }
    // Alone and with one that has them: without a column, and with a bitmap.
    for (unsigned count = 1; count <= COUNT_OF(records); count++) {
        table_builder_reset(builder);
        for (unsigned i = 0; i < count; i++)
            assert_int_equal(table_builder_add(builder, 1 + i, &records[i]), STATUS_OK);
        const struct wire_bytes names[] = {text("encode")};
        struct message batch = {
            .kind = MESSAGE_BATCH,
            .batch = {
                .first = 1, .last = count, .names_first = 1, .names = names, .name_count = 1}};
        memcpy(batch.batch.run, run_id, sizeof run_id);
        batch.batch.tables = table_builder_tables(builder, &batch.batch.table_count);
        struct message out;
        round_trip(&out, &batch);
        assert_null(out.batch.fault);
        for (unsigned i = 0; i < count; i++)
            assert_record_in(&out.batch, 1 + i, &records[i]);
        const struct wire_column *busy = find_column(&out.batch.tables[0], PIPELINE_COPY_BUSY_NS);
        assert_true(!busy || busy->present);
        message_free(&out);
    }
    table_builder_free(builder);
}

TEST_CASE(test_builder_refuses_what_is_no_record)
{
    struct table_builder *builder = NULL;
    assert_int_equal(table_builder_new(&builder), STATUS_OK);
    struct record record;
    record_init(&record, RECORD_KIND_OPERATION, 0);
    record_set_name(&record, OPERATION_OPERATION, 1);
    record_set_int(&record, OPERATION_DURATION_NS, 1);
    assert_int_equal(record_set_text(&record, OPERATION_EXTRA, "{}", 2), 2);
    record.values[OPERATION_EXTRA].text.size = 5000;
    assert_int_not_equal(table_builder_add(builder, 1, &record), STATUS_OK);
    record.kind = RECORD_KIND_COUNT;
    assert_int_not_equal(table_builder_add(builder, 1, &record), STATUS_OK);
    size_t count = 9;
    assert_non_null(table_builder_tables(builder, &count));
    assert_int_equal(count, 0);
    table_builder_free(builder);
    table_builder_free(NULL);
}

TEST_MAIN(test_hello, test_goodbye, test_ack, test_query, test_queries_about_keys, test_comparisons,
          test_clock_estimates, test_reply_and_live, test_live_credit, test_records_of_every_kind,
          test_a_pipeline_without_figures, test_builder_refuses_what_is_no_record)
