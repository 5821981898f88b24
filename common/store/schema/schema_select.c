#include "common/store/schema/schema_select.h"

#include <string.h>

#include <sqlite3.h>

#include "common/store/schema/schema.h"
#include "common/store/schema/schema_scaled.h"

// ---- Dimensions -------------------------------------------------------------------

#define PARENT(column)                                                                             \
    "(SELECT p." column " FROM load p WHERE p.run = t.run AND p.stream = t.stream"                 \
    " AND p.number = t.parent)"

// What the column of that name does not say.
static const struct {
    enum record_kind kind;
    enum query_dimension dimension;
    const char *expression;
} special_dimensions[] = {
    {RECORD_KIND_RUN, QUERY_BY_HOST, "t.host"},
    {RECORD_KIND_MODEL, QUERY_BY_MODEL, "t.name"},
    {RECORD_KIND_DEVICE, QUERY_BY_DEVICE, "t.name"},
    {RECORD_KIND_LOAD_STAGE, QUERY_BY_MODEL, PARENT("model")},
    {RECORD_KIND_LOAD_STAGE, QUERY_BY_DEVICE, PARENT("device")},
    {RECORD_KIND_LOAD_STAGE, QUERY_BY_STATUS, PARENT("status")},
    // finish: stop, length, cancelled, error; the others ok, error, cancelled
    {RECORD_KIND_INFERENCE, QUERY_BY_STATUS,
     "CASE t.finish WHEN 2 THEN 2 WHEN 3 THEN 1 ELSE 0 END"},
};

static const char *const dimension_columns[QUERY_DIMENSION_COUNT] = {
    [QUERY_BY_MODEL] = "t.model",         [QUERY_BY_DEVICE] = "t.device",
    [QUERY_BY_OPERATION] = "t.operation", [QUERY_BY_STAGE] = "t.stage",
    [QUERY_BY_WORKLOAD] = "t.workload",   [QUERY_BY_STATUS] = "t.status",
    [QUERY_BY_SYNC] = "t.sync",           [QUERY_BY_CHUNK_BYTES] = "t.chunk_bytes",
    [QUERY_BY_POOL_SIZE] = "t.pool_size", [QUERY_BY_SOURCE] = "t.source",
    [QUERY_BY_EVENT] = "t.event",
};

const char *schema_dimension(enum record_kind kind, enum query_dimension dimension)
{
    for (size_t i = 0; i < sizeof special_dimensions / sizeof *special_dimensions; i++)
        if (special_dimensions[i].kind == kind && special_dimensions[i].dimension == dimension)
            return special_dimensions[i].expression;
    if (dimension == QUERY_BY_RUN)
        return "t.run";
    if (dimension == QUERY_BY_HOST)
        return "(SELECT r.host FROM run r WHERE r.run = t.run)";
    const int column = record_column_find(kind, query_dimension_name(dimension));
    if (column < 0 || (record_kind_info(kind)->columns[column].type != COLUMN_NAME &&
                       !query_dimension_is_number(dimension)))
        return NULL;
    return dimension_columns[dimension];
}

// ---- Columns as people read them ----------------------------------------------------

void schema_select_enum(sqlite3_str *sql, const struct record_column *column)
{
    sqlite3_str_appendf(sql, "CASE t.\"%w\"", column->name);
    for (int64_t number = 0; column_enum_text(column->type, number); number++)
        sqlite3_str_appendf(sql, " WHEN %lld THEN %Q", (long long)number,
                            column_enum_text(column->type, number));
    sqlite3_str_appendall(sql, " END");
}

// All that a run made; the table and the ledger count what has a number.
static const char run_produced[] = "(SELECT CAST(t.produced + l.unnumbered AS INTEGER)"
                                   " FROM v_ledger l WHERE l.id = t.run)";

// As record_run_end_text has it.
static void append_run_end(sqlite3_str *sql)
{
    const int silent = RECORD_RUN_END_SILENT;
    sqlite3_str_appendf(sql, "CASE WHEN t.\"end\" = %d AND t.ended_ns IS NOT NULL THEN %Q ELSE ",
                        silent, record_run_end_text(silent, true));
    schema_select_enum(sql, &record_kind_info(RECORD_KIND_RUN)->columns[RUN_END]);
    sqlite3_str_appendall(sql, " END");
}

static void append_column(sqlite3_str *sql, const struct record_column *column)
{
    if (column->type == COLUMN_NAME)
        sqlite3_str_appendf(sql, "(SELECT n.text FROM name n WHERE n.id = t.\"%w\")", column->name);
    else if (column->type == COLUMN_BLOB)
        sqlite3_str_appendf(sql, "lower(hex(t.\"%w\"))", column->name);
    else if (column_type_is_enum(column->type))
        schema_select_enum(sql, column);
    else
        sqlite3_str_appendf(sql, "t.\"%w\"", column->name);
}

// Key, unit and expression of what stands before, or behind, a kind's columns.
struct extra {
    const char *key;
    enum unit unit;
    const char *expression;
};

#define NAME_OF(id) "(SELECT n.text FROM name n WHERE n.id = " id ")"

static const struct extra common[] = {
    {"run", UNIT_NONE, "(SELECT r.uuid FROM run r WHERE r.run = t.run)"},
    {"host", UNIT_NONE, NAME_OF("(SELECT r.host FROM run r WHERE r.run = t.run)")},
    {"stream", UNIT_NONE, "t.stream"},
    {"number", UNIT_NONE, "t.number"},
    {"started_ns", UNIT_TIME, "t.started_ns"},
    {"received_ns", UNIT_TIME, "t.received_ns"},
};

// A run has no stream and no number; its `host` is the one above.
static const struct extra common_run[] = {
    {"run", UNIT_NONE, "t.uuid"},
    {"host", UNIT_NONE, NAME_OF("t.host")},
    {"stream", UNIT_NONE, "NULL"},
    {"number", UNIT_NONE, "NULL"},
    {"started_ns", UNIT_TIME, "t.started_ns"},
    {"received_ns", UNIT_TIME, "t.received_ns"},
};

#define LEDGER(column) "(SELECT l." column " FROM v_ledger l WHERE l.id = t.run)"

static const struct extra extra_run[] = {
    {"dropped", UNIT_COUNT, LEDGER("dropped")},
    {"unnumbered", UNIT_COUNT, LEDGER("unnumbered")},
    {"lost", UNIT_COUNT,
     "(SELECT CAST(l.dropped + l.unnumbered AS INTEGER) FROM v_ledger l WHERE l.id = t.run)"},
    {"coverage_ratio", UNIT_RATIO,
     "(SELECT CAST(l.stored AS REAL) / nullif(CAST(l.stored AS REAL) + l.dropped + l.unnumbered, 0)"
     " FROM v_ledger l WHERE l.id = t.run)"},
    {"in_flight", UNIT_COUNT, LEDGER("in_flight")},
    {"refused", UNIT_COUNT, "t.refused"},
    {"expired", UNIT_COUNT, LEDGER("expired")},
    {"cleared", UNIT_COUNT, LEDGER("cleared")},
    {"clock_suspects", UNIT_COUNT, "t.clock_suspects"},
    {"unknown_columns", UNIT_COUNT, "t.unknown_columns"},
    {"heard_ns", UNIT_TIME, "t.heard_ns"},
    {"balanced", UNIT_NONE, LEDGER("balanced")},
};

// No load is faster than the copies of its weights.
static const struct extra extra_load[] = {
    {QUERY_METRIC_FLOOR, UNIT_DURATION, "t.model_bytes * 1e9 / nullif(" SCHEMA_LOAD_RATE ", 0)"},
};

static const struct extra extra_load_stage[] = {
    {"model", UNIT_NONE, NAME_OF(PARENT("model"))},
    {"device", UNIT_NONE, NAME_OF(PARENT("device"))},
};

enum { COMMON_COUNT = sizeof common / sizeof *common };
_Static_assert(sizeof common == sizeof common_run, "the same keys for all kinds");

static const struct extra *kind_extras(enum record_kind kind, unsigned *count)
{
    *count = 0;
    if (kind == RECORD_KIND_RUN) {
        *count = sizeof extra_run / sizeof *extra_run;
        return extra_run;
    }
    if (kind == RECORD_KIND_LOAD) {
        *count = sizeof extra_load / sizeof *extra_load;
        return extra_load;
    }
    if (kind == RECORD_KIND_LOAD_STAGE) {
        *count = sizeof extra_load_stage / sizeof *extra_load_stage;
        return extra_load_stage;
    }
    return NULL;
}

// Whether the column's key is among the common ones already.
static bool is_common(const char *name)
{
    for (unsigned i = 0; i < COMMON_COUNT; i++)
        if (strcmp(common[i].key, name) == 0)
            return true;
    return false;
}

// What a full ring has lost never had numbers, nor what had no ring.
static void append_drops(sqlite3_str *sql, int reason)
{
    const char *unnumbered = reason == DELIVERY_RING_FULL
                                 ? " + " LEDGER("unnumbered") " - " LEDGER("no_room")
                             : reason == DELIVERY_NO_ROOM ? " + " LEDGER("no_room")
                                                          : "";
    sqlite3_str_appendf(sql,
                        "(SELECT CAST(total(g.last - g.first + 1)%s AS INTEGER) FROM range g WHERE"
                        " g.run = t.run AND g.state = %d AND coalesce(g.reason, 0) = %d)",
                        unnumbered, SCHEMA_RANGE_DROPPED, reason);
}

static void select_derived(sqlite3_str *sql, const struct record_derived *derived)
{
    sqlite3_str_appendf(sql, "CASE WHEN (%s) > 0 THEN CAST(%s AS REAL) / (%s) END",
                        derived->denominator, derived->numerator, derived->denominator);
}

void schema_select_metric(sqlite3_str *sql, const struct query_metric *metric)
{
    if (metric->derived)
        select_derived(sql, metric->derived);
    else
        sqlite3_str_appendf(sql, "t.\"%w\"", metric->name);
}

// A select list being written.
struct list {
    sqlite3_str *sql;
    struct result *columns; // or NULL
    enum status status;
    bool is_begun;
};

static sqlite3_str *next_output(struct list *list)
{
    sqlite3_str_appendall(list->sql, list->is_begun ? ", " : "");
    list->is_begun = true;
    return list->sql;
}

static void name_output(struct list *list, const char *key, enum unit unit)
{
    sqlite3_str_appendf(list->sql, " AS \"%w\"", key);
    if (list->columns && list->status == STATUS_OK)
        list->status = result_add_column(list->columns, key, unit);
}

static void append_extras(struct list *list, const struct extra *extras, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        sqlite3_str_appendall(next_output(list), extras[i].expression);
        name_output(list, extras[i].key, extras[i].unit);
    }
}

enum status schema_select_list(sqlite3_str *sql, enum record_kind kind, struct result *columns)
{
    struct list list = {.sql = sql, .columns = columns};
    const struct record_kind_info *info = record_kind_info(kind);
    unsigned count = 0;
    append_extras(&list, kind == RECORD_KIND_RUN ? common_run : common, COMMON_COUNT);
    for (unsigned i = 0; i < info->column_count; i++) {
        if (is_common(info->columns[i].name))
            continue;
        if (kind == RECORD_KIND_RUN && i == RUN_PRODUCED)
            sqlite3_str_appendall(next_output(&list), run_produced);
        else if (kind == RECORD_KIND_RUN && i == RUN_END)
            append_run_end(next_output(&list));
        else
            append_column(next_output(&list), &info->columns[i]);
        name_output(&list, info->columns[i].name, info->columns[i].unit);
    }
    const struct extra *extras = kind_extras(kind, &count);
    append_extras(&list, extras, count);
    for (int reason = 0; kind == RECORD_KIND_RUN && reason < DELIVERY_REASON_COUNT; reason++) {
        append_drops(next_output(&list), reason);
        name_output(&list, drop_key((enum delivery_reason)reason), UNIT_COUNT);
    }
    const struct record_derived *derived = record_derived(&count);
    for (unsigned i = 0; i < count; i++) {
        if (derived[i].kind != kind)
            continue;
        select_derived(next_output(&list), &derived[i]);
        name_output(&list, derived[i].name, derived[i].unit);
    }
    return list.status;
}

// ---- Derived metrics ------------------------------------------------------------------

void append_derived(sqlite3_str *sql, const struct record_derived *derived)
{
    sqlite3_str_appendf(sql, "(%s), (%s)", derived->numerator, derived->denominator);
}

// ---- Losses -----------------------------------------------------------------------

const char *drop_key(enum delivery_reason reason)
{
    static const char *const keys[DELIVERY_REASON_COUNT] = {
#define DROP_KEY(name, text) [DELIVERY_##name] = "dropped_" text,
        DELIVERY_REASONS(DROP_KEY)
#undef DROP_KEY
    };
    return keys[reason];
}

// ---- Tables from the record table ---------------------------------------------------

const char *schema_column_type(enum record_kind kind, unsigned column)
{
    const enum column_type type = record_kind_info(kind)->columns[column].type;
    if (type == COLUMN_REAL)
        return "REAL";
    if (type == COLUMN_TEXT)
        return "TEXT";
    if (type == COLUMN_BLOB)
        return "BLOB";
    return "INTEGER";
}

void schema_append_table(sqlite3_str *sql, enum record_kind kind, const char *name)
{
    const struct record_kind_info *info = record_kind_info(kind);
    sqlite3_str_appendf(sql, "CREATE TABLE \"%w\"(", name);
    sqlite3_str_appendall(sql, kind == RECORD_KIND_RUN
                                   ? "run INTEGER PRIMARY KEY"
                                   : "id INTEGER PRIMARY KEY, run INTEGER NOT NULL, stream INTEGER "
                                     "NOT NULL, number INTEGER NOT NULL");
    sqlite3_str_appendall(sql, ", started_ns INTEGER NOT NULL, received_ns INTEGER NOT NULL");
    for (unsigned i = 0; i < info->column_count; i++)
        if (schema_is_scaled(kind, &info->columns[i]))
            schema_append_scaled(sql, &info->columns[i]);
        else
            sqlite3_str_appendf(sql, ", \"%w\" %s%s", info->columns[i].name,
                                schema_column_type(kind, i),
                                info->columns[i].maybe ? "" : " NOT NULL");
    if (kind == RECORD_KIND_RUN)
        sqlite3_str_appendall(sql, ", heard_ns INTEGER NOT NULL, refused INTEGER NOT NULL DEFAULT 0"
                                   ", clock_suspects INTEGER NOT NULL DEFAULT 0"
                                   ", unknown_columns INTEGER NOT NULL DEFAULT 0, key TEXT"
                                   ", UNIQUE(uuid)");
    sqlite3_str_appendall(sql, ");");
}

// A view: the list that queries give, then the same in units people like.
void schema_append_view(sqlite3_str *sql, enum record_kind kind)
{
    const struct record_kind_info *info = record_kind_info(kind);
    sqlite3_str_appendf(sql, "CREATE VIEW \"v_%w\" AS SELECT ", info->name);
    (void)schema_select_list(sql, kind, NULL);
    sqlite3_str_appendall(
        sql, ", strftime('%Y-%m-%d %H:%M:%f', t.started_ns / 1000000 / 1000.0, 'unixepoch')"
             " AS started");
    for (unsigned i = 0; i < info->column_count; i++) {
        const struct record_column *column = &info->columns[i];
        const size_t size = strlen(column->name);
        const int stem = size > 3 ? (int)size - 3 : 0;
        if (column->unit == UNIT_DURATION && strcmp(column->name + stem, "_ns") == 0)
            sqlite3_str_appendf(sql, ", t.\"%w\" / 1e6 AS \"%.*w_ms\"", column->name, stem,
                                column->name);
        else if (column->unit == UNIT_BYTES)
            sqlite3_str_appendf(sql, ", t.\"%w\" / 1048576.0 AS \"%w_mb\"", column->name,
                                column->name);
    }
    if (kind == RECORD_KIND_RUN)
        sqlite3_str_appendall(sql, ", t.key AS key");
    else
        sqlite3_str_appendf(sql,
                            ", (t.started_ns < %lld OR t.started_ns > t.received_ns + %lld)"
                            " AS clock_suspect",
                            (long long)SCHEMA_CLOCK_FLOOR_NS, (long long)SCHEMA_CLOCK_AHEAD_NS);
    sqlite3_str_appendf(sql, " FROM \"%w\" t;", info->name);
}

// ---- Rows -----------------------------------------------------------------------------

#define COMMON_COLUMNS "id, run, stream, number, started_ns, received_ns"

void schema_append_columns(sqlite3_str *sql, enum record_kind kind)
{
    const struct record_kind_info *info = record_kind_info(kind);
    sqlite3_str_appendall(sql, COMMON_COLUMNS);
    for (unsigned i = 0; i < info->column_count; i++)
        sqlite3_str_appendf(sql, ", \"%w\"", info->columns[i].name);
}

static void append_into(sqlite3_str *sql, enum record_kind kind, const char *table)
{
    const struct record_kind_info *info = record_kind_info(kind);
    sqlite3_str_appendf(sql, "INTO \"%w\"(" COMMON_COLUMNS, table);
    for (unsigned i = 0; i < info->column_count; i++) {
        sqlite3_str_appendall(sql, ", ");
        schema_append_target(sql, kind, &info->columns[i]);
    }
    sqlite3_str_appendall(sql, ")");
}

void schema_append_copy(sqlite3_str *sql, enum record_kind kind, const char *to)
{
    const struct record_kind_info *info = record_kind_info(kind);
    append_into(sql, kind, to);
    sqlite3_str_appendall(sql, " SELECT " COMMON_COLUMNS);
    for (unsigned i = 0; i < info->column_count; i++) {
        char value[80];
        (void)sqlite3_snprintf(sizeof value, value, "\"%w\"", info->columns[i].name);
        sqlite3_str_appendall(sql, ", ");
        schema_append_stored(sql, kind, &info->columns[i], value);
    }
}

void schema_insert_sql(sqlite3_str *sql, enum record_kind kind)
{
    const struct record_kind_info *info = record_kind_info(kind);
    sqlite3_str_appendall(sql, "INSERT ");
    append_into(sql, kind, info->name);
    sqlite3_str_appendall(sql, " VALUES(?1, ?2, ?3, ?4, ?5, ?6");
    for (unsigned i = 0; i < info->column_count; i++) {
        char value[16];
        (void)sqlite3_snprintf(sizeof value, value, "?%u", SCHEMA_FIRST_COLUMN + i);
        sqlite3_str_appendall(sql, ", ");
        schema_append_stored(sql, kind, &info->columns[i], value);
    }
    sqlite3_str_appendall(sql, ")");
}
