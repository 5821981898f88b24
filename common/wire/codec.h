// Messages to bytes and back.  Any thread.
//
// Nothing from the wire is trusted: after decode, sizes, counts, enumerations,
// texts (UTF-8, no NUL), numbers and times have been checked, and a batch's
// tables cover first..last exactly, each number once, numbers rising in a table,
// column values as many as rows, of the column's type, names in 1..65535, reals
// finite, durations and other counts from 0 to MESSAGE_VALUE_MAX.
#ifndef INFERSTAT_WIRE_CODEC_H
#define INFERSTAT_WIRE_CODEC_H

#include "common/wire/message.h"

// Encodes into memory that the caller frees with free().  STATUS_FULL when the
// frame would be larger than MESSAGE_SIZE_MAX.
MUST_CHECK enum status codec_encode(unsigned char **out, size_t *size,
                                    const struct message *message, struct error *err);

// Decodes one frame.  STATUS_INVALID when it is no message at all, or one whose
// addressing (run, stream, range) makes no sense: a range longer than a batch may
// have is not refused by its numbers, since that would drop them.  A batch whose content is at
// fault decodes with batch.fault set and without tables, so that its range can
// be refused; its drops, names and streams are still there where they are sound.
// A batch without records has no range to refuse: a fault in it is STATUS_INVALID
// too.  Where that is the answer, message->failed_run says whose it was.  A query decodes whatever
// it asks, so that it can be answered: what is out of range or does not fit is left so that
// query_check refuses it. On success `message` has to be freed with message_free.
MUST_CHECK enum status codec_decode(struct message *message, const void *bytes, size_t size,
                                    struct error *err);

// The same for frames from anybody: what they decode to may take a few times
// their size, and 4 MiB, which the largest counts of the smallest things fit in.
// A frame made of empty parts would take sixty times its size.  What a batch at
// fault still has is kept apart from the rest of it, which is given back.
MUST_CHECK enum status codec_decode_untrusted(struct message *message, const void *bytes,
                                              size_t size, struct error *err);

void message_free(struct message *message);

// Bytes that a decoded message holds beside its structure.
size_t message_memory(const struct message *message);

// ---- From records to columns ---------------------------------------------------

// Collects records of one stream and lays them out as tables.  Reusable; grows
// to what it once needed.
struct table_builder;

MUST_CHECK enum status table_builder_new(struct table_builder **out);
void table_builder_free(struct table_builder *builder);
void table_builder_reset(struct table_builder *builder);

// Copies one record in.  Numbers rise.
MUST_CHECK enum status table_builder_add(struct table_builder *builder, uint64_t number,
                                         const struct record *record);

// The tables of what was added since the reset, `*count` of them; borrowed until
// the next call.
const struct wire_table *table_builder_tables(struct table_builder *builder, size_t *count);

#endif
