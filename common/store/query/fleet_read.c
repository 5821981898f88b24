#include "common/store/query/fleet_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/saturate.h"
#include "common/core/base/text.h"
#include "common/core/record/throttle.h"
#include "common/store/sqlite/database.h"
#include "common/store/read/filter.h"
#include "common/store/read/reader.h"
#include "common/store/read/session_state.h"

struct reading {
    struct store *store;
    const struct query_filter *filter;
    struct groups *places;
};

// The facts of the host and device in the first two columns of a row; NULL: not asked for.
static struct fleet_facts *facts_of_row(const struct reading *reading, sqlite3_stmt *row)
{
    const int64_t keys[] = {sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1)};
    struct group *place = groups_get(reading->places, keys);
    return place ? place->data : NULL;
}

static void set_number(double *number, sqlite3_stmt *row, int place)
{
    if (sqlite3_column_type(row, place) != SQLITE_NULL)
        *number = sqlite3_column_double(row, place);
}

// ---- Runs ---------------------------------------------------------------------------

static void copy_text(char out[FLEET_TEXT_SIZE], sqlite3_stmt *row, int place)
{
    const char *text = (const char *)sqlite3_column_text(row, place);
    const size_t size = text ? (size_t)sqlite3_column_bytes(row, place) : 0;
    const size_t kept = size ? text_cut(text, size, FLEET_TEXT_SIZE - 1) : 0;
    if (kept)
        memcpy(out, text, kept);
    out[kept] = '\0';
}

// The columns of a run, in the order of what is taken from them.
static const char *const run_texts[FLEET_TEXTS] = {
    [FLEET_GOVERNOR] = "cpu_governor",
    [FLEET_DRIVER] = "driver",
    [FLEET_CUDA] = "cuda",
    [FLEET_KERNEL] = "kernel",
    [FLEET_CPU] = "cpu",
    [FLEET_VERSION] = "worker_version",
};

static enum status on_run(void *context, sqlite3_stmt *row, struct error *err)
{
    struct reading *reading = context;
    const int64_t host = sqlite3_column_int64(row, 0);
    (void)err;
    for (size_t i = 0; i < groups_count(reading->places); i++) {
        const struct group *place = groups_at(reading->places, i);
        struct fleet_facts *facts = place->data;
        if (place->keys[0] != host)
            continue;
        facts->numbers[FLEET_HOST_MEMORY] = sqlite3_column_double(row, 1);
        facts->numbers[FLEET_CPU_COUNT] = sqlite3_column_double(row, 2);
        for (unsigned k = 0; k < FLEET_TEXTS; k++)
            copy_text(facts->texts[k], row, 3 + (int)k);
    }
    return STATUS_OK;
}

static enum status read_runs(struct reading *reading, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(reading->store->db);
    sqlite3_str_appendall(sql, "SELECT t.host, t.host_memory_bytes, t.cpu_count");
    for (unsigned i = 0; i < FLEET_TEXTS; i++)
        sqlite3_str_appendf(sql, ", t.%s", run_texts[i]);
    // Of each host one: the newest that the window covers.
    sqlite3_str_appendf(sql,
                        " FROM run t WHERE t.run IN (SELECT max(t.run) FROM (SELECT * FROM run"
                        " ORDER BY run DESC LIMIT %d) t",
                        FLEET_RUNS_MAX);
    filter_where(sql, RECORD_KIND_RUN, reading->filter);
    sqlite3_str_appendall(sql, " GROUP BY t.host)");
    return reader_scan(reading->store, sql, reading->filter, on_run, reading, err);
}

// ---- Devices -------------------------------------------------------------------------

static enum status on_device(void *context, sqlite3_stmt *row, struct error *err)
{
    struct fleet_facts *facts = facts_of_row(context, row);
    (void)err;
    if (!facts)
        return STATUS_OK;
    set_number(&facts->numbers[FLEET_PCIE_WIDTH], row, 2);
    set_number(&facts->numbers[FLEET_PCIE_GENERATION], row, 3);
    set_number(&facts->pcie_width_max, row, 4);
    set_number(&facts->pcie_generation_max, row, 5);
    set_number(&facts->numbers[FLEET_H2D], row, 6);
    set_number(&facts->numbers[FLEET_BANDWIDTH], row, 7);
    return STATUS_OK;
}

// The lowest values where a run has several devices of a name.
static enum status read_devices(struct reading *reading, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(reading->store->db);
    sqlite3_str_appendf(sql,
                        "SELECT host, name, min(pcie_width), min(pcie_generation),"
                        " min(pcie_width_max), min(pcie_generation_max), min(h2d_bytes_per_second),"
                        " min(memory_bandwidth_bytes_per_second) FROM (SELECT t.host, d.*, d.run ="
                        " first_value(d.run) OVER (PARTITION BY t.host, d.name ORDER BY d.id DESC)"
                        " AS is_newest FROM (SELECT * FROM device ORDER BY id DESC LIMIT %d) d"
                        " JOIN run t ON t.run = d.run",
                        FLEET_RUNS_MAX);
    filter_where(sql, RECORD_KIND_RUN, reading->filter);
    sqlite3_str_appendall(sql, ") WHERE is_newest GROUP BY host, name");
    return reader_scan(reading->store, sql, reading->filter, on_device, reading, err);
}

// ---- Samples -------------------------------------------------------------------------

#define SAMPLED                                                                                    \
    "run, device, pcie_width, pcie_generation, temperature_celsius, memory_used_bytes,"            \
    " sm_clock_hz, memory_clock_hz, throttle_reasons, gpu_util_ratio"

// Clocks of an idle device say nothing.
#define BUSY "coalesce(s.gpu_util_ratio, 1) >= 0.05"

#define OR_BIT(bit, text)  " | " #bit
#define MAX_BIT(bit, text) "max(s.throttle_reasons & " #bit ") | "
#define THROTTLED          "s.throttle_reasons & (0" THROTTLE_REASONS(OR_BIT) ")"
#define REASONS            THROTTLE_REASONS(MAX_BIT) "0"

// The best link seen counts: idle ones are slower.
static enum status on_samples(void *context, sqlite3_stmt *row, struct error *err)
{
    struct fleet_facts *facts = facts_of_row(context, row);
    (void)err;
    if (!facts)
        return STATUS_OK;
    set_number(&facts->numbers[FLEET_PCIE_WIDTH], row, 2);
    set_number(&facts->numbers[FLEET_PCIE_GENERATION], row, 3);
    set_number(&facts->numbers[FLEET_TEMPERATURE], row, 4);
    set_number(&facts->numbers[FLEET_DEVICE_MEMORY], row, 5);
    set_number(&facts->numbers[FLEET_SM_CLOCK], row, 6);
    set_number(&facts->numbers[FLEET_MEMORY_CLOCK], row, 7);
    set_number(&facts->numbers[FLEET_THROTTLED], row, 8);
    facts->throttle_reasons = sqlite3_column_int64(row, 9);
    return STATUS_OK;
}

// Appends the samples between two times in slices of the same length, of each the first ones.
static void append_slices(sqlite3_str *sql, int64_t first_ns, int64_t last_ns)
{
    const int64_t step = last_ns / FLEET_SLICES - first_ns / FLEET_SLICES + 1;
    int64_t since_ns = first_ns, until_ns = first_ns;
    for (unsigned i = 1; i <= FLEET_SLICES && until_ns < last_ns; i++) {
        until_ns = saturate_add(since_ns, step);
        if (i == FLEET_SLICES || until_ns > last_ns)
            until_ns = last_ns;
        sqlite3_str_appendf(sql,
                            "%sSELECT * FROM (SELECT " SAMPLED
                            " FROM device_sample WHERE started_ns >= %lld"
                            " AND started_ns < %lld ORDER BY started_ns LIMIT %d)",
                            i > 1 ? " UNION ALL " : "", (long long)since_ns, (long long)until_ns,
                            FLEET_SLICE_SAMPLES);
        since_ns = until_ns;
    }
}

static enum status read_slices(struct reading *reading, int64_t first_ns, int64_t last_ns,
                               struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(reading->store->db);
    sqlite3_str_appendall(sql,
                          "SELECT (SELECT r.host FROM run r WHERE r.run = s.run), s.device,"
                          " nullif(max(s.pcie_width), 0), nullif(max(s.pcie_generation), 0),"
                          " avg(s.temperature_celsius),"
                          " avg(s.memory_used_bytes), avg(s.sm_clock_hz) FILTER (WHERE " BUSY "),"
                          " avg(s.memory_clock_hz) FILTER (WHERE " BUSY "),"
                          " avg((" THROTTLED ") <> 0), coalesce(" REASONS ", 0) FROM (");
    append_slices(sql, first_ns, last_ns);
    sqlite3_str_appendall(sql, ") s GROUP BY 1, 2");
    return reader_scan(reading->store, sql, NULL, on_samples, reading, err);
}

static enum status read_samples(struct reading *reading, struct error *err)
{
    int64_t first_ns = 0, last_ns = 0; // before which the last one is
    sqlite3 *db = reading->store->db;
    enum status status =
        database_integer(db, "SELECT min(started_ns) FROM device_sample", &first_ns, err);
    if (status == STATUS_OK)
        status = database_integer(db, "SELECT max(started_ns) FROM device_sample", &last_ns, err);
    last_ns = saturate_add(last_ns, 1);
    if (reading->filter->since_ns && reading->filter->since_ns > first_ns)
        first_ns = reading->filter->since_ns;
    if (reading->filter->until_ns && reading->filter->until_ns < last_ns)
        last_ns = reading->filter->until_ns;
    if (status != STATUS_OK || first_ns >= last_ns)
        return status;
    return read_slices(reading, first_ns, last_ns, err);
}

enum status fleet_read(struct groups *places, struct store *store,
                       const struct query_filter *filter, struct error *err)
{
    struct reading reading = {.store = store, .filter = filter, .places = places};
    for (size_t i = 0; i < groups_count(places); i++)
        fleet_facts_init(groups_at(places, i)->data);
    enum status status = read_runs(&reading, err);
    if (status == STATUS_OK)
        status = read_devices(&reading, err);
    if (status == STATUS_OK)
        status = read_samples(&reading, err);
    return status;
}
