// Encodes and decodes messages (proto/inferstat.proto).  Any thread.
//
// Input from the wire is not trusted.  Decoding validates sizes, counts, enumerations,
// texts (UTF-8, no NUL), numbers and times.  The tables of a decoded batch cover
// first..last exactly, each number once and ascending in a table; columns have one value
// per row, of the column's type; names are in 1..65535, reals finite, durations and
// counts from 0 to MESSAGE_VALUE_MAX.
#ifndef INFERSTAT_WIRE_CODEC_H
#define INFERSTAT_WIRE_CODEC_H

#include "common/wire/message.h"

// Encodes into memory that the caller releases with free().  STATUS_FULL when the
// frame would be larger than MESSAGE_SIZE_MAX.
MUST_CHECK enum status codec_encode(unsigned char **out, size_t *size,
                                    const struct message *message, struct error *err);

// Decodes one frame.  On success release `message` with message_free.
//
// STATUS_INVALID: the frame is no message, or its addressing (run, stream, range) is
// invalid; message->failed_run is the run, where the frame names one.  A range longer
// than a batch may have is invalid as a whole: refusing its numbers would drop them.
//
// A batch with a valid address but invalid content decodes with batch.fault set and
// without tables, so that its range can be refused; its valid drops, names and streams are
// present.  A batch without records has no range to refuse: invalid content is
// STATUS_INVALID.
//
// A query with invalid values decodes, so that it gets a reply: query_check rejects them.
MUST_CHECK enum status codec_decode(struct message *message, const void *bytes, size_t size,
                                    struct error *err);

// The same for frames of untrusted peers, with a limit on memory: a few times the frame's
// size plus 4 MiB, which suffices for the largest valid counts.  (A frame of empty parts
// would otherwise take sixty times its size.)  For an invalid batch the memory of its
// tables is freed.
MUST_CHECK enum status codec_decode_untrusted(struct message *message, const void *bytes,
                                              size_t size, struct error *err);

void message_free(struct message *message);

// Heap bytes that a decoded message holds.
size_t message_memory(const struct message *message);

// ---- From records to columns ---------------------------------------------------

// Collects records of one stream as column tables.  Reusable; its memory grows to the
// largest use.
struct table_builder;

MUST_CHECK enum status table_builder_new(struct table_builder **out);
void table_builder_free(struct table_builder *builder);
void table_builder_reset(struct table_builder *builder);

// Copies one record.  Numbers must ascend.
MUST_CHECK enum status table_builder_add(struct table_builder *builder, uint64_t number,
                                         const struct record *record);

// The `*count` tables of the records added since the reset; borrowed until the next call.
const struct wire_table *table_builder_tables(struct table_builder *builder, size_t *count);

#endif
