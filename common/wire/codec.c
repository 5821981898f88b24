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

const char *codec_copy_text(const struct codec *codec, char **wire, struct wire_bytes *own,
                            const char *fault)
{
    if (codec->packing) {
        *wire = codec_pack_text(codec->arena, *own);
        return NULL;
    }
    const struct wire_bytes text = codec_read_text(*wire);
    const bool is_sound = codec_text_is_sound(text, MESSAGE_TEXT_SIZE_MAX);
    *own = is_sound ? text : (struct wire_bytes){0};
    return is_sound ? NULL : fault;
}

void *codec_new(struct arena *arena, const ProtobufCMessageDescriptor *type)
{
    size_t one = 1;
    void *message = arena_array(arena, &one, type->sizeof_message);
    if (message)
        protobuf_c_message_init(type, message);
    return message;
}

void *codec_new_list(struct arena *arena, size_t *count, const ProtobufCMessageDescriptor *type)
{
    void **list = arena_array(arena, count, sizeof *list);
    char *items = arena_array(arena, count, type->sizeof_message);
    for (size_t i = 0; i < *count; i++) {
        list[i] = items + i * type->sizeof_message;
        protobuf_c_message_init(type, list[i]);
    }
    return list;
}

const char *codec_copy_list(const struct codec *codec, const struct codec_list *list, void *wire,
                            size_t *wire_count, void *own, size_t *own_count)
{
    size_t count = codec->packing ? *own_count : *wire_count;
    void **packed;
    char *items;
    if (codec->packing) {
        packed = codec_new_list(codec->arena, &count, list->type);
        memcpy(&items, own, sizeof items);
        memcpy(wire, &packed, sizeof packed);
        *wire_count = count;
    } else if (count <= list->max) {
        memcpy(&packed, wire, sizeof packed);
        items = arena_array(codec->arena, &count, list->own_size);
    } else {
        return list->too_many;
    }
    for (size_t i = 0; i < count; i++) {
        const char *fault = list->copy(codec, packed[i], items + i * list->own_size);
        if (fault)
            return fault;
    }
    if (!codec->packing) {
        memcpy(own, &items, sizeof items);
        *own_count = count;
    }
    return NULL;
}

// The variants of the message union.
static const struct body {
    const ProtobufCMessageDescriptor *type;
    codec_copy_body *copy;
} bodies[] = {
    [MESSAGE_HELLO] = {&inferstat__hello__descriptor, codec_copy_hello},
    [MESSAGE_BATCH] = {&inferstat__batch__descriptor, codec_copy_batch},
    [MESSAGE_GOODBYE] = {&inferstat__goodbye__descriptor, codec_copy_goodbye},
    [MESSAGE_ACK] = {&inferstat__ack__descriptor, codec_copy_ack},
    [MESSAGE_QUERY] = {&inferstat__query__descriptor, codec_copy_query},
    [MESSAGE_REPLY] = {&inferstat__reply__descriptor, codec_copy_reply},
    [MESSAGE_LIVE_CREDIT] = {&inferstat__live_credit__descriptor, codec_copy_live_credit},
    [MESSAGE_LIVE_RECORDS] = {&inferstat__live_records__descriptor, codec_copy_live_records},
};

enum { BODIES = sizeof bodies / sizeof bodies[0] };

// ---- Encoding --------------------------------------------------------------------

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
    const struct codec codec = {.arena = arena, .packing = true};
    const struct body *body = &bodies[message->kind];
    Inferstat__Envelope envelope = INFERSTAT__ENVELOPE__INIT;
    envelope.body_case = (Inferstat__Envelope__BodyCase)message->kind;
    void *wire = codec_new(arena, body->type);
    memcpy(&envelope.hello, &wire, sizeof wire); // of a union of pointers
    if (wire)
        (void)body->copy(&codec, wire, codec_borrow(&message->hello)); // not changed when packed
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
    const struct codec codec = {.arena = arena};
    const unsigned kind = envelope->body_case;
    if (kind >= BODIES || !bodies[kind].copy)
        return error_set(err, STATUS_INVALID, "message: of no known kind");
    message->kind = (enum message_kind)kind;
    const char *fault = bodies[kind].copy(&codec, envelope->hello, &message->hello);
    if (!fault)
        return STATUS_OK;
    return error_set(err, fault == status_text(STATUS_NOMEM) ? STATUS_NOMEM : STATUS_INVALID,
                     "%s: %s", bodies[kind].type->short_name, fault);
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

const unsigned char *message_run(const struct message *message)
{
    return message->kind == MESSAGE_HELLO     ? message->hello.run
           : message->kind == MESSAGE_BATCH   ? message->batch.run
           : message->kind == MESSAGE_GOODBYE ? message->goodbye.run
                                              : NULL;
}

// Frees what was decoded; only whose it was stays.
static void fail(struct message *message)
{
    unsigned char run[MESSAGE_RUN_SIZE] = {0};
    if (message_run(message))
        memcpy(run, message_run(message), sizeof run);
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

// Moves what is left of a batch at fault into an arena of its own, as if it had been sent so.
static enum status shrink(struct message *message, struct error *err)
{
    const struct message_batch batch = message->batch;
    struct codec codec = {.packing = true};
    if (arena_new(&codec.arena, 0, decode_limit) != STATUS_OK)
        return error_no_memory(err, "message");
    Inferstat__Batch *wire = codec_new(codec.arena, &inferstat__batch__descriptor);
    if (wire)
        (void)codec_copy_batch(&codec, wire, codec_borrow(&batch));
    struct wire_bytes fault = {strlen(batch.fault), batch.fault};
    const char *kept_fault = codec_pack_text(codec.arena, fault);
    codec.packing = false;
    if (wire)
        (void)codec_copy_batch(&codec, wire, &message->batch);
    message->batch.fault = kept_fault;
    enum status status = arena_failed(codec.arena) ? memory_status(codec.arena, err) : STATUS_OK;
    arena_free(message->memory);
    message->memory = codec.arena;
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
