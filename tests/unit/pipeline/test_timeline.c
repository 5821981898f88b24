// Times of copies and compute, on a device whose clock a script sets, and beside a trace
// taken by the host's clock inside the work itself.
#include "server/pipeline/timeline.h"

#include <math.h>
#include <stdatomic.h>

#include "common/sys/clock.h"
#include "server/device/cpu/cpu_stream.h"
#include "server/device/device_ops.h"
#include "tests/support/test.h"
#include "tests/unit/pipeline/pipeline_rig.h"

enum { EVENTS_MAX = 512 };

static struct {
    const struct device_ops *inner;
    struct device_ops ops;
    double now_ns; // what an event that is recorded shows; negative: the real time
    bool floats;   // elapsed times are float milliseconds, as CUDA's are
    double rate;   // the clock's, against the real one
    const struct device_event *last;   // timed, recorded
    const struct device_event *hidden; // said not to be done
    int hidden_times;                  // so often
    struct {
        const struct device_event *event;
        double ns;
    } events[EVENTS_MAX];
} script;

static double *time_of_event(const struct device_event *event)
{
    int place = 0;
    while (place < EVENTS_MAX - 1 && script.events[place].event &&
           script.events[place].event != event)
        place++;
    assert_true(place < EVENTS_MAX - 1);
    script.events[place].event = event;
    return &script.events[place].ns;
}

static enum status scripted_record(struct device_event *event, struct device_stream *stream,
                                   struct error *err)
{
    if (script.now_ns >= 0 && event->kind == DEVICE_EVENT_TIMED) {
        *time_of_event(event) = script.now_ns;
        script.last = event;
    }
    return script.inner->event_record(event, stream, err);
}

static enum status scripted_query(struct device_event *event, bool *done, struct error *err)
{
    if (event != script.hidden || script.hidden_times == 0)
        return script.inner->event_query(event, done, err);
    script.hidden_times--;
    *done = false;
    return STATUS_OK;
}

static enum status scripted_elapsed(struct device_event *from, struct device_event *to, double *ns,
                                    struct error *err)
{
    enum status status = STATUS_OK;
    if (script.now_ns >= 0)
        *ns = *time_of_event(to) - *time_of_event(from);
    else
        status = script.inner->event_elapsed(from, to, ns, err);
    *ns *= script.rate;
    if (script.floats)
        *ns = (double)(float)(*ns / 1e6) * 1e6;
    return status;
}

static struct device *scripted_device(void)
{
    struct device *device = rig_device(NULL);
    memset(&script, 0, sizeof script);
    script.rate = 1;
    script.inner = device->ops;
    script.ops = *device->ops;
    script.ops.event_record = scripted_record;
    script.ops.event_query = scripted_query;
    script.ops.event_elapsed = scripted_elapsed;
    device->ops = &script.ops;
    return device;
}

struct scripted {
    struct device *device;
    struct device_stream *stream; // both sides': times come from the script
    struct timeline *timeline;
};

static struct scripted scripted_begin(unsigned int pairs)
{
    struct scripted s = {.device = scripted_device()};
    assert_int_equal(device_stream_new(s.device, &s.stream, "both", NULL), STATUS_OK);
    assert_int_equal(timeline_new(&s.timeline, s.device, pairs, NULL), STATUS_OK);
    script.now_ns = 0;
    assert_int_equal(timeline_begin(s.timeline, s.stream, NULL), STATUS_OK);
    return s;
}

static void scripted_work(const struct scripted *s, enum overlap_side side, double start_ns,
                          double end_ns, const struct timeline_cause *cause)
{
    script.now_ns = start_ns;
    assert_int_equal(
        timeline_start(s->timeline, side, s->stream, side == OVERLAP_COPY ? cause : NULL, NULL),
        STATUS_OK);
    script.now_ns = end_ns;
    assert_int_equal(timeline_end(s->timeline, side, s->stream, NULL), STATUS_OK);
    assert_int_equal(device_stream_synchronize(s->stream, NULL), STATUS_OK);
}

static uint64_t scripted_end(struct scripted *s, struct overlap_figures *figures)
{
    uint64_t starved_ns = 0;
    timeline_finish(s->timeline, figures, &starved_ns);
    timeline_free(s->timeline);
    device_stream_free(s->stream);
    s->device->ops = script.inner;
    device_close(s->device);
    return starved_ns;
}

enum { COPY = OVERLAP_COPY, COMPUTE = OVERLAP_COMPUTE };

struct step {
    int side;
    double start_ns, end_ns;
    uint64_t ready_ns, behind, held_up_ns;
};

TEST_CASE(schedules_with_known_figures)
{
    static const struct {
        const char *what;
        struct step steps[6];
        size_t count;
        double ratio;
        uint64_t exposed, starved;
    } cases[] = {
        {"serial",
         {{COPY, 0, 10, 0, 0, 0},
          {COMPUTE, 10, 20, 0, 0, 0},
          {COPY, 20, 30, 0, 0, 0},
          {COMPUTE, 30, 40, 0, 0, 0}},
         4,
         0.0,
         20,
         10},
        {"perfect", {{COPY, 0, 10, 0, 0, 0}, {COMPUTE, 0, 10, 0, 0, 0}}, 2, 1.0, 0, 0},
        {"half", {{COPY, 0, 10, 0, 0, 0}, {COMPUTE, 5, 15, 0, 0, 0}}, 2, 0.5, 5, 0},
        // The chunk was ready for 100 ns when its copy was queued: the rest of the 400 was want.
        {"starved",
         {{COPY, 0, 100, 0, 0, 0}, {COMPUTE, 100, 200, 0, 0, 0}, {COPY, 500, 600, 100, 0, 0}},
         3,
         0.0,
         200,
         300},
        {"ready before the stream was idle",
         {{COPY, 0, 100, 0, 0, 0}, {COMPUTE, 100, 200, 0, 0, 0}, {COPY, 500, 600, 400, 0, 0}},
         3,
         0.0,
         200,
         0},
        {"always ready",
         {{COPY, 700, 800, UINT64_MAX, 0, 0}, {COMPUTE, 800, 900, 0, 0, 0}},
         2,
         0.0,
         100,
         0},
        {"nothing ready at first",
         {{COPY, 700, 800, 50, 0, 0}, {COMPUTE, 800, 900, 0, 0, 0}},
         2,
         0.0,
         100,
         650},
        // Until compute 1 ended the buffer was taken: that is not want of a chunk.
        {"behind compute",
         {{COPY, 0, 100, 0, 0, 0}, {COMPUTE, 100, 450, 0, 0, 0}, {COPY, 500, 600, 10, 1, 0}},
         3,
         0.0,
         200,
         40},
        // One slot: its chunk is filled for 60 ns once the copy from it is done, which the
        // filler has waited 100 ns for.  With another slot it had been ready in time.
        {"one slot",
         {{COPY, 0, 100, 100, 0, 0}, {COMPUTE, 100, 200, 0, 0, 0}, {COPY, 170, 270, 10, 0, 100}},
         3,
         0.3,
         170,
         0},
        // The same where filling takes 250 ns: 150 of them would stay with any number of slots.
        {"one slot, slow to fill",
         {{COPY, 0, 100, 100, 0, 0}, {COMPUTE, 100, 200, 0, 0, 0}, {COPY, 360, 460, 10, 0, 100}},
         3,
         0.0,
         200,
         150},
        // Slots come back only when compute was waited for: two at once, of which the second
        // was filled while the first was copied.
        {"periodic",
         {{COPY, 0, 100, 100, 0, 0},
          {COPY, 100, 200, 100, 0, 0},
          {COMPUTE, 200, 400, 0, 0, 0},
          {COPY, 480, 580, 10, 0, 300},
          {COPY, 580, 680, 30, 0, 0}},
         5,
         0.0,
         400,
         0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        print_message("%s\n", cases[i].what);
        struct scripted s = scripted_begin(4);
        for (size_t j = 0; j < cases[i].count; j++) {
            const struct step *step = &cases[i].steps[j];
            const struct timeline_cause cause = {step->ready_ns, step->held_up_ns, step->behind};
            scripted_work(&s, (enum overlap_side)step->side, step->start_ns, step->end_ns, &cause);
        }
        struct overlap_figures figures;
        assert_int_equal(scripted_end(&s, &figures), cases[i].starved);
        double ratio = -1;
        assert_true(overlap_ratio(&figures, &ratio));
        assert_true(ratio == cases[i].ratio);
        assert_int_equal(figures.exposed_copy_ns, cases[i].exposed);
        assert_int_equal(figures.unmeasured, 0);
    }
}

// A compute that is seen to be done only after the copy that waited for it: its end is
// known all the same when the copy's want is reckoned.
TEST_CASE(a_compute_is_known_before_the_copy_behind_it)
{
    struct scripted s = scripted_begin(4);
    struct overlap_figures figures;
    const struct timeline_cause at_once = {0}, behind_compute = {.ready_ns = 10, .behind = 1};
    scripted_work(&s, OVERLAP_COPY, 0, 100, &at_once);
    scripted_work(&s, OVERLAP_COMPUTE, 100, 450, NULL);
    script.hidden = script.last;
    script.hidden_times = 2; // when copy 2 starts, and first at the end
    scripted_work(&s, OVERLAP_COPY, 500, 600, &behind_compute);
    assert_int_equal(scripted_end(&s, &figures), 40);
    assert_int_equal(script.hidden_times, 0);
    assert_int_equal(figures.unmeasured, 0);
}

// Float milliseconds have steps of 62 us and more after 1000 s; anchors that move on keep
// times of 100 us exact to a few.
TEST_CASE(long_runs_keep_their_precision)
{
    enum { TIMES = 300 };
    const struct timeline_cause at_once = {0};
    struct scripted s = scripted_begin(3);
    script.floats = true;
    uint64_t random = 5;
    double at_ns = 0, busy_ns = 0, both_ns = 0;
    for (int i = 0; i < TIMES; i++) {
        const double length_ns = 100e3 + (double)(test_random(&random) % 50000);
        at_ns += 9e9 + (double)(test_random(&random) % 1000000000);
        scripted_work(&s, OVERLAP_COPY, at_ns, at_ns + length_ns, &at_once);
        scripted_work(&s, OVERLAP_COMPUTE, at_ns + length_ns / 2, at_ns + 1.5 * length_ns, NULL);
        busy_ns += length_ns;
        both_ns += length_ns / 2;
    }
    struct overlap_figures figures;
    (void)scripted_end(&s, &figures);
    assert_int_equal(figures.unmeasured, 0);
    assert_true(fabs((double)figures.busy_ns[COPY] / busy_ns - 1) < 1e-3);
    assert_true(fabs((double)figures.busy_ns[COMPUTE] / busy_ns - 1) < 1e-3);
    assert_true(fabs((double)figures.both_ns / both_ns - 1) < 1e-3);
    assert_true(fabs((double)figures.span_ns / at_ns - 1) < 0.01);
}

// Copies held up by a gate: their times cannot be had when the pairs are wanted again.
TEST_CASE(what_cannot_be_harvested_is_counted)
{
    struct device *device = rig_device(NULL);
    struct device_stream *stream = NULL;
    struct timeline *timeline = NULL;
    struct overlap_figures figures;
    uint64_t starved_ns = 0;
    const int nothing = 0;
    const struct timeline_cause cause = {.ready_ns = UINT64_MAX};
    assert_int_equal(device_stream_new(device, &stream, "copy", NULL), STATUS_OK);
    assert_int_equal(timeline_new(&timeline, device, 2, NULL), STATUS_OK);
    assert_int_equal(timeline_begin(timeline, stream, NULL), STATUS_OK);
    atomic_store(&rig_gate_is_open, false);
    assert_int_equal(cpu_launch(stream, "gate", rig_gate, &nothing, sizeof nothing, NULL),
                     STATUS_OK);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(timeline_start(timeline, OVERLAP_COPY, stream, &cause, NULL), STATUS_OK);
        assert_int_equal(timeline_end(timeline, OVERLAP_COPY, stream, NULL), STATUS_OK);
    }
    atomic_store(&rig_gate_is_open, true);
    assert_int_equal(device_stream_synchronize(stream, NULL), STATUS_OK);
    timeline_finish(timeline, &figures, &starved_ns);
    assert_int_equal(figures.unmeasured, 3);

    // The next run measures again.
    assert_int_equal(timeline_begin(timeline, stream, NULL), STATUS_OK);
    assert_int_equal(timeline_start(timeline, OVERLAP_COPY, stream, &cause, NULL), STATUS_OK);
    assert_int_equal(timeline_end(timeline, OVERLAP_COPY, stream, NULL), STATUS_OK);
    assert_int_equal(device_stream_synchronize(stream, NULL), STATUS_OK);
    timeline_finish(timeline, &figures, &starved_ns);
    assert_int_equal(figures.unmeasured, 0);
    timeline_free(timeline);
    device_stream_free(stream);
    device_close(device);
}

enum { TRACED = 40 };

static struct {
    atomic_uint counts[OVERLAP_SIDES];
    uint64_t starts[OVERLAP_SIDES][TRACED], ends[OVERLAP_SIDES][TRACED];
} trace;

static void stamp(enum overlap_side side, uint64_t begun_ns)
{
    const unsigned int place = atomic_fetch_add(&trace.counts[side], 1);
    assert_true(place < TRACED);
    trace.starts[side][place] = begun_ns;
    trace.ends[side][place] = clock_monotonic_ns();
}

struct traced_copy {
    void *to;
    const void *from;
    size_t size;
};

static enum status copy_and_stamp(const void *arguments, struct thread_pool *pool,
                                  struct error *err)
{
    (void)pool;
    (void)err;
    const struct traced_copy *copy = arguments;
    const uint64_t begun_ns = clock_monotonic_ns();
    rig_sleep(begun_ns, 4000000);
    memcpy(copy->to, copy->from, copy->size);
    stamp(OVERLAP_COPY, begun_ns);
    return STATUS_OK;
}

static enum status traced_copy(struct device_stream *stream, enum device_copy copy, void *to,
                               const void *from, size_t size, struct error *err)
{
    if (copy != DEVICE_COPY_IN)
        return script.inner->copy(stream, copy, to, from, size, err);
    const struct traced_copy arguments = {to, from, size};
    return script.inner->launch(stream, "copy", copy_and_stamp, &arguments, sizeof arguments, err);
}

static enum status compute_and_stamp(const void *arguments, struct thread_pool *pool,
                                     struct error *err)
{
    (void)arguments;
    (void)pool;
    (void)err;
    const uint64_t begun_ns = clock_monotonic_ns();
    rig_sleep(begun_ns, 8000000);
    stamp(OVERLAP_COMPUTE, begun_ns);
    return STATUS_OK;
}

static enum status traced_compute(void *context, uint64_t group, struct device_stream *stream,
                                  const void *in, size_t size, void *out, struct error *err)
{
    (void)context;
    (void)in;
    (void)size;
    (void)out;
    return cpu_launch(stream, "compute", compute_and_stamp, &group, sizeof group, err);
}

// Both sides' pieces are apart from each other: each stream does one at a time.
static double traced_both(void)
{
    double both_ns = 0;
    for (unsigned int i = 0; i < atomic_load(&trace.counts[COPY]); i++)
        for (unsigned int j = 0; j < atomic_load(&trace.counts[COMPUTE]); j++) {
            const double start =
                fmax((double)trace.starts[COPY][i], (double)trace.starts[COMPUTE][j]);
            const double end = fmin((double)trace.ends[COPY][i], (double)trace.ends[COMPUTE][j]);
            both_ns += fmax(0, end - start);
        }
    return both_ns;
}

static double traced_busy(int side)
{
    double busy_ns = 0;
    for (unsigned int i = 0; i < atomic_load(&trace.counts[side]); i++)
        busy_ns += (double)(trace.ends[side][i] - trace.starts[side][i]);
    return busy_ns;
}

static bool is_near(uint64_t got, double want)
{
    return fabs((double)got - want) <= 0.02 * want;
}

// One run; whether its figures are within 2 % of the trace.  The device's clock runs a
// thousand times as fast and speaks in floats, so that anchors have to move.
static bool traced_run(void)
{
    struct device *device = scripted_device();
    struct rig rig;
    struct pipeline_figures figures;
    script.now_ns = -1;
    script.floats = true;
    script.rate = 1000;
    script.ops.copy = traced_copy;
    memset(&trace, 0, sizeof trace);
    rig_init(&rig, 64, (size_t)64 * TRACED, 2);
    rig_keeps_results(&rig);
    rig.job.compute = traced_compute;
    const struct pipeline_plan plan = rig_plan(&rig, 3, 2, 3, 2);
    assert_int_equal(rig_run(&rig, device, &plan, &figures, NULL), STATUS_OK);
    assert_int_equal(figures.overlap.unmeasured, 0);
    assert_int_equal(atomic_load(&trace.counts[COPY]), TRACED);
    assert_int_equal(atomic_load(&trace.counts[COMPUTE]), TRACED / 2);
    rig_deinit(&rig);
    device->ops = script.inner;
    device_close(device);
    return is_near(figures.overlap.busy_ns[COPY], 1000 * traced_busy(COPY)) &&
           is_near(figures.overlap.busy_ns[COMPUTE], 1000 * traced_busy(COMPUTE)) &&
           is_near(figures.overlap.both_ns, 1000 * traced_both());
}

// A thread that is held up between its two clocks may spoil a run, not all of them.
TEST_CASE(figures_agree_with_a_trace)
{
    bool agrees = false;
    for (int i = 0; i < 50 && !agrees; i++)
        agrees = traced_run();
    assert_true(agrees);
}

TEST_MAIN(schedules_with_known_figures, a_compute_is_known_before_the_copy_behind_it,
          long_runs_keep_their_precision, what_cannot_be_harvested_is_counted,
          figures_agree_with_a_trace)
