// Timed events of a run: a bounded set of pairs, taken again and again, read into
// the overlap of copies and compute.
//
// A pair is harvested (read, once done) before it is recorded again; where all are
// still pending, the work counts as unmeasured rather than held up.  Times are taken
// from an anchor event that is moved on now and then, since elapsed times lose
// precision with their length; anchors are chained, so that all is on one clock.
// A copy's start is recorded behind the copy stream's own waits.
// The driver's thread only.
#ifndef INFERSTAT_SERVER_PIPELINE_TIMELINE_H
#define INFERSTAT_SERVER_PIPELINE_TIMELINE_H

#include "server/device/stream.h"
#include "server/pipeline/overlap.h"

struct timeline;

enum { TIMELINE_PAIRS_MAX = 64 };

// `pairs` of events for each side, 1 .. TIMELINE_PAIRS_MAX.
MUST_CHECK enum status timeline_new(struct timeline **out, struct device *device,
                                    unsigned int pairs, struct error *err);
void timeline_free(struct timeline *timeline); // accepts NULL

// Begins a run: records the anchor on `stream`.
MUST_CHECK enum status timeline_begin(struct timeline *timeline, struct device_stream *stream,
                                      struct error *err);

// What a copy had to wait for.
struct timeline_cause {
    uint64_t ready_ns;   // how long its chunk had been ready when the copy was queued
    uint64_t held_up_ns; // how long who filled it had waited for a slot before
    uint64_t behind;     // compute whose end it waits for, counted from 1; 0: none
};

// Around the work queued on `stream`: start, work, end.  `cause` is of copies, NULL for
// compute.
MUST_CHECK enum status timeline_start(struct timeline *timeline, enum overlap_side side,
                                      struct device_stream *stream,
                                      const struct timeline_cause *cause, struct error *err);
MUST_CHECK enum status timeline_end(struct timeline *timeline, enum overlap_side side,
                                    struct device_stream *stream, struct error *err);

// Harvests all that is pending (it has been waited for) and sums up.  `starved_ns`: how
// long the copy stream was idle since the anchor because no chunk was ready though there
// were slots for it: from the end of a copy, or of the compute that the next one waited
// for, to when its chunk would have been ready had who filled it not waited for a slot.
// Nothing is said of copies whose times are not known.
void timeline_finish(struct timeline *timeline, struct overlap_figures *out, uint64_t *starved_ns);

#endif
