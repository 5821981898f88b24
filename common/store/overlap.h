// What else was going on while a request was at work: loads on its host, pipelines and
// throttling on its device, by overlap in time (the host's clock).
//
// Looked at are loads and pipelines that began up to OVERLAP_BEFORE_NS before the
// request did, the OVERLAP_SPANS_MAX last of them on all hosts; and of the device's
// samples OVERLAP_SAMPLES_MAX.  A sample speaks for the time up to its run's next one,
// OVERLAP_SAMPLE_NS at most.
#ifndef INFERSTAT_STORE_OVERLAP_H
#define INFERSTAT_STORE_OVERLAP_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/blame.h"

struct store;

#define OVERLAP_BEFORE_NS INT64_C(3600000000000)
#define OVERLAP_SAMPLE_NS INT64_C(10000000000)
enum { OVERLAP_SPANS_MAX = 4096, OVERLAP_SAMPLES_MAX = 20000 };

// Where and when: ids of names, and for each phase when it began; the last element is
// when the last one ended.  Times rise.
struct overlap_request {
    int64_t host, device;
    int64_t starts_ns[BLAME_PHASES + 1];
};

struct overlap {
    int64_t ns[BLAME_PHASES][BLAME_CAUSES]; // of the phase, at most all of it
    int64_t throttle_reasons;               // all bits seen meanwhile (core/throttle.h)
};

MUST_CHECK enum status overlap_read(struct overlap *out, struct store *store,
                                    const struct overlap_request *request, struct error *err);

#endif
