#include "common/store/read/device_names.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"

void device_names_append(sqlite3_str *sql)
{
    sqlite3_str_appendf(
        sql,
        "described AS MATERIALIZED (SELECT r.host, d.run, d.name, d.uuid,"
        " EXISTS (SELECT 1 FROM ledger l WHERE l.run = d.run AND l.kind = %d AND l.stored > 0)"
        " AS samples, EXISTS (SELECT 1 FROM ledger l WHERE l.run = d.run"
        " AND l.kind IN (%d, %d) AND l.stored > 0) AS works"
        " FROM (SELECT run, name, uuid FROM device ORDER BY id DESC LIMIT %d) d"
        " JOIN run r ON r.run = d.run),"
        " used AS MATERIALIZED (SELECT DISTINCT host, name, uuid FROM described WHERE works),"
        " same_device AS MATERIALIZED (SELECT DISTINCT d.host, d.run, d.name AS sampled,"
        " u.name AS used FROM described d JOIN used u ON u.host = d.host"
        " AND " DEVICE_NAMES_SAME("d.uuid", "d.name", "u.uuid", "u.name") " WHERE d.samples)",
        RECORD_KIND_DEVICE_SAMPLE, RECORD_KIND_INFERENCE, RECORD_KIND_LOAD, DEVICE_NAMES_MAX);
}

static enum status on_pair(void *context, sqlite3_stmt *row, struct error *err)
{
    struct device_names *names = context;
    if (!ARRAY_RESERVE(&names->pairs, &names->room, names->count + 1))
        return error_no_memory(err, "store");
    names->pairs[names->count++] =
        (struct device_names_pair){.host = sqlite3_column_int64(row, 0),
                                   .used = sqlite3_column_int64(row, 1),
                                   .model = sqlite3_column_int64(row, 2),
                                   .sampled = sqlite3_column_int64(row, 3),
                                   .device = sqlite3_column_int64(row, 4)};
    return STATUS_OK;
}

enum status device_names_read(struct device_names *names, struct store *store, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "WITH ");
    device_names_append(sql);
    sqlite3_str_appendall(
        sql, " SELECT DISTINCT m.host, m.used, coalesce(k.name, 0), m.sampled, min(m.sampled) OVER"
             " (PARTITION BY m.host, coalesce(d.uuid, m.used))"
             " FROM same_device m JOIN described d ON d.run = m.run AND d.name = m.sampled"
             " JOIN described u ON u.host = m.host AND u.name = m.used AND u.works"
             " AND " DEVICE_NAMES_SAME(
                 "d.uuid", "d.name", "u.uuid",
                 "u.name") " LEFT JOIN model k ON k.run = u.run ORDER BY 1, 2, 3, 4");
    return reader_scan(store, sql, NULL, on_pair, names, err);
}

void device_names_deinit(struct device_names *names)
{
    free(names->pairs);
    *names = (struct device_names){0};
}

// The first pair that is not before these names.
static size_t find_first(const struct device_names *names, int64_t host, int64_t used,
                         int64_t model)
{
    size_t first = 0, end = names->count;
    while (first < end) {
        const size_t middle = first + (end - first) / 2;
        const struct device_names_pair *pair = &names->pairs[middle];
        if (pair->host < host || (pair->host == host && pair->used < used) ||
            (pair->host == host && pair->used == used && pair->model < model))
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

const struct device_names_pair *device_names_find(const struct device_names *names, int64_t host,
                                                  int64_t used, int64_t model, size_t *count)
{
    const size_t first = find_first(names, host, used, model ? model : INT64_MIN);
    size_t end = first;
    while (end < names->count && names->pairs[end].host == host && names->pairs[end].used == used &&
           (!model || names->pairs[end].model == model))
        end++;
    if (model && end == first)
        return device_names_find(names, host, used, 0, count);
    *count = end - first;
    return names->pairs + first;
}

int64_t device_names_device(const struct device_names *names, int64_t host, int64_t sampled)
{
    for (size_t i = find_first(names, host, INT64_MIN, INT64_MIN);
         i < names->count && names->pairs[i].host == host; i++)
        if (names->pairs[i].sampled == sampled)
            return names->pairs[i].device;
    return sampled;
}
