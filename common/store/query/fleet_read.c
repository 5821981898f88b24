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

// What samples say of a place, being summed up.
struct sampled {
    uint64_t count, throttled;
    struct aggregate sm_clock, memory_clock, temperature, memory;
    double width, generation; // the best seen: idle links are slower
    int64_t reasons;
};

struct reading {
    struct fleet_place *places;
    struct sampled *sampled;
    int64_t *device_runs; // run of each device's description; 0: none yet
    size_t count;
};

int fleet_place_compare(const void *left, const void *right)
{
    const struct fleet_place *a = left, *b = right;
    if (a->host != b->host)
        return a->host < b->host ? -1 : 1;
    return (a->device > b->device) - (a->device < b->device);
}

struct fleet_place *fleet_find(struct fleet_place *places, size_t count, int64_t host,
                               int64_t device)
{
    const struct fleet_place key = {.host = host, .device = device};
    return count > 0 ? bsearch(&key, places, count, sizeof key, fleet_place_compare) : NULL;
}

static double number_or_nan(sqlite3_stmt *row, int place)
{
    return sqlite3_column_type(row, place) == SQLITE_NULL ? (double)NAN
                                                          : sqlite3_column_double(row, place);
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

// The newest come first; what a host has already stays.
static enum status take_run(void *context, sqlite3_stmt *row, struct error *err)
{
    struct reading *reading = context;
    const int64_t host = sqlite3_column_int64(row, 0);
    (void)err;
    for (size_t i = 0; i < reading->count; i++) {
        struct fleet_facts *facts = &reading->places[i].facts;
        if (reading->places[i].host != host || !isnan(facts->numbers[FLEET_HOST_MEMORY]))
            continue;
        facts->numbers[FLEET_HOST_MEMORY] = sqlite3_column_double(row, 1);
        facts->numbers[FLEET_CPU_COUNT] = sqlite3_column_double(row, 2);
        for (unsigned k = 0; k < FLEET_TEXTS; k++)
            copy_text(facts->texts[k], row, 3 + (int)k);
    }
    return STATUS_OK;
}

static enum status read_runs(struct reading *reading, struct store *store,
                             const struct query_filter *filter, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "SELECT t.host, t.host_memory_bytes, t.cpu_count");
    for (unsigned i = 0; i < FLEET_TEXTS; i++)
        sqlite3_str_appendf(sql, ", t.%s", run_texts[i]);
    // Of each host one: the newest that the window covers.
    sqlite3_str_appendf(sql,
                        " FROM run t WHERE t.run IN (SELECT max(t.run) FROM (SELECT * FROM run"
                        " ORDER BY run DESC LIMIT %d) t",
                        FLEET_RUNS_MAX);
    filter_where_run(sql, filter);
    sqlite3_str_appendall(sql, " GROUP BY t.host)");
    return reader_scan(store, sql, filter, take_run, reading, err);
}

// ---- Devices -------------------------------------------------------------------------

static void take_worst(double *out, double value)
{
    if (isnan(*out) || value < *out)
        *out = value;
}

static enum status take_device(void *context, sqlite3_stmt *row, struct error *err)
{
    struct reading *reading = context;
    const int64_t run = sqlite3_column_int64(row, 0);
    (void)err;
    struct fleet_place *place =
        fleet_find(reading->places, reading->count, sqlite3_column_int64(row, 1),
                   sqlite3_column_int64(row, 2));
    if (!place)
        return STATUS_OK;
    int64_t *described = &reading->device_runs[place - reading->places];
    if (*described && *described != run)
        return STATUS_OK;
    *described = run;
    struct fleet_facts *facts = &place->facts;
    take_worst(&facts->numbers[FLEET_PCIE_WIDTH], number_or_nan(row, 3));
    take_worst(&facts->numbers[FLEET_PCIE_GENERATION], number_or_nan(row, 4));
    take_worst(&facts->pcie_width_max, number_or_nan(row, 5));
    take_worst(&facts->pcie_generation_max, number_or_nan(row, 6));
    take_worst(&facts->numbers[FLEET_H2D], number_or_nan(row, 7));
    take_worst(&facts->numbers[FLEET_BANDWIDTH], number_or_nan(row, 8));
    return STATUS_OK;
}

static enum status read_devices(struct reading *reading, struct store *store,
                                const struct query_filter *filter, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql,
                        "SELECT d.run, t.host, d.name, d.pcie_width,"
                        " d.pcie_generation, d.pcie_width_max, d.pcie_generation_max,"
                        " d.h2d_bytes_per_second, d.memory_bandwidth_bytes_per_second FROM"
                        " (SELECT * FROM device ORDER BY id DESC LIMIT %d) d"
                        " JOIN run t ON t.run = d.run",
                        FLEET_RUNS_MAX);
    filter_where_run(sql, filter);
    sqlite3_str_appendall(sql, " ORDER BY d.id DESC");
    return reader_scan(store, sql, filter, take_device, reading, err);
}

// ---- Samples -------------------------------------------------------------------------

static void take_best(double *out, double value)
{
    if (value > *out)
        *out = value;
}

static void add_number(struct aggregate *aggregate, sqlite3_stmt *row, int place)
{
    if (sqlite3_column_type(row, place) != SQLITE_NULL)
        aggregate_add_real(aggregate, sqlite3_column_double(row, place));
}

// Clocks of an idle device say nothing.
#define BUSY_LEAST 0.05

static enum status take_sample(void *context, sqlite3_stmt *row, struct error *err)
{
    struct reading *reading = context;
    (void)err;
    struct fleet_place *place =
        fleet_find(reading->places, reading->count, sqlite3_column_int64(row, 0),
                   sqlite3_column_int64(row, 1));
    if (!place)
        return STATUS_OK;
    struct sampled *sampled = &reading->sampled[place - reading->places];
    take_best(&sampled->width, number_or_nan(row, 2));
    take_best(&sampled->generation, number_or_nan(row, 3));
    add_number(&sampled->temperature, row, 4);
    add_number(&sampled->memory, row, 5);
    if (!(number_or_nan(row, 6) < BUSY_LEAST)) {
        add_number(&sampled->sm_clock, row, 7);
        add_number(&sampled->memory_clock, row, 8);
    }
    if (sqlite3_column_type(row, 9) != SQLITE_NULL) {
        const int64_t bits = throttle_bits(sqlite3_column_int64(row, 9));
        sampled->count++;
        sampled->throttled += bits != 0;
        sampled->reasons |= bits;
    }
    return STATUS_OK;
}

static enum status read_slice(struct reading *reading, struct store *store, int64_t since_ns,
                              int64_t until_ns, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql,
                        "SELECT (SELECT r.host FROM run r WHERE r.run = s.run), s.device,"
                        " s.pcie_width, s.pcie_generation, s.temperature_celsius,"
                        " s.memory_used_bytes, s.gpu_util_ratio, s.sm_clock_hz, s.memory_clock_hz,"
                        " s.throttle_reasons FROM (SELECT * FROM device_sample WHERE"
                        " started_ns >= %lld AND started_ns < %lld ORDER BY started_ns LIMIT %d) s",
                        (long long)since_ns, (long long)until_ns, FLEET_SLICE_SAMPLES);
    return reader_scan(store, sql, NULL, take_sample, reading, err);
}

static void use_samples(struct reading *reading)
{
    for (size_t i = 0; i < reading->count; i++) {
        const struct sampled *sampled = &reading->sampled[i];
        struct fleet_facts *facts = &reading->places[i].facts;
        if (sampled->width > 0)
            facts->numbers[FLEET_PCIE_WIDTH] = sampled->width;
        if (sampled->generation > 0)
            facts->numbers[FLEET_PCIE_GENERATION] = sampled->generation;
        if (sampled->count > 0)
            facts->numbers[FLEET_THROTTLED] = (double)sampled->throttled / (double)sampled->count;
        facts->throttle_reasons = sampled->reasons;
        facts->numbers[FLEET_SM_CLOCK] = aggregate_mean(&sampled->sm_clock);
        facts->numbers[FLEET_MEMORY_CLOCK] = aggregate_mean(&sampled->memory_clock);
        facts->numbers[FLEET_TEMPERATURE] = aggregate_mean(&sampled->temperature);
        facts->numbers[FLEET_DEVICE_MEMORY] = aggregate_mean(&sampled->memory);
    }
}

static enum status read_samples(struct reading *reading, struct store *store,
                                const struct query_filter *filter, struct error *err)
{
    int64_t first = 0, last = 0;
    enum status status =
        database_integer(store->db, "SELECT min(started_ns) FROM device_sample", &first, err);
    if (status == STATUS_OK)
        status =
            database_integer(store->db, "SELECT max(started_ns) FROM device_sample", &last, err);
    if (status != STATUS_OK)
        return status;
    if (filter->since_ns && filter->since_ns > first)
        first = filter->since_ns;
    if (filter->until_ns && filter->until_ns <= last)
        last = filter->until_ns - 1;
    const int64_t step = last / FLEET_SLICES - first / FLEET_SLICES + 1;
    while (status == STATUS_OK && first <= last) {
        const int64_t end = saturate_add(first, step);
        status = read_slice(reading, store, first, end <= last ? end : saturate_add(last, 1), err);
        if (end == INT64_MAX)
            break;
        first = end;
    }
    return status;
}

enum status fleet_read(struct fleet_place *places, size_t count, struct store *store,
                       const struct query_filter *filter, struct error *err)
{
    struct reading reading = {
        .places = places,
        .sampled = calloc(count ? count : 1, sizeof *reading.sampled),
        .device_runs = calloc(count ? count : 1, sizeof *reading.device_runs),
        .count = count,
    };
    enum status status = STATUS_OK;
    if (!reading.sampled || !reading.device_runs)
        status = error_no_memory(err, "store");
    for (size_t i = 0; i < count; i++)
        fleet_facts_init(&places[i].facts);
    if (status == STATUS_OK)
        status = read_runs(&reading, store, filter, err);
    if (status == STATUS_OK)
        status = read_devices(&reading, store, filter, err);
    if (status == STATUS_OK)
        status = read_samples(&reading, store, filter, err);
    if (status == STATUS_OK)
        use_samples(&reading);
    free(reading.sampled);
    free(reading.device_runs);
    return status;
}
