// Internal interface of the protobuf codec (codec*.c, the only users of the generated code).
//
// A body is one variant of the message union.  codec_pack_* build the protobuf-c structure of a
// body in the arena, with pointers into the message where possible.  codec_read_* validate a
// structure from the wire and fill the body.  Both leave a field empty if an allocation fails; the
// caller checks arena_failed at the end.
#ifndef INFERSTAT_WIRE_CODEC_PARTS_H
#define INFERSTAT_WIRE_CODEC_PARTS_H

#include "common/wire/arena.h"
#include "common/wire/message.h"
#include "proto/inferstat.pb-c.h"

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

// ---- Structures of protobuf-c (codec.c) --------------------------------------------

// Allocates and initialises a structure of `type`; NULL if the allocation fails.
void *codec_new(struct arena *arena, const ProtobufCMessageDescriptor *type);

// Allocates an array of pointers to `*count` initialised structures of `type`; sets *count to 0 if
// an allocation fails.
void *codec_list(struct arena *arena, size_t *count, const ProtobufCMessageDescriptor *type);

// ---- Bodies ------------------------------------------------------------------------

// codec_ingest.c
Inferstat__Hello *codec_pack_hello(struct arena *arena, const struct message_hello *hello);
Inferstat__Batch *codec_pack_batch(struct arena *arena, const struct message_batch *batch);
Inferstat__Goodbye *codec_pack_goodbye(struct arena *arena, const struct message_goodbye *goodbye);
Inferstat__Ack *codec_pack_ack(struct arena *arena, const struct message_ack *ack);
MUST_CHECK enum status codec_read_hello(struct arena *arena, struct message_hello *hello,
                                        const Inferstat__Hello *from, struct error *err);
MUST_CHECK enum status codec_read_batch(struct arena *arena, struct message_batch *batch,
                                        const Inferstat__Batch *from, struct error *err);
MUST_CHECK enum status codec_read_goodbye(struct arena *arena, struct message_goodbye *goodbye,
                                          const Inferstat__Goodbye *from, struct error *err);
MUST_CHECK enum status codec_read_ack(struct arena *arena, struct message_ack *ack,
                                      const Inferstat__Ack *from, struct error *err);

// Copies everything that a batch with a fault (batch.fault, no tables) points to into `arena`.
void codec_copy_faulty(struct arena *arena, struct message_batch *batch);

// codec_table.c: the tables of a batch.  codec_read_tables returns NULL, or the reason why they are
// invalid; it decodes the arrays of `from` in place.
void codec_pack_tables(struct arena *arena, Inferstat__Batch *to,
                       const struct message_batch *batch);
const char *codec_read_tables(struct arena *arena, struct message_batch *batch,
                              const Inferstat__Batch *from);

// codec_query.c
Inferstat__Query *codec_pack_query(struct arena *arena, const struct message_query *query);
Inferstat__Reply *codec_pack_reply(struct arena *arena, const struct message_reply *reply);
Inferstat__LiveCredit *codec_pack_live_credit(struct arena *arena,
                                              const struct message_live_credit *credit);
Inferstat__LiveRecords *codec_pack_live_records(struct arena *arena,
                                                const struct message_live_records *records);
MUST_CHECK enum status codec_read_query(struct message_query *query, const Inferstat__Query *from,
                                        struct error *err);
MUST_CHECK enum status codec_read_reply(struct message_reply *reply, const Inferstat__Reply *from,
                                        struct error *err);
MUST_CHECK enum status codec_read_live_credit(struct message_live_credit *credit,
                                              const Inferstat__LiveCredit *from, struct error *err);
MUST_CHECK enum status codec_read_live_records(struct message_live_records *records,
                                               const Inferstat__LiveRecords *from,
                                               struct error *err);

#endif
