// Mergeable quantile sketch with bounded relative error: a histogram with logarithmic buckets, from
// which a quantile of all added values can be read.  The library, the collector and queries use it.
// A sketch is used by one thread at a time.
//
// Each power of two is divided into 64 buckets of equal width: the bucket of a value is
// the exponent and the top six bits of the mantissa of the value as a double.  The
// relative error of a quantile is at most 1/129, less than 1 %.  Negative values have buckets of
// their own; zeros are only counted.  Merging adds counts and is exact: the sketch of a union is
// the sum of the sketches.  Based on the linearly interpolated mapping of DDSketch (Masson, Rim,
// Lee, VLDB 2019) and on HdrHistogram.
//
// The range is 2^-64 to 2^64: a smaller magnitude counts as zero, a larger one in the last
// bucket.  NaN is never counted.
#pragma once

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

// The bucket that a value would have if the buckets had no upper bound.  Above INT64_MAX for a
// value from 0 to the first bucket; at least SKETCH_BUCKETS for a negative value and for NaN.
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

// The index of a duration in a plain array of SKETCH_NS_BUCKETS counts, 0 for 1 ns; the duration's
// bucket in a sketch is SKETCH_NS_OFFSET + index.  0 ns counts as 1 ns; durations of 2^44 ns and
// more count in the last bucket of the array.
static inline uint32_t sketch_ns_bucket(uint64_t ns)
{
    const double value = (double)(int64_t)(ns | (ns == 0));
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint64_t place = (bits >> 46) - UINT64_C(1023) * SKETCH_PER_OCTAVE;
    return place < SKETCH_NS_BUCKETS ? (uint32_t)place : SKETCH_NS_BUCKETS - 1;
}

// The value that represents a bucket: it differs from any value in the bucket by at most 1/129.
double sketch_bucket_value(uint32_t bucket);

// The only integer in the bucket of `value`; `value` if the bucket has no integer or several (above
// 128).  For quantiles of integers.
double sketch_snap(double value);

// A sketch stores its buckets in pages (arrays of counts), and allocates a page when the first
// value falls into it.  If that fails, the values are missing in the sketch until sketch_reset:
// quantiles and encodings then fail.
struct sketch;

// A memory limit shared by several sketches.
struct sketch_budget {
    size_t left; // bytes; set by the caller, reduced by the sketches, never raised
    bool spent;  // an allocation was refused; set by the sketches
};

MUST_CHECK enum status sketch_new(struct sketch **out);
// Creates a sketch whose pages count against `budget`, which is borrowed until sketch_free.
MUST_CHECK enum status sketch_new_within(struct sketch **out, struct sketch_budget *budget);
// Allocates the pages of the buckets of sketch_ns_bucket now, so that adding to these buckets never
// allocates.
MUST_CHECK enum status sketch_reserve_ns(struct sketch *sketch);
void sketch_free(struct sketch *sketch);  // NULL is fine
void sketch_reset(struct sketch *sketch); // removes all values; keeps the pages

// Counts `value` `count` times.  NaN is ignored.
void sketch_add(struct sketch *sketch, double value, uint64_t count);

// Adds `count` to a bucket of positive values (below SKETCH_BUCKETS).
void sketch_add_bucket(struct sketch *sketch, uint32_t bucket, uint64_t count);

// Counts each of the values once.
void sketch_add_values(struct sketch *sketch, const double *values, size_t count);

void sketch_merge(struct sketch *into, const struct sketch *from);

uint64_t sketch_count(const struct sketch *sketch);

// Calls `callback` for each non-empty bucket, with `context`, the value that represents the bucket,
// and its count.  Order: negative values, zeros, positive values.
typedef void sketch_callback(void *context, double value, uint64_t count);
void sketch_each(const struct sketch *sketch, sketch_callback *callback, void *context);

// The rank (from 0) of quantile `q` (0..1) among `count` > 0 values, by the nearest-rank
// method: the quantile is the smallest value for which at least the share `q` of all values is not
// larger.  With fewer than 100 values p99 is the largest value.
uint64_t sketch_rank(double q, uint64_t count);

// The value at quantile `q`.  False when the sketch is empty, when values are missing because
// an allocation failed, or when `q` is outside 0..1.
bool sketch_quantile(const struct sketch *sketch, double q, double *value);

// ---- Serialisation --------------------------------------------------------------
//
// The format: a version byte 1, then integers in unsigned LEB128:
//   1. the count of zeros
//   2. the count of non-empty positive buckets
//   3. for each of these: its distance from the previous one (for the first: from 0), its count
//   4. the negative buckets, as in 2 and 3

// Bytes of the longest encoding, which has all buckets of both signs.
enum { SKETCH_SIZE_MAX = 64 + 2 * SKETCH_BUCKETS * 11 };

// Encodes the sketch in parts of at most `size` bytes, each of which can be decoded on its own.  A
// part has positive buckets from bucket `*next` on; `*next` is 0 for the first part, which also has
// the zeros; the last part also has all negative buckets.  Sets `*next` to the first bucket of the
// next part, SKETCH_BUCKETS after the last part.  Returns the bytes used; 0 if nothing fits, if the
// negative buckets do not fit, or if values are missing because an allocation failed.
size_t sketch_encode(const struct sketch *sketch, void *out, size_t size, uint32_t *next);

// Encodes the whole sketch.  Returns the bytes used; 0 if it does not fit, or if values are missing
// because an allocation failed.
size_t sketch_encode_whole(const struct sketch *sketch, void *out, size_t size);

// Adds the counts of an encoded sketch to `sketch`.  Returns STATUS_NOMEM if some values could not
// be counted; STATUS_CORRUPT if the bytes are invalid, and `sketch` is then unchanged.
MUST_CHECK enum status sketch_decode(struct sketch *sketch, const void *bytes, size_t size);

// Like sketch_decode, but in one pass, without validating all bytes first: after STATUS_CORRUPT
// `sketch` has a part of the values and may only be reset or freed.
MUST_CHECK enum status sketch_decode_once(struct sketch *sketch, const void *bytes, size_t size);
