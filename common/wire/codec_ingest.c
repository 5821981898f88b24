// Hello, Batch, Goodbye and Ack between structures and protobuf.
#include <stddef.h>
#include <string.h>

#include "common/wire/codec_parts.h"

static const unsigned char no_bytes[MESSAGE_RUN_SIZE];

// ---- Packing ---------------------------------------------------------------------

static Inferstat__StreamState **pack_streams(struct arena *arena,
                                             const struct delivery_stream *streams, size_t *count)
{
    Inferstat__StreamState **list = codec_list(arena, count, &inferstat__stream_state__descriptor);
    for (size_t i = 0; i < *count; i++) {
        list[i]->stream = streams[i].stream;
        list[i]->produced = streams[i].produced;
        list[i]->unnumbered = streams[i].unnumbered;
    }
    return list;
}

static Inferstat__DroppedRange **pack_drops(struct arena *arena, const struct wire_drop *drops,
                                            size_t *count)
{
    Inferstat__DroppedRange **list =
        codec_list(arena, count, &inferstat__dropped_range__descriptor);
    for (size_t i = 0; i < *count; i++) {
        const struct delivery_range *range = &drops[i].range;
        list[i]->stream = range->stream;
        list[i]->first = range->first;
        list[i]->last = range->last;
        list[i]->reason = (Inferstat__DropReason)range->reason;
        list[i]->since_ns = range->since_ns;
        list[i]->until_ns = range->until_ns;
        list[i]->detail = codec_pack_text(arena, drops[i].detail);
    }
    return list;
}

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
    HELLO_TEXT(cuda),
#undef HELLO_TEXT
};

enum { HELLO_TEXTS = sizeof hello_texts / sizeof hello_texts[0] };

Inferstat__Hello *codec_pack_hello(struct arena *arena, const struct message_hello *hello)
{
    Inferstat__Hello *to = codec_new(arena, &inferstat__hello__descriptor);
    Inferstat__RunDescription *about = codec_new(arena, &inferstat__run_description__descriptor);
    if (!to || !about)
        return NULL;
    to->protocol = hello->protocol;
    to->run = codec_pack_bytes(hello->run, MESSAGE_RUN_SIZE);
    to->description = about;
    about->pid = hello->pid;
    about->started_ns = hello->started_ns;
    about->cpu_count = hello->cpu_count;
    about->host_memory_bytes = hello->host_memory_bytes;
    about->device_count = hello->device_count;
    for (size_t i = 0; i < HELLO_TEXTS; i++) {
        struct wire_bytes text;
        memcpy(&text, (const char *)hello + hello_texts[i].in_message, sizeof text);
        char *packed = codec_pack_text(arena, text);
        memcpy((char *)about + hello_texts[i].on_wire, &packed, sizeof packed);
    }
    to->n_streams = hello->stream_count;
    to->streams = pack_streams(arena, hello->streams, &to->n_streams);
    to->replay = hello->replay;
    return to;
}

Inferstat__Batch *codec_pack_batch(struct arena *arena, const struct message_batch *batch)
{
    Inferstat__Batch *to = codec_new(arena, &inferstat__batch__descriptor);
    if (!to)
        return NULL;
    to->run = codec_pack_bytes(batch->run, MESSAGE_RUN_SIZE);
    to->sequence = batch->sequence;
    to->sent_ns = batch->sent_ns;
    to->stream = batch->stream;
    to->first = batch->first;
    to->last = batch->last;
    to->names_first = batch->names_first;
    to->n_names = batch->name_count;
    to->names = arena_array(arena, &to->n_names, sizeof *to->names);
    for (size_t i = 0; i < to->n_names; i++)
        to->names[i] = codec_pack_text(arena, batch->names[i]);
    codec_pack_tables(arena, to, batch);
    to->n_dropped = batch->drop_count;
    to->dropped = pack_drops(arena, batch->drops, &to->n_dropped);
    to->n_streams = batch->stream_count;
    to->streams = pack_streams(arena, batch->streams, &to->n_streams);
    to->activity = codec_pack_text(arena, batch->activity);
    to->clock_offset_ns = batch->clock_offset_ns;
    to->clock_error_ns = batch->clock_error_ns;
    return to;
}

static void pack_activities(struct arena *arena, Inferstat__Goodbye *to,
                            const struct message_goodbye *goodbye)
{
    to->n_activities = goodbye->activity_count;
    to->activities = codec_list(arena, &to->n_activities, &inferstat__stream_activity__descriptor);
    for (size_t i = 0; i < to->n_activities; i++) {
        to->activities[i]->stream = goodbye->activities[i].stream;
        to->activities[i]->activity = codec_pack_text(arena, goodbye->activities[i].text);
        to->activities[i]->since_ns = goodbye->activities[i].since_ns;
    }
}

Inferstat__Goodbye *codec_pack_goodbye(struct arena *arena, const struct message_goodbye *goodbye)
{
    Inferstat__Goodbye *to = codec_new(arena, &inferstat__goodbye__descriptor);
    if (!to)
        return NULL;
    to->run = codec_pack_bytes(goodbye->run, MESSAGE_RUN_SIZE);
    to->sequence = goodbye->sequence;
    to->ended_ns = goodbye->ended_ns;
    to->n_streams = goodbye->stream_count;
    to->streams = pack_streams(arena, goodbye->streams, &to->n_streams);
    to->n_dropped = goodbye->drop_count;
    to->dropped = pack_drops(arena, goodbye->drops, &to->n_dropped);
    to->killed = goodbye->killed;
    pack_activities(arena, to, goodbye);
    return to;
}

static void pack_next(struct arena *arena, Inferstat__Ack *to, const struct delivery_ack *ack)
{
    to->n_next = ack->next_count;
    to->next = codec_list(arena, &to->n_next, &inferstat__stream_next__descriptor);
    for (size_t i = 0; i < to->n_next; i++) {
        to->next[i]->stream = ack->next[i].stream;
        to->next[i]->next = ack->next[i].next;
    }
}

static void pack_refused(struct arena *arena, Inferstat__Ack *to, const struct message_ack *ack)
{
    to->n_refused = ack->refused_count;
    to->refused = codec_list(arena, &to->n_refused, &inferstat__refused__descriptor);
    for (size_t i = 0; i < to->n_refused; i++) {
        to->refused[i]->stream = ack->refused[i].stream;
        to->refused[i]->first = ack->refused[i].first;
        to->refused[i]->last = ack->refused[i].last;
        to->refused[i]->reason = codec_pack_text(arena, ack->refused[i].reason);
    }
}

Inferstat__Ack *codec_pack_ack(struct arena *arena, const struct message_ack *ack)
{
    Inferstat__Ack *to = codec_new(arena, &inferstat__ack__descriptor);
    if (!to)
        return NULL;
    to->protocol = ack->protocol;
    to->store = codec_pack_bytes(ack->delivery.store, sizeof ack->delivery.store);
    to->run = codec_pack_bytes(ack->run, MESSAGE_RUN_SIZE);
    to->sequence = ack->delivery.sequence;
    pack_next(arena, to, &ack->delivery);
    to->names_known = ack->delivery.names_known;
    to->credit = ack->delivery.credit;
    to->hello_wanted = ack->delivery.hello_wanted;
    to->closed = ack->delivery.closed;
    pack_refused(arena, to, ack);
    to->sent_ns = ack->sent_ns;
    to->echo_sent_ns = ack->echo_sent_ns;
    to->error = codec_pack_text(arena, ack->error);
    return to;
}

// ---- Reading ---------------------------------------------------------------------
//
// Functions that return a text say what is at fault, NULL when nothing is.

static const char *read_run(unsigned char run[MESSAGE_RUN_SIZE], ProtobufCBinaryData from)
{
    if (from.len != MESSAGE_RUN_SIZE)
        return "the run's identity is not 16 bytes";
    memcpy(run, from.data, MESSAGE_RUN_SIZE);
    if (memcmp(run, no_bytes, MESSAGE_RUN_SIZE) == 0)
        return "the run's identity is all zero";
    return NULL;
}

static bool range_is_sound(uint64_t first, uint64_t last)
{
    return first >= 1 && first <= last && last <= MESSAGE_NUMBER_MAX;
}

static const char *read_streams(struct arena *arena, const struct delivery_stream **streams,
                                size_t *count, Inferstat__StreamState *const *from, size_t n)
{
    if (n > DELIVERY_STREAMS_MAX)
        return "more streams than a run may have";
    for (size_t i = 0; i < n; i++)
        if (from[i]->produced > MESSAGE_NUMBER_MAX || from[i]->unnumbered > MESSAGE_NUMBER_MAX)
            return "a stream's count is out of range";
    struct delivery_stream *list = arena_array(arena, &n, sizeof *list);
    for (size_t i = 0; i < n; i++)
        list[i] = (struct delivery_stream){.stream = from[i]->stream,
                                           .produced = from[i]->produced,
                                           .unnumbered = from[i]->unnumbered};
    *streams = list;
    *count = n;
    return NULL;
}

static const char *read_drops(struct arena *arena, const struct wire_drop **drops, size_t *count,
                              Inferstat__DroppedRange *const *from, size_t n)
{
    if (n > DELIVERY_DROPS_MAX)
        return "more dropped ranges than a message may have";
    for (size_t i = 0; i < n; i++) {
        if (!range_is_sound(from[i]->first, from[i]->last))
            return "a dropped range makes no sense";
        if (!codec_text_is_sound(codec_read_text(from[i]->detail), MESSAGE_TEXT_SIZE_MAX))
            return "a dropped range's detail is too long or not UTF-8";
    }
    struct wire_drop *list = arena_array(arena, &n, sizeof *list);
    for (size_t i = 0; i < n; i++) {
        // A reason newer than this program is kept as one not specified.
        unsigned reason = (unsigned)from[i]->reason;
        list[i].range = (struct delivery_range){.stream = from[i]->stream,
                                                .first = from[i]->first,
                                                .last = from[i]->last,
                                                .reason = reason < DELIVERY_REASON_COUNT
                                                              ? (enum delivery_reason)reason
                                                              : DELIVERY_UNSPECIFIED,
                                                .since_ns = from[i]->since_ns,
                                                .until_ns = from[i]->until_ns};
        list[i].detail = codec_read_text(from[i]->detail);
    }
    *drops = list;
    *count = n;
    return NULL;
}

static bool count_is_sound(int64_t count)
{
    return count >= 0 && count <= MESSAGE_VALUE_MAX;
}

static const char *read_description(struct message_hello *hello,
                                    const Inferstat__RunDescription *about)
{
    if (!about)
        return "the run's description is missing";
    hello->pid = about->pid;
    hello->started_ns = about->started_ns;
    hello->cpu_count = about->cpu_count;
    hello->host_memory_bytes = about->host_memory_bytes;
    hello->device_count = about->device_count;
    for (size_t i = 0; i < HELLO_TEXTS; i++) {
        const char *packed;
        memcpy(&packed, (const char *)about + hello_texts[i].on_wire, sizeof packed);
        struct wire_bytes text = codec_read_text(packed);
        if (!codec_text_is_sound(text, MESSAGE_TEXT_SIZE_MAX))
            return "a text of the run's description is too long or not UTF-8";
        memcpy((char *)hello + hello_texts[i].in_message, &text, sizeof text);
    }
    if (hello->host.size < 1 || hello->host.size > MESSAGE_NAME_SIZE_MAX)
        return "the host's name is empty or too long";
    if (!count_is_sound(hello->pid) || !count_is_sound(hello->cpu_count) ||
        !count_is_sound(hello->host_memory_bytes) || !count_is_sound(hello->device_count))
        return "a count in the run's description cannot be";
    return NULL;
}

enum status codec_read_hello(struct arena *arena, struct message_hello *hello,
                             const Inferstat__Hello *from, struct error *err)
{
    hello->protocol = from->protocol;
    hello->replay = from->replay;
    const char *fault = read_run(hello->run, from->run);
    if (!fault)
        fault = read_description(hello, from->description);
    if (!fault)
        fault = read_streams(arena, &hello->streams, &hello->stream_count, from->streams,
                             from->n_streams);
    return fault ? error_set(err, STATUS_INVALID, "Hello: %s", fault) : STATUS_OK;
}

static const char *read_activities(struct arena *arena, struct message_goodbye *goodbye,
                                   const Inferstat__Goodbye *from)
{
    size_t count = from->n_activities;
    if (count > DELIVERY_STREAMS_MAX)
        return "more activities than a run may have streams";
    struct wire_activity *activities = arena_array(arena, &count, sizeof *activities);
    for (size_t i = 0; i < count; i++) {
        const Inferstat__StreamActivity *item = from->activities[i];
        activities[i] = (struct wire_activity){.stream = item->stream,
                                               .text = codec_read_text(item->activity),
                                               .since_ns = item->since_ns};
        if (!codec_text_is_sound(activities[i].text, MESSAGE_TEXT_SIZE_MAX))
            return "an activity is too long or not UTF-8";
    }
    goodbye->activities = activities;
    goodbye->activity_count = count;
    return NULL;
}

enum status codec_read_goodbye(struct arena *arena, struct message_goodbye *goodbye,
                               const Inferstat__Goodbye *from, struct error *err)
{
    goodbye->sequence = from->sequence;
    goodbye->ended_ns = from->ended_ns;
    goodbye->killed = from->killed;
    const char *fault = read_run(goodbye->run, from->run);
    if (!fault)
        fault = read_streams(arena, &goodbye->streams, &goodbye->stream_count, from->streams,
                             from->n_streams);
    if (!fault)
        fault = read_drops(arena, &goodbye->drops, &goodbye->drop_count, from->dropped,
                           from->n_dropped);
    if (!fault)
        fault = read_activities(arena, goodbye, from);
    return fault ? error_set(err, STATUS_INVALID, "Goodbye: %s", fault) : STATUS_OK;
}

// Where a Batch belongs; without it, it cannot even be refused.
static const char *read_batch_address(struct message_batch *batch, const Inferstat__Batch *from)
{
    batch->sequence = from->sequence;
    batch->sent_ns = from->sent_ns;
    batch->stream = from->stream;
    batch->first = from->first;
    batch->last = from->last;
    if (from->first == 0 && from->last == 0)
        return from->n_tables ? "records without numbers" : NULL;
    if (!range_is_sound(from->first, from->last))
        return "its range makes no sense";
    if (from->last - from->first >= DELIVERY_BATCH_MAX)
        return "more records than a batch may have";
    return NULL;
}

static const char *read_names(struct arena *arena, struct message_batch *batch,
                              const Inferstat__Batch *from)
{
    size_t count = from->n_names;
    if (count == 0)
        return NULL;
    if (count > DELIVERY_NAMES_MAX)
        return "more names than a message may have";
    if (from->names_first < 1 || from->names_first > MESSAGE_NAMES_MAX - count + 1)
        return "ids of names are out of range";
    struct wire_bytes *names = arena_array(arena, &count, sizeof *names);
    for (size_t i = 0; i < count; i++) {
        names[i] = codec_read_text(from->names[i]);
        if (names[i].size < 1 || !codec_text_is_sound(names[i], MESSAGE_NAME_SIZE_MAX))
            return "a name is empty, too long or not UTF-8";
    }
    batch->names_first = from->names_first;
    batch->names = names;
    batch->name_count = count;
    return NULL;
}

static const char *read_activity(struct message_batch *batch, const Inferstat__Batch *from)
{
    struct wire_bytes activity = codec_read_text(from->activity);
    if (!codec_text_is_sound(activity, MESSAGE_TEXT_SIZE_MAX))
        return "the activity is too long or not UTF-8";
    batch->activity = activity;
    return NULL;
}

// An error that cannot be is no fault of the records: there is no estimate then.
static void read_clock(struct message_batch *batch, const Inferstat__Batch *from)
{
    if (from->clock_error_ns <= 0)
        return;
    batch->clock_offset_ns = from->clock_offset_ns;
    batch->clock_error_ns = from->clock_error_ns;
}

enum status codec_read_batch(struct arena *arena, struct message_batch *batch,
                             const Inferstat__Batch *from, struct error *err)
{
    const char *fault = read_run(batch->run, from->run);
    if (!fault)
        fault = read_batch_address(batch, from);
    if (fault)
        return error_set(err, STATUS_INVALID, "Batch: %s", fault);

    read_clock(batch, from);

    // Each part is read whatever the others are; the first fault is the reason.
    const char *faults[] = {
        read_names(arena, batch, from),
        read_drops(arena, &batch->drops, &batch->drop_count, from->dropped, from->n_dropped),
        read_streams(arena, &batch->streams, &batch->stream_count, from->streams, from->n_streams),
        read_activity(batch, from),
        from->first ? codec_read_tables(arena, batch, from) : NULL,
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0] && !batch->fault; i++)
        batch->fault = faults[i];
    if (batch->fault && batch->first == 0)
        return error_set(err, STATUS_INVALID, "Batch: %s", batch->fault);
    if (batch->fault) {
        batch->tables = NULL;
        batch->table_count = 0;
    }
    return STATUS_OK;
}

static struct wire_bytes copy_bytes(struct arena *arena, struct wire_bytes from)
{
    char *copy = from.size ? arena_alloc(arena, from.size) : NULL;
    if (!copy)
        return (struct wire_bytes){0};
    memcpy(copy, from.bytes, from.size);
    return (struct wire_bytes){from.size, copy};
}

void codec_copy_faulty(struct arena *arena, struct message_batch *batch)
{
    struct wire_bytes *names = arena_array(arena, &batch->name_count, sizeof *names);
    for (size_t i = 0; i < batch->name_count; i++)
        names[i] = copy_bytes(arena, batch->names[i]);
    batch->names = names;
    struct wire_drop *drops = arena_array(arena, &batch->drop_count, sizeof *drops);
    for (size_t i = 0; i < batch->drop_count; i++) {
        drops[i].range = batch->drops[i].range;
        drops[i].detail = copy_bytes(arena, batch->drops[i].detail);
    }
    batch->drops = drops;
    struct delivery_stream *streams = arena_array(arena, &batch->stream_count, sizeof *streams);
    if (streams)
        memcpy(streams, batch->streams, batch->stream_count * sizeof *streams);
    batch->streams = streams;
    batch->activity = copy_bytes(arena, batch->activity);
    const size_t size = strlen(batch->fault) + 1;
    char *fault = arena_alloc(arena, size);
    if (fault)
        memcpy(fault, batch->fault, size);
    batch->fault = fault;
}

static const char *read_next(struct arena *arena, struct delivery_ack *ack,
                             const Inferstat__Ack *from)
{
    size_t count = from->n_next;
    if (count > DELIVERY_STREAMS_MAX)
        return "more streams than a run may have";
    struct delivery_next *next = arena_array(arena, &count, sizeof *next);
    for (size_t i = 0; i < count; i++) {
        if (from->next[i]->next < 1 || from->next[i]->next > MESSAGE_NUMBER_MAX + 1)
            return "the number wanted next is out of range";
        next[i] =
            (struct delivery_next){.stream = from->next[i]->stream, .next = from->next[i]->next};
    }
    ack->next = next;
    ack->next_count = count;
    return NULL;
}

static const char *read_refused(struct arena *arena, struct message_ack *ack,
                                const Inferstat__Ack *from)
{
    size_t count = from->n_refused;
    if (count > DELIVERY_DROPS_MAX)
        return "more refused ranges than a message may have";
    struct wire_refused *refused = arena_array(arena, &count, sizeof *refused);
    for (size_t i = 0; i < count; i++) {
        const Inferstat__Refused *item = from->refused[i];
        refused[i] = (struct wire_refused){.stream = item->stream,
                                           .first = item->first,
                                           .last = item->last,
                                           .reason = codec_read_text(item->reason)};
        if (!range_is_sound(item->first, item->last))
            return "a refused range makes no sense";
        if (!codec_text_is_sound(refused[i].reason, MESSAGE_TEXT_SIZE_MAX))
            return "a refused range's reason is too long or not UTF-8";
    }
    ack->refused = refused;
    ack->refused_count = count;
    return NULL;
}

enum status codec_read_ack(struct arena *arena, struct message_ack *ack, const Inferstat__Ack *from,
                           struct error *err)
{
    ack->protocol = from->protocol;
    ack->delivery.protocol = from->protocol;
    ack->sent_ns = from->sent_ns;
    ack->echo_sent_ns = from->echo_sent_ns;
    ack->error = codec_read_text(from->error);
    ack->delivery.sequence = from->sequence;
    ack->delivery.names_known = from->names_known;
    ack->delivery.credit = from->credit;
    ack->delivery.hello_wanted = from->hello_wanted;
    ack->delivery.closed = from->closed;
    const char *fault = NULL;
    if (from->store.len != sizeof ack->delivery.store || from->run.len != MESSAGE_RUN_SIZE)
        fault = "the store's or the run's identity is not 16 bytes";
    else if (from->names_known > MESSAGE_NAMES_MAX)
        fault = "more names than a run may have";
    else if (!codec_text_is_sound(ack->error, MESSAGE_TEXT_SIZE_MAX))
        fault = "the error is too long or not UTF-8";
    else
        fault = read_next(arena, &ack->delivery, from);
    if (!fault)
        fault = read_refused(arena, ack, from);
    if (fault)
        return error_set(err, STATUS_INVALID, "Ack: %s", fault);
    memcpy(ack->delivery.store, from->store.data, sizeof ack->delivery.store);
    memcpy(ack->run, from->run.data, MESSAGE_RUN_SIZE);
    return STATUS_OK;
}
