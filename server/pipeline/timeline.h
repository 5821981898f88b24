// Measures copies and kernels of a run with a fixed ring of timed event pairs, and feeds the
// overlap of both (overlap.h).
//
// A pair is read, once done, before it is recorded again; when all pairs are still pending, the
// work counts as unmeasured instead of waiting.  Times are relative to an anchor event that is
// renewed now and then, since elapsed times lose precision with their length; anchors are
// chained, so that all times share one clock.  A copy's start is recorded after the copy
// stream's own waits.  Driver's thread only.
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

// Why a copy may have had to wait.
struct timeline_cause {
    uint64_t ready_ns;   // how long its chunk had been filled when the copy was queued
    uint64_t held_up_ns; // how long its worker had waited for a slot before
    uint64_t behind;     // number of the compute whose end it waits for, from 1; 0: none
};

// Call before and after queueing work on `stream`.  `cause` is given for copies, NULL for
// compute.
MUST_CHECK enum status timeline_start(struct timeline *timeline, enum overlap_side side,
                                      struct device_stream *stream,
                                      const struct timeline_cause *cause, struct error *err);
MUST_CHECK enum status timeline_end(struct timeline *timeline, enum overlap_side side,
                                    struct device_stream *stream, struct error *err);

// Reads all pending pairs, which must be done, and writes the figures.  `starved_ns`: how long
// the copy stream was idle for lack of a filled chunk although slots were available: from the
// end of a copy, or of the compute that the next copy waited for, to when the next chunk would
// have been ready had its worker not waited for a slot.  Copies without times do not count.
void timeline_finish(struct timeline *timeline, struct overlap_figures *out, uint64_t *starved_ns);

#endif
