#include "common/store/query/lasting.h"

#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/core/base/text.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"

// The share of its memory in use from which on a device is in trouble, as in the built-in alert
// device_memory.
#define IS_FULL       "s.memory_used_bytes > 0.95 * s.memory_total_bytes"
#define IS_IN_TROUBLE "(s.ecc_uncorrected > 0 OR " IS_FULL ")"

// Of the rows of one run and start, one has the duration once the event has ended.
void lasting_select(sqlite3_str *sql, const char *runs, const char *newest, const char *end)
{
    sqlite3_str_appendf(
        sql,
        "SELECT r.host, e.run, e.device, n.text, e.started_ns AS since_ns,"
        " coalesce(max(e.detail), iif(n.text = 'xid', max(e.code), NULL)) AS detail FROM %s r"
        " CROSS JOIN main.event e ON e.id IN (SELECT b.id FROM main.event b WHERE b.run = r.run"
        "  AND b.started_ns < %s ORDER BY b.started_ns DESC LIMIT 1000)"
        " CROSS JOIN main.name n ON n.id = e.event"
        " WHERE r.\"end\" = 0 GROUP BY e.run, e.device, e.event, e.started_ns"
        " HAVING count(iif(e.started_ns + e.duration_ns <= %s, 1, NULL)) = 0"
        "  OR (n.text IN ('xid', 'ecc_uncorrected')"
        "  AND e.started_ns >= $2 - %lld)"
        " UNION ALL SELECT r.host, s.run, s.device, c.text, NULL, NULL FROM %s k"
        " CROSS JOIN main.device_sample s ON s.id = k.id AND " IS_IN_TROUBLE
        " CROSS JOIN %s r ON r.run = k.run"
        " CROSS JOIN (SELECT 'memory_full' AS text UNION ALL SELECT 'ecc_uncorrected') c"
        " WHERE r.\"end\" = 0 AND iif(c.text = 'memory_full', " IS_FULL ", s.ecc_uncorrected > 0)",
        runs, end, end, LASTING_ERROR_NS, newest, runs);
}

// Of runs and, three times, the end.  $1: the host, or 0.  The samples of a run within one and a
// half periods are one pass over its devices.
static const char open_sql[] =
    "WITH open AS MATERIALIZED (SELECT r.run, r.host, r.\"end\" FROM %s r"
    " WHERE r.\"end\" = 0 AND $1 IN (0, r.host)),"
    " newest AS MATERIALIZED (SELECT s.run, s.id FROM open o"
    " CROSS JOIN main.device_sample l ON l.id = (SELECT i.id FROM main.device_sample i"
    "  WHERE i.run = o.run AND i.started_ns < %s ORDER BY i.started_ns DESC LIMIT 1)"
    " CROSS JOIN main.device_sample s ON s.run = o.run AND s.started_ns < %s"
    "  AND s.started_ns >= l.started_ns - coalesce(l.duration_ns, 1000000000) * 3 / 2"
    " WHERE " IS_IN_TROUBLE " AND NOT EXISTS (SELECT 1 FROM main.device_sample n"
    "  WHERE n.run = s.run AND n.started_ns > s.started_ns AND n.started_ns < %s"
    "   AND n.device = s.device)) SELECT host, text, since_ns, detail, devices,"
    " (SELECT n.text FROM main.name n WHERE n.id = device), newest_ns, times"
    " FROM (SELECT host, text, min(since_ns) AS since_ns, max(since_ns) AS newest_ns,"
    "  count(since_ns) AS times, max(detail) AS detail, count(DISTINCT device) AS devices,"
    "  max(device) AS device FROM (";

enum { ROW_HOST, ROW_NAME, ROW_SINCE, ROW_DETAIL, ROW_DEVICES, ROW_DEVICE, ROW_NEWEST, ROW_TIMES };

static enum status on_event(void *context, sqlite3_stmt *row, struct error *err)
{
    struct lasting *lasting = context;
    if (!ARRAY_RESERVE(&lasting->list, &lasting->room, lasting->count + 1))
        return error_no_memory(err, "store");
    struct lasting_event *event = &lasting->list[lasting->count++];
    *event = (struct lasting_event){.host = sqlite3_column_int64(row, ROW_HOST),
                                    .since_ns = sqlite3_column_int64(row, ROW_SINCE),
                                    .newest_ns = sqlite3_column_int64(row, ROW_NEWEST),
                                    .times = (unsigned)sqlite3_column_int(row, ROW_TIMES)};
    reader_copy_text(event->name, sizeof event->name, row, ROW_NAME);
    event->is_moment = strcmp(event->name, "xid") == 0 || strncmp(event->name, "ecc_", 4) == 0;
    reader_copy_text(event->what, sizeof event->what, row, ROW_DETAIL);
    const int devices = sqlite3_column_int(row, ROW_DEVICES);
    const char *device = (const char *)sqlite3_column_text(row, ROW_DEVICE);
    if (devices > 1)
        (void)text_append(event->what, sizeof event->what, " ", "(%d devices)", devices);
    else if (device)
        (void)text_append(event->what, sizeof event->what, " ", "(%s)", device);
    return STATUS_OK;
}

enum status lasting_read(struct lasting *out, struct store *store, int64_t host, int64_t until_ns,
                         struct error *err)
{
    const struct query_filter filter = {.until_ns = until_ns};
    const char *end = READER_END(until_ns);
    int64_t numbers[] = {host, until_ns};
    enum status status = until_ns ? STATUS_OK : reader_as_of(store, &numbers[1], err);
    if (status != STATUS_OK)
        return status;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql, open_sql, reader_runs(&filter), end, end, end);
    lasting_select(sql, "open", "newest", end);
    sqlite3_str_appendall(sql, ") GROUP BY host, text) ORDER BY host, devices DESC, 2");
    return reader_scan_with(store, sql, &filter, numbers, 2, on_event, out, err);
}

void lasting_deinit(struct lasting *lasting)
{
    free(lasting->list);
    *lasting = (struct lasting){0};
}

void lasting_append(char *text, size_t size, const struct lasting_event *event)
{
    if (event->what[0])
        (void)text_append(text, size, event->what[0] == '(' ? " " : ": ", "%s", event->what);
}
