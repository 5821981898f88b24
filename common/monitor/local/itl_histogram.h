// Double-buffered histograms of inter-token latencies (ITL): the times between output tokens,
// called gaps here.  An engine thread (a thread of the application) counts the gaps of a request in
// a histogram.  At the request's end, and while it goes on, it adds the counts to a sum for its
// (model, device) pair.
//
// A bank is an array of these sums.  An engine thread has two banks: it adds to one of them, and
// never waits.  The library's background thread switches it to the other bank.  Once the engine
// thread has left the old bank, the background thread writes its sums as records of kind `itl`.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/core/record/ring.h"
#include "common/core/stats/sketch.h"

enum {
    ITL_WORD_BITS = 64,
    ITL_WORDS = SKETCH_NS_BUCKETS / ITL_WORD_BITS, // one word of `touched` per power of two of ns
    ITL_KEYS = 8,                                  // (model, device) pairs per bank
};

_Static_assert(ITL_WORDS *ITL_WORD_BITS == SKETCH_NS_BUCKETS, "touched covers all buckets");

// The histogram of the request in progress; all zero when there is none.
struct itl_histogram {
    uint64_t pending_ns;         // the last gap, not in the counts yet; 0: none
    uint64_t count;              // of gaps, without shared ones
    uint64_t max_ns;             // the longest gap
    uint64_t touched[ITL_WORDS]; // bitmap of non-empty buckets
    uint32_t counts[SKETCH_NS_BUCKETS];
    // The gaps that itl_histogram_share has added to the sums, for the request's percentile.
    uint64_t shared_count;
    uint64_t shared_touched[ITL_WORDS];
    uint32_t shared_counts[SKETCH_NS_BUCKETS];
};

static inline void itl_histogram_count_pending(struct itl_histogram *histogram)
{
    const uint64_t ns = histogram->pending_ns;
    const uint32_t bucket = sketch_ns_bucket(ns);
    histogram->max_ns = ns > histogram->max_ns ? ns : histogram->max_ns;
    histogram->count++;
    if (histogram->counts[bucket]++ == 0)
        histogram->touched[bucket / ITL_WORD_BITS] |= UINT64_C(1) << bucket % ITL_WORD_BITS;
}

// Adds a gap of `ns` (0 ns counts as 1 ns) and counts the one before it.  Counting the gap
// before does not depend on the clock just read, so the processor overlaps both.
static inline void itl_histogram_add(struct itl_histogram *histogram, uint64_t ns)
{
    if (__builtin_expect(histogram->pending_ns != 0, 1))
        itl_histogram_count_pending(histogram);
    histogram->pending_ns = ns + (ns == 0);
}

// Returns the number of gaps, with the pending one and shared ones.
static inline uint64_t itl_histogram_total(const struct itl_histogram *histogram)
{
    return histogram->shared_count + histogram->count + (histogram->pending_ns != 0);
}

// A span: the histogram of one (model, device) pair in an interval of time; unused if `count`
// is 0.
struct itl_span {
    uint32_t model, device;     // ids of names
    uint64_t first_ns, last_ns; // the interval, monotonic
    uint64_t count;
    uint64_t touched[ITL_WORDS];
    uint32_t counts[SKETCH_NS_BUCKETS]; // cannot overflow while `count` fits 32 bits
};

// The sums of a thread, double-buffered.  187 kB, of which only the pages of used spans and
// powers of two become resident: about 12 kB per (model, device) pair.
struct itl_sums {
    _Atomic uint32_t turn; // bit 0: the engine's bank; written by the background thread
    _Atomic uint64_t busy; // odd while the engine writes to its bank; written by the engine
    bool waiting;          // the engine was writing at the last switch; background thread
    uint64_t waited_for;   // `busy` at that switch; background thread
    struct itl_span banks[2][ITL_KEYS]; // in each, used spans come first
};

// Input of itl_histogram_finish and itl_histogram_share: the labels of the request's gaps, and the
// ring to which a span is written if the bank is full.
struct itl_place {
    uint32_t model, device;
    uint64_t first_ns, last_ns; // of the tokens since the last share, monotonic
    int64_t wall_offset_ns;     // wall clock minus monotonic clock
    struct ring *ring;          // of the calling thread
    struct sketch *sketch;      // scratch memory of the thread, to encode spans
};

// Adds the gaps so far to `sums`, so that they are recorded while the request goes on.  Engine
// thread.
void itl_histogram_share(struct itl_histogram *histogram, struct itl_sums *sums,
                         const struct itl_place *place);

// Moves the gaps that are not shared to `sums` (NULL: discards them), returns the 99th percentile
// of all gaps of the request (0: none) and sets `*max_ns` to the longest one.  If other (model,
// device) pairs use all spans, the least recently used span is first written to `place->ring`.
// Engine thread.
uint64_t itl_histogram_finish(struct itl_histogram *histogram, struct itl_sums *sums,
                              const struct itl_place *place, uint64_t *max_ns);

// Switches banks and writes the sums of the previous bank as records to `ring`.  False if the
// engine is still writing to that bank: call it again later.  `sketch` is scratch.  Background
// thread.
bool itl_histogram_drain(struct itl_sums *sums, int64_t wall_offset_ns, struct ring *ring,
                         struct sketch *sketch);
