// Device timestamps: measures when the copies and kernels of a pipeline run start and end, and
// computes their overlap (overlap.h).  Each copy, and the kernels of each group (pipeline.h), use a
// pair of timed device events: start and end.
//
// A pair is reused once its events are done and have been read.  If all pairs are pending, the new
// work is not measured and counts as unmeasured.  Times are relative to an anchor event.  The
// anchor is replaced periodically, since elapsed times lose precision with their length; a new
// anchor is timed against the one before, so that all times share one clock.  Only the submitting
// thread (pipeline.h) calls the functions.
#pragma once

#include "server/device/stream.h"
#include "server/pipeline/overlap.h"

struct timeline;

enum { TIMELINE_PAIRS_MAX = 64 };

// `pairs` is the number of event pairs for each of copies and kernels, 1 .. TIMELINE_PAIRS_MAX.
MUST_CHECK enum status timeline_new(struct timeline **out, struct device *device,
                                    unsigned int pairs, struct error *err);
void timeline_free(struct timeline *timeline); // accepts NULL

// Begins a run, before its first timeline_start: records the anchor on `stream`.
MUST_CHECK enum status timeline_begin(struct timeline *timeline, struct device_stream *stream,
                                      struct error *err);

// Possible causes of idle time before a copy.
struct timeline_cause {
    // Time from the chunk being filled to its copy being queued; UINT64_MAX: it needed no filling.
    uint64_t ready_ns;
    uint64_t held_up_ns; // time that the chunk's worker had waited for a slot and for the queue
    uint64_t behind;     // the copy waits for the kernels of this group, counted from 1; 0: none
};

// Record the start and the end of a copy or of a group's kernels.  Call them before and after
// queueing the work on `stream`; for a copy, after queueing the stream's waits for events.  `cause`
// is NULL for kernels.
MUST_CHECK enum status timeline_start(struct timeline *timeline, enum overlap_side side,
                                      struct device_stream *stream,
                                      const struct timeline_cause *cause, struct error *err);
MUST_CHECK enum status timeline_end(struct timeline *timeline, enum overlap_side side,
                                    struct device_stream *stream, struct error *err);

// Ends a run: reads all pairs and writes the metrics.  A pair that is not done or failed counts as
// unmeasured.  `*starved_ns` is the time that the copy stream was idle because no chunk was filled
// although slots were free.  Such a time begins at the end of a copy, or of the kernels that the
// next copy waited for.  It ends when the next chunk would have been ready if its worker had not
// been held up.  Unmeasured copies do not count.
void timeline_finish(struct timeline *timeline, struct overlap_figures *out, uint64_t *starved_ns);
