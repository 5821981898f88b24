#include "common/store/alert/alert_source.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/saturate.h"
#include "common/core/delivery/delivery_range.h"
#include "common/store/aggregate/aggregate_scan.h"
#include "common/store/alert/alert_source_parts.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"
#include "common/store/schema/schema.h"
#include "common/store/sqlite/database.h"

#define SECOND_NS INT64_C(1000000000)
#define HOUR_NS   (3600 * SECOND_NS)
#define FOREVER   (10 * 365 * 24 * (double)HOUR_NS)

enum { NEWEST_EVENTS = 64 }; // of a run

void alert_source_state_free(struct alert_source_state *state)
{
    for (unsigned i = 0; state && i < ALERT_BASELINE_WINDOWS; i++)
        groups_free(state->slower[i]);
    free(state);
}

enum status alert_source_emit(const struct alert_reader *reader, const int64_t *keys, double value,
                              struct error *err)
{
    const struct query *query = &reader->rule->query;
    for (unsigned i = 0; i < query->group_count; i++) {
        const int64_t wanted = reader->wanted[query->group_by[i]];
        if (wanted && keys[i] != wanted)
            return STATUS_OK;
    }
    return reader->on_value(reader->context, keys, value, err);
}

// ---- Values that a query of the store tells ------------------------------------------------

// Row callback: the keys, then the value.
static enum status on_value_row(void *context, sqlite3_stmt *row, struct error *err)
{
    const struct alert_reader *reader = context;
    const unsigned count = reader->rule->query.group_count;
    int64_t keys[GROUP_KEYS_MAX];
    for (unsigned i = 0; i < count; i++)
        keys[i] = reader_integer(row, (int)i);
    const double value = reader_real(row, (int)count);
    return isnan(value) ? STATUS_OK : alert_source_emit(reader, keys, value, err);
}

// $1: start of the window, $2: now, $3: since when the collector has listened.  A host is silent
// unless its last message was that of a process that then closed; processes of a host need not send
// at the same time.  Messages of a host whose clock is ahead have times that are ahead.
static const char silent_sql[] =
    "SELECT host, iif(alive IS NULL OR alive + 30000000000 < over, 0,"
    "  max($2 - max(alive, coalesce(over, alive), $3), 0))"
    " FROM (SELECT host, max(iif(lives, at, NULL)) AS alive, max(iif(lives, NULL, at)) AS over"
    "  FROM (SELECT t.host, t.\"end\" = 0 OR (t.\"end\" = 3 AND t.ended_ns IS NULL) AS lives,"
    "   t.heard_ns - max(coalesce(t.clock_offset_ns, 0), 0) AS at FROM main.run t"
    "   WHERE t.heard_ns >= $1 AND t.owner <> 0) GROUP BY host)";

// Those of the window; for a day at least 1 where the last process that was heard of with the model
// was killed.
static const char killed_sql[] =
    "SELECT m.name, t.host, max(count(DISTINCT iif(t.killed AND t.heard_ns >= $1, t.run, NULL)),"
    "  iif(m.name AND max(iif(t.killed, t.heard_ns, 0)) = max(t.heard_ns), 1, 0)) AS count"
    " FROM (SELECT *, \"end\" = 2 OR (\"end\" = 3 AND ended_ns IS NOT NULL) AS killed"
    "  FROM main.run) t LEFT JOIN main.model m ON m.run = t.run WHERE t.owner <> 0"
    " AND t.heard_ns >= min($1, $2 - 86400000000000) GROUP BY m.name, t.host HAVING count > 0";

// Of models and hosts of which at least three requests failed.  Where so few failed, the other
// requests are not read.  Where some that hung failed in the window, requests that began since the
// first of these count, too, if they ended in the window: of failures that began in the hour before
// it the newest are looked at.
static const char failed_sql[] =
    "WITH hung(first) AS MATERIALIZED (SELECT coalesce(min(started_ns), $1) FROM"
    "  (SELECT started_ns, e2e_ns FROM main.inference WHERE finish = 3"
    "   AND started_ns BETWEEN $1 - 3600000000000 AND $1 ORDER BY started_ns DESC LIMIT 10000)"
    "  WHERE started_ns + e2e_ns >= $1)"
    " SELECT t.model, r.host, sum(t.finish = 3) * 1.0 / count(*) FROM (SELECT count(*) AS failed"
    "  FROM (SELECT 1 FROM hung CROSS JOIN main.inference t WHERE t.finish = 3"
    "   AND t.started_ns >= hung.first AND t.started_ns + t.e2e_ns >= $1 AND " SCHEMA_IS_PLACED
    "   LIMIT 3)) f CROSS JOIN hung CROSS JOIN main.inference t"
    " CROSS JOIN main.run r ON r.run = t.run WHERE f.failed = 3 AND t.started_ns >= hung.first"
    " AND t.started_ns + t.e2e_ns >= $1 AND " SCHEMA_IS_PLACED " AND r.owner <> 0"
    " GROUP BY t.model, r.host HAVING sum(t.finish = 3) >= 3";

static const char clock_sql[] =
    "SELECT t.host, max(max(abs(t.clock_offset_ns) - coalesce(t.clock_error_ns, 0), 0))"
    " FROM main.run t WHERE t.heard_ns >= $1 AND t.\"end\" = 0 AND t.clock_offset_ns IS NOT NULL"
    " GROUP BY t.host";

// Runs a query whose text is formatted as by sqlite3_str_appendf.
static enum status scan(const struct alert_reader *reader, struct error *err, const char *text, ...)
{
    struct alert_reader context = *reader;
    const int64_t numbers[] = {reader->since_ns, reader->times->now_ns,
                               reader->times->listening_ns};
    sqlite3_str *sql = sqlite3_str_new(reader->store->db);
    va_list arguments;
    va_start(arguments, text);
    sqlite3_str_vappendf(sql, text, arguments);
    va_end(arguments);
    return reader_scan_with(reader->store, sql, NULL, numbers, 3, on_value_row, &context, err);
}

// What another store has is not lost.  The table unnumbered has periods of ten minutes.
static enum status read_dropped(const struct alert_reader *reader, struct error *err)
{
    return scan(
        reader, err,
        "SELECT host, sum(lost) FROM (SELECT t.host, u.lost FROM main.run t"
        " CROSS JOIN main.unnumbered u ON u.run = t.run WHERE t.heard_ns >= $1 AND t.owner <> 0"
        " AND u.told_ns >= $1 - 600000000000"
        " UNION ALL SELECT t.host, g.last - g.first + 1 FROM main.run t"
        " CROSS JOIN main.range g INDEXED BY range_dropped ON g.run = t.run AND g.state = 1"
        " WHERE t.heard_ns >= $1 AND t.owner <> 0 AND g.reason IS NOT %d"
        " AND g.until_ns - coalesce(t.clock_offset_ns, 0) >= $1) GROUP BY host",
        (int)DELIVERY_ACKNOWLEDGED_ELSEWHERE);
}

// Events that the collector has received in the window; an event that lasts is recorded twice.
static enum status read_events(const struct alert_reader *reader, const char *event,
                               const char *count, struct error *err)
{
    return scan(
        reader, err,
        "SELECT host, device, sum(count) FROM (SELECT r.host, t.device, %s AS count"
        " FROM main.event t CROSS JOIN main.run r ON r.run = t.run AND r.owner <> 0"
        " WHERE t.received_ns >= $1 AND t.event = (SELECT id FROM main.name WHERE text = %Q)"
        " GROUP BY t.run, t.device, t.started_ns) GROUP BY host, device",
        count, event);
}

// The share of the window, or of the time since a run with the event came, in which it lasted, by
// the host's clock.  What has not ended when its run has, ended with it.  The plus keeps SQLite
// from an index of all events by their name.
static enum status read_narrow(const struct alert_reader *reader, struct error *err)
{
    return scan(
        reader, err,
        "SELECT host, device, min(1.0, sum(max(0, min(coalesce(ended, last), now)"
        "  - max(started_ns, now - ($2 - max($1, came_ns))))) * 1.0"
        " / max(1, $2 - max($1, min(came_ns))))"
        " FROM (SELECT t.host, e.device, e.started_ns, max(e.started_ns + e.duration_ns) AS ended,"
        "  iif(t.\"end\" = 0, 9223372036854775807, coalesce(t.ended_ns, t.heard_ns)) AS last,"
        "  t.received_ns AS came_ns, $2 + coalesce(t.clock_offset_ns, 0) AS now FROM main.run t"
        "  CROSS JOIN main.event e ON e.id IN (SELECT b.id FROM main.event b WHERE b.run = t.run"
        "   ORDER BY b.started_ns DESC LIMIT %d)"
        "  WHERE t.heard_ns >= $1 AND t.owner <> 0 AND +e.event = (SELECT id FROM main.name"
        "   WHERE text = 'pcie_downgrade') GROUP BY t.run, e.device, e.started_ns)"
        " GROUP BY host, device",
        NEWEST_EVENTS);
}

// ---- Margin to the slowdown -----------------------------------------------------------------

struct margin {
    const struct alert_reader *reader;
    struct aggregate_scan scan; // of temperatures by host and device
};

static enum status on_slowdown(void *context, sqlite3_stmt *row, struct error *err)
{
    const struct margin *margin = context;
    const int64_t keys[] = {sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1)};
    const struct group *group = groups_get(margin->scan.groups, keys);
    const double mean =
        group ? aggregate_mean(&aggregate_scan_ratio(group, 0)->values) : (double)NAN;
    return isnan(mean)
               ? STATUS_OK
               : alert_source_emit(margin->reader, keys, sqlite3_column_double(row, 2) - mean, err);
}

static enum status read_margin(const struct alert_reader *reader, struct error *err)
{
    struct query query = reader->rule->query;
    struct margin margin = {.reader = reader,
                            .scan = {.query = &query, .kind = RECORD_KIND_DEVICE_SAMPLE}};
    query.filter.since_ns = reader->since_ns;
    aggregate_scan_want(&margin.scan, "temperature_celsius", false);
    enum status status = aggregate_scan_run(&margin.scan, reader->store, err);
    if (status == STATUS_OK) {
        sqlite3_str *sql = sqlite3_str_new(reader->store->db);
        sqlite3_str_appendall(sql, "SELECT t.host, d.name, d.slowdown_celsius, max(d.id)"
                                   " FROM main.run t CROSS JOIN main.device d ON d.run = t.run"
                                   " WHERE t.heard_ns >= $1 AND d.slowdown_celsius IS NOT NULL"
                                   " GROUP BY t.host, d.name");
        status = reader_scan_with(reader->store, sql, NULL, &reader->since_ns, 1, on_slowdown,
                                  &margin, err);
    }
    aggregate_scan_deinit(&margin.scan);
    return status;
}

// ---- The disk --------------------------------------------------------------------------------

static enum status read_disk(const struct alert_reader *reader, struct error *err)
{
    static const int64_t keys[1]; // of no group
    const int64_t now_ns = reader->times->now_ns, window_ns = reader->rule->window_ns;
    const int64_t free_bytes = database_free_bytes(reader->store->path);
    const int64_t least_ns = window_ns < HOUR_NS ? window_ns : HOUR_NS;
    int64_t first_ns = 0, first_bytes = 0;
    enum status status = database_integerf(
        reader->store->db, &first_ns, err,
        "SELECT min(at_ns) FROM main.disk_sample WHERE at_ns >= %lld AND at_ns < %lld",
        (long long)reader->since_ns, (long long)now_ns);
    if (status == STATUS_OK)
        status = database_integerf(reader->store->db, &first_bytes, err,
                                   "SELECT free_bytes FROM main.disk_sample WHERE at_ns = %lld",
                                   (long long)first_ns);
    // The first sample is up to two evaluations, of a minute, younger than the window.
    if (status != STATUS_OK || free_bytes == INT64_MAX || first_ns == 0 ||
        now_ns - first_ns < least_ns - 120 * SECOND_NS)
        return status;
    const double used = (double)first_bytes - (double)free_bytes;
    const double left_ns = (double)free_bytes * (double)(now_ns - first_ns) / used;
    return alert_source_emit(reader, keys, used > 0 && left_ns < FOREVER ? left_ns : FOREVER, err);
}

// ---- All -------------------------------------------------------------------------------------

static enum status read_wanted(struct alert_reader *reader, struct error *err)
{
    const struct query_filter *filter = &reader->rule->query.filter;
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT && status == STATUS_OK; i++) {
        if (!filter->by[i][0])
            continue;
        reader->wanted[i] = -1;
        status =
            reader_name(reader->store, filter, (enum query_dimension)i, &reader->wanted[i], err);
    }
    return status;
}

static enum status read_source(const struct alert_reader *reader, struct error *err)
{
    switch (reader->rule->source) {
    case ALERT_SOURCE_HOST_SILENT:
        return scan(reader, err, "%s", silent_sql);
    case ALERT_SOURCE_RUNS_KILLED:
        return scan(reader, err, "%s", killed_sql);
    case ALERT_SOURCE_FAILED_RATIO:
        return scan(reader, err, "%s", failed_sql);
    case ALERT_SOURCE_RECORDS_DROPPED:
        return read_dropped(reader, err);
    case ALERT_SOURCE_CLOCK_OFFSET:
        return scan(reader, err, "%s", clock_sql);
    case ALERT_SOURCE_DISK_FULL_IN:
        return read_disk(reader, err);
    case ALERT_SOURCE_XID_COUNT:
        return read_events(reader, "xid", "count(*)", err);
    case ALERT_SOURCE_SLOWDOWN_MARGIN:
        return read_margin(reader, err);
    case ALERT_SOURCE_PCIE_NARROW:
        return read_narrow(reader, err);
    case ALERT_SOURCE_ECC_UNCORRECTED:
        return read_events(reader, "ecc_uncorrected", "max(1, max(coalesce(t.code, 1)))", err);
    case ALERT_SOURCE_BASELINE_SLOWER:
        return alert_baseline_read(reader, err);
    case ALERT_SOURCE_COUNT:
    case ALERT_SOURCE_NONE:
        break;
    }
    assert(!"a rule of a source");
    return STATUS_OK;
}

enum status alert_source_read(struct alert_source_state **state, struct store *store,
                              const struct alert_rule *rule, const struct alert_times *times,
                              alert_source_value *on_value, void *context, struct error *err)
{
    if (!*state)
        *state = calloc(1, sizeof **state);
    if (!*state)
        return error_no_memory(err, "alerts");
    struct alert_reader reader = {.state = *state,
                                  .store = store,
                                  .rule = rule,
                                  .times = times,
                                  .since_ns = saturate_add(times->now_ns, -rule->window_ns),
                                  .on_value = on_value,
                                  .context = context};
    enum status status = read_wanted(&reader, err);
    return status == STATUS_OK ? read_source(&reader, err) : status;
}
