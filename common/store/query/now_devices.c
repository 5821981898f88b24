#include "common/store/query/now_devices.h"

#include <sqlite3.h>

#include "common/store/read/device_names.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"

enum { MODEL, HOST, UTIL, UTIL_COUNT, USED, TOTAL, WATTS, WATTS_COUNT, SECONDS, DEVICES, SHARED };

static enum status on_sums(void *context, sqlite3_stmt *row, struct error *err)
{
    const int64_t keys[] = {sqlite3_column_int64(row, MODEL), sqlite3_column_int64(row, HOST)};
    struct group *group = NULL;
    enum status status = reader_group(context, keys, &group, err);
    if (status != STATUS_OK)
        return status;
    const bool has_watts =
        sqlite3_column_int64(row, WATTS_COUNT) == sqlite3_column_int64(row, DEVICES);
    *(struct now_device_sums *)group->data =
        (struct now_device_sums){.util = sqlite3_column_double(row, UTIL),
                                 .util_count = sqlite3_column_int64(row, UTIL_COUNT),
                                 .used_bytes = sqlite3_column_double(row, USED),
                                 .total_bytes = sqlite3_column_double(row, TOTAL),
                                 .watts = has_watts ? sqlite3_column_double(row, WATTS) : 0,
                                 .seconds = sqlite3_column_double(row, SECONDS),
                                 .is_shared = sqlite3_column_int(row, SHARED)};
    return STATUS_OK;
}

// The samples of a run within one and a half periods are one pass over its devices.
// $1: since when.  Samplers are open runs; `ends` has the newest and the first of their samples.
static const char samples_sql[] =
    "WITH sampler AS MATERIALIZED (SELECT r.run, r.host FROM main.run r WHERE r.\"end\" = 0"
    "  AND EXISTS (SELECT 1 FROM main.ledger l WHERE l.run = r.run AND l.kind = %d"
    "   AND l.stored > 0)),"
    " ends AS MATERIALIZED (SELECT p.host, p.run, n.started_ns AS newest_ns,"
    "  coalesce(n.duration_ns, 1000000000) * 3 / 2 AS period_ns,"
    "  (SELECT f.started_ns FROM main.device_sample f WHERE f.run = p.run AND f.started_ns >= $1"
    "   ORDER BY f.started_ns LIMIT 1) AS first_ns"
    "  FROM sampler p CROSS JOIN main.device_sample n ON n.id = (SELECT i.id"
    "   FROM main.device_sample i WHERE i.run = p.run ORDER BY i.started_ns DESC LIMIT 1)"
    "  WHERE n.started_ns >= $1),"
    " newest AS MATERIALIZED (SELECT e.host, s.run, s.device, s.gpu_util_ratio AS util,"
    "  s.memory_used_bytes AS used, s.memory_total_bytes AS room, s.energy_joules AS joules,"
    "  s.started_ns, max(s.id) AS id, " DEVICE_NAMES_UUID(
        "s.run",
        "s.device") " AS uuid"
                    "  FROM ends e CROSS JOIN main.device_sample s ON s.run = e.run"
                    "   AND s.started_ns BETWEEN e.newest_ns - e.period_ns AND e.newest_ns"
                    "  GROUP BY s.run, s.device),"
                    " first AS MATERIALIZED (SELECT s.run, s.device, s.energy_joules AS joules,"
                    "  min(s.started_ns) AS started_ns FROM ends e CROSS JOIN main.device_sample s"
                    "   ON s.run = e.run AND s.started_ns BETWEEN e.first_ns AND e.first_ns + "
                    "e.period_ns"
                    "  GROUP BY s.run, s.device),"
                    // Two runs may sample a device: the newest sample counts.
                    " sample AS MATERIALIZED (SELECT n.*, n.joules - f.joules AS energy,"
                    "  (n.started_ns - f.started_ns) / 1e9 AS seconds, max(n.id)"
                    "  FROM newest n LEFT JOIN first f ON f.run = n.run AND f.device = n.device"
                    "  GROUP BY n.host, coalesce(n.uuid, n.device)),";

static const char uses_sql[] =
    " use AS MATERIALIZED (SELECT DISTINCT u.model, r.host, u.device,"
    " " DEVICE_NAMES_UUID(
        "u.run", "u.device") " AS uuid FROM"
                             "  (SELECT run, model, device FROM (SELECT run, model, device FROM "
                             "main.inference"
                             "    ORDER BY id DESC LIMIT 20000)"
                             "   UNION SELECT l.run, l.model, l.device FROM main.run o"
                             "    CROSS JOIN main.load l ON l.run = o.run AND l.status = 0 WHERE "
                             "o.\"end\" = 0) u"
                             "  JOIN main.run r ON r.run = u.run WHERE r.\"end\" = 0),"
                             " pair AS MATERIALIZED (SELECT DISTINCT u.model, u.host, s.id, "
                             "s.util, s.used, s.room,"
                             "  iif(s.seconds > 0 AND s.energy >= 0, s.energy / s.seconds, NULL) "
                             "AS watts, s.seconds"
                             "  FROM use u JOIN sample s ON s.host = u.host"
                             "   AND " DEVICE_NAMES_SAME(
                                 "s.uuid", "s.device", "u.uuid",
                                 "u.device") ")"
                                             " SELECT model, host, total(util), count(util), "
                                             "total(iif(room > 0, used, 0)),"
                                             "  total(iif(used IS NULL, 0, room)), total(watts), "
                                             "count(watts), min(seconds), count(*),"
                                             "  max(models) > 1 FROM (SELECT p.*, count(*) OVER "
                                             "(PARTITION BY p.id) AS models FROM pair p)"
                                             " GROUP BY model, host";

enum status now_devices_read(struct groups **out, struct store *store, int64_t since_ns,
                             struct error *err)
{
    if (groups_new(out, 2, sizeof(struct now_device_sums), NULL) != STATUS_OK)
        return error_no_memory(err, "store");
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql, samples_sql, RECORD_KIND_DEVICE_SAMPLE);
    sqlite3_str_appendall(sql, uses_sql);
    return reader_scan_with(store, sql, NULL, &since_ns, 1, on_sums, *out, err);
}
