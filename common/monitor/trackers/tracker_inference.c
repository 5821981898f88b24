// Tracks inference requests, one at a time per tracker.  Functions called per token touch
// only the tracker's own memory; those called per request make no system call, take no
// lock and do not allocate.
#include "common/monitor/inferstat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/unit.h"
#include "common/monitor/local/itl_histogram.h"
#include "common/monitor/trackers/recent_events.h"

// A request adds its gaps to the sums of its thread at such intervals, so that the tokens of a long
// one are recorded as they are put out.
#define SHARE_NS UINT64_C(1000000000)

struct inferstat_inference {
    uint64_t last_ns;  // of the last token; 0: none, or its time is unknown
    uint64_t gapless;  // tokens without a known gap; all others are in `gaps`
    uint64_t first_ns; // of the first token; 0: not yet
    uint64_t share_ns; // when its gaps are shared next: SHARE_NS after the last time
    bool active;
    bool is_computed; // its computation has started: it does not wait any more
    struct inferstat_monitor *monitor;
    uint32_t model, device;
    unsigned int place; // of the model, where its requests are counted
    uint64_t request;
    uint64_t arrival_ns;
    uint64_t prefill_ns; // when it started, of items their computation; 0: not yet
    uint32_t prompt, cached;
    uint32_t items; // 0: the model makes tokens
    struct itl_histogram gaps;
};

// The metrics of a finished request.
struct outcome {
    uint64_t generated;
    uint64_t queue_ns, prefill_ns, ttft_ns, decode_ns, e2e_ns; // ttft, decode: 0 is absent
    uint64_t itl_max_ns, itl_p99_ns;                           // 0 is absent
    int64_t concurrent;
};

struct inferstat_inference *inferstat_inference_new(struct inferstat_monitor *monitor)
{
    if (!monitor_is_live(monitor))
        return NULL;
    struct inferstat_inference *inference = calloc(1, sizeof *inference);
    if (!inference)
        return NULL;
    inference->monitor = monitor;
    (void)thread_slot_current(
        &monitor->slots); // now, so that the first request need not allocate it
    return inference;
}

void inferstat_inference_free(struct inferstat_inference *inference)
{
    if (!inference)
        return;
    inferstat_inference_end(inference, INFERSTAT_FINISH_CANCELLED);
    free(inference);
}

void inferstat_inference_set_prompt(struct inferstat_inference *inference, uint32_t prompt_tokens,
                                    uint32_t cached_prompt_tokens)
{
    if (!inference || !inference->active)
        return;
    inference->prompt = prompt_tokens;
    inference->cached = cached_prompt_tokens < prompt_tokens ? cached_prompt_tokens : prompt_tokens;
}

// Also counts the request as computed on, at its first activity.
static void set_activity(struct inferstat_inference *inference, enum activity activity,
                         uint64_t now)
{
    struct inferstat_monitor *monitor = inference->monitor;
    if (!monitor_is_live(monitor) || !monitor->file)
        return;
    struct thread_slot *slot = thread_slot_current(&monitor->slots);
    if (!inference->is_computed) {
        inference->is_computed = true;
        thread_slot_start_request(slot, inference->place);
    }
    thread_slot_set_request(slot, inference->request);
    thread_slot_set_activity(slot, activity, inference->model, now);
}

static void start_computing(struct inferstat_inference *inference, uint64_t now)
{
    inference->prefill_ns = now;
    set_activity(inference, inference->items ? ACTIVITY_INFERENCE : ACTIVITY_PREFILL, now);
}

void inferstat_inference_begin(struct inferstat_inference *inference,
                               const struct inferstat_request *request)
{
    if (!inference || !request || !monitor_is_live(inference->monitor))
        return;
    // A request that was not ended counts as cancelled.
    inferstat_inference_end(inference, INFERSTAT_FINISH_CANCELLED);

    struct inferstat_monitor *monitor = inference->monitor;
    // A new thread's slot is created before the clock starts.
    const uint32_t model = monitor_known_name(monitor, request->model);
    if (model != inference->model) // it keeps its place
        inference->place = thread_slots_place(&monitor->slots, model);
    inference->model = model;
    thread_slot_begin_request(thread_slot_current(&monitor->slots), inference->place);
    const uint64_t now = clock_monotonic_ns();
    inference->device = monitor_known_name(monitor, request->device);
    inference->request = request->request;
    inference->arrival_ns =
        request->arrival_ns == 0 || request->arrival_ns > now ? now : request->arrival_ns;
    inference->prefill_ns = 0;
    inference->first_ns = 0;
    inference->last_ns = 0;
    inference->gapless = 0;
    inference->is_computed = false;
    inference->active = true;
    inference->items = request->items;
    inferstat_inference_set_prompt(inference, request->prompt_tokens,
                                   request->cached_prompt_tokens);
    if (inference->items)
        start_computing(inference, now);
}

void inferstat_inference_start_prefill(struct inferstat_inference *inference)
{
    if (inference && inference->active && (!inference->prefill_ns || inference->items))
        start_computing(inference, clock_monotonic_ns());
}

static void start_generation_at(struct inferstat_inference *inference, uint64_t now)
{
    inference->first_ns = now;
    inference->share_ns = now + SHARE_NS;
    set_activity(inference, ACTIVITY_DECODE, now);
}

void inferstat_inference_start_generation(struct inferstat_inference *inference)
{
    if (inference && inference->active && !inference->first_ns)
        start_generation_at(inference, clock_monotonic_ns());
}

// A token whose predecessor has no known time: the first, or one after counted tokens.
static __attribute__((noinline, cold)) void token_without_gap(struct inferstat_inference *inference,
                                                              uint64_t now)
{
    if (!inference->active)
        return;
    inference->last_ns = now;
    inference->gapless++;
    if (!inference->first_ns)
        start_generation_at(inference, now);
}

// The labels of the gaps since the last share, or the first token.
static struct itl_place place_of_gaps(const struct inferstat_inference *inference,
                                      const struct thread_slot *slot, uint64_t last_ns)
{
    return (struct itl_place){
        .model = inference->model,
        .device = inference->device,
        .first_ns = inference->share_ns - SHARE_NS,
        .last_ns = last_ns,
        .wall_offset_ns =
            atomic_load_explicit(&inference->monitor->sampled.wall_offset_ns, memory_order_relaxed),
        .ring = slot ? slot->stream.ring : NULL,
        .sketch = slot ? slot->sketch : NULL,
    };
}

static __attribute__((noinline, cold)) void share_gaps(struct inferstat_inference *inference,
                                                       uint64_t now)
{
    struct inferstat_monitor *monitor = inference->monitor;
    struct thread_slot *slot =
        monitor_is_live(monitor) ? thread_slot_current(&monitor->slots) : NULL;
    const struct itl_place place = place_of_gaps(inference, slot, now);
    if (place.ring)
        itl_histogram_share(&inference->gaps, &slot->sums, &place);
    inference->share_ns = now + SHARE_NS;
}

void inferstat_inference_token(struct inferstat_inference *inference)
{
    if (!inference)
        return;
    const uint64_t now = clock_monotonic_ns();
    const uint64_t last = inference->last_ns;
    if (__builtin_expect(last == 0, 0)) {
        token_without_gap(inference, now);
        return;
    }
    inference->last_ns = now;
    itl_histogram_add(&inference->gaps, now - last);
    if (__builtin_expect(now >= inference->share_ns, 0))
        share_gaps(inference, now);
}

// The first tokens of the request are counted ones: generation starts now.
static __attribute__((noinline, cold)) bool start_counting(struct inferstat_inference *inference)
{
    if (inference->active)
        start_generation_at(inference, clock_monotonic_ns());
    return inference->active;
}

void inferstat_inference_count_tokens(struct inferstat_inference *inference, uint32_t count)
{
    if (!inference || count == 0)
        return;
    if (__builtin_expect(inference->first_ns == 0, 0) && !start_counting(inference))
        return;
    inference->gapless += count;
    inference->last_ns = 0; // the next token's gap would span several tokens
}

// ---- The end ------------------------------------------------------------------

// Splits the request's time into phases.  `end` is the time of its last token or, without
// one, now.
static void measure(const struct inferstat_inference *inference, uint64_t end,
                    struct outcome *outcome)
{
    const uint64_t arrival = inference->arrival_ns;
    const uint64_t first = inference->first_ns;
    uint64_t prefill = inference->prefill_ns;
    // start_prefill was not called: assume at arrival if there are tokens.
    if (!prefill || (first && prefill > first))
        prefill = first ? arrival : end;
    outcome->queue_ns = prefill - arrival;
    outcome->prefill_ns = (first ? first : end) - prefill;
    outcome->generated = inference->gapless + itl_histogram_total(&inference->gaps);
    outcome->ttft_ns = first && outcome->generated > 0 ? first - arrival : 0;
    outcome->decode_ns = first && outcome->generated > 1 ? end - first : 0;
    outcome->e2e_ns = end - arrival;
}

// Sets a value and returns its presence bit; 0 is absent.
static inline uint64_t set_maybe(struct record *record, unsigned column, uint64_t value)
{
    record->values[column].i = (int64_t)value;
    return (uint64_t)(value != 0) << column;
}

// The columns that an inference of items does not have.
static void fill_tokens(const struct inferstat_inference *inference, const struct outcome *outcome,
                        struct record *record)
{
    record_set_int(record, INFERENCE_PROMPT_TOKENS, inference->prompt);
    record_set_int(record, INFERENCE_CACHED_PROMPT_TOKENS, inference->cached);
    record_set_int(record, INFERENCE_GENERATED_TOKENS,
                   monitor_plausible((int64_t)outcome->generated));
    record_set_int(record, INFERENCE_PREFILL_NS, (int64_t)outcome->prefill_ns);
    record->present |= set_maybe(record, INFERENCE_TTFT_NS, outcome->ttft_ns) |
                       set_maybe(record, INFERENCE_DECODE_NS, outcome->decode_ns) |
                       set_maybe(record, INFERENCE_ITL_MAX_NS, outcome->itl_max_ns) |
                       set_maybe(record, INFERENCE_ITL_P99_NS, outcome->itl_p99_ns);
    record->values[INFERENCE_ITEMS].i = 0;
}

static void fill_record(const struct inferstat_inference *inference, const struct outcome *outcome,
                        enum inferstat_finish finish, struct record *record)
{
    const struct inferstat_monitor *monitor = inference->monitor;
    const int64_t host = atomic_load_explicit(&monitor->sampled.host_memory, memory_order_relaxed);
    const int64_t device =
        atomic_load_explicit(&monitor->sampled.device_memory, memory_order_relaxed);

    _Static_assert((int)INFERENCE_COLUMNS <= (int)RECORD_SLOT_VALUES,
                   "filled in place, in one slot");
    // Every column is written in place: the slot holds an older record.
    record->kind = RECORD_KIND_INFERENCE;
    record->used = INFERENCE_COLUMNS * sizeof *record->values;
    record->reserved = 0;
    record->started_ns = monitor_wall_ns(monitor, inference->arrival_ns);
    record->present = 0;
    if (inference->items) {
        memset(record->values, 0, INFERENCE_COLUMNS * sizeof *record->values);
        record_set_int(record, INFERENCE_ITEMS, inference->items);
    } else {
        fill_tokens(inference, outcome, record);
    }
    record_set_name(record, INFERENCE_MODEL, inference->model);
    record_set_name(record, INFERENCE_DEVICE, inference->device);
    record_set_int(record, INFERENCE_REQUEST, (int64_t)inference->request);
    record_set_int(record, INFERENCE_FINISH, (int64_t)finish);
    record_set_int(record, INFERENCE_QUEUE_NS, (int64_t)outcome->queue_ns);
    record_set_int(record, INFERENCE_E2E_NS, (int64_t)outcome->e2e_ns);
    record_set_int(record, INFERENCE_HOST_MEMORY, host);
    record_set_int(record, INFERENCE_CONCURRENT, outcome->concurrent);
    record->values[INFERENCE_DEVICE_MEMORY].i = device < 0 ? 0 : device;
    record->values[INFERENCE_ERROR].i = 0;
    record->present |= (uint64_t)(device >= 0) << INFERENCE_DEVICE_MEMORY;
}

// A request that failed, with the reason: two slots of the ring, so it is copied into them.
static __attribute__((noinline, cold)) void push_failed(const struct inferstat_inference *inference,
                                                        const struct outcome *outcome,
                                                        struct thread_slot *slot, const char *error)
{
    struct record record;
    fill_record(inference, outcome, INFERSTAT_FINISH_ERROR, &record);
    monitor_set_text(&record, INFERENCE_ERROR, error);
    (void)thread_slot_push(&inference->monitor->slots, slot, &record, 1);
}

static void push_record(const struct inferstat_inference *inference, const struct outcome *outcome,
                        enum inferstat_finish finish, struct thread_slot *slot)
{
    struct ring *ring = slot ? slot->stream.ring : NULL;
    if (!ring) {
        thread_slots_count_streamless(&inference->monitor->slots, 1);
        return;
    }
    struct record *record = ring_reserve(ring);
    if (!record)
        return;
    fill_record(inference, outcome, finish, record);
    ring_commit(ring);
}

static void finish_gaps(struct inferstat_inference *inference, struct thread_slot *slot,
                        uint64_t end, struct outcome *outcome)
{
    const struct itl_place place = place_of_gaps(inference, slot, end);
    struct itl_sums *sums = place.ring ? &slot->sums : NULL;
    outcome->itl_p99_ns =
        itl_histogram_finish(&inference->gaps, sums, &place, &outcome->itl_max_ns);
}

enum { FIGURES_SIZE = 320 };

// The figures of a log line.
static void write_figures(char out[FIGURES_SIZE], const struct inferstat_inference *inference,
                          const struct outcome *outcome)
{
    char total[UNIT_TEXT_SIZE], prefill[UNIT_TEXT_SIZE], ttft[UNIT_TEXT_SIZE] = "-";
    char speed[UNIT_TEXT_SIZE] = "-";
    (void)unit_format_int(total, UNIT_DURATION, (int64_t)outcome->e2e_ns);
    if (inference->items) {
        (void)snprintf(out, FIGURES_SIZE, "items=%u total=%s", inference->items, total);
        return;
    }
    if (outcome->ttft_ns)
        (void)unit_format_int(ttft, UNIT_DURATION, (int64_t)outcome->ttft_ns);
    if (outcome->decode_ns)
        (void)snprintf(speed, sizeof speed, "%.2f",
                       (double)(outcome->generated - 1) * 1e9 / (double)outcome->decode_ns);
    (void)snprintf(
        out, FIGURES_SIZE, "prompt=%u generated=%llu total=%s prefill=%s ttft=%s tokens/sec=%s",
        inference->prompt, (unsigned long long)outcome->generated, total,
        unit_format_int(prefill, UNIT_DURATION, (int64_t)outcome->prefill_ns), ttft, speed);
}

static __attribute__((noinline, cold)) void
log_inference(const struct inferstat_inference *inference, const struct outcome *outcome,
              enum inferstat_finish finish, const char *error)
{
    char figures[FIGURES_SIZE];
    write_figures(figures, inference, outcome);
    log_sink_write(&inference->monitor->log, INFERSTAT_LOG_INFO,
                   "[INFER] model=%s %s finish=%s%s%s",
                   names_text(inference->monitor->names, inference->model, NULL), figures,
                   column_enum_text(COLUMN_FINISH, finish), error && *error ? " error=" : "",
                   error ? error : "");
}

// `error` is NULL where no reason is known.
static inline void end_request(struct inferstat_inference *inference, enum inferstat_finish finish,
                               const char *error)
{
    if (!inference || !inference->active)
        return;
    inference->active = false;
    struct inferstat_monitor *monitor = inference->monitor;
    if (!monitor_is_live(monitor))
        return;
    if ((unsigned)finish > INFERSTAT_FINISH_ERROR)
        finish = INFERSTAT_FINISH_ERROR;

    const uint64_t end = inference->last_ns ? inference->last_ns : clock_monotonic_ns();
    struct thread_slot *slot = thread_slot_current(&monitor->slots);
    struct outcome outcome;
    measure(inference, end, &outcome);
    finish_gaps(inference, slot, end, &outcome);
    const int64_t queued =
        atomic_load_explicit(&monitor->sampled.queued_requests, memory_order_relaxed);
    outcome.concurrent = thread_slot_end_request(slot, inference->place, inference->is_computed) +
                         (queued > 0 ? queued : 0);
    if (error)
        push_failed(inference, &outcome, slot, error);
    else
        push_record(inference, &outcome, finish, slot);
    thread_slot_set_activity(slot, ACTIVITY_IDLE, 0, end);
    if (monitor->logging)
        log_inference(inference, &outcome, finish, error);

    struct event_entry entry = {
        .ended_ns = end,
        .started_ns = monitor_wall_ns(monitor, inference->arrival_ns),
        .duration_ns = outcome.e2e_ns,
        .ttft_ns = outcome.ttft_ns,
        .decode_ns = outcome.decode_ns,
        .prompt_tokens = inference->prompt,
        .generated_tokens = outcome.generated,
        .items = inference->items,
        .host_memory_bytes =
            atomic_load_explicit(&monitor->sampled.host_memory, memory_order_relaxed),
        .name = inference->model,
        .status = (int32_t)finish,
    };
    inference->last_ns = 0;
    inference->first_ns = 0;
    recent_events_add(monitor, slot, INFERSTAT_EVENT_INFERENCE, &entry);
}

void inferstat_inference_end(struct inferstat_inference *inference, enum inferstat_finish finish)
{
    end_request(inference, finish, NULL);
}

void inferstat_inference_fail(struct inferstat_inference *inference, const char *error)
{
    end_request(inference, INFERSTAT_FINISH_ERROR, error);
}
