// Mergeable quantile sketch with bounded relative error.
//
// Values are counted in buckets, 64 of equal width per power of two: a bucket's number
// is the exponent and the top six bits of the mantissa of the value as a double.  The
// relative error of a quantile is at most 1/129, less than 1 %.  Zero and negative values
// have their own buckets.  Merging adds counts and is exact: the sketch of a union is the
// sum of the sketches.  Based on the linearly interpolated mapping of DDSketch (Masson,
// Rim, Lee, VLDB 2019) and on HdrHistogram.
//
// The range is 2^-64 to 2^64: smaller magnitudes count as zero, larger ones in the last
// bucket.  NaN is never counted.
#ifndef INFERSTAT_CORE_SKETCH_H
#define INFERSTAT_CORE_SKETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/core/base/status.h"

enum {
    SKETCH_PER_OCTAVE = 64,
    SKETCH_BUCKETS = 128 * SKETCH_PER_OCTAVE, // per sign
    SKETCH_EXPONENT_MIN = -64,
    // Buckets of durations from 1 to 2^44 ns (about five hours), a range small enough for a
    // plain array of counts in hot paths.
    SKETCH_NS_BUCKETS = 44 * SKETCH_PER_OCTAVE,
    SKETCH_NS_OFFSET = 64 * SKETCH_PER_OCTAVE, // bucket of 1 ns
};

// The bucket of a value if there were buckets of all magnitudes; huge if that is below the first
// one, and for negative values and NaN.
static inline uint64_t sketch_bucket_anywhere(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (bits >> 46) - (uint64_t)(1023 + SKETCH_EXPONENT_MIN) * SKETCH_PER_OCTAVE;
}

// The bucket of a positive value.
static inline uint32_t sketch_bucket(double value)
{
    const uint64_t bucket = sketch_bucket_anywhere(value);
    if (bucket > INT64_MAX)
        return 0;
    return bucket < SKETCH_BUCKETS ? (uint32_t)bucket : SKETCH_BUCKETS - 1;
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

// The value that represents a bucket: within 1/129 of any value in it.
double sketch_bucket_value(uint32_t bucket);

// Buckets are stored in pages, each allocated with its first value.
struct sketch;

// A memory limit shared by several sketches.
struct sketch_budget {
    size_t left; // bytes
    bool spent;  // an allocation was refused
};

MUST_CHECK enum status sketch_new(struct sketch **out);
// A sketch whose pages count against `budget`, which is borrowed until its last use.
MUST_CHECK enum status sketch_new_within(struct sketch **out, struct sketch_budget *budget);
// Allocates all pages of sketch_ns_bucket now, so that adding to them never allocates.
MUST_CHECK enum status sketch_reserve_ns(struct sketch *sketch);
void sketch_free(struct sketch *sketch);
void sketch_reset(struct sketch *sketch);

// Counts `value` `count` times.  NaN is ignored.
void sketch_add(struct sketch *sketch, double value, uint64_t count);

// Adds `count` to a bucket of positive values (below SKETCH_BUCKETS).
void sketch_add_bucket(struct sketch *sketch, uint32_t bucket, uint64_t count);

// Counts each of the values once.
void sketch_add_values(struct sketch *sketch, const double *values, size_t count);

void sketch_merge(struct sketch *into, const struct sketch *from);

uint64_t sketch_count(const struct sketch *sketch);

// Calls `callback` for each non-empty bucket, with the value that represents it.
typedef void sketch_callback(void *context, double value, uint64_t count);
void sketch_each(const struct sketch *sketch, sketch_callback *callback, void *context);

// The rank (from 0) of quantile `q` (0..1) among `count` > 0 values, by the nearest-rank
// method: the smallest value with at least a share `q` of all values at or below it.  p99
// of fewer than 100 values is the largest.
uint64_t sketch_rank(double q, uint64_t count);

// The value at quantile `q`.  False when the sketch is empty, when values are missing because
// an allocation failed, or when `q` is outside 0..1.
bool sketch_quantile(const struct sketch *sketch, double q, double *value);

// ---- Serialisation --------------------------------------------------------------
//
// Version byte 1, then unsigned LEB128 numbers: count of zeros; number of non-empty
// positive buckets, and for each its distance from the previous one (the first: from 0)
// and its count; the same for negative buckets.

// Bytes of the longest encoding, which has all buckets of both signs.
enum { SKETCH_SIZE_MAX = 64 + 2 * SKETCH_BUCKETS * 11 };

// Encodes the sketch, or the part that fits in `size` bytes: positive buckets from `*next`
// on (initially 0; the first part has zeros and negative buckets too).  Sets `*next` to the
// start of the next part, SKETCH_BUCKETS when complete.  Returns the bytes used, 0 when
// nothing fits or values are missing because an allocation failed.
size_t sketch_encode(const struct sketch *sketch, void *out, size_t size, uint32_t *next);

// Encodes the whole sketch.  Returns the bytes used, 0 when it does not fit or values are
// missing.
size_t sketch_encode_whole(const struct sketch *sketch, void *out, size_t size);

// Merges an encoded sketch.  STATUS_NOMEM: some values were not counted.  STATUS_CORRUPT:
// invalid bytes, `sketch` is unchanged.
MUST_CHECK enum status sketch_decode(struct sketch *sketch, const void *bytes, size_t size);

// The same in one pass, without validating first: after STATUS_CORRUPT `sketch` has a part of
// the values and may only be reset or freed.
MUST_CHECK enum status sketch_decode_once(struct sketch *sketch, const void *bytes, size_t size);

#endif
