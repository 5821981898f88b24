// Message codec: encodes and decodes protobuf frames (proto/inferstat.proto) with full validation
// of input.  Any thread.
//
// Decoding validates sizes, counts, enumerations, texts (UTF-8, no NUL), numbers and times.  The
// tables of a decoded batch cover first..last exactly, each number once and ascending in a table;
// columns have one value per row, of the column's type; ids of names are in 1..65535, reals
// finite, durations and counts in 0..MESSAGE_VALUE_MAX.
#ifndef INFERSTAT_WIRE_CODEC_H
#define INFERSTAT_WIRE_CODEC_H

#include "common/wire/message.h"

// Encodes into memory that the caller releases with free().  STATUS_FULL: the frame would be larger
// than MESSAGE_SIZE_MAX.
MUST_CHECK enum status codec_encode(unsigned char **out, size_t *size,
                                    const struct message *message, struct error *err);

// Decodes one frame.  On success release `message` with message_free.
//
// STATUS_INVALID: the frame is no message, or its address (run, stream, range first..last) is
// invalid; message->failed_run is the run, if the frame has one.  A range longer than a batch's
// maximum is an invalid address: refusing the range would drop its numbers.
//
// A batch with a valid address but invalid content decodes successfully, with batch.fault set and
// without tables, so that the collector can refuse its range; valid drops, names and streams are
// kept.  For a batch without records, which has no range, invalid content is STATUS_INVALID.
//
// A query with invalid values decodes, so that it gets a reply; query_check rejects the values.
MUST_CHECK enum status codec_decode(struct message *message, const void *bytes, size_t size,
                                    struct error *err);

// As codec_decode, for frames of untrusted peers: limits the memory to 8 times the frame's size
// plus 4 MiB, enough for the largest valid counts.  (A frame of empty parts would otherwise need
// sixty times its size.)  Frees the memory of an invalid batch's tables.
MUST_CHECK enum status codec_decode_untrusted(struct message *message, const void *bytes,
                                              size_t size, struct error *err);

void message_free(struct message *message);

// Heap bytes that a decoded message holds.
size_t message_memory(const struct message *message);

// ---- Columnar tables of records ---------------------------------------------------

// Table builder: converts records of one stream to columnar tables, one per kind.  Reusable; keeps
// its memory between uses.
struct table_builder;

MUST_CHECK enum status table_builder_new(struct table_builder **out);
void table_builder_free(struct table_builder *builder);
void table_builder_reset(struct table_builder *builder);

// Appends a copy of one record.  Numbers must ascend.
MUST_CHECK enum status table_builder_add(struct table_builder *builder, uint64_t number,
                                         const struct record *record);

// The tables of the records added since the reset; borrowed until the next call.
const struct wire_table *table_builder_tables(struct table_builder *builder, size_t *count);

#endif
