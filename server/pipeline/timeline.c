#include "server/pipeline/timeline.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/sys/log.h"

// Roughly the largest distance of a time from its anchor: float milliseconds have steps of
// 15 ns there.
static const double anchor_reach_ns = 0.25e9;

struct pair {
    struct device_event *start, *end;
    struct timeline_cause cause;
    uint64_t number; // of its side, counted from 1, unmeasured ones too
};

// The pairs of a side: a ring, of which `pending` from `first` on are recorded.
struct side {
    unsigned int first, pending;
    struct pair *open;            // started, not ended
    uint64_t started;             // numbers given
    uint64_t recorded, harvested; // pairs, of a run
    uint64_t last;                // number of the one harvested last
    double last_end_ns;
};

struct timeline {
    unsigned int pair_count;
    struct pair pairs[OVERLAP_SIDES][TIMELINE_PAIRS_MAX];
    struct device_event *anchors[2];

    // Zeros before and after a run.
    struct {
        struct side sides[OVERLAP_SIDES];
        struct overlap overlap;
        double starved_ns;

        // When computes ended, by number: what copies that waited for them need.
        struct {
            uint64_t number;
            double end_ns;
        } ends[TIMELINE_PAIRS_MAX];

        unsigned int anchor;                 // the one that times are taken from
        double anchor_ns;                    // its own, from the run's first
        bool is_moving;                      // the other is recorded, to take over once done and
        uint64_t move_behind[OVERLAP_SIDES]; // once what was recorded before it is harvested
    } run;
};

// ---- Building -------------------------------------------------------------

static enum status new_pair(struct device *device, struct pair *pair, struct error *err)
{
    enum status status = device_event_new(device, &pair->start, DEVICE_EVENT_TIMED, err);
    if (status == STATUS_OK)
        status = device_event_new(device, &pair->end, DEVICE_EVENT_TIMED, err);
    return status;
}

enum status timeline_new(struct timeline **out, struct device *device, unsigned int pairs,
                         struct error *err)
{
    assert(pairs >= 1 && pairs <= TIMELINE_PAIRS_MAX);
    struct timeline *timeline = calloc(1, sizeof *timeline);
    if (!timeline)
        return error_no_memory(err, "timeline");
    timeline->pair_count = pairs;

    enum status status = STATUS_OK;
    for (int i = 0; status == STATUS_OK && i < 2; i++)
        status = device_event_new(device, &timeline->anchors[i], DEVICE_EVENT_TIMED, err);
    for (unsigned int i = 0; status == STATUS_OK && i < pairs * OVERLAP_SIDES; i++)
        status = new_pair(device, &timeline->pairs[i / pairs][i % pairs], err);
    if (status != STATUS_OK) {
        timeline_free(timeline);
        return status;
    }
    *out = timeline;
    return STATUS_OK;
}

void timeline_free(struct timeline *timeline)
{
    if (!timeline)
        return;
    for (unsigned int i = 0; i < timeline->pair_count * OVERLAP_SIDES; i++) {
        struct pair *pair = &timeline->pairs[i / timeline->pair_count][i % timeline->pair_count];
        device_event_free(pair->start);
        device_event_free(pair->end);
    }
    device_event_free(timeline->anchors[0]);
    device_event_free(timeline->anchors[1]);
    free(timeline);
}

enum status timeline_begin(struct timeline *timeline, struct device_stream *stream,
                           struct error *err)
{
    return device_event_record(timeline->anchors[timeline->run.anchor], stream, err);
}

// ---- Anchors --------------------------------------------------------------

static bool is_done(struct device_event *event)
{
    bool done = false;
    return device_event_query(event, &done, NULL) == STATUS_OK && done;
}

// The other anchor takes over once all times before it are taken from this one.
static void finish_move(struct timeline *timeline)
{
    const unsigned int next = 1 - timeline->run.anchor;
    if (!timeline->run.is_moving)
        return;
    for (int i = 0; i < OVERLAP_SIDES; i++)
        if (timeline->run.sides[i].harvested < timeline->run.move_behind[i])
            return;
    double elapsed = 0;
    if (!is_done(timeline->anchors[next]) ||
        device_event_elapsed(timeline->anchors[timeline->run.anchor], timeline->anchors[next],
                             &elapsed, NULL) != STATUS_OK)
        return;
    timeline->run.anchor_ns += elapsed;
    timeline->run.anchor = next;
    timeline->run.is_moving = false;
}

// ---- Harvesting -----------------------------------------------------------

// The event's time on the run's clock.
static bool time_of(const struct timeline *timeline, struct device_event *event, double *ns)
{
    double elapsed = 0;
    if (device_event_elapsed(timeline->anchors[timeline->run.anchor], event, &elapsed, NULL) !=
        STATUS_OK)
        return false;
    *ns = timeline->run.anchor_ns + elapsed;
    return true;
}

// Adds the time before this copy in which the stream was idle because no chunk was filled,
// although slots were free.
static void count_starved(struct timeline *timeline, const struct pair *pair, double start_ns)
{
    const struct side *copies = &timeline->run.sides[OVERLAP_COPY];
    if (pair->number != copies->last + 1)
        return; // when the one before ended is not known
    double idle_from_ns = copies->last_end_ns;
    if (pair->cause.behind > 0) {
        const unsigned int place = (unsigned int)(pair->cause.behind % TIMELINE_PAIRS_MAX);
        if (timeline->run.ends[place].number != pair->cause.behind)
            return;
        idle_from_ns = fmax(idle_from_ns, timeline->run.ends[place].end_ns);
    }
    const double starved_ns =
        start_ns - idle_from_ns - (double)pair->cause.ready_ns - (double)pair->cause.held_up_ns;
    if (starved_ns > 0)
        timeline->run.starved_ns += starved_ns;
}

static void consume_times(struct timeline *timeline, enum overlap_side which,
                          const struct pair *pair)
{
    struct side *side = &timeline->run.sides[which];
    double start_ns = 0, end_ns = 0;
    finish_move(timeline);
    if (!time_of(timeline, pair->start, &start_ns) || !time_of(timeline, pair->end, &end_ns)) {
        timeline->run.overlap.figures.unmeasured++;
        return;
    }
    if (which == OVERLAP_COPY) {
        count_starved(timeline, pair, start_ns);
    } else {
        timeline->run.ends[pair->number % TIMELINE_PAIRS_MAX].number = pair->number;
        timeline->run.ends[pair->number % TIMELINE_PAIRS_MAX].end_ns = end_ns;
    }
    overlap_add(&timeline->run.overlap, which, pair->number, llround(start_ns), llround(end_ns));
    side->last = pair->number;
    side->last_end_ns = end_ns;
}

// Logs each chunk's copy once its overlap is final.
static void log_chunks(struct timeline *timeline)
{
    struct overlap_interval copy;
    const bool none_comes = timeline->run.sides[OVERLAP_COMPUTE].pending == 0;
    while (log_shows(LOG_LEVEL_DEBUG) &&
           overlap_pop_copy(&timeline->run.overlap, none_comes, &copy)) {
        const double ns = (double)(copy.end_ns - copy.start_ns);
        log_write(LOG_LEVEL_DEBUG,
                  "pipeline: chunk %llu: copied from %.1f us on in %.1f us, overlap %.3f",
                  (unsigned long long)copy.number - 1, (double)copy.start_ns / 1e3, ns / 1e3,
                  ns > 0 ? (double)copy.both_ns / ns : 0);
    }
}

// Reads the pairs of a side that are done.  What failed stays pending, to be counted at
// the end.
static void harvest_side(struct timeline *timeline, enum overlap_side which)
{
    struct side *side = &timeline->run.sides[which];
    while (side->pending > 0 && is_done(timeline->pairs[which][side->first].end)) {
        // The compute that a copy waited for is done: its end is known before the copy's.
        if (which == OVERLAP_COPY)
            harvest_side(timeline, OVERLAP_COMPUTE);
        consume_times(timeline, which, &timeline->pairs[which][side->first]);
        side->first = (side->first + 1) % timeline->pair_count;
        side->pending--;
        side->harvested++;
    }
}

// ---- A run ----------------------------------------------------------------

// Records the other anchor where this one is far behind.
static enum status move_anchor(struct timeline *timeline, struct device_stream *stream,
                               struct error *err)
{
    const struct side *copies = &timeline->run.sides[OVERLAP_COPY];
    finish_move(timeline);
    if (timeline->run.is_moving || copies->last_end_ns < timeline->run.anchor_ns + anchor_reach_ns)
        return STATUS_OK;
    for (int i = 0; i < OVERLAP_SIDES; i++)
        timeline->run.move_behind[i] = timeline->run.sides[i].recorded;
    timeline->run.is_moving = true;
    return device_event_record(timeline->anchors[1 - timeline->run.anchor], stream, err);
}

enum status timeline_start(struct timeline *timeline, enum overlap_side which,
                           struct device_stream *stream, const struct timeline_cause *cause,
                           struct error *err)
{
    struct side *side = &timeline->run.sides[which];
    harvest_side(timeline, OVERLAP_COMPUTE);
    harvest_side(timeline, OVERLAP_COPY);
    log_chunks(timeline);
    enum status status = STATUS_OK;
    if (which == OVERLAP_COPY)
        status = move_anchor(timeline, stream, err);
    if (status != STATUS_OK)
        return status;

    side->started++;
    if (side->pending == timeline->pair_count) {
        timeline->run.overlap.figures.unmeasured++;
        return STATUS_OK;
    }
    side->open = &timeline->pairs[which][(side->first + side->pending) % timeline->pair_count];
    side->open->number = side->started;
    if (cause)
        side->open->cause = *cause;
    return device_event_record(side->open->start, stream, err);
}

enum status timeline_end(struct timeline *timeline, enum overlap_side which,
                         struct device_stream *stream, struct error *err)
{
    struct side *side = &timeline->run.sides[which];
    if (!side->open)
        return STATUS_OK;
    const enum status status = device_event_record(side->open->end, stream, err);
    if (status == STATUS_OK) {
        side->open = NULL;
        side->pending++;
        side->recorded++;
    }
    return status;
}

void timeline_finish(struct timeline *timeline, struct overlap_figures *out, uint64_t *starved_ns)
{
    harvest_side(timeline, OVERLAP_COMPUTE);
    harvest_side(timeline, OVERLAP_COPY);
    log_chunks(timeline);
    for (int i = 0; i < OVERLAP_SIDES; i++) {
        const struct side *side = &timeline->run.sides[i];
        timeline->run.overlap.figures.unmeasured += side->pending + (side->open ? 1U : 0U);
    }
    *starved_ns = (uint64_t)timeline->run.starved_ns;
    overlap_finish(&timeline->run.overlap, out);
    memset(&timeline->run, 0, sizeof timeline->run);
}
