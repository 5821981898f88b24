// Bits into bytes and back, each taking the room that its chance deserves: an adaptive
// binary range coder (G. N. N. Martin, "Range encoding", 1979; with the carry kept back
// as in LZMA).  What is as good as chance goes beside it, bit by bit as it is.
//
// Pure.  Both sides must ask for the same bits in the same order with the same models, and
// learn alike.
#ifndef INFERSTAT_CORE_BIT_CODER_H
#define INFERSTAT_CORE_BIT_CODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/status.h"

// How it is learnt how likely a bit is to be 0.
enum bit_learning {
    BIT_LEARN_TWICE,  // fast and slowly, averaged
    BIT_LEARN_LATELY, // from all bits alike while they are few, then from the last dozens
    BIT_LEARN_LONG,   // then from the last hundreds
};

// What was learnt, as its way has it (bit_coder.c).
struct bit_model {
    uint32_t state;
};

// Makes `count` models that know nothing.
void bit_models_init(struct bit_model *models, size_t count, enum bit_learning learning);

// Bytes that grow.  Failing for want of memory is kept until somebody asks.
struct byte_sink {
    unsigned char *bytes;
    size_t size, room;
    bool has_failed;
};

void byte_sink_put(struct byte_sink *sink, unsigned char byte);
void byte_sink_append(struct byte_sink *sink, const void *bytes, size_t size);
// Seven bits a byte, the lowest first; all but the last have their highest bit set.
void byte_sink_number(struct byte_sink *sink, uint64_t value);
void byte_sink_deinit(struct byte_sink *sink);

// Reads such a number and moves `*at` behind it; false where there is none.
bool byte_number(const unsigned char **at, const unsigned char *end, uint64_t *value);

// ---- Writing --------------------------------------------------------------------------

struct bit_writer {
    enum bit_learning learning;
    struct byte_sink modelled, plain;
    uint64_t low, held; // held: bytes that a carry may still change
    uint32_t range;
    unsigned char last; // the first of them
    bool has_begun;
    uint64_t bits; // of `plain`, not yet bytes
    unsigned bit_count;
};

void bit_writer_init(struct bit_writer *writer, enum bit_learning learning);
void bit_writer_put(struct bit_writer *writer, struct bit_model *model, bool bit);
// The low `count` (0 to 64) bits of `value`.
void bit_writer_plain(struct bit_writer *writer, uint64_t value, unsigned count);
// Appends all of it to `sink`: the sizes of the two parts, then both.  STATUS_NOMEM.
MUST_CHECK enum status bit_writer_end(struct bit_writer *writer, struct byte_sink *sink);
void bit_writer_deinit(struct bit_writer *writer);

// ---- Reading --------------------------------------------------------------------------

// Reading on behind the end gives zeros, and is_over.
struct bit_reader {
    enum bit_learning learning;
    const unsigned char *modelled, *modelled_end, *plain, *plain_end;
    uint32_t range, code;
    uint64_t bits;
    unsigned bit_count;
    bool is_over;
};

// Reads what bit_writer_end appended and moves `*at` behind it; the bytes are borrowed.
// STATUS_CORRUPT where they end too soon.
MUST_CHECK enum status bit_reader_init(struct bit_reader *reader, const unsigned char **at,
                                       const unsigned char *end, enum bit_learning learning);
bool bit_reader_get(struct bit_reader *reader, struct bit_model *model);
uint64_t bit_reader_plain(struct bit_reader *reader, unsigned count);

#endif
