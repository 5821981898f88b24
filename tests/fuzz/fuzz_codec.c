// The codec under libFuzzer.  The first byte chooses: a message built from the
// rest, which must come back as it went; a batch whose parts do not fit each
// other; a message with its frame damaged; or the rest as a raw frame.
#include "common/wire/codec.h"

#include <math.h>
#include <string.h>

#include "common/wire/codec_parts.h"
#include "tests/fuzz/fuzz.h"

static uint64_t below(struct input *input, uint64_t end)
{
    return take(input, end > 256 ? 4 : 1) % end;
}

// Numbers from small to the edges.
static uint64_t number(struct input *input)
{
    switch (below(input, 4)) {
    case 0:
        return take(input, 1);
    case 1:
        return take(input, 8);
    case 2:
        return (uint64_t)INT64_MAX - take(input, 1);
    default:
        return UINT64_C(1) << below(input, 64);
    }
}

static uint64_t record_number(struct input *input)
{
    return 1 + number(input) % MESSAGE_NUMBER_MAX;
}

// ASCII from the input, `least` bytes to start with.
static struct wire_bytes text(struct input *input, size_t least)
{
    static char pool[65536];
    static size_t used;
    size_t size = least + below(input, 40);
    if (used + size > sizeof pool)
        used = 0;
    char *bytes = pool + used;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(1 + take(input, 1) % 127);
    used += size;
    return (struct wire_bytes){.size = size, .bytes = bytes};
}

// ---- Messages ----------------------------------------------------------------------

enum { ITEMS = 6, RECORDS = 80 };

static struct delivery_stream streams[ITEMS];
static struct wire_drop drops[ITEMS];
static struct wire_bytes names[ITEMS];
static struct delivery_next wanted[ITEMS];
static struct wire_refused refused[ITEMS];
static struct wire_activity activities[ITEMS];

static void make_run(struct input *input, unsigned char run[MESSAGE_RUN_SIZE])
{
    uint64_t half = take(input, 8) | 1;
    memcpy(run, &half, sizeof half);
}

static size_t make_streams(struct input *input)
{
    size_t count = below(input, ITEMS + 1);
    for (size_t i = 0; i < count; i++)
        streams[i] = (struct delivery_stream){.stream = (uint32_t)number(input),
                                              .produced = number(input) % MESSAGE_NUMBER_MAX,
                                              .unnumbered = number(input) % MESSAGE_NUMBER_MAX};
    for (size_t i = 0; i < count; i++)
        streams[i].no_room = below(input, 2) ? streams[i].unnumbered : 0;
    return count;
}

static size_t make_drops(struct input *input)
{
    size_t count = below(input, ITEMS + 1);
    for (size_t i = 0; i < count; i++) {
        uint64_t last = record_number(input);
        drops[i] = (struct wire_drop){
            .range = {.stream = (uint32_t)number(input),
                      .first = 1 + number(input) % last,
                      .last = last,
                      .reason = (enum delivery_reason)below(input, DELIVERY_REASON_COUNT),
                      .since_ns = (int64_t)number(input),
                      .until_ns = (int64_t)number(input)},
            .detail = text(input, 0)};
    }
    return count;
}

static void make_hello(struct input *input, struct message_hello *hello)
{
    make_run(input, hello->run);
    hello->protocol = (uint32_t)number(input);
    hello->host = text(input, 1);
    hello->os = text(input, 0);
    hello->cuda = text(input, 0);
    hello->pid = (int64_t)(number(input) % (uint64_t)MESSAGE_VALUE_MAX);
    hello->started_ns = (int64_t)number(input);
    hello->host_memory_bytes = (int64_t)(number(input) % (uint64_t)MESSAGE_VALUE_MAX);
    hello->stream_count = make_streams(input);
    hello->streams = streams;
    hello->replay = below(input, 2);
}

static void make_goodbye(struct input *input, struct message_goodbye *goodbye)
{
    make_run(input, goodbye->run);
    goodbye->sequence = number(input);
    goodbye->stream_count = make_streams(input);
    goodbye->streams = streams;
    goodbye->drop_count = make_drops(input);
    goodbye->drops = drops;
    goodbye->ended_ns = (int64_t)number(input);
    goodbye->killed = below(input, 2);
    goodbye->activity_count = below(input, ITEMS + 1);
    goodbye->activities = activities;
    for (size_t i = 0; i < goodbye->activity_count; i++)
        activities[i] = (struct wire_activity){.stream = (uint32_t)number(input),
                                               .text = text(input, 0),
                                               .since_ns = (int64_t)number(input)};
}

static int64_t make_int(struct input *input, const struct record_column *column)
{
    int64_t count = 0;
    while (column_type_is_enum(column->type) && column_enum_text(column->type, count))
        count++;
    return count ? (int64_t)below(input, (uint64_t)count)
                 : (int64_t)(number(input) % ((uint64_t)MESSAGE_VALUE_MAX + 1));
}

static void make_value(struct input *input, struct record *record, unsigned index,
                       const struct record_column *column)
{
    if (column->type == COLUMN_REAL) {
        uint64_t bits = number(input);
        double real;
        memcpy(&real, &bits, sizeof real);
        record_set_real(record, index, isfinite(real) ? real : 0.25);
    } else if (column->type == COLUMN_NAME) {
        record_set_name(record, index, 1 + (uint32_t)below(input, MESSAGE_NAMES_MAX));
    } else if (column->type == COLUMN_TEXT) {
        struct wire_bytes bytes = text(input, 0);
        (void)record_set_text(record, index, bytes.bytes, bytes.size);
    } else if (column->type == COLUMN_BLOB) {
        (void)record_set_blob(record, index, "\0\xff sketch", 9);
    } else {
        record_set_int(record, index, make_int(input, column));
    }
}

static void make_record(struct input *input, struct record *record)
{
    enum record_kind kind = (enum record_kind)(1 + below(input, RECORD_KIND_COUNT - 1));
    const struct record_kind_info *info = record_kind_info(kind);
    record_init(record, kind, (int64_t)number(input) >> 1);
    for (unsigned i = 0; i < info->column_count; i++)
        if (!info->columns[i].maybe || below(input, 2))
            make_value(input, record, i, &info->columns[i]);
}

static void make_batch(struct input *input, struct message_batch *batch,
                       struct table_builder *builder)
{
    make_run(input, batch->run);
    batch->sequence = number(input);
    batch->sent_ns = (int64_t)number(input);
    batch->stream = (uint32_t)number(input);
    batch->activity = text(input, 0);
    batch->name_count = below(input, ITEMS + 1);
    if (batch->name_count)
        batch->names_first = 1 + (uint32_t)below(input, MESSAGE_NAMES_MAX - ITEMS);
    batch->names = names;
    for (size_t i = 0; i < batch->name_count; i++)
        names[i] = text(input, 1);
    batch->drop_count = make_drops(input);
    batch->drops = drops;
    batch->stream_count = make_streams(input);
    batch->streams = streams;
    if (below(input, 2)) {
        batch->clock_offset_ns = (int64_t)number(input);
        batch->clock_error_ns = 1 + (int64_t)(number(input) % INT64_MAX);
    }
    size_t count = below(input, RECORDS + 1);
    if (count == 0)
        return;
    batch->first = 1 + number(input) % (MESSAGE_NUMBER_MAX - RECORDS);
    batch->last = batch->first + count - 1;
    for (size_t i = 0; i < count; i++) {
        struct record record;
        make_record(input, &record);
        check(table_builder_add(builder, batch->first + i, &record) == STATUS_OK);
    }
    batch->tables = table_builder_tables(builder, &batch->table_count);
}

static void make_ack(struct input *input, struct message_ack *ack)
{
    make_run(input, ack->run);
    make_run(input, ack->delivery.store);
    ack->protocol = (uint32_t)number(input);
    ack->delivery.sequence = number(input);
    ack->delivery.names_known = (uint32_t)below(input, MESSAGE_NAMES_MAX + 1);
    ack->delivery.credit = (uint32_t)number(input);
    ack->delivery.hello_wanted = below(input, 2);
    ack->delivery.closed = below(input, 2);
    ack->delivery.next_count = below(input, ITEMS + 1);
    ack->delivery.next = wanted;
    for (size_t i = 0; i < ack->delivery.next_count; i++)
        wanted[i] =
            (struct delivery_next){.stream = (uint32_t)number(input), .next = record_number(input)};
    ack->refused_count = below(input, ITEMS + 1);
    ack->refused = refused;
    for (size_t i = 0; i < ack->refused_count; i++) {
        uint64_t last = record_number(input);
        refused[i] = (struct wire_refused){.stream = (uint32_t)number(input),
                                           .first = 1 + number(input) % last,
                                           .last = last,
                                           .reason = text(input, 0)};
    }
    ack->error = text(input, 0);
}

static void fill_text(struct input *input, char *out)
{
    struct wire_bytes bytes = text(input, 0);
    memcpy(out, bytes.bytes, bytes.size);
    out[bytes.size] = '\0';
}

// What only queries of this kind have.
static void make_own(struct input *input, struct query *query)
{
    if (query->kind == QUERY_RECORDS) {
        query->records.kind = (enum record_kind)below(input, RECORD_KIND_COUNT);
        query->records.oldest_first = below(input, 2);
    } else if (query->kind == QUERY_AVERAGE) {
        fill_text(input, query->average.slo);
    } else if (query->kind == QUERY_AUTHORIZE || query->kind == QUERY_REVOKE) {
        fill_text(input, query->key.text);
        fill_text(input, query->key.name);
        fill_text(input, query->key.replaces);
        query->key.roles = (uint32_t)number(input);
        query->key.expires_ns = (int64_t)(number(input) >> 1);
    } else if (query->kind == QUERY_BASELINE_SAVE || query->kind == QUERY_BASELINE_DELETE) {
        fill_text(input, query->baseline.name);
        query->baseline.force = below(input, 2);
    } else if (query->kind == QUERY_COMPARE) {
        fill_text(input, query->compare.baseline[0]);
        fill_text(input, query->compare.baseline[1]);
        fill_text(input, query->compare.other.by[QUERY_BY_HOST]);
        query->compare.margin = (double)number(input);
        query->compare.force = below(input, 2);
    } else if (query->kind == QUERY_ALERTS || query->kind == QUERY_ALERT_EDIT ||
               query->kind == QUERY_ALERT_TRY) {
        query->alert.list = (enum query_alert_list)below(input, QUERY_ALERT_LIST_COUNT);
        query->alert.edit = (enum query_alert_edit)below(input, QUERY_ALERT_EDIT_COUNT);
        query->alert.id = (int64_t)(number(input) >> 1);
        query->alert.for_ns = (int64_t)(number(input) >> 1);
        fill_text(input, query->alert.rule);
        fill_text(input, query->alert.text);
    } else if (query->kind == QUERY_COPY || query->kind == QUERY_IMPORT) {
        fill_text(input, query->file.path);
        query->file.bundle = below(input, 2);
    }
}

static void make_query(struct input *input, struct message_query *query)
{
    query->id = number(input);
    query->query.kind = (enum query_kind)below(input, QUERY_KIND_COUNT);
    fill_text(input, query->query.metric);
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        fill_text(input, query->query.filter.by[i]);
    query->query.group_count = (unsigned)below(input, QUERY_DIMENSION_COUNT + 1);
    for (unsigned i = 0; i < query->query.group_count; i++)
        query->query.group_by[i] = (enum query_dimension)below(input, QUERY_DIMENSION_COUNT);
    query->query.filter.since_ns = (int64_t)number(input);
    query->query.step_ns = (int64_t)number(input);
    query->query.limit = (uint32_t)number(input);
    query->query.cursor = number(input);
    make_own(input, &query->query);
}

static struct result *make_result(struct input *input)
{
    struct result *result = NULL;
    check(result_new(&result) == STATUS_OK);
    static const char *const keys[] = {"model", "ttft_ns", "mean", "count"};
    unsigned columns = (unsigned)below(input, 5);
    for (unsigned i = 0; i < columns; i++)
        check(result_add_column(result, keys[i], (enum unit)below(input, UNIT_COUNT_OF)) ==
              STATUS_OK);
    size_t rows = columns ? below(input, 50) : 0;
    for (size_t row = 0; row < rows; row++) {
        check(result_add_row(result) == STATUS_OK);
        for (unsigned i = 0; i < columns; i++) {
            struct wire_bytes bytes = {0};
            switch (below(input, 4)) {
            case 0:
                result_set_int(result, i, (int64_t)number(input));
                break;
            case 1:
                result_set_real(result, i, (double)number(input) / 3);
                break;
            case 2:
                bytes = text(input, 0);
                check(result_set_text(result, i, bytes.bytes, bytes.size) == STATUS_OK);
                break;
            default:
                break;
            }
        }
    }
    return result;
}

// Returns a result to be freed, for the kinds that have one.
static struct result *make_message(struct input *input, struct message *message,
                                   struct table_builder *builder)
{
    struct result *result = NULL;
    message->kind = (enum message_kind)(1 + below(input, MESSAGE_LIVE_RECORDS));
    switch (message->kind) {
    case MESSAGE_HELLO:
        make_hello(input, &message->hello);
        break;
    case MESSAGE_BATCH:
        make_batch(input, &message->batch, builder);
        break;
    case MESSAGE_GOODBYE:
        make_goodbye(input, &message->goodbye);
        break;
    case MESSAGE_ACK:
        make_ack(input, &message->ack);
        break;
    case MESSAGE_QUERY:
        make_query(input, &message->query);
        break;
    case MESSAGE_REPLY:
        message->reply.id = number(input);
        message->reply.status = (enum reply_status)below(input, REPLY_TOO_LARGE + 1);
        message->reply.result = result = make_result(input);
        break;
    case MESSAGE_LIVE_CREDIT:
        message->live_credit.messages = (uint32_t)number(input);
        message->live_credit.kinds = (uint32_t)below(input, 1U << RECORD_KIND_COUNT);
        break;
    case MESSAGE_LIVE_RECORDS:
        message->live_records.kind = (enum record_kind)below(input, RECORD_KIND_COUNT);
        message->live_records.result = result = make_result(input);
        break;
    }
    return result;
}

enum { VALUES = 48 };

// Mostly what it should be, and always when the input has run out.
static size_t about(struct input *input, size_t count)
{
    return below(input, 16) < 15 ? count : below(input, VALUES + 1);
}

static void make_column(struct input *input, Inferstat__Column *column, unsigned index, size_t rows)
{
    static int64_t ints[VALUES];
    static double reals[VALUES];
    static uint32_t ids[VALUES];
    static ProtobufCBinaryData texts[VALUES];
    static uint8_t present[VALUES];
    for (size_t i = 0; i < VALUES; i++) { // the last input has left its own
        ints[i] = 0;
        ids[i] = 1;
        present[i] = 0xff;
    }
    ints[below(input, VALUES)] = (int64_t)number(input);
    present[below(input, VALUES)] = (uint8_t)take(input, 1);
    inferstat__column__init(column);
    column->index = (uint32_t)about(input, index);
    column->ints = ints;
    column->reals = reals;
    column->names = ids;
    column->texts = texts;
    if (below(input, 2))
        column->present = codec_pack_bytes(present, about(input, (rows + 7) / 8));
}

static void make_values(struct input *input, Inferstat__Column *column, enum column_type type,
                        size_t rows)
{
    size_t count = about(input, rows);
    if (type == COLUMN_REAL)
        column->n_reals = count;
    else if (type == COLUMN_NAME)
        column->n_names = count;
    else if (type == COLUMN_TEXT || type == COLUMN_BLOB)
        column->n_texts = count;
    else
        column->n_ints = count;
}

static void check_frame(const unsigned char *bytes, size_t size);

static void misfit(struct input *input)
{
    static Inferstat__Column columns[MESSAGE_COLUMNS_MAX];
    static Inferstat__Column *list[MESSAGE_COLUMNS_MAX];
    static uint64_t numbers[VALUES];
    static int64_t times[VALUES];
    static unsigned char frame[1 << 18];
    static uint8_t run[MESSAGE_RUN_SIZE] = {1};
    Inferstat__Envelope envelope;
    Inferstat__Batch batch;
    Inferstat__Table table;
    inferstat__envelope__init(&envelope);
    inferstat__batch__init(&batch);
    inferstat__table__init(&table);
    Inferstat__Table *tables[] = {&table, &table};
    size_t rows = 1 + below(input, VALUES);
    unsigned kind = 1 + (unsigned)below(input, RECORD_KIND_COUNT - 1);
    const struct record_kind_info *info = record_kind_info((enum record_kind)kind);
    for (size_t i = 0; i < VALUES; i++) {
        numbers[i] = 1;
        times[i] = 0;
    }
    numbers[below(input, VALUES)] = below(input, 8) < 7 ? 1 : number(input);
    times[below(input, VALUES)] = (int64_t)number(input);
    table.kind = (uint32_t)about(input, kind);
    table.n_number_deltas = about(input, rows);
    table.number_deltas = numbers;
    table.n_started_ns_deltas = about(input, rows);
    table.started_ns_deltas = times;
    table.columns = list;
    for (unsigned i = 0; i < info->column_count; i++) {
        make_column(input, &columns[i], i, rows);
        make_values(input, &columns[i], info->columns[i].type, rows);
        list[table.n_columns++] = &columns[i];
    }
    batch.run = codec_pack_bytes(run, sizeof run);
    batch.first = 1;
    batch.last = about(input, rows);
    batch.tables = tables;
    batch.n_tables = below(input, 16) < 15 ? 1 : below(input, 3);
    envelope.body_case = INFERSTAT__ENVELOPE__BODY_BATCH;
    envelope.batch = &batch;
    check(inferstat__envelope__get_packed_size(&envelope) <= sizeof frame);
    check_frame(frame, inferstat__envelope__pack(&envelope, frame));
}

// What decodes encodes again, and that decodes to the same bytes: nothing is
// read that cannot be written.
static void check_frame(const unsigned char *bytes, size_t size)
{
    struct message message, again;
    if (codec_decode(&message, bytes, size, NULL) != STATUS_OK)
        return;
    unsigned char *first = NULL, *second = NULL;
    size_t first_size = 0, second_size = 0;
    check(codec_encode(&first, &first_size, &message, NULL) == STATUS_OK);
    // A query may ask what query_check refuses; it still has to encode.
    check(codec_decode(&again, first, first_size, NULL) == STATUS_OK);
    check(codec_encode(&second, &second_size, &again, NULL) == STATUS_OK);
    check(first_size == second_size && memcmp(first, second, first_size) == 0);
    message_free(&message);
    message_free(&again);
    free(first);
    free(second);
}

static void check_round_trip(const unsigned char *bytes, size_t size)
{
    struct message message;
    unsigned char *again = NULL;
    size_t again_size = 0;
    check(codec_decode(&message, bytes, size, NULL) == STATUS_OK);
    check(message.kind != MESSAGE_BATCH || !message.batch.fault);
    check(codec_encode(&again, &again_size, &message, NULL) == STATUS_OK);
    check(again_size == size && memcmp(again, bytes, size) == 0);
    message_free(&message);
    free(again);
}

static void damage(struct input *input, unsigned char *bytes, size_t size)
{
    for (uint64_t changes = 1 + below(input, 4); changes > 0 && size > 0; changes--) {
        size_t at = take(input, 4) % size;
        bytes[at] ^= (unsigned char)take(input, 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {.data = data, .size = size};
    uint64_t mode = below(&input, 4);
    if (mode == 3) {
        check_frame(input.data, input.size);
        return 0;
    }
    if (mode == 1) {
        misfit(&input);
        return 0;
    }
    struct table_builder *builder = NULL;
    check(table_builder_new(&builder) == STATUS_OK);
    struct message message = {0};
    struct result *result = make_message(&input, &message, builder);
    unsigned char *bytes = NULL;
    size_t encoded = 0;
    check(codec_encode(&bytes, &encoded, &message, NULL) == STATUS_OK);
    if (mode == 2) {
        damage(&input, bytes, encoded);
        check_frame(bytes, encoded);
    } else {
        check_round_trip(bytes, encoded);
    }
    free(bytes);
    result_free(result);
    table_builder_free(builder);
    return 0;
}
