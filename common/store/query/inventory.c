#include "common/store/query/inventory.h"

#include <string.h>

#include <sqlite3.h>

#include "common/core/base/text.h"
#include "common/core/delivery/delivery.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/reader.h"
#include "common/store/read/session.h"
#include "common/store/rollup/aggregate.h"

#define DAY_NS INT64_C(86400000000000)

enum { SAMPLE_ROWS = 32 }; // newest samples of a process: one row for each of its models
enum { STORED = DELIVERY_REASON_COUNT, COUNTS };

// A host's records that were lost for each reason, and at [STORED] those that were stored.
struct inventory_host {
    char host[QUERY_TEXT_SIZE];
    struct {
        int64_t next;  // being read
        int64_t read;  // in the store, as last read
        int64_t count; // since inventory_begin; never goes back
    } counts[COUNTS];
};

// Runs that are open or were heard of since $1.
#define RECENT                                                                                     \
    "WITH recent AS MATERIALIZED (SELECT t.* FROM main.run t WHERE t.run IN"                       \
    " (SELECT run FROM main.run WHERE \"end\" = 0"                                                 \
    "  UNION SELECT run FROM main.run WHERE heard_ns >= $1))"
#define HOST  "(SELECT n.text FROM main.name n WHERE n.id = host) AS host"
#define MODEL "(SELECT n.text FROM main.name n WHERE n.id = model) AS model"

// Their results are the tables.
static const char *const statements[] = {
    // Beside max(), the other columns are those of the same row.
    [INVENTORY_HOSTS] =
        RECENT " SELECT " HOST ", sum(\"end\" = 0) AS runs_open, os, kernel, cpu, cpu_count,"
               " container, driver, worker_version AS version, clock_offset_ns, max(run)"
               " FROM recent GROUP BY recent.host ORDER BY 1 LIMIT $2",
    [INVENTORY_MODELS] =
        RECENT ", model AS (SELECT name AS model, m.* FROM main.model m WHERE m.id IN"
               " (SELECT max(d.id) FROM recent r CROSS JOIN main.model d ON d.run = r.run"
               "  GROUP BY d.name))"
               " SELECT " MODEL ", format, architecture, quantisation FROM model"
               " ORDER BY 1 LIMIT $2",
    // Of a process whose newest sample has rows of models, these; else the row of all its requests.
    [INVENTORY_REQUESTS] =
        "WITH sample AS MATERIALIZED"
        " (SELECT r.host, s.*, max(s.started_ns) OVER (PARTITION BY s.run) AS newest"
        "  FROM main.run r CROSS JOIN main.process_sample s ON s.id IN"
        "  (SELECT id FROM main.process_sample WHERE run = r.run ORDER BY id DESC LIMIT $3)"
        "  WHERE r.\"end\" = 0),"
        " last AS MATERIALIZED (SELECT *, count(model) OVER (PARTITION BY run) AS models"
        "  FROM sample WHERE started_ns = newest)"
        " SELECT " HOST ", " MODEL ", sum(running_requests) AS running_requests,"
        " sum(waiting_requests) AS waiting_requests FROM last"
        " WHERE (models > 0) = (model IS NOT NULL) GROUP BY last.host, last.model ORDER BY 1, 2",
};
enum { STATEMENTS = sizeof statements / sizeof *statements };

static const struct answer_column record_columns[] = {{"host", UNIT_NONE},
                                                      {"reason", UNIT_NONE},
                                                      {"stored", UNIT_COUNT},
                                                      {"lost", UNIT_COUNT},
                                                      {"coverage", UNIT_RATIO}};

// Of the runs that were not imported (they have an owner).  $1: the reason of losses that have no
// number; $2: of those for which there was no room; $3: STORED.
#define OWNED      " CROSS JOIN main.run r USING(run) WHERE r.owner <> 0 AND "
#define UNNUMBERED " FROM main.stream s INDEXED BY stream_unnumbered" OWNED "s.unnumbered > 0"
static const char count_sql[] =
    "SELECT n.text, c.* FROM ("
    "SELECT host, $3, CAST(total(stored) AS INTEGER) FROM main.run WHERE owner <> 0 GROUP BY host"
    " UNION ALL SELECT host, reason, CAST(total(lost) AS INTEGER) FROM"
    "  (SELECT r.host, coalesce(g.reason, 0) AS reason, g.last - g.first + 1 AS lost"
    "    FROM main.range g INDEXED BY range_dropped" OWNED "g.state = 1"
    "   UNION ALL SELECT r.host, $1, s.unnumbered - s.no_room" UNNUMBERED
    "   UNION ALL SELECT r.host, $2, s.no_room" UNNUMBERED ")"
    "  GROUP BY host, reason HAVING total(lost) > 0) c CROSS JOIN main.name n ON n.id = c.host";
enum { COUNT_HOST, COUNT_OF = 2, COUNT_NUMBER };

struct reading {
    struct groups *hosts;
    struct result **tables;
    int64_t since_ns;
};

static enum status on_row(void *context, sqlite3_stmt *row, struct error *err)
{
    struct result *table = context;
    enum status status = STATUS_OK;
    if (result_column_count(table) == 0)
        for (int i = 0; i < sqlite3_column_count(row) && status == STATUS_OK; i++)
            status = result_add_column(table, sqlite3_column_name(row, i), UNIT_NONE);
    answer_row(table);
    for (unsigned i = 0; i < result_column_count(table) && status == STATUS_OK; i++)
        status = answer_cell(table, i, row, (int)i, err);
    return status;
}

// By the text of its name: one that was forgotten and comes back has another id.
static enum status on_count(void *context, sqlite3_stmt *row, struct error *err)
{
    const struct reading *reading = context;
    char text[QUERY_TEXT_SIZE];
    reader_copy_text(text, sizeof text, row, COUNT_HOST);
    const int64_t key = (int64_t)text_hash(text, strlen(text));
    const int64_t of = sqlite3_column_int64(row, COUNT_OF);
    struct group *group = groups_get(reading->hosts, &key);
    if (of < 0 || of >= COUNTS || (!group && groups_count(reading->hosts) == GROUPS_MAX))
        return STATUS_OK;
    enum status status = reader_group(reading->hosts, &key, &group, err);
    if (status != STATUS_OK)
        return status;
    struct inventory_host *host = group->data;
    memcpy(host->host, text, sizeof text);
    host->counts[of].next += sqlite3_column_int64(row, COUNT_NUMBER);
    return STATUS_OK;
}

// Counts what was added since the last time.  A read that fails changes nothing.
static enum status read_counts(struct store *store, const struct query *query, void *out,
                               struct error *err)
{
    struct reading *reading = out;
    const int64_t numbers[] = {DELIVERY_RING_FULL, DELIVERY_NO_ROOM, STORED};
    (void)query;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, count_sql);
    enum status status = reader_scan_with(store, sql, NULL, numbers, 3, on_count, reading, err);
    for (size_t i = 0; i < groups_count(reading->hosts); i++) {
        struct inventory_host *host = groups_at(reading->hosts, i)->data;
        for (unsigned of = 0; of < COUNTS; of++) {
            const int64_t added = host->counts[of].next - host->counts[of].read;
            if (status == STATUS_OK && reading->tables && added > 0)
                host->counts[of].count += added;
            if (status == STATUS_OK)
                host->counts[of].read = host->counts[of].next;
            host->counts[of].next = 0;
        }
    }
    return status;
}

static void add_host(struct result *table, const struct inventory_host *host)
{
    double produced = 0;
    for (unsigned of = 0; of < COUNTS; of++) {
        produced += (double)host->counts[of].read;
        answer_row(table);
        answer_text(table, "host", host->host);
        answer_int(table, of == STORED ? "stored" : "lost", host->counts[of].count);
        if (of != STORED)
            answer_text(table, "reason", delivery_reason_text((enum delivery_reason)of));
        else if (produced > 0)
            answer_real(table, "coverage", (double)host->counts[of].read / produced);
    }
}

static enum status add_counts(const struct reading *reading, struct error *err)
{
    struct result **table = &reading->tables[INVENTORY_RECORDS];
    enum status status =
        answer_new(table, record_columns, sizeof record_columns / sizeof *record_columns, err);
    for (size_t i = 0; i < groups_count(reading->hosts) && status == STATUS_OK; i++)
        add_host(*table, groups_at(reading->hosts, i)->data);
    return status;
}

static enum status read_all(struct store *store, const struct query *query, void *out,
                            struct error *err)
{
    struct reading *reading = out;
    enum status status = STATUS_OK;
    const int64_t numbers[] = {reading->since_ns, QUERY_ROWS_MAX, SAMPLE_ROWS};
    for (unsigned i = 0; i < STATEMENTS && status == STATUS_OK; i++) {
        sqlite3_str *sql = sqlite3_str_new(store->db);
        sqlite3_str_appendall(sql, statements[i]);
        status =
            result_new(&reading->tables[i]) == STATUS_OK
                ? reader_scan_with(store, sql, NULL, numbers, 3, on_row, reading->tables[i], err)
                : error_no_memory(err, "inventory");
    }
    if (status == STATUS_OK)
        status = read_counts(store, query, reading, err);
    if (status == STATUS_OK)
        status = add_counts(reading, err);
    for (unsigned i = 0; i < INVENTORY_TABLES && status == STATUS_OK; i++)
        status = answer_check(reading->tables[i], err);
    return status;
}

enum status inventory_begin(struct inventory *inventory, struct store *store, struct error *err)
{
    const struct query query = {.kind = QUERY_PING};
    if (groups_new(&inventory->hosts, 1, sizeof(struct inventory_host), NULL) != STATUS_OK)
        return error_no_memory(err, "inventory");
    struct reading reading = {.hosts = inventory->hosts};
    return session_run(store, read_counts, &query, &reading, err);
}

enum status inventory_read(struct inventory *inventory, struct store *store, int64_t now_ns,
                           struct result *tables[INVENTORY_TABLES], struct error *err)
{
    const struct query query = {.kind = QUERY_PING};
    memset(tables, 0, INVENTORY_TABLES * sizeof *tables);
    struct reading reading = {
        .hosts = inventory->hosts, .tables = tables, .since_ns = now_ns - DAY_NS};
    enum status status = session_run(store, read_all, &query, &reading, err);
    for (unsigned i = 0; i < INVENTORY_TABLES && status != STATUS_OK; i++) {
        result_free(tables[i]);
        tables[i] = NULL;
    }
    return status;
}

void inventory_deinit(struct inventory *inventory)
{
    groups_free(inventory->hosts);
    inventory->hosts = NULL;
}
