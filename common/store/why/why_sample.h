// Reads what the query WHY compares: requests of its window and of usual times, what lasted
// meanwhile on hosts and devices, and settings.
//
// What is read is bounded.  A time is cut into equal parts; of each part the first requests are
// read, by the index on their starts.
#ifndef INFERSTAT_STORE_WHY_WHY_SAMPLE_H
#define INFERSTAT_STORE_WHY_WHY_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/why/why_split.h"

struct store;

// WHY_SAMPLE_REQUESTS: of a time, without a filter; with one WHY_SAMPLE_FILTERED times as many are
// read to find that many.  WHY_SAMPLE_SPANS: of a time, of each kind.
enum { WHY_SAMPLE_REQUESTS = 12000, WHY_SAMPLE_FILTERED = 4, WHY_SAMPLE_SPANS = 4096 };

struct why_sample {
    struct why_request *requests;
    size_t count, room;
    double seconds[WHY_READ]; // of which all requests that match were read; without times that have
                              // none
    struct why_span *spans;
    size_t span_count, span_room;
    int64_t model, host; // only these, ids of the table name; 0: any
};

// The caller sets model and host of a zeroed structure.
void why_sample_deinit(struct why_sample *sample);

// Adds successful requests that began in a time; `share` is that of WHY_SAMPLE_REQUESTS.
MUST_CHECK enum status why_sample_requests(struct why_sample *sample, struct store *store,
                                           enum why_side side, int64_t since_ns, int64_t until_ns,
                                           double share, struct error *err);

// Adds the spans that a time overlaps.
MUST_CHECK enum status why_sample_spans(struct why_sample *sample, struct store *store,
                                        int64_t since_ns, int64_t until_ns, struct error *err);

// Compares the settings of the newest runs of both sides of a series, which have requests.  Sets
// `*out` to those that differ, which the caller frees; leaves it if none do.
MUST_CHECK enum status why_sample_settings(char **out, struct store *store,
                                           const struct why_series *series, int64_t since_ns,
                                           struct error *err);

#endif
