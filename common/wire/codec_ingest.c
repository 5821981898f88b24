// Hello, Batch, Goodbye and Ack between structures and protobuf.
#include <stddef.h>
#include <string.h>

#include "common/wire/codec_parts.h"

// ---- Parts ------------------------------------------------------------------------

// Returns `fault`; NULL if packing or `sound`.
static const char *check(const struct codec *codec, bool sound, const char *fault)
{
    return codec->packing || sound ? NULL : fault;
}

// Copies 16 bytes that identify a run or a store.
static const char *copy_id(const struct codec *codec, ProtobufCBinaryData *wire,
                           unsigned char own[MESSAGE_RUN_SIZE], const char *fault)
{
    if (codec->packing)
        *wire = codec_pack_bytes(own, MESSAGE_RUN_SIZE);
    else if (wire->len != MESSAGE_RUN_SIZE)
        return fault;
    else
        memcpy(own, wire->data, MESSAGE_RUN_SIZE);
    return NULL;
}

static const char *copy_run(const struct codec *codec, ProtobufCBinaryData *wire,
                            unsigned char own[MESSAGE_RUN_SIZE])
{
    static const unsigned char no_run[MESSAGE_RUN_SIZE];
    const char *fault = copy_id(codec, wire, own, "the run's identity is not 16 bytes");
    if (fault)
        return fault;
    return check(codec, memcmp(own, no_run, MESSAGE_RUN_SIZE) != 0,
                 "the run's identity is all zero");
}

static bool range_is_sound(uint64_t first, uint64_t last)
{
    return first >= 1 && first <= last && last <= MESSAGE_NUMBER_MAX;
}

static const char *copy_stream(const struct codec *codec, void *packed, void *unpacked)
{
    Inferstat__StreamState *wire = packed;
    struct delivery_stream *own = unpacked;
    CODEC_COPY(codec, wire->stream, own->stream);
    CODEC_COPY(codec, wire->produced, own->produced);
    CODEC_COPY(codec, wire->unnumbered, own->unnumbered);
    CODEC_COPY(codec, wire->no_room, own->no_room);
    return check(codec,
                 own->produced <= MESSAGE_NUMBER_MAX && own->unnumbered <= MESSAGE_NUMBER_MAX &&
                     own->no_room <= own->unnumbered,
                 "a stream's count is out of range");
}

static const struct codec_list streams = {&inferstat__stream_state__descriptor,
                                          sizeof(struct delivery_stream), DELIVERY_STREAMS_MAX,
                                          "more streams than a run may have", copy_stream};

static const char *copy_drop(const struct codec *codec, void *packed, void *unpacked)
{
    Inferstat__DroppedRange *wire = packed;
    struct wire_drop *own = unpacked;
    struct delivery_range *range = &own->range;
    CODEC_COPY(codec, wire->stream, range->stream);
    CODEC_COPY(codec, wire->first, range->first);
    CODEC_COPY(codec, wire->last, range->last);
    CODEC_COPY(codec, wire->since_ns, range->since_ns);
    CODEC_COPY(codec, wire->until_ns, range->until_ns);
    if (codec->packing)
        wire->reason = (Inferstat__DropReason)range->reason;
    else // a reason newer than this program is kept as one not specified
        range->reason = (unsigned)wire->reason < DELIVERY_REASON_COUNT
                            ? (enum delivery_reason)wire->reason
                            : DELIVERY_UNSPECIFIED;
    const char *fault =
        check(codec, range_is_sound(range->first, range->last), "a dropped range makes no sense");
    return fault ? fault
                 : codec_copy_text(codec, &wire->detail, &own->detail,
                                   "a dropped range's detail is too long or not UTF-8");
}

static const struct codec_list drops = {&inferstat__dropped_range__descriptor,
                                        sizeof(struct wire_drop), DELIVERY_DROPS_MAX,
                                        "more dropped ranges than a message may have", copy_drop};

// ---- Hello ------------------------------------------------------------------------

// The texts of a run's description: where they are in the message and in the
// generated structure.
static const struct hello_text {
    size_t in_message;
    size_t on_wire;
} hello_texts[] = {
#define HELLO_TEXT(name)                                                                           \
    {                                                                                              \
        offsetof(struct message_hello, name), offsetof(Inferstat__RunDescription, name)            \
    }
    HELLO_TEXT(host), HELLO_TEXT(worker_version), HELLO_TEXT(os),        HELLO_TEXT(kernel),
    HELLO_TEXT(cpu),  HELLO_TEXT(cpu_governor),   HELLO_TEXT(container), HELLO_TEXT(driver),
    HELLO_TEXT(cuda), HELLO_TEXT(huge_pages),     HELLO_TEXT(allocator), HELLO_TEXT(build_flags),
#undef HELLO_TEXT
};

enum { HELLO_TEXTS = sizeof hello_texts / sizeof hello_texts[0] };

static bool count_is_sound(int64_t count)
{
    return count >= 0 && count <= MESSAGE_VALUE_MAX;
}

static const char *copy_description(const struct codec *codec, Inferstat__RunDescription *wire,
                                    struct message_hello *own)
{
    CODEC_COPY(codec, wire->pid, own->pid);
    CODEC_COPY(codec, wire->started_ns, own->started_ns);
    CODEC_COPY(codec, wire->cpu_count, own->cpu_count);
    CODEC_COPY(codec, wire->host_memory_bytes, own->host_memory_bytes);
    CODEC_COPY(codec, wire->device_count, own->device_count);
    for (size_t i = 0; i < HELLO_TEXTS; i++) {
        const char *fault =
            codec_copy_text(codec, (char **)(void *)((char *)wire + hello_texts[i].on_wire),
                            (struct wire_bytes *)(void *)((char *)own + hello_texts[i].in_message),
                            "a text of the run's description is too long or not UTF-8");
        if (fault)
            return fault;
    }
    const char *fault = check(codec, own->host.size >= 1 && own->host.size <= MESSAGE_NAME_SIZE_MAX,
                              "the host's name is empty or too long");
    return fault ? fault
                 : check(codec,
                         count_is_sound(own->pid) && count_is_sound(own->cpu_count) &&
                             count_is_sound(own->host_memory_bytes) &&
                             count_is_sound(own->device_count),
                         "a count in the run's description cannot be");
}

const char *codec_copy_hello(const struct codec *codec, void *packed, void *unpacked)
{
    Inferstat__Hello *wire = packed;
    struct message_hello *own = unpacked;
    CODEC_COPY(codec, wire->protocol, own->protocol);
    CODEC_COPY(codec, wire->replay, own->replay);
    const char *fault = copy_run(codec, &wire->run, own->run);
    if (codec->packing)
        wire->description = codec_new(codec->arena, &inferstat__run_description__descriptor);
    if (!fault && !wire->description)
        fault = "the run's description is missing";
    if (!fault)
        fault = copy_description(codec, wire->description, own);
    return fault ? fault
                 : codec_copy_list(codec, &streams, &wire->streams, &wire->n_streams, &own->streams,
                                   &own->stream_count);
}

// ---- Batch ------------------------------------------------------------------------

// Where a Batch belongs; without it, it cannot even be refused.
static const char *copy_address(const struct codec *codec, Inferstat__Batch *wire,
                                struct message_batch *own)
{
    const char *fault = copy_run(codec, &wire->run, own->run);
    CODEC_COPY(codec, wire->sequence, own->sequence);
    CODEC_COPY(codec, wire->sent_ns, own->sent_ns);
    CODEC_COPY(codec, wire->stream, own->stream);
    CODEC_COPY(codec, wire->first, own->first);
    CODEC_COPY(codec, wire->last, own->last);
    if (fault)
        return fault;
    if (own->first == 0 && own->last == 0)
        return check(codec, wire->n_tables == 0, "records without numbers");
    if (!range_is_sound(own->first, own->last))
        return check(codec, false, "its range makes no sense");
    return check(codec, own->last - own->first < DELIVERY_BATCH_MAX,
                 "more records than a batch may have");
}

static const char *copy_names(const struct codec *codec, Inferstat__Batch *wire,
                              struct message_batch *own)
{
    size_t count = codec->packing ? own->name_count : wire->n_names;
    if (codec->packing) {
        wire->names_first = own->names_first;
        wire->names = arena_array(codec->arena, &count, sizeof *wire->names);
        for (size_t i = 0; i < count; i++)
            wire->names[i] = codec_pack_text(codec->arena, own->names[i]);
        wire->n_names = count;
        return NULL;
    }
    if (count == 0)
        return NULL;
    if (count > DELIVERY_NAMES_MAX)
        return "more names than a message may have";
    if (wire->names_first < 1 || wire->names_first > MESSAGE_NAMES_MAX - count + 1)
        return "ids of names are out of range";
    struct wire_bytes *names = arena_array(codec->arena, &count, sizeof *names);
    for (size_t i = 0; i < count; i++) {
        names[i] = codec_read_text(wire->names[i]);
        if (names[i].size < 1 || !codec_text_is_sound(names[i], MESSAGE_NAME_SIZE_MAX))
            return "a name is empty, too long or not UTF-8";
    }
    own->names_first = wire->names_first;
    own->names = names;
    own->name_count = count;
    return NULL;
}

const char *codec_copy_batch(const struct codec *codec, void *packed, void *unpacked)
{
    Inferstat__Batch *wire = packed;
    struct message_batch *own = unpacked;
    const char *fault = copy_address(codec, wire, own);
    if (fault)
        return fault;
    // An error that cannot be is no fault of the records: there is no estimate then.
    if (codec->packing || wire->clock_error_ns > 0) {
        CODEC_COPY(codec, wire->clock_offset_ns, own->clock_offset_ns);
        CODEC_COPY(codec, wire->clock_error_ns, own->clock_error_ns);
    }
    if (codec->packing)
        codec_pack_tables(codec->arena, wire, own);
    // Each part is copied whatever the others are; the first fault is the reason.
    const char *faults[] = {
        copy_names(codec, wire, own),
        codec_copy_list(codec, &drops, &wire->dropped, &wire->n_dropped, &own->drops,
                        &own->drop_count),
        codec_copy_list(codec, &streams, &wire->streams, &wire->n_streams, &own->streams,
                        &own->stream_count),
        codec_copy_text(codec, &wire->activity, &own->activity,
                        "the activity is too long or not UTF-8"),
        codec->packing || own->first == 0 ? NULL : codec_read_tables(codec->arena, own, wire),
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0] && !fault; i++)
        fault = faults[i];
    if (!fault || own->first == 0)
        return fault;
    own->fault = fault;
    own->tables = NULL;
    own->table_count = 0;
    return NULL;
}

// ---- Goodbye ----------------------------------------------------------------------

static const char *copy_activity(const struct codec *codec, void *packed, void *unpacked)
{
    Inferstat__StreamActivity *wire = packed;
    struct wire_activity *own = unpacked;
    CODEC_COPY(codec, wire->stream, own->stream);
    CODEC_COPY(codec, wire->since_ns, own->since_ns);
    return codec_copy_text(codec, &wire->activity, &own->text,
                           "an activity is too long or not UTF-8");
}

static const struct codec_list activities = {
    &inferstat__stream_activity__descriptor, sizeof(struct wire_activity), DELIVERY_STREAMS_MAX,
    "more activities than a run may have streams", copy_activity};

const char *codec_copy_goodbye(const struct codec *codec, void *packed, void *unpacked)
{
    Inferstat__Goodbye *wire = packed;
    struct message_goodbye *own = unpacked;
    CODEC_COPY(codec, wire->sequence, own->sequence);
    CODEC_COPY(codec, wire->ended_ns, own->ended_ns);
    CODEC_COPY(codec, wire->killed, own->killed);
    const char *fault = copy_run(codec, &wire->run, own->run);
    if (!fault)
        fault = codec_copy_list(codec, &streams, &wire->streams, &wire->n_streams, &own->streams,
                                &own->stream_count);
    if (!fault)
        fault = codec_copy_list(codec, &drops, &wire->dropped, &wire->n_dropped, &own->drops,
                                &own->drop_count);
    return fault ? fault
                 : codec_copy_list(codec, &activities, &wire->activities, &wire->n_activities,
                                   &own->activities, &own->activity_count);
}

// ---- Ack --------------------------------------------------------------------------

static const char *copy_next(const struct codec *codec, void *packed, void *unpacked)
{
    Inferstat__StreamNext *wire = packed;
    struct delivery_next *own = unpacked;
    CODEC_COPY(codec, wire->stream, own->stream);
    CODEC_COPY(codec, wire->next, own->next);
    return check(codec, own->next >= 1 && own->next <= MESSAGE_NUMBER_MAX + 1,
                 "the number wanted next is out of range");
}

static const struct codec_list nexts = {&inferstat__stream_next__descriptor,
                                        sizeof(struct delivery_next), DELIVERY_STREAMS_MAX,
                                        "more streams than a run may have", copy_next};

static const char *copy_refused(const struct codec *codec, void *packed, void *unpacked)
{
    Inferstat__Refused *wire = packed;
    struct wire_refused *own = unpacked;
    CODEC_COPY(codec, wire->stream, own->stream);
    CODEC_COPY(codec, wire->first, own->first);
    CODEC_COPY(codec, wire->last, own->last);
    const char *fault =
        check(codec, range_is_sound(own->first, own->last), "a refused range makes no sense");
    return fault ? fault
                 : codec_copy_text(codec, &wire->reason, &own->reason,
                                   "a refused range's reason is too long or not UTF-8");
}

static const struct codec_list refused = {
    &inferstat__refused__descriptor, sizeof(struct wire_refused), DELIVERY_DROPS_MAX,
    "more refused ranges than a message may have", copy_refused};

const char *codec_copy_ack(const struct codec *codec, void *packed, void *unpacked)
{
    static const char no_id[] = "the store's or the run's identity is not 16 bytes";
    Inferstat__Ack *wire = packed;
    struct message_ack *own = unpacked;
    struct delivery_ack *delivery = &own->delivery;
    CODEC_COPY(codec, wire->protocol, own->protocol);
    CODEC_COPY(codec, wire->sent_ns, own->sent_ns);
    CODEC_COPY(codec, wire->echo_sent_ns, own->echo_sent_ns);
    CODEC_COPY(codec, wire->sequence, delivery->sequence);
    CODEC_COPY(codec, wire->names_known, delivery->names_known);
    CODEC_COPY(codec, wire->credit, delivery->credit);
    CODEC_COPY(codec, wire->hello_wanted, delivery->hello_wanted);
    CODEC_COPY(codec, wire->closed, delivery->closed);
    CODEC_COPY(codec, wire->forgotten, own->forgotten);
    if (!codec->packing)
        delivery->protocol = own->protocol;
    const char *fault = copy_id(codec, &wire->store, delivery->store, no_id);
    if (!fault)
        fault = copy_id(codec, &wire->run, own->run, no_id);
    if (!fault)
        fault = check(codec, delivery->names_known <= MESSAGE_NAMES_MAX,
                      "more names than a run may have");
    if (!fault)
        fault =
            codec_copy_text(codec, &wire->error, &own->error, "the error is too long or not UTF-8");
    if (!fault)
        fault = codec_copy_list(codec, &nexts, &wire->next, &wire->n_next, &delivery->next,
                                &delivery->next_count);
    return fault ? fault
                 : codec_copy_list(codec, &refused, &wire->refused, &wire->n_refused, &own->refused,
                                   &own->refused_count);
}
