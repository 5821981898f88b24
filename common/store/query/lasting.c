#include "common/store/query/lasting.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/core/base/text.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"

#define NAME_OF(id) "(SELECT n.text FROM main.name n WHERE n.id = " id ")"

// $1: the host, or 0.
static const char events_sql[] =
    "SELECT host, " NAME_OF("event") ", since_ns, detail, devices, " NAME_OF(
        "device") " FROM"
                  " (SELECT host, event, min(started_ns) AS since_ns, max(detail) AS detail,"
                  " count(DISTINCT device) AS devices, max(device) AS device"
                  " FROM (SELECT r.host, e.device, e.event, e.started_ns, max(e.detail) AS detail"
                  " FROM main.run r CROSS JOIN main.event e ON e.id IN (SELECT b.id FROM "
                  "main.event b"
                  " WHERE b.run = r.run ORDER BY b.started_ns DESC LIMIT 1000) WHERE r.\"end\" = 0"
                  " AND $1 IN (0, r.host) GROUP BY e.run, e.device, e.event, e.started_ns"
                  " HAVING count(e.duration_ns) = 0) GROUP BY host, event) ORDER BY host, devices "
                  "DESC, 2";

enum { ROW_HOST, ROW_NAME, ROW_SINCE, ROW_DETAIL, ROW_DEVICES, ROW_DEVICE };

static enum status on_event(void *context, sqlite3_stmt *row, struct error *err)
{
    struct lasting *lasting = context;
    if (!ARRAY_RESERVE(&lasting->list, &lasting->room, lasting->count + 1))
        return error_no_memory(err, "store");
    struct lasting_event *event = &lasting->list[lasting->count++];
    *event = (struct lasting_event){.host = sqlite3_column_int64(row, ROW_HOST),
                                    .since_ns = sqlite3_column_int64(row, ROW_SINCE)};
    reader_copy_text(event->name, sizeof event->name, row, ROW_NAME);
    reader_copy_text(event->what, sizeof event->what, row, ROW_DETAIL);
    const int devices = sqlite3_column_int(row, ROW_DEVICES);
    const char *device = (const char *)sqlite3_column_text(row, ROW_DEVICE);
    if (devices > 1)
        (void)text_append(event->what, sizeof event->what, " ", "(%d devices)", devices);
    else if (device)
        (void)text_append(event->what, sizeof event->what, " ", "(%s)", device);
    return STATUS_OK;
}

enum status lasting_read(struct lasting *out, struct store *store, int64_t host, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, events_sql);
    return reader_scan_with(store, sql, NULL, &host, 1, on_event, out, err);
}

void lasting_deinit(struct lasting *lasting)
{
    free(lasting->list);
    *lasting = (struct lasting){0};
}
