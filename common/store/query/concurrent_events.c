#include "common/store/query/concurrent_events.h"

#include <math.h>
#include <stdlib.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/core/base/array.h"
#include "common/core/base/saturate.h"
#include "common/core/record/throttle.h"
#include "common/store/read/reader.h"
#include "common/store/read/session_state.h"

// An interval in which something ran.
struct span {
    int64_t run, since_ns, until_ns;
    int64_t reasons;         // of samples
    double copy, starvation; // of pipelines: shares of the span
};

struct spans {
    struct span *list;
    size_t count, room;
};

// ---- Reading ------------------------------------------------------------------------

static enum status add_span(struct spans *spans, struct span span, struct error *err)
{
    if (!ARRAY_RESERVE(&spans->list, &spans->room, spans->count + 1))
        return error_no_memory(err, "store");
    spans->list[spans->count++] = span;
    return STATUS_OK;
}

// part / whole, from 0 to 1 whatever the store holds.
static double share(int64_t part, int64_t whole)
{
    if (part <= 0 || whole <= 0)
        return 0;
    return fmin((double)part / (double)whole, 1);
}

static enum status on_load(void *context, sqlite3_stmt *row, struct error *err)
{
    const int64_t started = sqlite3_column_int64(row, 1);
    return add_span(context,
                    (struct span){.run = sqlite3_column_int64(row, 0),
                                  .since_ns = started,
                                  .until_ns = saturate_add(started, sqlite3_column_int64(row, 2))},
                    err);
}

static enum status on_pipeline(void *context, sqlite3_stmt *row, struct error *err)
{
    const int64_t started = sqlite3_column_int64(row, 1);
    const int64_t duration = sqlite3_column_int64(row, 2);
    return add_span(context,
                    (struct span){.run = sqlite3_column_int64(row, 0),
                                  .since_ns = started,
                                  .until_ns = saturate_add(started, duration),
                                  .copy = share(sqlite3_column_int64(row, 3), duration),
                                  .starvation = share(sqlite3_column_int64(row, 4), duration)},
                    err);
}

// Its end is set by end_samples.
static enum status on_sample(void *context, sqlite3_stmt *row, struct error *err)
{
    const int64_t started = sqlite3_column_int64(row, 1);
    return add_span(context,
                    (struct span){.run = sqlite3_column_int64(row, 0),
                                  .since_ns = started,
                                  .until_ns = saturate_add(started, EVENTS_SAMPLE_NS),
                                  .reasons = throttle_bits(sqlite3_column_int64(row, 2))},
                    err);
}

// Reads the records of a table that began around the request, on its host and, where
// `on_device`, its device.
static enum status read_spans(struct spans *spans, struct store *store,
                              const struct concurrent_events_request *request, const char *table,
                              const char *columns, bool on_device, row_take *take,
                              struct error *err)
{
    const bool samples = take == on_sample;
    const int64_t before = samples ? EVENTS_SAMPLE_NS : EVENTS_BEFORE_NS;
    const int64_t behind = samples ? EVENTS_SAMPLE_NS : 0; // where the last one ends
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql,
                        "SELECT t.run, t.started_ns, %s FROM (SELECT * FROM %s"
                        " WHERE started_ns >= %lld AND started_ns < %lld"
                        " ORDER BY started_ns DESC LIMIT %d) t"
                        " WHERE (SELECT r.host FROM run r WHERE r.run = t.run) = %lld",
                        columns, table, (long long)saturate_add(request->starts_ns[0], -before),
                        (long long)saturate_add(request->starts_ns[ATTRIBUTION_PHASES], behind),
                        samples ? EVENTS_SAMPLES_MAX : EVENTS_SPANS_MAX, (long long)request->host);
    if (on_device)
        sqlite3_str_appendf(sql, " AND t.device = %lld", (long long)request->device);
    return reader_scan(store, sql, NULL, take, spans, err);
}

// ---- Overlap ------------------------------------------------------------------------

static int by_time(const void *left, const void *right)
{
    const struct span *a = left, *b = right;
    return (a->since_ns > b->since_ns) - (a->since_ns < b->since_ns);
}

static int by_run(const void *left, const void *right)
{
    const struct span *a = left, *b = right;
    if (a->run != b->run)
        return a->run < b->run ? -1 : 1;
    return by_time(left, right);
}

static int64_t common_ns(const struct span *span, int64_t since_ns, int64_t until_ns)
{
    const int64_t since = span->since_ns > since_ns ? span->since_ns : since_ns;
    const int64_t until = span->until_ns < until_ns ? span->until_ns : until_ns;
    return since < until ? until - since : 0;
}

// How much of a phase any of the spans covers; the spans are sorted by time.
static int64_t any_ns(const struct spans *spans, int64_t since_ns, int64_t until_ns)
{
    int64_t sum = 0;
    for (size_t i = 0; i < spans->count && since_ns < until_ns; i++) {
        const struct span *span = &spans->list[i];
        const int64_t common = common_ns(span, since_ns, until_ns);
        sum += common;
        if (common > 0)
            since_ns = span->until_ns;
    }
    return sum;
}

static void sort_spans(struct spans *spans, int (*order)(const void *, const void *))
{
    if (spans->count > 1)
        qsort(spans->list, spans->count, sizeof *spans->list, order);
}

static int64_t *place_of(struct concurrent_events *out, unsigned phase, enum attribution_part cause)
{
    return &out->ns[phase][cause - ATTRIBUTION_COPY];
}

static void set_any(struct concurrent_events *out, enum attribution_part cause, struct spans *spans,
                    const struct concurrent_events_request *request)
{
    sort_spans(spans, by_time);
    for (unsigned i = 0; i < ATTRIBUTION_PHASES; i++)
        *place_of(out, i, cause) = any_ns(spans, request->starts_ns[i], request->starts_ns[i + 1]);
}

static int64_t at_most(double ns, int64_t limit)
{
    return ns < (double)limit ? llround(ns) : limit;
}

static void set_pipelines(struct concurrent_events *out, const struct spans *spans,
                          const struct concurrent_events_request *request)
{
    for (unsigned i = 0; i < ATTRIBUTION_PHASES; i++) {
        const int64_t since = request->starts_ns[i], until = request->starts_ns[i + 1];
        double copy = 0, starvation = 0;
        for (size_t k = 0; k < spans->count; k++) {
            const double common = (double)common_ns(&spans->list[k], since, until);
            copy += common * spans->list[k].copy;
            starvation += common * spans->list[k].starvation;
        }
        *place_of(out, i, ATTRIBUTION_COPY) = at_most(copy, until - since);
        *place_of(out, i, ATTRIBUTION_STARVATION) = at_most(starvation, until - since);
    }
}

// Ends each sample at the start of its run's next one, and drops those without reasons.
// Devices of one name in one run are sampled at the same time: their samples end together.
static void end_samples(struct spans *samples)
{
    sort_spans(samples, by_run);
    size_t kept = 0;
    int64_t next_ns = INT64_MAX, later_ns = INT64_MAX;
    for (size_t i = samples->count; i-- > 0;) {
        struct span *span = &samples->list[i];
        const bool is_last = i + 1 == samples->count || samples->list[i + 1].run != span->run;
        if (is_last)
            later_ns = INT64_MAX;
        else if (samples->list[i + 1].since_ns > span->since_ns)
            later_ns = next_ns;
        next_ns = span->since_ns;
        if (later_ns < span->until_ns)
            span->until_ns = later_ns;
    }
    for (size_t i = 0; i < samples->count; i++)
        if (samples->list[i].reasons)
            samples->list[kept++] = samples->list[i];
    samples->count = kept;
}

static void set_throttle(struct concurrent_events *out, struct spans *samples,
                         const struct concurrent_events_request *request)
{
    end_samples(samples);
    set_any(out, ATTRIBUTION_THROTTLE, samples, request);
    for (size_t i = 0; i < samples->count; i++)
        if (common_ns(&samples->list[i], request->starts_ns[PHASE_PREFILL],
                      request->starts_ns[ATTRIBUTION_PHASES]) > 0)
            out->throttle_reasons |= samples->list[i].reasons;
}

enum status concurrent_events_read(struct concurrent_events *out, struct store *store,
                                   const struct concurrent_events_request *request,
                                   struct error *err)
{
    *out = (struct concurrent_events){0};
    struct spans loads = {0}, pipelines = {0}, samples = {0};
    enum status status =
        read_spans(&loads, store, request, "load", "t.duration_ns", false, on_load, err);
    if (status == STATUS_OK)
        status =
            read_spans(&pipelines, store, request, "pipeline",
                       "t.duration_ns, t.copy_busy_ns, t.copy_starved_ns", true, on_pipeline, err);
    if (status == STATUS_OK)
        status = read_spans(&samples, store, request, "device_sample",
                            "coalesce(t.throttle_reasons, 0)", true, on_sample, err);
    if (status == STATUS_OK) {
        set_any(out, ATTRIBUTION_LOAD, &loads, request);
        set_pipelines(out, &pipelines, request);
        set_throttle(out, &samples, request);
    }
    free(loads.list);
    free(pipelines.list);
    free(samples.list);
    return status;
}
