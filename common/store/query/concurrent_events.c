#include "common/store/query/concurrent_events.h"

#include <math.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/record/throttle.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"

// ---- The statement ------------------------------------------------------------------
//
// $1 and $2 are the request's host and device, $3 to $6 the starts of its phases and its end.  The
// causes are numbers of enum attribution_part.

// Ends the WITH of a row's source: the newest records `t` of a kind, of the request's host, that
// began from `before_ns` before the request to `behind_ns` behind it.
static void append_newest(sqlite3_str *sql, const char *kind, int64_t before_ns, int64_t behind_ns,
                          int most)
{
    sqlite3_str_appendf(sql,
                        " FROM (SELECT * FROM %s WHERE started_ns >= $3 - %lld"
                        " AND started_ns < $6 + %lld ORDER BY started_ns DESC LIMIT %d) t"
                        " WHERE (SELECT r.host FROM run r WHERE r.run = t.run) = $1",
                        kind, (long long)before_ns, (long long)behind_ns, most);
}

#define OR_BIT(bit, text) " | " #bit

// Times in which a load ran or the device was throttled.  A sample ends at the start of its run's
// next one.  Devices of one name in one run are sampled at the same time: their samples end
// together.
static void append_spans(sqlite3_str *sql)
{
    sqlite3_str_appendf(sql,
                        "WITH phases(phase, since, until) AS"
                        " (VALUES(0, $3, $4), (1, $4, $5), (2, $5, $6)),"
                        " spans(cause, since, until, reasons) AS (SELECT %d, t.started_ns,"
                        " t.started_ns + t.duration_ns, 0",
                        ATTRIBUTION_LOAD);
    append_newest(sql, "load", EVENTS_BEFORE_NS, 0, EVENTS_SPANS_MAX);
    sqlite3_str_appendf(sql,
                        " UNION ALL SELECT %d, since, min(since + %lld, coalesce(next, since +"
                        " %lld)), reasons FROM (SELECT t.started_ns AS since,"
                        " first_value(t.started_ns) OVER (PARTITION BY t.run ORDER BY t.started_ns"
                        " GROUPS BETWEEN 1 FOLLOWING AND 1 FOLLOWING) AS next,"
                        " t.throttle_reasons & (0" THROTTLE_REASONS(OR_BIT) ") AS reasons",
                        ATTRIBUTION_THROTTLE, (long long)EVENTS_SAMPLE_NS,
                        (long long)EVENTS_SAMPLE_NS);
    append_newest(sql, "device_sample", EVENTS_SAMPLE_NS, EVENTS_SAMPLE_NS, EVENTS_SAMPLES_MAX);
    sqlite3_str_appendall(sql, " AND t.device = $2) WHERE reasons)");
}

// Pipelines, by the shares of the time that they copied and waited for slots.
static void append_pipelines(sqlite3_str *sql)
{
    sqlite3_str_appendall(
        sql, ", pipelines AS (SELECT t.started_ns AS since, t.started_ns + t.duration_ns AS until,"
             " min(max(CAST(t.copy_busy_ns AS REAL) / nullif(t.duration_ns, 0), 0), 1) AS copy,"
             " min(max(CAST(t.copy_starved_ns AS REAL) / nullif(t.duration_ns, 0), 0), 1)"
             " AS starved");
    append_newest(sql, "pipeline", EVENTS_BEFORE_NS, 0, EVENTS_SPANS_MAX);
    sqlite3_str_appendall(sql, " AND t.device = $2)");
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
    int64_t numbers[2 + ATTRIBUTION_PHASES + 1] = {request->host, request->device};
    memcpy(numbers + 2, request->starts_ns, sizeof request->starts_ns);
    *out = (struct concurrent_events){0};
    sqlite3_str *sql = sqlite3_str_new(store->db);
    append_spans(sql);
    append_pipelines(sql);
    append_answer(sql);
    return reader_scan_with(store, sql, NULL, numbers, sizeof numbers / sizeof *numbers, on_overlap,
                            out, err);
}
