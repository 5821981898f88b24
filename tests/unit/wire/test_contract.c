// proto/inferstat.proto says what the C sources do: numbers of enumerations, bytes of a sketch.
#include <ctype.h>

#include "common/core/query/query.h"
#include "common/core/stats/sketch.h"
#include "common/wire/message.h"
#include "proto/inferstat.pb-c.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

static const char *kind_text(int number)
{
    return number < RECORD_KIND_COUNT ? record_kind_info((enum record_kind)number)->name : NULL;
}

static const char *outcome_text(int number)
{
    return column_enum_text(COLUMN_STATUS, number);
}

static const char *finish_text(int number)
{
    return column_enum_text(COLUMN_FINISH, number);
}

static const char *sync_text(int number)
{
    return column_enum_text(COLUMN_SYNC, number);
}

static const char *reason_text(int number)
{
    return number < DELIVERY_REASON_COUNT ? delivery_reason_text((enum delivery_reason)number)
                                          : NULL;
}

static const char *role_text(int number)
{
    return number < QUERY_ROLE_COUNT ? query_role_name((enum query_role)number) : NULL;
}

static const char *dimension_text(int number)
{
    return number < QUERY_DIMENSION_COUNT ? query_dimension_name((enum query_dimension)number)
                                          : NULL;
}

// The C sources have no texts for these.
static const char *query_text(int number)
{
#define QUERY(name) [QUERY_##name] = #name
    static const char *const texts[QUERY_KIND_COUNT] = {
        QUERY(PING),          QUERY(SUMMARY),       QUERY(AVERAGE),         QUERY(OVERVIEW),
        QUERY(RECORDS),       QUERY(CLEAR),         QUERY(AUDIT),           QUERY(AUTHORIZE),
        QUERY(REVOKE),        QUERY(KEYS),          QUERY(SLOWEST),         QUERY(STAGES),
        QUERY(FLEET),         QUERY(BASELINE_SAVE), QUERY(BASELINE_DELETE), QUERY(BASELINES),
        QUERY(COMPARE),       QUERY(COPY),          QUERY(IMPORT),          QUERY(FORGET),
        QUERY(ADMIN_LOG),     QUERY(NOW),           QUERY(ERRORS),          QUERY(EVENTS),
        QUERY(DEVICE_HEALTH), QUERY(HOST_HEALTH),   QUERY(ALERTS),          QUERY(ALERT_EDIT),
        QUERY(ALERT_TRY),     QUERY(WHY),
    };
    return number < QUERY_KIND_COUNT ? texts[number] : NULL;
}

static const char *reply_text(int number)
{
#define REPLY(name) [REPLY_##name] = #name
    static const char *const texts[] = {REPLY(OK),     REPLY(INVALID), REPLY(NO_DATA),
                                        REPLY(DENIED), REPLY(FAILED),  REPLY(TOO_LARGE)};
    return number < (int)COUNT_OF(texts) ? texts[number] : NULL;
}

static const char *alert_list_text(int number)
{
#define LIST(name) [QUERY_ALERTS_##name] = #name
    static const char *const texts[] = {LIST(OPEN), LIST(HISTORY), LIST(SILENCES), LIST(TROUBLE)};
    return number < (int)COUNT_OF(texts) ? texts[number] : NULL;
}

static const char *alert_edit_text(int number)
{
#define EDIT(name) [QUERY_ALERT_##name] = #name
    static const char *const texts[] = {EDIT(ACK), EDIT(UNACK), EDIT(SILENCE), EDIT(UNSILENCE)};
    return number < (int)COUNT_OF(texts) ? texts[number] : NULL;
}

// Each value of the .proto is called PREFIX_TEXT, and no text is left over.
TEST_CASE(test_enumerations)
{
    static const struct {
        const ProtobufCEnumDescriptor *descriptor;
        const char *prefix;
        const char *(*text)(int number);
    } enums[] = {
        {&inferstat__kind__descriptor, "KIND_", kind_text},
        {&inferstat__record_status__descriptor, "RECORD_STATUS_", outcome_text},
        {&inferstat__finish__descriptor, "FINISH_", finish_text},
        {&inferstat__sync__descriptor, "SYNC_", sync_text},
        {&inferstat__drop_reason__descriptor, "DROP_", reason_text},
        {&inferstat__role__descriptor, "ROLE_", role_text},
        {&inferstat__dimension__descriptor, "DIMENSION_", dimension_text},
        {&inferstat__query_kind__descriptor, "QUERY_", query_text},
        {&inferstat__status__descriptor, "STATUS_", reply_text},
        {&inferstat__alert_list__descriptor, "ALERTS_", alert_list_text},
        {&inferstat__alert_edit__descriptor, "ALERT_", alert_edit_text},
    };
    for (size_t i = 0; i < COUNT_OF(enums); i++) {
        const ProtobufCEnumDescriptor *descriptor = enums[i].descriptor;
        int number = 0;
        for (const char *text; (text = enums[i].text(number)) != NULL; number++) {
            const ProtobufCEnumValue *value =
                protobuf_c_enum_descriptor_get_value(descriptor, number);
            if (!value) {
                fail_msg("%s has no number %d (%s)", descriptor->name, number, text);
                return;
            }
            char name[64];
            (void)snprintf(name, sizeof name, "%s%s", enums[i].prefix, text);
            for (char *at = name; *at; at++)
                *at = (char)toupper((unsigned char)*at);
            assert_string_equal(value->name, name);
        }
        assert_int_equal(descriptor->n_values, number);
    }
}

// The bytes, the buckets and the value of a bucket that the .proto's example has.
TEST_CASE(test_example_of_a_sketch)
{
    static const double values[] = {1000000, 2000000, 2000000};
    char *proto = read_file(PROTO_FILE, NULL);
    const char *example = strstr(proto, "//     01 ");
    assert_non_null(example);
    unsigned char bytes[32];
    size_t size = 0;
    char *end;
    for (example += strlen("//     "); size < sizeof bytes && *example != '\n'; example = end)
        bytes[size++] = (unsigned char)strtoul(example, &end, 16);

    struct sketch *read = NULL, *added = NULL;
    assert_int_equal(sketch_new(&read), STATUS_OK);
    assert_int_equal(sketch_new(&added), STATUS_OK);
    assert_int_equal(sketch_decode(read, bytes, size), STATUS_OK);
    sketch_add_values(added, values, COUNT_OF(values));
    unsigned char of_read[64], of_added[64];
    size = sketch_encode_whole(read, of_read, sizeof of_read);
    assert_int_equal(size, sketch_encode_whole(added, of_added, sizeof of_added));
    assert_memory_equal(of_read, of_added, size);

    char text[128];
    (void)snprintf(text, sizeof text, "buckets %u and %u", (unsigned)sketch_bucket(values[0]),
                   (unsigned)sketch_bucket(values[1]));
    assert_non_null(strstr(proto, text));
    (void)snprintf(text, sizeof text, "bucket %u is %.3f", (unsigned)sketch_bucket(values[1]),
                   sketch_bucket_value(sketch_bucket(values[1])));
    assert_non_null(strstr(proto, text));
    sketch_free(read);
    sketch_free(added);
    free(proto);
}

TEST_MAIN(test_enumerations, test_example_of_a_sketch)
