#include "common/wire/codec.h"

#include <stdlib.h>
#include <string.h>

#include "common/core/base/text.h"
#include "common/wire/codec_parts.h"

// Memory a decoded message may take.  A sound frame of the largest size needs a
// fraction; one made of millions of empty parts would need a hundred times more.
static const size_t decode_limit = (size_t)4 * MESSAGE_SIZE_MAX;

// The same for a frame of an untrusted peer: numbers of one byte on the wire take eight.
static const size_t untrusted_base = (size_t)4 * 1024 * 1024;
enum { UNTRUSTED_TIMES = 8 };

char *codec_pack_text(struct arena *arena, struct wire_bytes text)
{
    char *copy = text.size ? arena_alloc(arena, text.size + 1) : NULL;
    if (!copy)
        return codec_borrow(protobuf_c_empty_string);
    memcpy(copy, text.bytes, text.size);
    copy[text.size] = '\0';
    return copy;
}

struct wire_bytes codec_read_text(const char *text)
{
    if (text == protobuf_c_empty_string)
        return (struct wire_bytes){0};
    return (struct wire_bytes){.size = arena_piece_size(text) - 1, .bytes = text};
}

bool codec_text_is_sound(struct wire_bytes text, size_t size_max)
{
    return text.size <= size_max && text_is_utf8(text.bytes, text.size);
}

void *codec_new(struct arena *arena, const ProtobufCMessageDescriptor *type)
{
    size_t one = 1;
    void *message = arena_array(arena, &one, type->sizeof_message);
    if (message)
        protobuf_c_message_init(type, message);
    return message;
}

void *codec_list(struct arena *arena, size_t *count, const ProtobufCMessageDescriptor *type)
{
    void **list = arena_array(arena, count, sizeof *list);
    char *items = arena_array(arena, count, type->sizeof_message);
    for (size_t i = 0; i < *count; i++) {
        list[i] = items + i * type->sizeof_message;
        protobuf_c_message_init(type, list[i]);
    }
    return list;
}

// ---- Encoding --------------------------------------------------------------------

// Points the envelope at the packed body of the message.
static void pack_body(struct arena *arena, Inferstat__Envelope *envelope,
                      const struct message *message)
{
    envelope->body_case = (Inferstat__Envelope__BodyCase)message->kind;
    switch (message->kind) {
    case MESSAGE_HELLO:
        envelope->hello = codec_pack_hello(arena, &message->hello);
        break;
    case MESSAGE_BATCH:
        envelope->batch = codec_pack_batch(arena, &message->batch);
        break;
    case MESSAGE_GOODBYE:
        envelope->goodbye = codec_pack_goodbye(arena, &message->goodbye);
        break;
    case MESSAGE_ACK:
        envelope->ack = codec_pack_ack(arena, &message->ack);
        break;
    case MESSAGE_QUERY:
        envelope->query = codec_pack_query(arena, &message->query);
        break;
    case MESSAGE_REPLY:
        envelope->reply = codec_pack_reply(arena, &message->reply);
        break;
    case MESSAGE_LIVE_CREDIT:
        envelope->live_credit = codec_pack_live_credit(arena, &message->live_credit);
        break;
    case MESSAGE_LIVE_RECORDS:
        envelope->live_records = codec_pack_live_records(arena, &message->live_records);
        break;
    }
}

static enum status pack_envelope(unsigned char **out, size_t *size,
                                 const Inferstat__Envelope *envelope, struct error *err)
{
    size_t needed = protobuf_c_message_get_packed_size(&envelope->base);
    if (needed > MESSAGE_SIZE_MAX)
        return error_set(err, STATUS_FULL, "message: %zu bytes, the limit is %d", needed,
                         MESSAGE_SIZE_MAX);
    unsigned char *bytes = malloc(needed ? needed : 1);
    if (!bytes)
        return error_no_memory(err, "message");
    *size = protobuf_c_message_pack(&envelope->base, bytes);
    *out = bytes;
    return STATUS_OK;
}

enum status codec_encode(unsigned char **out, size_t *size, const struct message *message,
                         struct error *err)
{
    struct arena *arena = NULL;
    if (arena_new(&arena, 4096, SIZE_MAX / 2) != STATUS_OK)
        return error_no_memory(err, "message");
    Inferstat__Envelope envelope = INFERSTAT__ENVELOPE__INIT;
    pack_body(arena, &envelope, message);
    enum status status = arena_failed(arena) ? error_no_memory(err, "message")
                                             : pack_envelope(out, size, &envelope, err);
    arena_free(arena);
    return status;
}

// ---- Decoding --------------------------------------------------------------------

static void *allocate(void *arena, size_t size)
{
    return arena_alloc(arena, size);
}

static void release(void *arena, void *piece)
{
    (void)arena; // gives everything back at once
    (void)piece;
}

static enum status read_body(struct arena *arena, struct message *message,
                             const Inferstat__Envelope *envelope, struct error *err)
{
    message->kind = (enum message_kind)envelope->body_case;
    switch (message->kind) {
    case MESSAGE_HELLO:
        return codec_read_hello(arena, &message->hello, envelope->hello, err);
    case MESSAGE_BATCH:
        return codec_read_batch(arena, &message->batch, envelope->batch, err);
    case MESSAGE_GOODBYE:
        return codec_read_goodbye(arena, &message->goodbye, envelope->goodbye, err);
    case MESSAGE_ACK:
        return codec_read_ack(arena, &message->ack, envelope->ack, err);
    case MESSAGE_QUERY:
        return codec_read_query(&message->query, envelope->query, err);
    case MESSAGE_REPLY:
        return codec_read_reply(&message->reply, envelope->reply, err);
    case MESSAGE_LIVE_CREDIT:
        return codec_read_live_credit(&message->live_credit, envelope->live_credit, err);
    case MESSAGE_LIVE_RECORDS:
        return codec_read_live_records(&message->live_records, envelope->live_records, err);
    }
    return error_set(err, STATUS_INVALID, "message: of no known kind");
}

// What a failed request for memory means: ours to regret, or theirs.
static enum status memory_status(const struct arena *arena, struct error *err)
{
    if (arena_over_limit(arena))
        return error_set(err, STATUS_INVALID, "message: needs too much memory for its size");
    return error_no_memory(err, "message");
}

static enum status unpack(struct arena *arena, struct message *message, const void *bytes,
                          size_t size, struct error *err)
{
    ProtobufCAllocator allocator = {.alloc = allocate, .free = release, .allocator_data = arena};
    const Inferstat__Envelope *envelope = inferstat__envelope__unpack(&allocator, size, bytes);
    if (!envelope && arena_failed(arena))
        return memory_status(arena, err);
    if (!envelope)
        return error_set(err, STATUS_INVALID, "message: %zu bytes that are not an Envelope", size);
    enum status status = read_body(arena, message, envelope, err);
    if (status == STATUS_OK && arena_failed(arena))
        return memory_status(arena, err);
    return status;
}

// Frees what was decoded; only whose it was stays.
static void fail(struct message *message)
{
    unsigned char run[MESSAGE_RUN_SIZE] = {0};
    if (message->kind == MESSAGE_HELLO)
        memcpy(run, message->hello.run, sizeof run);
    else if (message->kind == MESSAGE_BATCH)
        memcpy(run, message->batch.run, sizeof run);
    else if (message->kind == MESSAGE_GOODBYE)
        memcpy(run, message->goodbye.run, sizeof run);
    message_free(message);
    memcpy(message->failed_run, run, sizeof run);
}

static enum status decode(struct message *message, const void *bytes, size_t size, size_t limit,
                          struct error *err)
{
    memset(message, 0, sizeof *message);
    if (size > MESSAGE_SIZE_MAX)
        return error_set(err, STATUS_INVALID, "message: %zu bytes, the limit is %d", size,
                         MESSAGE_SIZE_MAX);
    struct arena *arena = NULL;
    if (arena_new(&arena, size * 4, limit) != STATUS_OK)
        return error_no_memory(err, "message");
    message->memory = arena;
    enum status status = unpack(arena, message, bytes, size, err);
    if (status != STATUS_OK)
        fail(message);
    return status;
}

enum status codec_decode(struct message *message, const void *bytes, size_t size, struct error *err)
{
    return decode(message, bytes, size, decode_limit, err);
}

// Moves what is left of a batch at fault into an arena of its own.
static enum status shrink(struct message *message, struct error *err)
{
    struct arena *small = NULL;
    if (arena_new(&small, 0, decode_limit) != STATUS_OK)
        return error_no_memory(err, "message");
    codec_copy_faulty(small, &message->batch);
    enum status status = arena_failed(small) ? memory_status(small, err) : STATUS_OK;
    arena_free(message->memory);
    message->memory = small;
    if (status != STATUS_OK)
        message_free(message);
    return status;
}

enum status codec_decode_untrusted(struct message *message, const void *bytes, size_t size,
                                   struct error *err)
{
    const size_t limit = untrusted_base + UNTRUSTED_TIMES * (size <= MESSAGE_SIZE_MAX ? size : 0);
    enum status status = decode(message, bytes, size, limit, err);
    if (status == STATUS_OK && message->kind == MESSAGE_BATCH && message->batch.fault)
        status = shrink(message, err);
    return status;
}

size_t message_memory(const struct message *message)
{
    return message->memory ? arena_size(message->memory) : 0;
}

void message_free(struct message *message)
{
    if (message->kind == MESSAGE_REPLY)
        result_free(message->reply.result);
    if (message->kind == MESSAGE_LIVE_RECORDS)
        result_free(message->live_records.result);
    arena_free(message->memory);
    memset(message, 0, sizeof *message);
}
