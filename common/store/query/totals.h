// Running totals of requests and loads by host, model and device, for exporters: counters and
// histograms that begin at zero and count what is stored from then on.  Records are read once, by
// ascending id, so that neither retention nor clearing lowers anything, and one that arrives late
// is counted when it is stored.  Those of imported runs are not counted.
//
// The number of series is limited.  Requests and loads of further series are counted in `other`.
//
// One thread feeds; another may read the totals while it holds the lock that is passed to
// totals_feed.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"

struct store;

enum totals_counter {
    TOTALS_REQUESTS, // that ended
    TOTALS_FAILED,
    TOTALS_CANCELLED,
    TOTALS_PROMPT_TOKENS,
    TOTALS_OUTPUT_TOKENS,
    TOTALS_ITEMS,
    TOTALS_LOADS,
    TOTALS_LOADS_FAILED,
    TOTALS_COUNTER_COUNT,
};

enum totals_histogram {
    TOTALS_E2E,  // of all requests
    TOTALS_TTFT, // of those with a first token
    TOTALS_TPOT, // of those with two tokens
    TOTALS_LOAD, // of all loads
    TOTALS_HISTOGRAM_COUNT,
};

// The upper edges of a histogram's bins, in seconds: those that OpenTelemetry's conventions for
// generative AI name (gen_ai.server.request.duration, .time_to_first_token,
// .time_per_output_token), and below their first edge of 10 ms three more; of loads, for which they
// name none, our own.
enum { TOTALS_EDGES_MAX = 17 };
struct totals_edges {
    unsigned count;
    double seconds[TOTALS_EDGES_MAX];
};
extern const struct totals_edges totals_edges[TOTALS_HISTOGRAM_COUNT];

struct totals_bins {
    uint64_t counts[TOTALS_EDGES_MAX + 1]; // of each bin; the last one: above the last edge
    uint64_t count;                        // their sum
    double sum_seconds;
    bool is_shown; // by totals_show
};

struct totals_series {
    char host[QUERY_TEXT_SIZE], model[QUERY_TEXT_SIZE], device[QUERY_TEXT_SIZE];
    uint64_t counters[TOTALS_COUNTER_COUNT];
    bool is_shown;
    struct totals_bins bins[TOTALS_HISTOGRAM_COUNT];
};

struct totals;

// Begins to count after the store's newest records.  `series_max` (1 .. 10,000): the most series
// beside `other`.
MUST_CHECK enum status totals_new(struct totals **out, struct store *store, size_t series_max,
                                  struct error *err);
void totals_free(struct totals *totals); // accepts NULL

// Adds the next `limit` records of each kind at most; sets `*more` if there may be others.  Holds
// `lock` while it changes the totals, but not while it reads.
MUST_CHECK enum status totals_feed(struct totals *totals, struct store *store, uint32_t limit,
                                   pthread_mutex_t *lock, bool *more, struct error *err);

// The series, and at index totals_count - 1 `other`, if anything is counted there.
size_t totals_count(const struct totals *totals);
const struct totals_series *totals_at(const struct totals *totals, size_t index);

// Marks all series, and their histograms with values, as shown.  Until then a reader should be
// given zeros, so that it sees their first increase.
void totals_show(struct totals *totals);

// The number of series counted in `other`, at most 65,536 of them.
size_t totals_folded(const struct totals *totals);
