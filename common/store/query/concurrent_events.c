#include "common/store/query/concurrent_events.h"

#include <math.h>
#include <stdlib.h>

#include <sqlite3.h>

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

// part / whole, from 0 to 1 whatever the store holds.
static double share(int64_t part, int64_t whole)
{
    if (part <= 0 || whole <= 0)
        return 0;
    return fmin((double)part / (double)whole, 1);
}

enum { LOADS, PIPELINES, SAMPLES, SOURCES };

static const struct source {
    const char *table;
    // A row's duration (null: EVENTS_SAMPLE_NS), the parts of it that it copied and was starved
    // for, and its throttle reasons.
    const char *columns;
    bool on_device;               // the records of the request's device alone, not of all its host
    int64_t before_ns, behind_ns; // how far outside of the request records may begin
    int most;
} sources[SOURCES] = {
    [LOADS] = {"load", "t.duration_ns, 0, 0, 0", false, EVENTS_BEFORE_NS, 0, EVENTS_SPANS_MAX},
    [PIPELINES] = {"pipeline", "t.duration_ns, t.copy_busy_ns, t.copy_starved_ns, 0", true,
                   EVENTS_BEFORE_NS, 0, EVENTS_SPANS_MAX},
    [SAMPLES] = {"device_sample", "NULL, 0, 0, t.throttle_reasons", true, EVENTS_SAMPLE_NS,
                 EVENTS_SAMPLE_NS, EVENTS_SAMPLES_MAX},
};

static enum status on_span(void *context, sqlite3_stmt *row, struct error *err)
{
    struct spans *spans = context;
    const int64_t started = sqlite3_column_int64(row, 1);
    const int64_t duration = sqlite3_column_type(row, 2) == SQLITE_NULL
                                 ? EVENTS_SAMPLE_NS
                                 : sqlite3_column_int64(row, 2);
    if (!ARRAY_RESERVE(&spans->list, &spans->room, spans->count + 1))
        return error_no_memory(err, "store");
    spans->list[spans->count++] = (struct span){
        .run = sqlite3_column_int64(row, 0),
        .since_ns = started,
        .until_ns = saturate_add(started, duration),
        .copy = share(sqlite3_column_int64(row, 3), duration),
        .starvation = share(sqlite3_column_int64(row, 4), duration),
        .reasons = throttle_bits(sqlite3_column_int64(row, 5)),
    };
    return STATUS_OK;
}

static enum status read_spans(struct spans *spans, struct store *store,
                              const struct concurrent_events_request *request,
                              const struct source *source, struct error *err)
{
    const int64_t until_ns = request->starts_ns[ATTRIBUTION_PHASES];
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql,
                        "SELECT t.run, t.started_ns, %s FROM (SELECT * FROM %s"
                        " WHERE started_ns >= %lld AND started_ns < %lld"
                        " ORDER BY started_ns DESC LIMIT %d) t"
                        " WHERE (SELECT r.host FROM run r WHERE r.run = t.run) = %lld",
                        source->columns, source->table,
                        (long long)saturate_add(request->starts_ns[0], -source->before_ns),
                        (long long)saturate_add(until_ns, source->behind_ns), source->most,
                        (long long)request->host);
    if (source->on_device)
        sqlite3_str_appendf(sql, " AND t.device = %lld", (long long)request->device);
    return reader_scan(store, sql, NULL, on_span, spans, err);
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
    struct spans spans[SOURCES] = {{0}};
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < SOURCES && status == STATUS_OK; i++)
        status = read_spans(&spans[i], store, request, &sources[i], err);
    if (status == STATUS_OK) {
        set_any(out, ATTRIBUTION_LOAD, &spans[LOADS], request);
        set_pipelines(out, &spans[PIPELINES], request);
        set_throttle(out, &spans[SAMPLES], request);
    }
    for (unsigned i = 0; i < SOURCES; i++)
        free(spans[i].list);
    return status;
}
