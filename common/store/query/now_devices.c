#include "common/store/query/now_devices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/core/base/key_index.h"
#include "common/core/base/text.h"
#include "common/store/read/reader.h"
#include "common/store/read/recent.h"
#include "common/store/read/session.h"

// The newest sample of a device, and its energy in the first one.
struct sample {
    int64_t host, device, uuid; // of the UUID a hash; 0: it is not known
    int64_t id, started_ns, first_ns;
    double util, used, room, joules, first_joules; // NaN: unknown
    bool has_several;                              // several models use it
};

struct use {
    size_t sample; // its place in the list sorted by host
    int64_t model;
};

enum { UNDESCRIBED = 16, DEVICES_MAX = 160 }; // of a run, whatever it says

// Items by two numbers, however many.
struct table {
    struct key_index index;
    void *items;
    size_t size, room;
};

struct devices {
    struct groups *sums;
    const struct query_filter *filter;
    struct sampler *samplers;
    size_t sampler_count, sampler_room;
    struct table uuids;   // int64_t by run and name of a device
    struct table samples; // by run and device
    struct table merged;  // struct sample by host and UUID or device; then sorted by host
    struct table uses;    // by model and sample
    size_t at;            // in `merged`, of the host whose uses are read
};

// Finds or adds an item, of zeros; NULL: memory is out.
static void *item_of(struct table *table, int64_t first, int64_t second, struct error *err)
{
    const size_t known = table->index.count;
    size_t number = 0;
    if (key_index_add(&table->index, (const int64_t[]){first, second}, &number) != STATUS_OK ||
        !array_reserve(&table->items, &table->room, number + 1, table->size)) {
        (void)error_no_memory(err, "store");
        return NULL;
    }
    void *item = (char *)table->items + number * table->size;
    return number == known ? memset(item, 0, table->size) : item;
}

static void deinit_table(struct table *table)
{
    key_index_deinit(&table->index);
    free(table->items);
}

static enum status on_uuid(void *context, sqlite3_stmt *row, struct error *err)
{
    struct devices *devices = context;
    int64_t *uuid =
        item_of(&devices->uuids, sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1), err);
    if (!uuid)
        return err->status;
    const char *text = (const char *)sqlite3_column_text(row, 2); // what it said last
    *uuid = text ? (int64_t)(text_hash(text, strlen(text)) >> 1 | 1) : 0;
    return STATUS_OK;
}

static int64_t uuid_of(const struct devices *devices, int64_t run, int64_t name)
{
    size_t number = 0;
    return key_index_find(&devices->uuids.index, (const int64_t[]){run, name}, &number)
               ? ((const int64_t *)devices->uuids.items)[number]
               : 0;
}

// ---- Samples ------------------------------------------------------------------------------

struct sampler {
    int64_t run, host, count; // of its devices
};

// A run's samples being read: the newest ones, or the first of the window.
struct pass {
    struct devices *devices;
    const struct sampler *sampler;
    bool is_first;
};

static enum status on_sampler(void *context, sqlite3_stmt *row, struct error *err)
{
    struct devices *devices = context;
    if (!ARRAY_RESERVE(&devices->samplers, &devices->sampler_room, devices->sampler_count + 1))
        return error_no_memory(err, "store");
    devices->samplers[devices->sampler_count++] = (struct sampler){
        sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1), sqlite3_column_int64(row, 2)};
    return STATUS_OK;
}

enum { ID, DEVICE, STARTED, JOULES, UTIL, USED, ROOM };

static enum status on_sample(void *context, sqlite3_stmt *row, struct error *err)
{
    const struct pass *pass = context;
    const int64_t run = pass->sampler->run, device = sqlite3_column_int64(row, DEVICE);
    const int64_t id = sqlite3_column_int64(row, ID);
    const int64_t started_ns = sqlite3_column_int64(row, STARTED);
    struct sample *sample = item_of(&pass->devices->samples, run, device, err);
    if (!sample)
        return err->status;
    if (pass->is_first && (sample->first_ns == 0 || started_ns < sample->first_ns)) {
        sample->first_ns = started_ns;
        sample->first_joules = reader_real(row, JOULES);
    } else if (!pass->is_first && id > sample->id) {
        sample->host = pass->sampler->host;
        sample->device = device;
        sample->uuid = uuid_of(pass->devices, run, device);
        sample->id = id;
        sample->started_ns = started_ns;
        sample->joules = reader_real(row, JOULES);
        sample->util = reader_real(row, UTIL);
        sample->used = reader_real(row, USED);
        sample->room = reader_real(row, ROOM);
    }
    return STATUS_OK;
}

// As many samples as a run has devices are a pass over them.  The first one of a process has no
// time in which energy was used; the next one has the same start.
static enum status read_pass(struct devices *devices, struct store *store, size_t at, bool is_first,
                             struct error *err)
{
    struct pass pass = {devices, &devices->samplers[at], is_first};
    const int64_t numbers[] = {pass.sampler->run, pass.sampler->count};
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql,
                        "SELECT id, device, started_ns, energy_joules, gpu_util_ratio,"
                        " memory_used_bytes, memory_total_bytes FROM main.device_sample"
                        " WHERE run = $1 AND started_ns >= :since AND started_ns < %s%s LIMIT $2",
                        READER_END(devices->filter->until_ns),
                        is_first ? " AND duration_ns IS NOT NULL ORDER BY started_ns"
                                 : " ORDER BY started_ns DESC");
    return reader_scan_with(store, sql, devices->filter, numbers, 2, on_sample, &pass, err);
}

// Samplers are open runs with samples; of one whose devices are not described it is not known how
// many it has.
static enum status read_samples(struct devices *devices, struct store *store, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql,
                        "SELECT r.run, r.host, (SELECT iif(count(*) = 0, %d,"
                        "  min(max(count(DISTINCT d.name), coalesce(r.device_count, 0)), %d))"
                        "  FROM main.device d WHERE d.run = r.run)"
                        " FROM %s r WHERE r.\"end\" = 0 AND EXISTS (SELECT 1"
                        "  FROM main.ledger l WHERE l.run = r.run AND l.kind = %d"
                        "   AND l.stored > 0)",
                        UNDESCRIBED, DEVICES_MAX, reader_runs(devices->filter),
                        RECORD_KIND_DEVICE_SAMPLE);
    enum status status = reader_scan(store, sql, devices->filter, on_sampler, devices, err);
    for (size_t i = 0; i < devices->sampler_count && status == STATUS_OK; i++) {
        status = read_pass(devices, store, i, false, err);
        if (status == STATUS_OK)
            status = read_pass(devices, store, i, true, err);
    }
    return status;
}

static int compare_samples(const void *left, const void *right)
{
    const struct sample *a = left, *b = right;
    if (a->host != b->host)
        return a->host < b->host ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

// Two runs may sample a device: the newest sample counts.
static enum status merge_samples(struct devices *devices, struct error *err)
{
    const struct sample *samples = devices->samples.items;
    for (size_t i = 0; i < devices->samples.index.count; i++) {
        const int64_t of = samples[i].uuid ? -samples[i].uuid : samples[i].device;
        struct sample *merged =
            samples[i].id ? item_of(&devices->merged, samples[i].host, of, err) : NULL;
        if (samples[i].id && !merged)
            return err->status;
        if (merged && samples[i].id > merged->id)
            *merged = samples[i];
    }
    if (devices->merged.index.count > 1)
        qsort(devices->merged.items, devices->merged.index.count, sizeof *samples, compare_samples);
    return STATUS_OK;
}

// ---- Uses ---------------------------------------------------------------------------------

// Of runs (twice) and answers.
static const char uses_sql[] =
    "SELECT DISTINCT r.host, u.run, u.device, u.model FROM"
    "  (SELECT value ->> 0 AS run, value ->> 1 AS model, value ->> 2 AS device FROM %s"
    "   UNION SELECT l.run, l.model, l.device FROM %s o"
    "    CROSS JOIN main.load l ON l.run = o.run AND l.status = 0 AND l.started_ns < %s"
    "    WHERE o.\"end\" = 0) u JOIN %s r ON r.run = u.run WHERE r.\"end\" = 0 ORDER BY r.host";

static enum status on_use(void *context, sqlite3_stmt *row, struct error *err)
{
    struct devices *devices = context;
    const struct sample *samples = devices->merged.items;
    const int64_t host = sqlite3_column_int64(row, 0), device = sqlite3_column_int64(row, 2);
    const int64_t uuid = uuid_of(devices, sqlite3_column_int64(row, 1), device);
    const int64_t model = sqlite3_column_int64(row, 3);
    const size_t count = devices->merged.index.count;
    while (devices->at < count && samples[devices->at].host < host)
        devices->at++;
    for (size_t i = devices->at; i < count && samples[i].host == host; i++) {
        if (uuid && samples[i].uuid ? uuid != samples[i].uuid : device != samples[i].device)
            continue;
        struct use *use = item_of(&devices->uses, model, (int64_t)i, err);
        if (!use)
            return err->status;
        *use = (struct use){i, model};
    }
    return STATUS_OK;
}

// ---- Sums ---------------------------------------------------------------------------------

static int compare_uses(const void *left, const void *right)
{
    const struct use *a = left, *b = right;
    return (a->sample > b->sample) - (a->sample < b->sample);
}

static enum status add_sample(struct devices *devices, const struct use *use, struct error *err)
{
    const struct sample *sample = (struct sample *)devices->merged.items + use->sample;
    const int64_t keys[] = {use->model, sample->host};
    const double seconds =
        sample->first_ns ? (double)(sample->started_ns - sample->first_ns) / 1e9 : (double)NAN;
    const double watts = (sample->joules - sample->first_joules) / seconds;
    struct group *group = NULL;
    enum status status = reader_group(devices->sums, keys, &group, err);
    if (status != STATUS_OK)
        return status;
    struct now_device_sums *sums = group->data;
    if (!isnan(sample->util)) {
        sums->util += sample->util;
        sums->util_count++;
    }
    if (sample->room > 0 && !isnan(sample->used)) {
        sums->used_bytes += sample->used;
        sums->total_bytes += sample->room;
    }
    // Without the power of all of them it is not known.
    sums->watts += seconds > 0 && watts >= 0 ? watts : (double)NAN;
    if (!isnan(seconds))
        sums->seconds = sums->seconds > 0 ? fmin(sums->seconds, seconds) : seconds;
    sums->is_shared |= sample->has_several;
    return STATUS_OK;
}

static enum status add_samples(struct devices *devices, struct error *err)
{
    const size_t count = devices->uses.index.count;
    struct use *uses = devices->uses.items;
    struct sample *samples = devices->merged.items;
    enum status status = STATUS_OK;
    if (count > 1)
        qsort(uses, count, sizeof *uses, compare_uses);
    for (size_t i = 1; i < count; i++)
        samples[uses[i].sample].has_several |= uses[i].sample == uses[i - 1].sample;
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = add_sample(devices, &uses[i], err);
    return status;
}

static enum status read_all(struct devices *devices, struct store *store, struct error *err)
{
    const struct query_filter *filter = devices->filter;
    const char *runs = reader_runs(filter);
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql,
                        "SELECT d.run, d.name, d.uuid FROM %s r"
                        " CROSS JOIN main.device d ON d.run = r.run"
                        " WHERE r.\"end\" = 0 ORDER BY d.id",
                        runs);
    enum status status = reader_scan(store, sql, filter, on_uuid, devices, err);
    if (status != STATUS_OK)
        return status;
    status = read_samples(devices, store, err);
    if (status == STATUS_OK)
        status = merge_samples(devices, err);
    if (status != STATUS_OK || devices->merged.index.count == 0)
        return status;
    sql = sqlite3_str_new(store->db);
    sqlite3_str_appendf(sql, uses_sql, recent_answers(filter), runs, READER_END(filter->until_ns),
                        runs);
    status = reader_scan(store, sql, filter, on_use, devices, err);
    return status == STATUS_OK ? add_samples(devices, err) : status;
}

enum status now_devices_read(struct groups **out, struct store *store,
                             const struct query_filter *filter, struct error *err)
{
    if (groups_new(out, 2, sizeof(struct now_device_sums), NULL) != STATUS_OK)
        return error_no_memory(err, "store");
    struct devices devices = {.sums = *out,
                              .filter = filter,
                              .uuids = {.index.width = 2, .size = sizeof(int64_t)},
                              .samples = {.index.width = 2, .size = sizeof(struct sample)},
                              .merged = {.index.width = 2, .size = sizeof(struct sample)},
                              .uses = {.index.width = 2, .size = sizeof(struct use)}};
    enum status status = read_all(&devices, store, err);
    free(devices.samplers);
    deinit_table(&devices.uuids);
    deinit_table(&devices.samples);
    deinit_table(&devices.merged);
    deinit_table(&devices.uses);
    return status;
}
