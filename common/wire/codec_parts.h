// Internal interface of the protobuf codec (codec*.c, the only users of the generated code).
//
// A body is one variant of the message union.  One function copies a body in both directions:
// to the protobuf-c structure when packing, from it when reading, which validates.  Texts and
// arrays are allocated in the arena, or borrowed where possible.  A field stays empty if an
// allocation fails; the caller checks arena_failed at the end.
//
// Functions that return a text say what is at fault, NULL when nothing is; packing has no faults.
#ifndef INFERSTAT_WIRE_CODEC_PARTS_H
#define INFERSTAT_WIRE_CODEC_PARTS_H

#include "common/wire/arena.h"
#include "common/wire/message.h"
#include "proto/inferstat.pb-c.h"

struct codec {
    struct arena *arena;
    bool packing; // else reading
};

// Copies a number between the protobuf-c structure and ours.
#define CODEC_COPY(codec, wire, own)                                                               \
    ((codec)->packing ? (void)((wire) = (own)) : (void)((own) = (wire)))

// The fault, unless packing or `sound`.
static inline const char *codec_check(const struct codec *codec, bool sound, const char *fault)
{
    return codec->packing || sound ? NULL : fault;
}

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

// A decoded text with its length on the wire, taken from the arena: protobuf-c stores no length, so
// that a NUL inside a text would truncate it.
struct wire_bytes codec_read_text(const char *text);

// True for at most `size_max` bytes of UTF-8 without NUL.
bool codec_text_is_sound(struct wire_bytes text, size_t size_max);

// Copies a text; one that is not sound is left empty, and is the fault.
const char *codec_copy_text(const struct codec *codec, char **wire, struct wire_bytes *own,
                            size_t size_max, const char *fault);

// ---- Structures of protobuf-c (codec.c) --------------------------------------------

// Allocates and initialises a structure of `type`; NULL if the allocation fails.
void *codec_new(struct arena *arena, const ProtobufCMessageDescriptor *type);

// Allocates an array of pointers to `*count` initialised structures of `type`; sets *count to 0 if
// an allocation fails.
void *codec_new_list(struct arena *arena, size_t *count, const ProtobufCMessageDescriptor *type);

// A list of structures in a message.
struct codec_list {
    const ProtobufCMessageDescriptor *type; // of the elements on the wire
    size_t own_size;                        // of an element of ours
    size_t max;                             // elements that a message may have
    const char *too_many;                   // the fault of more
    const char *(*copy)(const struct codec *codec, void *wire, void *own); // one element
};

// Copies a list: an array of pointers on the wire, an array of elements of ours.  `wire` and
// `own` are the addresses of the pointers to the arrays.  A list at fault is left empty.
const char *codec_copy_list(const struct codec *codec, const struct codec_list *list, void *wire,
                            size_t *wire_count, void *own, size_t *own_count);

// ---- Bodies ------------------------------------------------------------------------

// `wire` is the protobuf-c structure, `own` the variant of the message union.  The fault
// status_text(STATUS_NOMEM) means: out of memory.
typedef const char *codec_copy_body(const struct codec *codec, void *wire, void *own);

// codec_ingest.c.  A batch with an invalid content but a valid address has no fault, but
// batch.fault set and no tables.
codec_copy_body codec_copy_hello, codec_copy_batch, codec_copy_goodbye, codec_copy_ack;

// codec_query.c
codec_copy_body codec_copy_query, codec_copy_reply, codec_copy_live_credit, codec_copy_live_records;

// codec_table.c: the tables of a batch.  codec_read_tables decodes the arrays of `from` in place.
void codec_pack_tables(struct arena *arena, Inferstat__Batch *to,
                       const struct message_batch *batch);
const char *codec_read_tables(struct arena *arena, struct message_batch *batch,
                              const Inferstat__Batch *from);

#endif
