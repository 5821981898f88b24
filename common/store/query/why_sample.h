// Reads what the query WHY compares: requests of its window and of usual times, what lasted
// meanwhile on hosts and devices, and processes that ended without closing.
//
// What is read is bounded.  A time is cut into equal parts; of each part the first requests are
// read, by the index on their starts.
#ifndef INFERSTAT_STORE_QUERY_WHY_SAMPLE_H
#define INFERSTAT_STORE_QUERY_WHY_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/query/why_split.h"

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

// A process that ended without closing or is silent.  Unless it was replaced, in the last 24 h,
// else since `since_ns`.
struct why_lost_process {
    int64_t host, model; // model 0: unknown
    enum why_cause_kind kind;
    int64_t at_ns;
};

typedef enum status why_on_lost(void *context, const struct why_lost_process *process,
                                struct error *err);
MUST_CHECK enum status why_sample_lost(const struct why_sample *sample, struct store *store,
                                       int64_t since_ns, int64_t as_of_ns, why_on_lost *on_lost,
                                       void *context, struct error *err);

#endif
