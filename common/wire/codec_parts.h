// Internal interface of the protobuf codec (codec.h): shared by the codec*.c files.  Only they use
// the code that protoc-c generates.
//
// A body is one variant of the union in struct message.  One function copies a body in both
// directions: packing copies it to the structure of protobuf-c, reading copies it from that
// structure and validates it.  Texts and arrays are allocated in the arena (arena.h), or borrowed
// where possible.  If an allocation in the arena fails, the field stays empty and is no fault:
// codec_encode and codec_decode check arena_failed after the body was copied.
//
// A fault is a text that says what is invalid; it is static or in the arena.  Functions that return
// a fault return NULL if everything is valid, and always when packing.  `wire` names a field of
// protobuf-c, `own` the same field in message.h.
#pragma once

#include "common/wire/arena.h"
#include "common/wire/message.h"
#include "proto/inferstat.pb-c.h"

struct codec {
    struct arena *arena;
    bool packing; // else reading
};

// Copies a number in the codec's direction: from `own` to `wire`, or from `wire` to `own`.
#define CODEC_COPY(codec, wire, own)                                                               \
    ((codec)->packing ? (void)((wire) = (own)) : (void)((own) = (wire)))

// ---- Texts and bytes (codec.c) ---------------------------------------------------

// A NUL-terminated copy; "" if the allocation fails.
char *codec_pack_text(struct arena *arena, struct wire_bytes text);

// Casts const away: protobuf-c only reads through its pointers, but does not declare them const.
static inline void *codec_borrow(const void *memory)
{
    return (void *)(uintptr_t)memory;
}

static inline ProtobufCBinaryData codec_pack_bytes(const void *bytes, size_t size)
{
    return (ProtobufCBinaryData){.len = size, .data = codec_borrow(bytes)};
}

// A decoded text with its length on the wire.  protobuf-c stores no length, so a NUL inside a text
// would truncate it; the arena knows the length, because protobuf-c allocated the text there.
struct wire_bytes codec_read_text(const char *text);

// True if `text` is valid UTF-8 without NUL, of at most `size_max` bytes.
bool codec_text_is_sound(struct wire_bytes text, size_t size_max);

// Copies a text.  When reading, returns `fault` and leaves `own` empty if codec_text_is_sound
// rejects the text, of at most MESSAGE_TEXT_SIZE_MAX bytes.
const char *codec_copy_text(const struct codec *codec, char **wire, struct wire_bytes *own,
                            const char *fault);

// ---- Structures of protobuf-c (codec.c) --------------------------------------------

// Allocates and initialises a structure of `type`; NULL if the allocation fails.
void *codec_new(struct arena *arena, const ProtobufCMessageDescriptor *type);

// Allocates an array of pointers to `*count` initialised structures of `type`; sets *count to 0 if
// an allocation fails.
void *codec_new_list(struct arena *arena, size_t *count, const ProtobufCMessageDescriptor *type);

struct codec_list {
    const ProtobufCMessageDescriptor *type; // of an element in `wire`
    size_t own_size;                        // bytes of an element in `own`
    size_t max;                             // elements that a message may have
    const char *too_many;                   // the fault if there are more than `max`
    const char *(*copy)(const struct codec *codec, void *wire, void *own); // one element
};

// Copies a list.  In protobuf-c it is an array of pointers, in message.h an array of structures;
// `wire` and `own` are the addresses of the pointers to these arrays.  A list with a fault is left
// empty.
const char *codec_copy_list(const struct codec *codec, const struct codec_list *list, void *wire,
                            size_t *wire_count, void *own, size_t *own_count);

// ---- Bodies ------------------------------------------------------------------------

// Copies one body; `own` is the variant in struct message.  A reader that runs out of memory
// outside the arena, as codec_copy_reply may, returns the fault status_text(STATUS_NOMEM).
typedef const char *codec_copy_body(const struct codec *codec, void *wire, void *own);

// codec_ingest.c.  If the run, stream and record numbers of a batch are valid but its content is
// not, codec_copy_batch returns NULL, sets batch.fault and leaves the tables empty (codec_decode in
// codec.h).
codec_copy_body codec_copy_hello, codec_copy_batch, codec_copy_goodbye, codec_copy_ack;

// codec_query.c
codec_copy_body codec_copy_query, codec_copy_reply, codec_copy_live_credit, codec_copy_live_records;

// codec_table.c: the columnar tables of a batch.  codec_read_tables decodes the arrays of `from` in
// place, in the memory of protobuf-c.
void codec_pack_tables(struct arena *arena, Inferstat__Batch *to,
                       const struct message_batch *batch);
const char *codec_read_tables(struct arena *arena, struct message_batch *batch,
                              const Inferstat__Batch *from);
