// What the codec has to refuse of batches, and how.
#include "common/wire/codec.h"

#include <math.h>

#include "common/wire/codec_parts.h"
#include "tests/support/test.h"

static const unsigned char run_id[MESSAGE_RUN_SIZE] = "0123456789abcdef";

// A sound Batch of one table (three inferences) as protobuf-c structures, to be
// spoiled in one place at a time.
struct spoiled {
    Inferstat__Envelope envelope;
    Inferstat__Batch batch;
    Inferstat__Table table, second_table;
    Inferstat__Table *tables[2];
    Inferstat__Column columns[INFERENCE_COLUMNS + 1];
    Inferstat__Column *column_list[INFERENCE_COLUMNS + 1];
    Inferstat__DroppedRange drop;
    Inferstat__DroppedRange *drops[1];
    Inferstat__StreamState stream;
    Inferstat__StreamState *streams[1];
    uint64_t number_deltas[3];
    int64_t started_deltas[3];
    int64_t ints[INFERENCE_COLUMNS + 1][3];
    ProtobufCBinaryData texts[3];
    uint32_t names[2][3];
    double reals[3];
    uint8_t present[2];
    char *new_names[1];
    uint8_t run[MESSAGE_RUN_SIZE];
};

static void make_sound(struct spoiled *it)
{
    *it = (struct spoiled){.number_deltas = {10, 1, 1}, .started_deltas = {100, -5, 7}};
    memcpy(it->run, run_id, sizeof run_id);
    inferstat__envelope__init(&it->envelope);
    inferstat__batch__init(&it->batch);
    inferstat__table__init(&it->table);
    inferstat__table__init(&it->second_table);
    inferstat__dropped_range__init(&it->drop);
    inferstat__stream_state__init(&it->stream);
    it->envelope.body_case = INFERSTAT__ENVELOPE__BODY_BATCH;
    it->envelope.batch = &it->batch;
    it->batch.run = (ProtobufCBinaryData){MESSAGE_RUN_SIZE, it->run};
    it->batch.stream = 1;
    it->batch.first = 10;
    it->batch.last = 12;
    it->batch.names_first = 1;
    it->batch.n_names = 1;
    it->batch.names = it->new_names;
    it->new_names[0] = codec_borrow("model");
    it->batch.n_tables = 1;
    it->batch.tables = it->tables;
    it->tables[0] = &it->table;
    it->tables[1] = &it->second_table;
    it->batch.n_dropped = 1;
    it->batch.dropped = it->drops;
    it->drops[0] = &it->drop;
    it->drop.first = 1;
    it->drop.last = 9;
    it->batch.n_streams = 1;
    it->batch.streams = it->streams;
    it->streams[0] = &it->stream;
    it->stream.produced = 12;
    it->table.kind = RECORD_KIND_INFERENCE;
    it->table.n_number_deltas = 3;
    it->table.number_deltas = it->number_deltas;
    it->table.n_started_ns_deltas = 3;
    it->table.started_ns_deltas = it->started_deltas;
    it->table.n_columns = INFERENCE_COLUMNS;
    it->table.columns = it->column_list;
    for (unsigned i = 0; i <= INFERENCE_COLUMNS; i++) {
        inferstat__column__init(&it->columns[i]);
        it->column_list[i] = &it->columns[i];
        it->columns[i].index = i;
        it->columns[i].n_ints = 3;
        it->columns[i].ints = it->ints[i];
    }
    for (unsigned i = INFERENCE_MODEL; i <= INFERENCE_DEVICE; i++) {
        it->columns[i].n_ints = 0;
        it->columns[i].n_names = 3;
        it->columns[i].names = it->names[i];
        for (unsigned row = 0; row < 3; row++)
            it->names[i][row] = 1;
    }
    it->columns[INFERENCE_ERROR].n_ints = 0;
    it->columns[INFERENCE_ERROR].n_texts = 3;
    it->columns[INFERENCE_ERROR].texts = it->texts;
    for (unsigned row = 0; row < 3; row++)
        it->texts[row] = codec_pack_bytes("refused", 7);
}

static enum status decode_spoiled(struct message *out, const struct spoiled *it)
{
    size_t size = inferstat__envelope__get_packed_size(&it->envelope);
    unsigned char *bytes = malloc(size);
    assert_non_null(bytes);
    (void)inferstat__envelope__pack(&it->envelope, bytes);
    enum status status = codec_decode(out, bytes, size, NULL);
    free(bytes);
    return status;
}

static void spoil_unknown_kind(struct spoiled *it)
{
    it->table.kind = RECORD_KIND_COUNT;
}
static void spoil_run_kind(struct spoiled *it)
{
    it->table.kind = RECORD_KIND_RUN;
}
static void spoil_no_rows(struct spoiled *it)
{
    it->table.n_number_deltas = it->table.n_started_ns_deltas = 0;
}
static void spoil_times(struct spoiled *it)
{
    it->table.n_started_ns_deltas = 2;
}
static void spoil_time_overflow(struct spoiled *it)
{
    it->started_deltas[1] = INT64_MAX;
}
static void spoil_order(struct spoiled *it)
{
    it->number_deltas[1] = UINT64_MAX;
}
static void spoil_repeat(struct spoiled *it)
{
    it->number_deltas[2] = 0;
}
static void spoil_below(struct spoiled *it)
{
    it->number_deltas[0] = 9;
}
static void spoil_beyond(struct spoiled *it)
{
    it->number_deltas[2] = 2;
}
static void spoil_hole(struct spoiled *it)
{
    it->batch.last = 13;
}
static void spoil_no_tables(struct spoiled *it)
{
    it->batch.n_tables = 0;
}
static void spoil_number_in_two_tables(struct spoiled *it)
{
    it->second_table = it->table;
    it->second_table.kind = RECORD_KIND_LOAD;
    it->batch.n_tables = 2;
}
static void spoil_same_kind_twice(struct spoiled *it)
{
    it->second_table = it->table;
    it->table.n_number_deltas = it->table.n_started_ns_deltas = 0;
    it->batch.n_tables = 2;
}
static void spoil_missing_column(struct spoiled *it)
{
    it->column_list[INFERENCE_E2E_NS] = &it->columns[INFERENCE_TTFT_NS];
    it->column_list[INFERENCE_TTFT_NS] = &it->columns[INFERENCE_COLUMNS];
}
static void spoil_column_twice(struct spoiled *it)
{
    it->columns[INFERENCE_TTFT_NS].index = INFERENCE_E2E_NS;
}
static void spoil_few_values(struct spoiled *it)
{
    it->columns[INFERENCE_TTFT_NS].n_ints = 2;
}
static void spoil_no_values(struct spoiled *it)
{
    it->columns[INFERENCE_TTFT_NS].n_ints = 0;
}
static void spoil_type(struct spoiled *it)
{
    it->columns[INFERENCE_TTFT_NS].n_ints = 0;
    it->columns[INFERENCE_TTFT_NS].n_reals = 3;
    it->columns[INFERENCE_TTFT_NS].reals = it->reals;
}
static void spoil_two_types(struct spoiled *it)
{
    it->columns[INFERENCE_TTFT_NS].n_reals = 3;
    it->columns[INFERENCE_TTFT_NS].reals = it->reals;
}
static void spoil_bitmap_size(struct spoiled *it)
{
    it->columns[INFERENCE_TTFT_NS].present = (ProtobufCBinaryData){2, it->present};
}
static void spoil_always_absent(struct spoiled *it)
{
    it->present[0] = 5;
    it->columns[INFERENCE_E2E_NS].present = (ProtobufCBinaryData){1, it->present};
}
static void spoil_negative_duration(struct spoiled *it)
{
    it->ints[INFERENCE_E2E_NS][2] = -1;
}
static void spoil_negative_tokens(struct spoiled *it)
{
    it->ints[INFERENCE_PROMPT_TOKENS][0] = INT64_MIN;
}
static void spoil_negative_bytes(struct spoiled *it)
{
    it->ints[INFERENCE_HOST_MEMORY][1] = -1;
}
static void spoil_negative_count(struct spoiled *it)
{
    it->ints[INFERENCE_CONCURRENT][1] = -1;
}
static void spoil_large_duration(struct spoiled *it)
{
    it->ints[INFERENCE_E2E_NS][2] = MESSAGE_VALUE_MAX + 1;
}
static void spoil_large_tokens(struct spoiled *it)
{
    it->ints[INFERENCE_GENERATED_TOKENS][0] = INT64_MAX;
}
static void spoil_large_bytes(struct spoiled *it)
{
    it->ints[INFERENCE_HOST_MEMORY][1] = MESSAGE_VALUE_MAX + 1;
}
static void spoil_large_count(struct spoiled *it)
{
    it->ints[INFERENCE_CONCURRENT][1] = INT64_MAX;
}
static void spoil_enum(struct spoiled *it)
{
    it->ints[INFERENCE_FINISH][1] = 4;
}
static void spoil_negative_enum(struct spoiled *it)
{
    it->ints[INFERENCE_FINISH][1] = -1;
}
static void spoil_name_zero(struct spoiled *it)
{
    it->names[INFERENCE_MODEL][1] = 0;
}
static void spoil_name_large(struct spoiled *it)
{
    it->names[INFERENCE_DEVICE][1] = MESSAGE_NAMES_MAX + 1;
}
static void spoil_new_name_empty(struct spoiled *it)
{
    it->new_names[0] = codec_borrow("");
}
static void spoil_new_name_utf8(struct spoiled *it)
{
    it->new_names[0] = codec_borrow("\xc3");
}
static void spoil_new_names(struct spoiled *it)
{
    static char *many[DELIVERY_NAMES_MAX + 1];
    for (size_t i = 0; i < COUNT_OF(many); i++)
        many[i] = codec_borrow("n");
    it->batch.n_names = COUNT_OF(many);
    it->batch.names = many;
}
static void spoil_new_name_id(struct spoiled *it)
{
    it->batch.names_first = 0;
}
static void spoil_new_name_last(struct spoiled *it)
{
    it->batch.names_first = MESSAGE_NAMES_MAX + 1;
}
static void spoil_drop(struct spoiled *it)
{
    it->drop.first = 10;
}
static void spoil_drop_zero(struct spoiled *it)
{
    it->drop.first = 0;
}
static void spoil_drop_large(struct spoiled *it)
{
    it->drop.last = UINT64_MAX;
}
static void spoil_drop_detail(struct spoiled *it)
{
    it->drop.detail = codec_borrow("\xed\xa0\x80");
}
static void spoil_stream(struct spoiled *it)
{
    it->stream.produced = MESSAGE_NUMBER_MAX + 1;
}
static void spoil_unnumbered(struct spoiled *it)
{
    it->stream.unnumbered = MESSAGE_NUMBER_MAX + 1;
}
static void spoil_no_room(struct spoiled *it)
{
    it->stream.no_room = it->stream.unnumbered + 1;
}
static void spoil_activity(struct spoiled *it)
{
    it->batch.activity = codec_borrow("\xff");
}

TEST_CASE(test_faults_of_a_batch)
{
    static const struct {
        void (*spoil)(struct spoiled *it);
        const char *said;
    } cases[] = {
        {spoil_unknown_kind, "kind that is unknown"},
        {spoil_run_kind, "kind that is unknown"},
        {spoil_no_rows, "without records"},
        {spoil_times, "times"},
        {spoil_time_overflow, "64 bits"},
        {spoil_order, "do not rise"},
        {spoil_repeat, "do not rise"},
        {spoil_below, "outside"},
        {spoil_beyond, "outside"},
        {spoil_hole, "missing"},
        {spoil_no_tables, "missing"},
        {spoil_number_in_two_tables, "twice"},
        {spoil_same_kind_twice, "without records"},
        {spoil_missing_column, "inference.e2e_ns: the column is missing"},
        {spoil_column_twice, "inference.e2e_ns: the column twice"},
        {spoil_few_values, "inference.ttft_ns: not as many"},
        {spoil_no_values, "inference.ttft_ns: not as many"},
        {spoil_type, "another type"},
        {spoil_two_types, "not as many"},
        {spoil_bitmap_size, "bitmap"},
        {spoil_always_absent, "must have"},
        {spoil_negative_duration, "negative"},
        {spoil_negative_tokens, "negative"},
        {spoil_negative_bytes, "negative"},
        {spoil_negative_count, "negative"},
        {spoil_large_duration, "inference.e2e_ns: a value that cannot be"},
        {spoil_large_tokens, "cannot be"},
        {spoil_large_bytes, "cannot be"},
        {spoil_large_count, "cannot be"},
        {spoil_enum, "enumeration"},
        {spoil_negative_enum, "enumeration"},
        {spoil_name_zero, "out of range"},
        {spoil_name_large, "out of range"},
        {spoil_new_name_empty, "a name is empty"},
        {spoil_new_name_utf8, "UTF-8"},
        {spoil_new_names, "more names"},
        {spoil_new_name_id, "ids of names"},
        {spoil_new_name_last, "ids of names"},
        {spoil_drop, "dropped range"},
        {spoil_drop_zero, "dropped range"},
        {spoil_drop_large, "dropped range"},
        {spoil_drop_detail, "UTF-8"},
        {spoil_stream, "stream"},
        {spoil_unnumbered, "stream"},
        {spoil_no_room, "stream"},
        {spoil_activity, "activity"},
    };
    static struct spoiled it;
    struct message out;
    make_sound(&it);
    assert_int_equal(decode_spoiled(&out, &it), STATUS_OK);
    assert_null(out.batch.fault);
    assert_int_equal(out.batch.tables[0].started_ns[2], 102);
    message_free(&out);
    it.ints[INFERENCE_E2E_NS][2] = MESSAGE_VALUE_MAX; // the largest is no fault
    it.stream.produced = it.stream.unnumbered = it.stream.no_room = MESSAGE_NUMBER_MAX;
    assert_int_equal(decode_spoiled(&out, &it), STATUS_OK);
    assert_null(out.batch.fault);
    message_free(&out);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        make_sound(&it);
        cases[i].spoil(&it);
        assert_int_equal(decode_spoiled(&out, &it), STATUS_OK);
        if (!out.batch.fault || !strstr(out.batch.fault, cases[i].said))
            fail_msg("case %zu: %s instead of %s", i, out.batch.fault, cases[i].said);
        assert_int_equal(out.batch.table_count, 0);
        // What belongs to the fault is gone, the rest is there.
        assert_int_equal(out.batch.first, 10);
        assert_true(out.batch.name_count + out.batch.drop_count + out.batch.stream_count >= 2);
        message_free(&out);
    }
}

// Without these a batch cannot even be refused.
TEST_CASE(test_batches_without_an_address)
{
    // The last but one would let a single message drop more numbers than any batch has.
    static const uint64_t ranges[][2] = {{0, 5},
                                         {5, 0},
                                         {6, 5},
                                         {1, UINT64_MAX},
                                         {UINT64_MAX, UINT64_MAX},
                                         {MESSAGE_NUMBER_MAX + 1, MESSAGE_NUMBER_MAX + 1},
                                         {10, 10 + DELIVERY_BATCH_MAX},
                                         {0, 0}};
    static struct spoiled it;
    struct message out;
    for (size_t i = 0; i < COUNT_OF(ranges); i++) {
        make_sound(&it);
        it.batch.first = ranges[i][0];
        it.batch.last = ranges[i][1];
        assert_int_equal(decode_spoiled(&out, &it), STATUS_INVALID);
    }
    static const size_t sizes[] = {0, 15, 17};
    static uint8_t long_run[17] = {1};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        make_sound(&it);
        it.batch.run = (ProtobufCBinaryData){sizes[i], long_run};
        assert_int_equal(decode_spoiled(&out, &it), STATUS_INVALID);
    }
    make_sound(&it);
    memset(it.run, 0, sizeof it.run);
    assert_int_equal(decode_spoiled(&out, &it), STATUS_INVALID);
}

// A heartbeat at fault has no range that could be refused: it is an error, and
// whose it was is known.
TEST_CASE(test_a_heartbeat_at_fault)
{
    static void (*const spoils[])(struct spoiled * it) = {
        spoil_drop_zero, spoil_drop_detail, spoil_stream, spoil_activity, spoil_new_name_empty};
    static struct spoiled it;
    for (size_t i = 0; i < COUNT_OF(spoils); i++) {
        struct message out;
        make_sound(&it);
        it.batch.first = it.batch.last = 0;
        it.batch.n_tables = 0;
        assert_int_equal(decode_spoiled(&out, &it), STATUS_OK);
        message_free(&out);
        spoils[i](&it);
        assert_int_equal(decode_spoiled(&out, &it), STATUS_INVALID);
        assert_memory_equal(out.failed_run, run_id, sizeof run_id);
        assert_null(out.memory);
    }
}

TEST_CASE(test_reals_are_finite)
{
    static const double bad[] = {(double)NAN, (double)INFINITY, (double)-INFINITY};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        const uint64_t numbers[] = {1, 2};
        const int64_t started_ns[] = {0, 0};
        const double reals[] = {0.5, bad[i]};
        const int64_t bytes[] = {1, 2};
        const uint8_t first_only = 1;
        struct wire_column columns[] = {{.index = PROCESS_SAMPLE_CPU, .reals = reals},
                                        {.index = PROCESS_SAMPLE_HOST_MEMORY, .ints = bytes}};
        struct wire_table table = {.kind = RECORD_KIND_PROCESS_SAMPLE,
                                   .count = 2,
                                   .numbers = numbers,
                                   .started_ns = started_ns,
                                   .columns = columns,
                                   .column_count = 2};
        struct message batch = {
            .kind = MESSAGE_BATCH,
            .batch = {.first = 1, .last = 2, .tables = &table, .table_count = 1}};
        memcpy(batch.batch.run, run_id, sizeof run_id);
        unsigned char *encoded = NULL;
        size_t size = 0;
        struct message out;
        assert_int_equal(codec_encode(&encoded, &size, &batch, NULL), STATUS_OK);
        assert_int_equal(codec_decode(&out, encoded, size, NULL), STATUS_OK);
        assert_string_equal(out.batch.fault,
                            "process_sample.cpu_ratio: a value that is not finite");
        message_free(&out);
        free(encoded);

        // Where the record has no value, what stands there does not matter.
        table.kind = RECORD_KIND_DEVICE_SAMPLE;
        const uint32_t names[] = {1, 1};
        columns[0] = (struct wire_column){.index = DEVICE_SAMPLE_DEVICE, .names = names};
        columns[1] = (struct wire_column){
            .index = DEVICE_SAMPLE_POWER, .reals = reals, .present = &first_only};
        assert_int_equal(codec_encode(&encoded, &size, &batch, NULL), STATUS_OK);
        assert_int_equal(codec_decode(&out, encoded, size, NULL), STATUS_OK);
        assert_null(out.batch.fault);
        message_free(&out);
        free(encoded);
    }
}

// Of the text of an error 255 bytes are kept, whole characters; its other limits are those of
// texts.
TEST_CASE(test_errors_are_cut)
{
    static struct spoiled it;
    static char text[MESSAGE_TEXT_SIZE_MAX + 1];
    static const struct {
        size_t size, kept; // of characters of three bytes, behind `first` of one
        unsigned first;
    } cases[] = {{255, 255, 0}, {256, 253, 1}, {MESSAGE_TEXT_SIZE_MAX, 253, 1}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct message out;
        for (size_t at = 0; at < cases[i].size; at++)
            text[at] = at < cases[i].first ? 'a' : "\xe2\x82\xac"[(at - cases[i].first) % 3];
        make_sound(&it);
        it.texts[1] = codec_pack_bytes(text, cases[i].size);
        assert_int_equal(decode_spoiled(&out, &it), STATUS_OK);
        assert_null(out.batch.fault);
        const struct wire_bytes *texts = out.batch.tables[0].columns[INFERENCE_ERROR].texts;
        assert_int_equal(texts[0].size, 7);
        assert_int_equal(texts[1].size, cases[i].kept);
        assert_memory_equal(texts[1].bytes, text, cases[i].kept);
        message_free(&out);
    }
    struct message out;
    make_sound(&it);
    it.texts[1] = codec_pack_bytes(text, sizeof text);
    assert_int_equal(decode_spoiled(&out, &it), STATUS_OK);
    assert_string_equal(out.batch.fault, "inference.error: a text that is too long");
    message_free(&out);
}

// Columns newer than this program are skipped and counted.
TEST_CASE(test_unknown_columns)
{
    static struct spoiled it;
    struct message out;
    make_sound(&it);
    it.table.n_columns = INFERENCE_COLUMNS + 1; // the last has the next index
    it.columns[INFERENCE_COLUMNS].n_ints = 1;
    assert_int_equal(decode_spoiled(&out, &it), STATUS_OK);
    assert_null(out.batch.fault);
    assert_int_equal(out.batch.unknown_columns, 1);
    assert_int_equal(out.batch.tables[0].column_count, INFERENCE_COLUMNS);
    message_free(&out);
    make_sound(&it);
    it.table.n_columns = INFERENCE_COLUMNS + 1;
    it.columns[INFERENCE_COLUMNS].index = UINT32_MAX;
    assert_int_equal(decode_spoiled(&out, &it), STATUS_OK);
    assert_int_equal(out.batch.unknown_columns, 1);
    message_free(&out);
}

// No prefix of a message and no message with one byte changed does harm, and a
// frame made to need a hundred times its size is refused.
TEST_CASE(test_damaged_frames)
{
    static struct spoiled it;
    struct message out;
    make_sound(&it);
    size_t size = inferstat__envelope__get_packed_size(&it.envelope);
    unsigned char *bytes = malloc(size);
    assert_non_null(bytes);
    (void)inferstat__envelope__pack(&it.envelope, bytes);
    for (size_t cut = 0; cut < size; cut++)
        if (codec_decode(&out, bytes, cut, NULL) == STATUS_OK)
            message_free(&out);
    for (size_t at = 0; at < size; at++)
        for (unsigned change = 1; change < 256; change += 2) {
            bytes[at] ^= (unsigned char)change;
            if (codec_decode(&out, bytes, size, NULL) == STATUS_OK)
                message_free(&out);
            bytes[at] ^= (unsigned char)change;
        }
    free(bytes);

    assert_int_equal(codec_decode(&out, NULL, 0, NULL), STATUS_INVALID);
    assert_int_equal(codec_decode(&out, "\xff\xff\xff", 3, NULL), STATUS_INVALID);

    // A batch whose body is nothing but empty tables.
    size = 8 * 1024 * 1024;
    bytes = malloc(size);
    assert_non_null(bytes);
    static const unsigned char envelope[] = {0x12, 0xf8, 0xff, 0xff, 0x03}; // batch of size - 8
    memcpy(bytes, envelope, sizeof envelope);
    for (size_t i = sizeof envelope; i + 1 < size; i += 2)
        memcpy(bytes + i, "\x4a\x00", 2);
    struct error err = {0};
    assert_int_equal(codec_decode(&out, bytes, sizeof envelope + 0x7ffff8, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "memory"));
    free(bytes);
}

TEST_MAIN(test_faults_of_a_batch, test_batches_without_an_address, test_a_heartbeat_at_fault,
          test_reals_are_finite, test_errors_are_cut, test_unknown_columns, test_damaged_frames)
