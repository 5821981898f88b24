// Message codec: encodes the structures of message.h as protobuf frames (proto/inferstat.proto) and
// decodes them.  A frame is one encoded message.  Collector, library and clients use it.  All
// functions may be called from any thread.
//
// A stream is the sequence of records of one producing thread, numbered from 1.  A batch carries a
// range first..last of one stream in columnar tables, one table per record kind.  Decoding checks
// all values but those of queries.  In a decoded batch without a fault (see codec_decode), each
// number from first to last occurs in exactly one table, and within a table the numbers ascend.
// Columns have one value per row, of the column's type.  Texts are UTF-8 without NUL, ids of names
// are in 1..65535, reals are finite, durations and counts are in 0..MESSAGE_VALUE_MAX.
#pragma once

#include "common/wire/message.h"

// Encodes `message` into `*out`, which the caller releases with free().  Returns STATUS_FULL if the
// frame would be larger than MESSAGE_SIZE_MAX.
MUST_CHECK enum status codec_encode(unsigned char **out, size_t *size,
                                    const struct message *message, struct error *err);

// Decodes one frame.  On success release `message` with message_free.
//
// The address of a batch is its run, its stream and its range first..last of record numbers.
// Returns STATUS_INVALID if the frame is no message, or if the address is invalid;
// message->failed_run is then the run, if the frame has one.  A range longer than
// DELIVERY_BATCH_MAX makes the address invalid too; otherwise the collector would refuse the whole
// range, that is, count all its records as dropped.
//
// A batch with a valid address but invalid content decodes successfully, with batch.fault set and
// without tables, so that the collector can refuse the range; valid drops, names and streams are
// kept.  A batch without records has no range: invalid content is then STATUS_INVALID.
//
// A query with invalid values decodes successfully, so that the collector can reply to it;
// query_check rejects the values.
MUST_CHECK enum status codec_decode(struct message *message, const void *bytes, size_t size,
                                    struct error *err);

// Decodes a frame of an untrusted peer.  It limits the memory to 8 times the frame's size plus
// 4 MiB, enough for the largest valid counts, and returns STATUS_INVALID beyond (codec_decode: 4
// times MESSAGE_SIZE_MAX).  It also frees the memory of an invalid batch's tables.
MUST_CHECK enum status codec_decode_untrusted(struct message *message, const void *bytes,
                                              size_t size, struct error *err);

void message_free(struct message *message);

// Heap bytes that a decoded message holds, without the result of a reply or of live records.
size_t message_memory(const struct message *message);

// ---- Columnar tables of records ---------------------------------------------------

// Table builder: converts records of one stream to columnar tables, one per record kind.  After a
// reset it can be used again, with the memory that it has allocated.
struct table_builder;

MUST_CHECK enum status table_builder_new(struct table_builder **out);
void table_builder_free(struct table_builder *builder);
void table_builder_reset(struct table_builder *builder);

// Appends a copy of the record with this number.  Each number must be above the last one.
MUST_CHECK enum status table_builder_add(struct table_builder *builder, uint64_t number,
                                         const struct record *record);

// The tables of the records added since the reset; borrowed until the builder's next call.
const struct wire_table *table_builder_tables(struct table_builder *builder, size_t *count);
