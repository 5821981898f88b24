// DEVICE_HEALTH and HOST_HEALTH: devices and hosts as their newest samples show them, and the means
// and extremes of a window.
#include <sqlite3.h>

#include "common/store/aggregate/aggregate_scan.h"
#include "common/store/query/lasting.h"
#include "common/store/query/query_list.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/filter.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"
#include "common/store/schema/schema_select.h"

#define DAY_NS INT64_C(86400000000000)

// Newest samples, and newest processes, that are read of a run: of one with few devices, and of
// others.  Enough for one sample of each device that a run can have.
enum {
    FEW_DEVICES = 16,
    NEWEST_OF_FEW = 32,
    NEWEST_OF_MANY = 160,
    PROCESSES_SHOWN = 8,
};

// ---- What the answers have -------------------------------------------------------------

// A metric of samples over the window: keys of its mean, and of its extreme or sum (NULL: none).
struct figure {
    const char *metric, *mean, *extreme;
    enum { FIGURE_MAX, FIGURE_MIN, FIGURE_SUM } extreme_is;
};

static const struct figure device_figures[] = {
    {"gpu_util_ratio", "gpu_util_mean_ratio", "gpu_util_max_ratio", FIGURE_MAX},
    {"memory_used_bytes", "memory_used_mean_bytes", "memory_used_max_bytes", FIGURE_MAX},
    {"temperature_celsius", "temperature_mean_celsius", "temperature_max_celsius", FIGURE_MAX},
    {"power_watts", "power_mean_watts", "power_max_watts", FIGURE_MAX},
    {"sm_clock_hz", "sm_clock_mean_hz", "sm_clock_min_hz", FIGURE_MIN},
    {"energy_used_joules", NULL, "energy_window_joules", FIGURE_SUM},
    {"throttled_ratio", "throttled_mean_ratio", NULL, FIGURE_MAX},
};

static const struct figure host_figures[] = {
    {"cpu_util_ratio", "cpu_util_mean_ratio", "cpu_util_max_ratio", FIGURE_MAX},
    {"memory_available_bytes", NULL, "memory_available_min_bytes", FIGURE_MIN},
    {"memory_pressure_ratio", "memory_pressure_mean_ratio", "memory_pressure_max_ratio",
     FIGURE_MAX},
    {"io_pressure_ratio", "io_pressure_mean_ratio", NULL, FIGURE_MAX},
    {"cpu_pressure_ratio", "cpu_pressure_mean_ratio", NULL, FIGURE_MAX},
};

// A column of the answer with its SQL expression: over c (the newest description or sample, of a
// window the newest before its end), r (its run), d (the description of the device) and t (the
// newest sample; null if the run has ended by then: what it said is no more).  $2 is the time of
// asking.
struct expression {
    struct answer_column column;
    const char *sql;
};

#define NAME_OF(id) "(SELECT n.text FROM name n WHERE n.id = " id ")"

// The events that last, of a device or (`device` NULL) of a host itself.
#define EVENTS(run_condition, device)                                                              \
    "(SELECT group_concat(text, ', ') FROM (SELECT l.text FROM lasting l"                          \
    " WHERE " run_condition " AND l.device IS " device                                             \
    " GROUP BY l.text ORDER BY max(l.since_ns) DESC, l.text))"

#define SAMPLED(table)                                                                             \
    "(SELECT l.started_ns + coalesce(l.duration_ns, 0) FROM " table " l WHERE l.id = c.sample)"

// Of a run that is over or silent before the window's end, $4; in a file ($5 is 3) of one that
// closed (1), 10 s before the file's end, as its processes end together.
#define ENDED "coalesce(r.ended_ns, r.heard_ns)"
#define SAMPLER_ENDED                                                                              \
    "iif(r.\"end\" AND " ENDED " < iif(r.\"end\" = 1 AND $5 = 3, min($4, $2 - 1e10), $4), " ENDED  \
    ", NULL)"
// Imported runs have no owner.  In a file those that were killed count: $5 is 3 there, else 2.
#define IS_CLOSED      "(r.\"end\" = 1 OR (r.owner = 0 AND r.\"end\" >= $5))"
#define SAMPLER_CLOSED "iif(" IS_CLOSED ", 1 + 0 * " SAMPLER_ENDED ", NULL)"
#define IS_OPEN        SAMPLER_ENDED " IS NULL"
#define AS_OF          "min($2, $4)"

static const struct expression device_keys[] = {
    {{"host", UNIT_NONE}, NAME_OF("c.host")},
    {{"device", UNIT_NONE}, NAME_OF("c.name")},
    {{"uuid", UNIT_NONE}, "d.uuid"},
    {{"parent_uuid", UNIT_NONE}, "d.parent_uuid"},
    {{"driver", UNIT_NONE}, "r.driver"},
    {{"sampled_ns", UNIT_TIME}, SAMPLED("device_sample")},
    {{"sampler_ended_ns", UNIT_TIME}, SAMPLER_ENDED},
    {{"sampler_closed", UNIT_NONE}, SAMPLER_CLOSED},
    {{"as_of_ns", UNIT_TIME}, AS_OF},
};

static const struct expression device_facts[] = {
    {{"memory_bytes", UNIT_BYTES}, "d.memory_bytes"},
    {{"power_cap_watts", UNIT_WATTS}, "d.power_cap_watts"},
    {{"slowdown_celsius", UNIT_CELSIUS}, "d.slowdown_celsius"},
    {{"sm_clock_max_hz", UNIT_HERTZ}, "d.sm_clock_max_hz"},
    {{"memory_clock_max_hz", UNIT_HERTZ}, "d.memory_clock_max_hz"},
    {{"pcie_generation_max", UNIT_NONE}, "d.pcie_generation_max"},
    {{"pcie_width_max", UNIT_NONE}, "d.pcie_width_max"},
    {{"processes", UNIT_NONE},
     "CASE WHEN " IS_OPEN " AND coalesce(t.process_count, 1) > 0 THEN"
     " (SELECT group_concat(text, ', ') FROM (SELECT coalesce(p.name || ' ', '') || p.pid ||"
     " CASE WHEN p.memory_bytes IS NULL THEN ''"
     " WHEN p.memory_bytes < 1073741824 THEN printf(' %.1f MB', p.memory_bytes / 1048576.0)"
     " ELSE printf(' %.1f GB', p.memory_bytes / 1073741824.0) END AS text FROM process p"
     " WHERE p.run = c.run AND p.device = c.name AND p.newest = p.started_ns"
     " ORDER BY p.memory_bytes DESC, p.pid LIMIT $3)) END"},
    {{"events", UNIT_NONE}, EVENTS("l.run = c.run", "c.name")},
};

static const struct expression host_keys[] = {
    {{"host", UNIT_NONE}, NAME_OF("c.host")},
    {{"sampled_ns", UNIT_TIME}, SAMPLED("host_sample")},
    {{"sampler_ended_ns", UNIT_TIME}, SAMPLER_ENDED},
    {{"sampler_closed", UNIT_NONE}, SAMPLER_CLOSED},
    {{"as_of_ns", UNIT_TIME}, AS_OF},
};

static const struct expression host_facts[] = {
    {{"devices", UNIT_COUNT},
     "(SELECT count(DISTINCT i.name) FROM device i WHERE i.run = c.run"
     " AND " NAME_OF("i.name") " NOT GLOB 'cpu*')"},
    {{"events", UNIT_NONE}, EVENTS("l.host = c.host", "NULL")},
    {{"device_events", UNIT_NONE},
     "(SELECT group_concat(text || iif(devices > 1, ' (' || devices || ' devices)', ''), ', ')"
     " FROM (SELECT l.text, count(DISTINCT l.device) AS devices FROM lasting l"
     " WHERE l.host = c.host AND l.device IS NOT NULL GROUP BY l.text ORDER BY 2 DESC, 1))"},
    {{"processes_cpu_ratio", UNIT_RATIO}, "c.cpu"},
    {{"processes_memory_bytes", UNIT_BYTES}, "CAST(c.memory AS INTEGER)"},
};

// What differs between the two queries.
struct subject {
    enum record_kind kind;
    unsigned group_count;
    const struct expression *keys, *facts;
    unsigned key_count, fact_count;
    const struct figure *figures;
    unsigned figure_count;
    const char *from; // the rows, after the common table expressions
};

static const struct subject devices = {
    .kind = RECORD_KIND_DEVICE_SAMPLE,
    .group_count = 2,
    .keys = device_keys,
    .key_count = sizeof device_keys / sizeof *device_keys,
    .facts = device_facts,
    .fact_count = sizeof device_facts / sizeof *device_facts,
    .figures = device_figures,
    .figure_count = sizeof device_figures / sizeof *device_figures,
    // Two runs of a host mean one device if its UUIDs are equal; without a UUID, if its names are.
    // The run with the newest sample tells about it; if it does not describe it, the newest that
    // does.
    .from = " FROM (SELECT host, run, name, sample, coalesce(id, max(id) OVER (PARTITION BY host,"
            " key)) AS id, row_number() OVER (PARTITION BY host, key ORDER BY sample IS NULL,"
            " sample DESC, id DESC) AS place FROM (SELECT *, coalesce(uuid, max(uuid) OVER"
            " (PARTITION BY host, name), name) AS key FROM known)) c"
            " JOIN main.run r ON r.run = c.run LEFT JOIN device d ON d.id = c.id"
            " LEFT JOIN device_sample t ON t.id = c.sample AND " IS_OPEN " WHERE c.place = 1"
            " ORDER BY host, rtrim(" NAME_OF("c.name") ", '0123456789'),"
                                                       " length(" NAME_OF("c.name") "), \"device\"",
};

static const struct subject hosts = {
    .kind = RECORD_KIND_HOST_SAMPLE,
    .group_count = 1,
    .keys = host_keys,
    .key_count = sizeof host_keys / sizeof *host_keys,
    .facts = host_facts,
    .fact_count = sizeof host_facts / sizeof *host_facts,
    .figures = host_figures,
    .figure_count = sizeof host_figures / sizeof *host_figures,
    // The sums are those of the newest samples of the host's processes that run, now.
    .from =
        " FROM (SELECT o.host, o.run, 0 AS name, o.sample, row_number() OVER (PARTITION BY o.host"
        " ORDER BY o.sample DESC) AS place, sum(p.cpu_ratio) OVER (PARTITION BY o.host) AS cpu,"
        " sum(p.host_memory_bytes * 1.0) OVER (PARTITION BY o.host) AS memory"
        " FROM (SELECT host, run, (SELECT s.id FROM host_sample s WHERE s.run = o.run"
        " AND s.started_ns < $4 ORDER BY s.started_ns DESC LIMIT 1) AS sample, CASE"
        " WHEN \"end\" = 0 AND $4 > $2 THEN (SELECT max(i.id) FROM process_sample i"
        " WHERE i.run = o.run) END AS spent FROM recent o) o"
        " LEFT JOIN process_sample p ON p.id = o.spent) c JOIN main.run r ON r.run = c.run"
        " LEFT JOIN host_sample t ON t.id = c.sample AND " IS_OPEN
        " WHERE c.place = 1 AND c.sample IS NOT NULL ORDER BY host",
};

// ---- The window --------------------------------------------------------------------------

struct health {
    struct store *store;
    const struct query *query;
    const struct subject *subject;
    int64_t as_of_ns;
    struct aggregate_scan scan; // of the window
    struct result *answer;
};

static bool has_window(const struct query *query)
{
    return query->filter.since_ns != 0 || query->filter.until_ns != 0;
}

static void set_figure(struct result *answer, const struct figure *figure, const struct ratio *sums)
{
    const struct aggregate *values = &sums->values;
    if (values->count == 0)
        return;
    if (figure->mean)
        answer_real(answer, figure->mean, aggregate_mean(values));
    if (!figure->extreme)
        return;
    const double mean = aggregate_mean(values);
    answer_real(answer, figure->extreme,
                figure->extreme_is == FIGURE_MAX   ? values->max
                : figure->extreme_is == FIGURE_MIN ? values->min
                                                   : mean * (double)values->count);
}

static void set_window(struct health *health, const int64_t *keys)
{
    const struct rollup_span *window = &health->scan.window;
    const struct group *group = groups_get(health->scan.groups, keys);
    uint64_t samples = 0;
    for (unsigned i = 0; group && i < health->subject->figure_count; i++) {
        const struct ratio *sums = aggregate_scan_ratio(group, i);
        samples = sums->values.count > samples ? sums->values.count : samples;
        set_figure(health->answer, &health->subject->figures[i], sums);
    }
    answer_int(health->answer, "samples", (int64_t)samples);
    if (window->first_ns != INT64_MIN)
        answer_int(health->answer, "window_ns",
                   (window->last_ns != INT64_MAX ? window->last_ns + 1 : health->as_of_ns) -
                       window->first_ns);
}

// ---- The statement -----------------------------------------------------------------------

static enum status add(struct health *health, sqlite3_str *sql, const char *key, enum unit unit)
{
    sqlite3_str_appendf(sql, " AS \"%w\"", key);
    return result_add_column(health->answer, key, unit);
}

static enum status add_expressions(struct health *health, sqlite3_str *sql,
                                   const struct expression *expressions, unsigned count)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < count && status == STATUS_OK; i++) {
        sqlite3_str_appendf(sql, ", %s", expressions[i].sql);
        status = add(health, sql, expressions[i].column.key, expressions[i].column.unit);
    }
    return status;
}

// PCIe throughput is not in every sample: the newest one of two minutes (index device_sample_pcie).
#define PCIE                                                                                       \
    ", coalesce(t.\"%w\", (SELECT s.\"%w\" FROM device_sample s WHERE s.run = c.run"               \
    " AND s.device = c.name AND s.pcie_rx_bytes_per_second IS NOT NULL"                            \
    " AND s.started_ns BETWEEN t.started_ns - 120000000000 AND t.started_ns"                       \
    " ORDER BY s.started_ns DESC LIMIT 1))"

// All columns of the newest sample but the device, and what is derived from them.
static enum status add_sample(struct health *health, sqlite3_str *sql)
{
    const enum record_kind kind = health->subject->kind;
    const struct record_kind_info *info = record_kind_info(kind);
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < info->column_count && status == STATUS_OK; i++) {
        const char *name = info->columns[i].name;
        if (info->columns[i].type == COLUMN_NAME)
            continue;
        const bool is_pcie = kind == RECORD_KIND_DEVICE_SAMPLE &&
                             (i == DEVICE_SAMPLE_PCIE_RX || i == DEVICE_SAMPLE_PCIE_TX);
        sqlite3_str_appendf(sql, is_pcie ? PCIE : ", t.\"%w\"", name, name);
        status = add(health, sql, name, info->columns[i].unit);
    }
    unsigned count;
    const struct record_derived *derived = record_derived(&count);
    for (unsigned i = 0; i < count && status == STATUS_OK; i++) {
        if (derived[i].kind != kind)
            continue;
        sqlite3_str_appendall(sql, ", ");
        schema_select_metric(
            sql, &(struct query_metric){.kind = kind, .column = -1, .derived = &derived[i]});
        status = add(health, sql, derived[i].name, derived[i].unit);
    }
    return status;
}

static enum status add_window(struct health *health)
{
    enum status status = result_add_column(health->answer, "window_ns", UNIT_DURATION);
    if (status == STATUS_OK)
        status = result_add_column(health->answer, "samples", UNIT_COUNT);
    for (unsigned i = 0; i < health->subject->figure_count && status == STATUS_OK; i++) {
        const struct figure *figure = &health->subject->figures[i];
        const struct query_metric *metric = health->scan.metrics[i].metric;
        if (figure->mean)
            status = result_add_column(health->answer, figure->mean, metric->unit);
        if (figure->extreme && status == STATUS_OK)
            status = result_add_column(health->answer, figure->extreme, metric->unit);
    }
    return status;
}

// Appends the source of rows `t`: these columns, of `s`, of the newest ones of each run.  SQLite
// computes and copies each column that is named, of every row.
static void append_newest(sqlite3_str *sql, const char *table, const char *columns)
{
    static const struct {
        const char *runs;
        int rows;
    } sizes[] = {{"NOT IN", NEWEST_OF_FEW}, {"IN", NEWEST_OF_MANY}};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        sqlite3_str_appendf(
            sql,
            "%s SELECT %s FROM (SELECT run FROM recent WHERE run %s (SELECT run FROM many)) r"
            " CROSS JOIN %s s ON s.id IN (SELECT i.id FROM %s i WHERE i.run = r.run"
            " AND i.started_ns < $4 ORDER BY i.started_ns DESC LIMIT %d)",
            i == 0 ? " FROM (" : " UNION ALL", columns, sizes[i].runs, table, table, sizes[i].rows);
    sqlite3_str_appendall(sql, ") t");
}

// Runs that are open or were heard of in the last 24 hours (or in the window), what they say of
// their devices, their newest samples and processes before the window's end, and, unless it is
// past, what is wrong with them now.
static void append_tables(sqlite3_str *sql, const struct query *query)
{
    struct query_filter of_device = query->filter;
    of_device.since_ns = of_device.until_ns = 0;
    sqlite3_str_appendall(sql, "WITH recent AS MATERIALIZED (SELECT t.run, t.host,"
                               " t.\"end\" FROM main.run t");
    filter_where(sql, RECORD_KIND_RUN, &query->filter);
    if (!has_window(query))
        sqlite3_str_appendall(sql, " AND t.run IN (SELECT run FROM main.run WHERE \"end\" = 0"
                                   " UNION SELECT run FROM main.run WHERE heard_ns >= $1)");
    sqlite3_str_appendf(sql,
                        "), many AS MATERIALIZED (SELECT d.run FROM recent r CROSS JOIN"
                        " main.device d ON d.run = r.run GROUP BY d.run HAVING count(*) > %d)",
                        FEW_DEVICES);
    sqlite3_str_appendall(sql, ", described AS MATERIALIZED (SELECT r.host, t.run, t.name,"
                               " t.uuid, max(t.id) AS id FROM recent r"
                               " CROSS JOIN main.device t ON t.run = r.run");
    filter_where(sql, RECORD_KIND_DEVICE, &of_device);
    sqlite3_str_appendall(sql, " GROUP BY t.run, t.name), newest AS MATERIALIZED"
                               " (SELECT t.run, t.device, max(t.id) AS id");
    append_newest(sql, "device_sample", "s.id, s.run, s.device");
    filter_where(sql, RECORD_KIND_DEVICE_SAMPLE, &of_device);
    sqlite3_str_appendall(
        sql,
        " GROUP BY t.run, t.device), known AS MATERIALIZED (SELECT r.host, p.run, p.name, k.uuid,"
        " k.id, i.id AS sample FROM (SELECT run, name FROM described UNION SELECT run, device"
        " FROM newest) p JOIN recent r ON r.run = p.run"
        " LEFT JOIN described k ON k.run = p.run AND k.name = p.name"
        " LEFT JOIN newest i ON i.run = p.run AND i.device = p.name),"
        " process AS MATERIALIZED (SELECT t.*, max(t.started_ns) OVER"
        " (PARTITION BY t.run, t.device) AS newest");
    append_newest(sql, "device_process",
                  "s.run, s.device, s.started_ns, s.pid, s.name, s.memory_bytes");
    sqlite3_str_appendall(sql, "), lasting AS MATERIALIZED (SELECT host, run, device, since_ns,"
                               " text || iif(text = 'xid', coalesce(' ' || detail, ''), '') AS text"
                               " FROM (");
    lasting_select(sql, "recent", "newest", READER_END(0));
    sqlite3_str_appendall(sql, ") WHERE $4 > $2) ");
}

enum { FIRST_COLUMN = 2 }; // before it the host and the device, as ids

static enum status on_row(void *context, sqlite3_stmt *row, struct error *err)
{
    struct health *health = context;
    const int64_t keys[] = {sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1)};
    enum status status = STATUS_OK;
    answer_row(health->answer);
    for (int i = FIRST_COLUMN; i < sqlite3_column_count(row) && status == STATUS_OK; i++)
        status = answer_cell(health->answer, (unsigned)(i - FIRST_COLUMN), row, i, err);
    if (has_window(health->query))
        set_window(health, keys);
    return status;
}

static enum status read_rows(struct health *health, struct error *err)
{
    const struct subject *subject = health->subject;
    const struct query *query = health->query;
    const int64_t numbers[] = {health->as_of_ns - DAY_NS, health->as_of_ns, PROCESSES_SHOWN,
                               query->filter.until_ns ? query->filter.until_ns : INT64_MAX,
                               health->store->is_live ? 2 : 3};
    sqlite3_str *sql = sqlite3_str_new(health->store->db);
    append_tables(sql, query);
    sqlite3_str_appendall(sql, "SELECT c.host AS host_id, c.name AS name_id");
    enum status status = add_expressions(health, sql, subject->keys, subject->key_count);
    if (status == STATUS_OK)
        status = add_sample(health, sql);
    if (status == STATUS_OK)
        status = add_expressions(health, sql, subject->facts, subject->fact_count);
    if (status == STATUS_OK)
        status = add_window(health);
    if (status != STATUS_OK) {
        sqlite3_free(sqlite3_str_finish(sql));
        return error_no_memory(err, "store");
    }
    sqlite3_str_appendf(sql, "%s LIMIT %u", subject->from, query_rows_most(query));
    return reader_scan_with(health->store, sql, &query->filter, numbers,
                            sizeof numbers / sizeof *numbers, on_row, health, err);
}

static enum status answer_health(struct store *store, const struct query *query,
                                 const struct subject *subject, struct result **out,
                                 struct error *err)
{
    struct query of_window = *query;
    struct health health = {
        .store = store,
        .query = query,
        .subject = subject,
        .scan = {.query = &of_window, .kind = subject->kind, .widening_levels = ROLLUP_HOUR + 1}};
    of_window.group_by[0] = QUERY_BY_HOST;
    of_window.group_by[1] = QUERY_BY_DEVICE;
    of_window.group_count = subject->group_count;
    for (unsigned i = 0; i < subject->figure_count; i++)
        aggregate_scan_want(&health.scan, subject->figures[i].metric, false);
    enum status status = filter_check(subject->kind, &query->filter, err);
    if (status == STATUS_OK)
        status = reader_as_of(store, &health.as_of_ns, err);
    if (status == STATUS_OK && has_window(query))
        status = aggregate_scan_run(&health.scan, store, err);
    if (status == STATUS_OK)
        status = answer_new(out, NULL, 0, err);
    if (status == STATUS_OK) {
        health.answer = *out;
        status = read_rows(&health, err);
    }
    aggregate_scan_deinit(&health.scan);
    if (status == STATUS_OK && result_row_count(*out) == 0)
        return error_set(err, STATUS_NO_DATA, "no %s reported in %s",
                         subject->group_count > 1 ? "device" : "host",
                         has_window(query) ? "the window" : "the last 24 hours");
    return status;
}

enum status query_device_health(struct store *store, const struct query *query, struct result **out,
                                struct error *err)
{
    return answer_health(store, query, &devices, out, err);
}

enum status query_host_health(struct store *store, const struct query *query, struct result **out,
                              struct error *err)
{
    return answer_health(store, query, &hosts, out, err);
}
