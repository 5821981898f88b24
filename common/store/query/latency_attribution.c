#include "common/store/query/latency_attribution.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/record/throttle.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"
#include "common/store/read/device_names.h"

const char *attribution_part_name(enum attribution_part part)
{
    static const char *const names[ATTRIBUTION_PART_COUNT] = {
#define ATTRIBUTION_NAME(name, text) [ATTRIBUTION_##name] = text,
        ATTRIBUTION_PARTS(ATTRIBUTION_NAME)
#undef ATTRIBUTION_NAME
    };
    assert((unsigned)part < ATTRIBUTION_PART_COUNT);
    return names[part];
}

// The part of a phase itself, and of the work that it had to do.
static const struct {
    enum attribution_part own, work;
} phase_parts[ATTRIBUTION_PHASES] = {
    [PHASE_QUEUE] = {ATTRIBUTION_QUEUE, ATTRIBUTION_QUEUE}, // waiting has no units of work
    [PHASE_PREFILL] = {ATTRIBUTION_PREFILL, ATTRIBUTION_PROMPT},
    [PHASE_DECODE] = {ATTRIBUTION_DECODE, ATTRIBUTION_TOKENS},
};

// What more (or less) work than usual accounts for.  Work that goes the same way as
// the excess does not account for more than all of it.
static int64_t work_ns(const struct attribution_times *phase, int64_t excess_ns)
{
    const double limit = 0x1p61;
    double work = phase->more_units * phase->unit_ns;
    if (!(fabs(work) > 0))
        return 0;
    work = fmin(fmax(work, -limit), limit);
    const int64_t whole = llround(work);
    if (whole > 0 && excess_ns > 0 && whole > excess_ns)
        return excess_ns;
    if (whole < 0 && excess_ns < 0 && whole < excess_ns)
        return excess_ns;
    return whole;
}

// Gives what a phase was slower to its causes, at most `*left`, which it reduces; returns the rest.
// A stop comes first, and concurrency last: whatever makes requests slow, more of them are in
// progress.
static int64_t share_out(const struct attribution_times *phase, int64_t slower_ns, int64_t *left,
                         int64_t parts[ATTRIBUTION_PART_COUNT])
{
    const unsigned stop = ATTRIBUTION_STOPPED - ATTRIBUTION_COPY;
    const int64_t most = slower_ns < *left ? slower_ns : *left;
    if (most <= 0)
        return slower_ns;
    int64_t given = phase->overlap_ns[stop] < most ? phase->overlap_ns[stop] : most;
    parts[ATTRIBUTION_STOPPED] += given;
    double claimed = 0;
    for (unsigned i = 0; i < stop; i++)
        claimed += (double)phase->overlap_ns[i];
    const double rest = (double)(most - given), scale = claimed > rest ? rest / claimed : 1;
    for (unsigned i = 0; i < ATTRIBUTION_CAUSES; i++) {
        const int64_t wanted = i == stop ? 0 : llround((double)phase->overlap_ns[i] * scale);
        const int64_t share = wanted < most - given ? wanted : most - given;
        parts[ATTRIBUTION_COPY + i] += share;
        given += share;
    }
    *left -= given;
    return slower_ns - given;
}

void attribution_split(const struct attribution *attribution, int64_t parts[ATTRIBUTION_PART_COUNT])
{
    int64_t works[ATTRIBUTION_PHASES] = {0};
    for (unsigned i = 0; i < ATTRIBUTION_PART_COUNT; i++)
        parts[i] = 0;
    int64_t other = attribution->took_ns - attribution->median_ns, left = other;
    for (unsigned i = 0; i < ATTRIBUTION_PHASES; i++) {
        const struct attribution_times *phase = &attribution->phases[i];
        if (phase->known)
            works[i] = work_ns(phase, phase->took_ns - phase->median_ns);
        left -= works[i];
    }
    for (unsigned i = 0; i < ATTRIBUTION_PHASES; i++) {
        const struct attribution_times *phase = &attribution->phases[i];
        if (!phase->known)
            continue;
        const int64_t excess = phase->took_ns - phase->median_ns;
        parts[phase_parts[i].work] += works[i];
        parts[phase_parts[i].own] += share_out(phase, excess - works[i], &left, parts);
        other -= excess;
    }
    parts[ATTRIBUTION_OTHER] = other;
}

int64_t attribution_concurrency_ns(int64_t took_ns, int64_t requests, double median)
{
    if (!(median > 0) || !((double)requests > median))
        return 0;
    return llround((double)took_ns * (1 - median / (double)requests));
}

int64_t attribution_beyond_usual_ns(int64_t overlap_ns, int64_t took_ns, double usual_share)
{
    const double beyond = (double)overlap_ns - (double)took_ns * usual_share;
    return beyond > 0 ? llround(beyond) : 0;
}

enum attribution_part attribution_main(const int64_t parts[ATTRIBUTION_PART_COUNT],
                                       int64_t median_ns)
{
    int64_t excess = 0;
    unsigned most = 0;
    for (unsigned i = 0; i < ATTRIBUTION_PART_COUNT; i++) {
        excess += parts[i];
        if (parts[i] > parts[most])
            most = i;
    }
    if (!((double)excess > ATTRIBUTION_NOTABLE * (double)median_ns))
        return ATTRIBUTION_PART_COUNT;
    return (enum attribution_part)most;
}

// ---- Concurrent events: the statement ----------------------------------------------------
//
// $1 and $2 are the request's host and device, $3 to $6 the starts of its phases and its end, $7
// its run.  The causes are numbers of enum attribution_part.

// Appends the source of rows `t`: of the newest records that began from `before_ns` before the
// request to `after_ns` after it and pass the condition, those of the request's host.
static void append_newest(sqlite3_str *sql, const char *kind, int64_t before_ns, int64_t after_ns,
                          const char *condition, int most)
{
    sqlite3_str_appendf(sql,
                        " FROM (SELECT * FROM %s WHERE started_ns >= $3 - %lld"
                        " AND started_ns < $6 + %lld%s ORDER BY started_ns DESC LIMIT %d) t"
                        " WHERE (SELECT r.host FROM run r WHERE r.run = t.run) = $1",
                        kind, (long long)before_ns, (long long)after_ns, condition, most);
}

// The newest loads or pipelines that ran during the request.
static void append_running(sqlite3_str *sql, const char *kind)
{
    append_newest(sql, kind, EVENTS_BEFORE_NS, 0, " AND started_ns + duration_ns > $3",
                  EVENTS_SPANS_MAX);
}

// Appends the condition that a row `t` of the request's host is of its device, whatever the row's
// run calls it.
static void append_same_device(sqlite3_str *sql)
{
    sqlite3_str_appendall(sql,
                          " AND " DEVICE_NAMES_SAME(DEVICE_NAMES_UUID("t.run", "t.device"),
                                                    "t.device", "(SELECT uuid FROM wanted)", "$2"));
}

#define OR_BIT(bit, text) " | " #bit
#define SAMPLE_READ       "t.started_ns + coalesce(t.duration_ns, 0)"

// Appends the source of samples `t` of the devices of the request's host.  They are found by its
// runs: those of a large fleet are thousands in a second.
static void append_samples(sqlite3_str *sql)
{
    sqlite3_str_appendf(
        sql,
        " FROM (SELECT s.* FROM run o CROSS JOIN device_sample s ON s.run = o.run"
        " AND s.started_ns >= $3 - %lld AND s.started_ns < $6 + %lld WHERE o.host = $1"
        " AND o.heard_ns >= $3 - %lld ORDER BY s.started_ns DESC LIMIT %d) t WHERE 1",
        (long long)EVENTS_SAMPLE_NS, (long long)EVENTS_SAMPLE_NS, (long long)EVENTS_BEFORE_NS,
        EVENTS_SAMPLES_MAX);
}

// Times of loads, of throttling and of stops.  A sample is read at its end, or at its start if it
// has no duration; what it shows may last until its run's next one is read.  Devices of one name in
// one run are read at the same time: their samples end together.
static void append_spans(sqlite3_str *sql)
{
    sqlite3_str_appendf(
        sql,
        "WITH wanted(uuid) AS MATERIALIZED"
        " (SELECT " DEVICE_NAMES_UUID(
            "$7", "$2") "),"
                        " phases(phase, since, until) AS"
                        " (VALUES(0, $3, $4), (1, $4, $5), (2, $5, $6)),"
                        " spans(cause, since, until, reasons) AS (SELECT %d, t.started_ns,"
                        " t.started_ns + t.duration_ns, 0",
        ATTRIBUTION_LOAD);
    append_running(sql, "load");
    sqlite3_str_appendf(
        sql,
        " UNION ALL SELECT %d, since, min(since + %lld, coalesce(next,"
        " since + lasted, since + %lld)), reasons FROM (SELECT t.started_ns AS since,"
        " t.duration_ns AS lasted,"
        " first_value(" SAMPLE_READ ") OVER (PARTITION BY t.run"
        " ORDER BY " SAMPLE_READ " GROUPS BETWEEN 1 FOLLOWING AND 1 FOLLOWING) AS next,"
        " t.throttle_reasons & (0" THROTTLE_REASONS(OR_BIT) ") AS reasons",
        ATTRIBUTION_THROTTLE, (long long)EVENTS_SAMPLE_NS, (long long)EVENTS_SAMPLE_NS);
    append_samples(sql);
    append_same_device(sql);
    sqlite3_str_appendf(
        sql,
        ") WHERE reasons UNION ALL SELECT %d, last + CAST((until - last) * cpu / beside AS INT),"
        " until, 0 FROM (SELECT t.started_ns AS until, lag(t.started_ns) OVER w AS last,"
        " lag(t.started_ns, 2) OVER w AS former, t.cpu_ratio AS cpu,"
        " max(lag(t.cpu_ratio) OVER w, lead(t.cpu_ratio, 1, 0) OVER w) AS beside",
        ATTRIBUTION_STOPPED);
    append_newest(sql, "process_sample", EVENTS_STOP_NS, EVENTS_STOP_NS,
                  " AND model IS NULL AND +run = $7", EVENTS_SAMPLES_MAX);
    sqlite3_str_appendall(sql, " WINDOW w AS (ORDER BY t.started_ns))"
                               " WHERE until - last > 2 * (last - former) AND cpu < beside / 2)");
}

// Pipelines, by the shares of the time that they copied and waited for slots.
static void append_pipelines(sqlite3_str *sql)
{
    sqlite3_str_appendall(
        sql, ", pipelines AS (SELECT t.started_ns AS since, t.started_ns + t.duration_ns AS until,"
             " min(max(CAST(t.copy_busy_ns AS REAL) / nullif(t.duration_ns, 0), 0), 1) AS copy,"
             " min(max(CAST(t.copy_starved_ns AS REAL) / nullif(t.duration_ns, 0), 0), 1)"
             " AS starved");
    append_running(sql, "pipeline");
    append_same_device(sql);
    sqlite3_str_appendall(sql, ")");
}

// Of spans the time that any of them covers, `before` being the end of those that began before; of
// pipelines the sum of their shares, at most the phase.
static void append_answer(sqlite3_str *sql)
{
    sqlite3_str_appendf(
        sql,
        ", clipped AS (SELECT s.cause, p.phase, s.reasons, max(s.since, p.since) AS since,"
        " min(s.until, p.until) AS until FROM spans s JOIN phases p ON s.since < p.until"
        " AND s.until > p.since), covered AS (SELECT *, max(until) OVER (PARTITION BY cause, phase"
        " ORDER BY since ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM clipped),"
        " shares AS (SELECT p.phase, p.until - p.since AS most, s.copy, s.starved,"
        " min(s.until, p.until) - max(s.since, p.since) AS common FROM pipelines s JOIN phases p"
        " ON s.since < p.until AND s.until > p.since)"
        " SELECT phase, cause, total(max(0, until - max(since, coalesce(before, since)))), 0"
        " FROM covered GROUP BY phase, cause"
        " UNION ALL SELECT phase, %d, min(total(common * copy), most), 0 FROM shares GROUP BY phase"
        " UNION ALL SELECT phase, %d, min(total(common * starved), most), 0 FROM shares"
        " GROUP BY phase"
        " UNION ALL SELECT DISTINCT phase, cause, 0, reasons FROM clipped WHERE phase > %d",
        ATTRIBUTION_COPY, ATTRIBUTION_STARVATION, PHASE_QUEUE);
}

_Static_assert((int)PHASE_QUEUE == 0 && (int)ATTRIBUTION_PHASES == 3, "the phases above");

// ---- The answer -----------------------------------------------------------------------

void concurrent_events_place(struct concurrent_events_request *request, int64_t started_ns,
                             const int64_t durations_ns[ATTRIBUTION_PHASES])
{
    request->starts_ns[0] = started_ns;
    for (unsigned i = 0; i < ATTRIBUTION_PHASES; i++)
        if (__builtin_add_overflow(request->starts_ns[i], durations_ns[i] > 0 ? durations_ns[i] : 0,
                                   &request->starts_ns[i + 1]))
            request->starts_ns[i + 1] = INT64_MAX;
}

static enum status on_overlap(void *context, sqlite3_stmt *row, struct error *err)
{
    struct concurrent_events *out = context;
    const double ns = sqlite3_column_double(row, 2);
    (void)err;
    if (ns > 0 && ns < 0x1p62)
        out->ns[sqlite3_column_int(row, 0)][sqlite3_column_int(row, 1) - ATTRIBUTION_COPY] =
            llround(ns);
    out->throttle_reasons |= sqlite3_column_int64(row, 3);
    return STATUS_OK;
}

enum status concurrent_events_read(struct concurrent_events *out, struct store *store,
                                   const struct concurrent_events_request *request,
                                   struct error *err)
{
    enum { STARTS = 2, RUN = STARTS + ATTRIBUTION_PHASES + 1, NUMBERS };
    int64_t numbers[NUMBERS] = {request->host, request->device};
    memcpy(numbers + STARTS, request->starts_ns, sizeof request->starts_ns);
    numbers[RUN] = request->run;
    *out = (struct concurrent_events){0};
    sqlite3_str *sql = sqlite3_str_new(store->db);
    append_spans(sql);
    append_pipelines(sql);
    append_answer(sql);
    return reader_scan_with(store, sql, NULL, numbers, NUMBERS, on_overlap, out, err);
}
