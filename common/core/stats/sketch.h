// A mergeable quantile sketch with bounded relative error.
//
// Values are counted in buckets: 64 of equal width for each power of two, so
// that a bucket's number is the exponent and the top six bits of the mantissa of
// the value as a double, and a quantile is off by at most 1/129 of itself, less
// than 1 %.  Zero and negative values have buckets of their own.  Merging adds
// counts and loses nothing: the sketch of a union is the sum of the sketches.
// Source of the idea: the linearly interpolated mapping of DDSketch (Masson,
// Rim, Lee, VLDB 2019) and HdrHistogram.
//
// The range is 2^-64 to 2^64: smaller magnitudes count as zero, larger as the
// last bucket.  NaN is never counted.
#ifndef INFERSTAT_CORE_SKETCH_H
#define INFERSTAT_CORE_SKETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/core/base/status.h"

enum {
    SKETCH_PER_OCTAVE = 64,
    SKETCH_BUCKETS = 128 * SKETCH_PER_OCTAVE, // of one sign
    SKETCH_EXPONENT_MIN = -64,
    // Buckets of whole nanoseconds from 1 to 2^44 (about five hours), which hot paths may
    // keep as a plain array.
    SKETCH_NS_BUCKETS = 44 * SKETCH_PER_OCTAVE,
    SKETCH_NS_OFFSET = 64 * SKETCH_PER_OCTAVE, // bucket of 1 ns
};

// The bucket of a positive value.
static inline uint32_t sketch_bucket(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint64_t first = (uint64_t)(1023 + SKETCH_EXPONENT_MIN) * SKETCH_PER_OCTAVE;
    const uint64_t place = bits >> 46;
    if (place < first)
        return 0;
    return place - first < SKETCH_BUCKETS ? (uint32_t)(place - first) : SKETCH_BUCKETS - 1;
}

// The bucket of a duration, from 0 for 1 ns: bucket = SKETCH_NS_OFFSET + this.
// 0 ns counts as 1 ns; durations beyond the range count in its last bucket.
static inline uint32_t sketch_ns_bucket(uint64_t ns)
{
    const double value = (double)(int64_t)(ns | (ns == 0));
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint64_t place = (bits >> 46) - UINT64_C(1023) * SKETCH_PER_OCTAVE;
    return place < SKETCH_NS_BUCKETS ? (uint32_t)place : SKETCH_NS_BUCKETS - 1;
}

// The value that stands for a bucket: off by at most 1/129 from any in it.
double sketch_bucket_value(uint32_t bucket);

// Pages of buckets, each allocated for its first value.
struct sketch;

// A memory limit shared by several sketches.
struct sketch_budget {
    size_t left; // bytes
    bool spent;  // an allocation was refused
};

MUST_CHECK enum status sketch_new(struct sketch **out);
// Takes its pages from `budget`, borrowed until the last use.
MUST_CHECK enum status sketch_new_within(struct sketch **out, struct sketch_budget *budget);
// Allocates all pages of sketch_ns_bucket now, so that adding to them never allocates.
MUST_CHECK enum status sketch_reserve_ns(struct sketch *sketch);
void sketch_free(struct sketch *sketch);
void sketch_reset(struct sketch *sketch);

// Counts `value` `count` times.  NaN is ignored.
void sketch_add(struct sketch *sketch, double value, uint64_t count);

// Adds `count` to a bucket of positive values (below SKETCH_BUCKETS).
void sketch_add_bucket(struct sketch *sketch, uint32_t bucket, uint64_t count);

// A bucket and its count.
struct sketch_count {
    uint32_t bucket;
    uint64_t count;
};

// The same for a list with non-zero counts, in ascending order of buckets.
void sketch_add_counts(struct sketch *sketch, const struct sketch_count *list, size_t count);

void sketch_merge(struct sketch *into, const struct sketch *from);

uint64_t sketch_count(const struct sketch *sketch);

// Calls `take` for each bucket that is not empty, with the value that stands for it.
typedef void sketch_take(void *context, double value, uint64_t count);
void sketch_each(const struct sketch *sketch, sketch_take *take, void *context);

// The rank (from 0) of quantile `q` (0..1) among `count` > 0 values, by
// the nearest rank: the smallest value that at least a share `q` of all does not
// exceed.  p99 of fewer than 100 values is the largest.
uint64_t sketch_rank(double q, uint64_t count);

// The value at quantile `q`.  False when the sketch is empty, when there was no
// memory to count all in, or `q` outside 0..1.
bool sketch_quantile(const struct sketch *sketch, double q, double *value);

// ---- As bytes -----------------------------------------------------------------
//
// Version byte 1, then unsigned LEB128 numbers: count of zeros; how many
// non-empty positive buckets, and for each its distance from the one before (the
// first from 0) and its count; the same for negative ones.

// Encodes the sketch, or as much of it as fits in `size` bytes: positive buckets
// from `*next` on (0 at first; zeros and negative ones go with the first part).
// Sets `*next` to where the next part begins, SKETCH_BUCKETS when all is said.
// Returns the bytes used, 0 when nothing fits or not all could be counted.
size_t sketch_encode(const struct sketch *sketch, void *out, size_t size, uint32_t *next);

// Encodes all of the sketch.  Returns the bytes used, 0 when it does not fit or not all
// could be counted.
size_t sketch_encode_whole(const struct sketch *sketch, void *out, size_t size);

// Merges an encoded sketch.  STATUS_NOMEM when not all could be counted.  STATUS_CORRUPT, with
// `sketch` unchanged, for invalid bytes.
MUST_CHECK enum status sketch_decode(struct sketch *sketch, const void *bytes, size_t size);

// The same in one pass, for bytes that are most likely valid: after STATUS_CORRUPT `sketch`
// has a part of them and may only be reset or freed.
MUST_CHECK enum status sketch_decode_once(struct sketch *sketch, const void *bytes, size_t size);

#endif
