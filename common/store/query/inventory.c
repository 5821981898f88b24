#include "common/store/query/inventory.h"

#include <math.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/delivery/delivery.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"
#include "common/store/rollup/aggregate.h"

#define DAY_NS INT64_C(86400000000000)

enum { SAMPLE_ROWS = 32 }; // newest samples of a process: one row for each of its models
enum { STORED = -1 };      // beside the reasons of losses

// A host's records that were stored or lost for a reason.
struct inventory_count {
    char host[QUERY_TEXT_SIZE];
    int64_t read, before; // in the store: as last read, and as read before
    int64_t count;        // since inventory_begin; never goes back
};

// Runs that are open or were heard of since $1.
#define RECENT                                                                                     \
    "WITH recent AS MATERIALIZED (SELECT t.* FROM main.run t WHERE t.run IN"                       \
    " (SELECT run FROM main.run WHERE \"end\" = 0"                                                 \
    "  UNION SELECT run FROM main.run WHERE heard_ns >= $1))"
#define NAME_OF(id) "(SELECT n.text FROM main.name n WHERE n.id = " id ")"

static const struct answer_column host_columns[] = {
    {"host", UNIT_NONE},
    {"runs_open", UNIT_COUNT},
    {"os", UNIT_NONE},
    {"kernel", UNIT_NONE},
    {"cpu", UNIT_NONE},
    {"cpu_count", UNIT_COUNT},
    {"container", UNIT_NONE},
    {"memory_bytes", UNIT_BYTES},
    {"driver", UNIT_NONE},
    {"version", UNIT_NONE},
    {"clock_offset_ns", UNIT_DURATION},
};
// Beside max(), the other columns are those of the same row.
static const char host_sql[] =
    RECENT " SELECT " NAME_OF("host") " AS host, sum(\"end\" = 0) AS runs_open, os, kernel, cpu,"
                                      " cpu_count, container, host_memory_bytes AS memory_bytes, "
                                      "driver, worker_version AS version,"
                                      " clock_offset_ns, max(run) AS newest FROM recent GROUP BY "
                                      "recent.host ORDER BY 1 LIMIT $2";

static const struct answer_column model_columns[] = {{"model", UNIT_NONE},
                                                     {"format", UNIT_NONE},
                                                     {"architecture", UNIT_NONE},
                                                     {"quantisation", UNIT_NONE}};
static const char model_sql[] = RECENT " SELECT " NAME_OF(
    "m.name") " AS model, m.format, m.architecture, m.quantisation"
              " FROM main.model m WHERE m.id IN (SELECT max(d.id) FROM recent r"
              " CROSS JOIN main.model d ON d.run = r.run GROUP BY d.name) ORDER BY 1 LIMIT $2";

static const struct answer_column request_columns[] = {
    {"host", UNIT_NONE},
    {"model", UNIT_NONE},
    {"running_requests", UNIT_COUNT},
    {"waiting_requests", UNIT_COUNT},
};
// Of a process whose newest sample has rows of models, these; else the row of all its requests.
static const char request_sql[] =
    "WITH sample AS MATERIALIZED (SELECT r.host, s.*, max(s.started_ns) OVER (PARTITION BY s.run)"
    "  AS newest FROM main.run r CROSS JOIN main.process_sample s ON s.id IN"
    "  (SELECT id FROM main.process_sample WHERE run = r.run ORDER BY id DESC LIMIT $2)"
    "  WHERE r.\"end\" = 0),"
    " last AS MATERIALIZED (SELECT *, count(model) OVER (PARTITION BY run) AS models FROM sample"
    "  WHERE started_ns = newest)"
    " SELECT " NAME_OF("host") " AS host, " NAME_OF(
        "model") " AS model,"
                 " sum(running_requests) AS running_requests, sum(waiting_requests) AS "
                 "waiting_requests"
                 " FROM last WHERE (models > 0) = (model IS NOT NULL) GROUP BY last.host, "
                 "last.model"
                 " ORDER BY 1, 2";

static const struct answer_column stored_columns[] = {
    {"host", UNIT_NONE}, {"stored", UNIT_COUNT}, {"coverage", UNIT_RATIO}};
static const struct answer_column lost_columns[] = {
    {"host", UNIT_NONE}, {"reason", UNIT_NONE}, {"lost", UNIT_COUNT}};
// Of the runs that were not imported (they have an owner).  $1: the reason of losses that have no
// number; $2: of those for which there was no room.
#define OWNED(run) "CROSS JOIN main.run r ON r.run = " run " AND r.owner <> 0"
static const char count_sql[] =
    "SELECT host, -1, CAST(total(stored) AS INTEGER) FROM main.run WHERE owner <> 0 GROUP BY host"
    " UNION ALL SELECT host, reason, CAST(total(lost) AS INTEGER) FROM"
    "  (SELECT r.host, coalesce(g.reason, 0) AS reason, g.last - g.first + 1 AS lost"
    "    FROM main.range g INDEXED BY range_dropped " OWNED(
        "g.run") " WHERE g.state = 1"
                 "   UNION ALL SELECT r.host, $1, s.unnumbered - s.no_room FROM main.stream s"
                 "    INDEXED BY stream_unnumbered " OWNED(
                     "s.run") " WHERE s.unnumbered > 0"
                              "   UNION ALL SELECT r.host, $2, s.no_room FROM main.stream s"
                              "    INDEXED BY stream_unnumbered " OWNED(
                                  "s.run") " WHERE s.unnumbered > 0)"
                                           "  GROUP BY host, reason HAVING total(lost) > 0";

static const struct table {
    const struct answer_column *columns;
    unsigned column_count;
    const char *sql; // NULL: not read by a statement of its own
    int64_t limit;   // $2
} definitions[INVENTORY_TABLES] = {
#define TABLE(columns, sql, limit)                                                                 \
    {                                                                                              \
        columns, sizeof columns / sizeof *columns, sql, limit                                      \
    }
    [INVENTORY_HOSTS] = TABLE(host_columns, host_sql, QUERY_ROWS_MAX),
    [INVENTORY_MODELS] = TABLE(model_columns, model_sql, QUERY_ROWS_MAX),
    [INVENTORY_REQUESTS] = TABLE(request_columns, request_sql, SAMPLE_ROWS),
    [INVENTORY_STORED] = TABLE(stored_columns, NULL, 0),
    [INVENTORY_LOST] = TABLE(lost_columns, NULL, 0),
#undef TABLE
};

struct reading {
    struct store *store;
    struct groups *counts;
    struct result **tables;
    int64_t since_ns;
};

static enum status on_row(void *context, sqlite3_stmt *row, struct error *err)
{
    struct result *table = context;
    enum status status = STATUS_OK;
    answer_row(table);
    for (unsigned i = 0; i < result_column_count(table) && status == STATUS_OK; i++)
        status = answer_cell(table, i, row, (int)i, err);
    return status;
}

static enum status on_count(void *context, sqlite3_stmt *row, struct error *err)
{
    const struct reading *reading = context;
    const int64_t keys[] = {sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1)};
    struct group *group = NULL;
    if (groups_count(reading->counts) == GROUPS_MAX && !groups_get(reading->counts, keys))
        return STATUS_OK;
    enum status status = reader_group(reading->counts, keys, &group, err);
    if (status != STATUS_OK)
        return status;
    struct inventory_count *count = group->data;
    if (!count->host[0])
        (void)answer_name_text(reading->store, keys[0], count->host);
    count->read = sqlite3_column_int64(row, 2);
    return STATUS_OK;
}

static enum status read_counts(struct store *store, const struct query *query, void *out,
                               struct error *err)
{
    struct reading *reading = out;
    const int64_t reasons[] = {DELIVERY_RING_FULL, DELIVERY_NO_ROOM};
    (void)query;
    reading->store = store;
    for (size_t i = 0; i < groups_count(reading->counts); i++) {
        struct inventory_count *count = groups_at(reading->counts, i)->data;
        count->before = count->read;
        count->read = 0;
    }
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, count_sql);
    return reader_scan_with(store, sql, NULL, reasons, 2, on_count, reading, err);
}

static void add_stored(struct result *table, const struct inventory_count *stored,
                       const struct groups *counts, int64_t host)
{
    double produced = (double)stored->read;
    for (unsigned reason = 0; reason < DELIVERY_REASON_COUNT; reason++) {
        const struct group *group = groups_get(counts, (const int64_t[]){host, reason});
        produced += group ? (double)((const struct inventory_count *)group->data)->read : 0;
    }
    answer_row(table);
    answer_text(table, "host", stored->host);
    answer_int(table, "stored", stored->count);
    answer_real(table, "coverage", produced > 0 ? (double)stored->read / produced : (double)NAN);
}

// Counts what was added since the last time, and writes the tables of counts.
static void add_counts(const struct reading *reading)
{
    struct result *lost = reading->tables[INVENTORY_LOST];
    for (size_t i = 0; i < groups_count(reading->counts); i++) {
        const struct group *group = groups_at(reading->counts, i);
        struct inventory_count *count = group->data;
        const int64_t reason = group->keys[1];
        count->count += count->read > count->before ? count->read - count->before : 0;
        if (reason == STORED) {
            add_stored(reading->tables[INVENTORY_STORED], count, reading->counts, group->keys[0]);
            continue;
        }
        answer_row(lost);
        answer_text(lost, "host", count->host);
        answer_text(lost, "reason", delivery_reason_text((enum delivery_reason)reason));
        answer_int(lost, "lost", count->count);
    }
}

static enum status read_all(struct store *store, const struct query *query, void *out,
                            struct error *err)
{
    struct reading *reading = out;
    enum status status = STATUS_OK;
    reading->store = store;
    for (unsigned i = 0; i < INVENTORY_TABLES && status == STATUS_OK; i++) {
        const int64_t numbers[] = {reading->since_ns, definitions[i].limit};
        status = answer_new(&reading->tables[i], definitions[i].columns,
                            definitions[i].column_count, err);
        if (status != STATUS_OK || !definitions[i].sql)
            continue;
        sqlite3_str *sql = sqlite3_str_new(store->db);
        sqlite3_str_appendall(sql, definitions[i].sql);
        status = reader_scan_with(store, sql, NULL, numbers, 2, on_row, reading->tables[i], err);
    }
    if (status == STATUS_OK)
        status = read_counts(store, query, reading, err);
    if (status == STATUS_OK)
        add_counts(reading);
    for (unsigned i = 0; i < INVENTORY_TABLES && status == STATUS_OK; i++)
        status = answer_check(reading->tables[i], err);
    return status;
}

enum status inventory_begin(struct inventory *inventory, struct store *store, struct error *err)
{
    const struct query query = {.kind = QUERY_PING};
    if (groups_new(&inventory->counts, 2, sizeof(struct inventory_count), NULL) != STATUS_OK)
        return error_no_memory(err, "inventory");
    struct reading reading = {.counts = inventory->counts};
    return session_run(store, read_counts, &query, &reading, err);
}

enum status inventory_read(struct inventory *inventory, struct store *store, int64_t now_ns,
                           struct result *tables[INVENTORY_TABLES], struct error *err)
{
    const struct query query = {.kind = QUERY_PING};
    memset(tables, 0, INVENTORY_TABLES * sizeof *tables);
    struct reading reading = {
        .counts = inventory->counts, .tables = tables, .since_ns = now_ns - DAY_NS};
    enum status status = session_run(store, read_all, &query, &reading, err);
    for (unsigned i = 0; i < INVENTORY_TABLES && status != STATUS_OK; i++) {
        result_free(tables[i]);
        tables[i] = NULL;
    }
    return status;
}

void inventory_deinit(struct inventory *inventory)
{
    groups_free(inventory->counts);
    inventory->counts = NULL;
}
