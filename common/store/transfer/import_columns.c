// Generates the SQL that reads and validates rows of an untrusted file, and writes batches of them
// to the store.
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/transfer/import_reading.h"
#include "common/core/base/text.h"
#include "common/core/delivery/delivery.h"
#include "common/core/stats/sketch.h"
#include "common/store/sqlite/database.h"
#include "common/store/sqlite/set_hash.h"
#include "common/store/schema/schema_scaled.h"
#include "common/store/schema/schema.h"
#include "common/store/compare/baseline.h"
#include "common/store/rollup/gap_table.h"
#include "common/store/read/session.h"

#define ANY          INT64_MIN, INT64_MAX
#define FAULT_TEXT   "a text that is too long, or not UTF-8"
#define FAULT_NUMBER "a number that cannot be"

// Valid values of a column, in addition to its type, and the expression that is imported where
// it is not the column itself.
struct rule {
    struct record_column column;
    int64_t least, most; // of integers
    const char *brings;
};

// The column's name, its type and whether it may be null, then the other members.
#define RULE(name, type, maybe, ...)                                                               \
    {                                                                                              \
        {name, "", COLUMN_##type, UNIT_NONE, maybe}, __VA_ARGS__                                   \
    }

static const struct rule run_rules[] = {
    RULE("started_ns", INT, false, ANY, NULL),
    RULE("received_ns", INT, false, ANY, NULL),
    RULE("heard_ns", INT, false, ANY, NULL),
    RULE("refused", INT, false, 0, IMPORT_VALUE_MAX, NULL),
    RULE("clock_suspects", INT, false, 0, IMPORT_VALUE_MAX, NULL),
    RULE("unknown_columns", INT, false, 0, IMPORT_VALUE_MAX, NULL),
};

static const struct rule record_rules[] = {
    RULE("stream", INT, false, ANY, NULL),
    RULE("number", INT, false, ANY, NULL),
    RULE("started_ns", INT, false, ANY, NULL),
    RULE("received_ns", INT, false, ANY, NULL),
};

static const struct rule stream_rules[] = {
    RULE("stream", INT, false, 0, UINT32_MAX, NULL),
    RULE("next", INT, false, 0, IMPORT_NUMBER_MAX + 1, NULL),
    RULE("produced", INT, false, 0, IMPORT_NUMBER_MAX + 1, NULL),
    RULE("unnumbered", INT, false, 0, IMPORT_NUMBER_MAX + 1, NULL),
    RULE("no_room", INT, false, 0, IMPORT_NUMBER_MAX + 1, NULL),
    RULE("activity", TEXT, true, ANY, NULL),
    RULE("activity_since_ns", INT, true, ANY, NULL),
};

static const struct rule range_rules[] = {
    RULE("stream", INT, false, 0, UINT32_MAX, NULL),
    RULE("first", INT, false, 1, IMPORT_NUMBER_MAX, NULL),
    RULE("last", INT, false, 1, IMPORT_NUMBER_MAX, NULL),
    RULE("state", INT, false, SCHEMA_RANGE_STORED, SCHEMA_RANGE_DROPPED, NULL),
    RULE("reason", INT, true, 0, DELIVERY_REASON_COUNT - 1, NULL),
    RULE("detail", TEXT, true, ANY, NULL),
    RULE("since_ns", INT, true, ANY, NULL),
    RULE("until_ns", INT, true, ANY, NULL),
};

static const struct rule unnumbered_rules[] = {
    RULE("told_ns", INT, false, ANY, NULL),
    RULE("lost", INT, false, 0, IMPORT_VALUE_MAX, NULL),
    RULE("since_ns", INT, false, ANY, NULL),
    RULE("until_ns", INT, false, ANY, NULL),
};

// All records count as cleared until they are imported.  Those that expired in the file's store
// stay cleared here: they did not expire here.
static const struct rule ledger_rules[] = {
    RULE("kind", INT, false, RECORD_KIND_RUN + 1, RECORD_KIND_COUNT - 1, NULL),
    RULE("stored", INT, false, 0, IMPORT_VALUE_MAX, NULL),
    RULE("expired", INT, false, ANY, "0"),
    RULE("cleared", INT, false, ANY, "t.stored"),
    RULE("gone_sum", INT, false, ANY, "import_hash(t.kind, t.gone_sum)"),
};

static const struct rule name_rules[] = {
    RULE("number", INT, false, 0, UINT32_MAX, NULL),
    RULE("name", NAME, false, ANY, NULL),
};

static const struct rule sampled_rules[] = {
    RULE("subject", NAME, true, ANY, NULL),
    RULE("device", NAME, true, ANY, NULL),
};

#define RULES(table) table, sizeof table / sizeof *table
static const struct {
    const char *name;
    const struct rule *rules;
    size_t count;
} tables[IMPORT_TABLES] = {
    [IMPORT_RUN] = {"run", RULES(run_rules)},
    [IMPORT_STREAM] = {"stream", RULES(stream_rules)},
    [IMPORT_RANGE] = {"range", RULES(range_rules)},
    [IMPORT_UNNUMBERED] = {"unnumbered", RULES(unnumbered_rules)},
    [IMPORT_LEDGER] = {"ledger", RULES(ledger_rules)},
    [IMPORT_RUN_NAME] = {"run_name", RULES(name_rules)},
    [IMPORT_RECORD] = {"record", RULES(record_rules)},
    [IMPORT_SAMPLED] = {"sampled", RULES(sampled_rules)},
};

// The wire's limits; a run's clock offset may be negative.  A run that is open in the file becomes
// silent: its end will not be reported.
static struct rule rule_of(enum record_kind kind, const struct record_column *column)
{
    struct rule rule = {*column, ANY, NULL};
    if (column->unit == UNIT_DURATION || column->unit == UNIT_BYTES || column->unit == UNIT_COUNT ||
        column->unit == UNIT_TOKENS) {
        rule.least = strcmp(column->name, "clock_offset_ns") == 0 ? -IMPORT_VALUE_MAX : 0;
        rule.most = IMPORT_VALUE_MAX;
    }
    if (kind == RECORD_KIND_RUN && strcmp(column->name, "uuid") == 0)
        rule.brings = "lower(t.uuid)";
    if (kind == RECORD_KIND_RUN && strcmp(column->name, "end") == 0)
        rule.brings = "CASE t.\"end\" WHEN 0 THEN 3 ELSE t.\"end\" END";
    return rule;
}

_Static_assert(RECORD_RUN_END_OPEN == 0 && RECORD_RUN_END_SILENT == 3, "the ends above");

// ---- Faults -------------------------------------------------------------------------------

static void append_numbers(sqlite3_str *sql, const struct rule *rule)
{
    const enum column_type type = rule->column.type;
    sqlite3_str_appendf(sql, "typeof(t.\"%w\") = 'integer' AND t.\"%w\"", rule->column.name,
                        rule->column.name);
    if (!column_type_is_enum(type)) {
        sqlite3_str_appendf(sql, " BETWEEN %lld AND %lld", (long long)rule->least,
                            (long long)rule->most);
        return;
    }
    sqlite3_str_appendall(sql, " IN (-1");
    for (int64_t value = 0; column_enum_text(type, value); value++)
        sqlite3_str_appendf(sql, ", %lld", (long long)value);
    sqlite3_str_appendall(sql, ")");
}

// "WHEN it is wrong THEN 'table.column: why'".
static void append_fault(sqlite3_str *sql, const char *table, const struct rule *rule)
{
    const char *name = rule->column.name, *why = FAULT_NUMBER;
    if (rule->column.maybe)
        sqlite3_str_appendf(sql, " WHEN t.\"%w\" IS NOT NULL AND NOT (", name);
    else
        sqlite3_str_appendf(sql, " WHEN t.\"%w\" IS NULL THEN '%s.%s: missing' WHEN NOT (", name,
                            table, name);
    switch ((int)rule->column.type) {
    case COLUMN_REAL:
        sqlite3_str_appendf(
            sql, "typeof(t.\"%w\") IN ('real', 'integer') AND abs(t.\"%w\") < 9e999", name, name);
        break;
    case COLUMN_NAME:
        why = IMPORT_FAULT_NAME;
        sqlite3_str_appendf(sql,
                            "typeof(t.\"%w\") = 'integer' AND EXISTS (SELECT 1 FROM name n"
                            " WHERE n.id = t.\"%w\" AND import_is_text(n.text, 1, %d))",
                            name, name, IMPORT_NAME_MAX);
        break;
    case COLUMN_TEXT:
        why = FAULT_TEXT;
        sqlite3_str_appendf(sql, "import_is_text(t.\"%w\", 0, %d)", name, IMPORT_TEXT_MAX);
        break;
    case COLUMN_BLOB:
        why = "no sketch";
        sqlite3_str_appendf(sql, "import_is_sketch(t.\"%w\")", name);
        break;
    default:
        append_numbers(sql, rule);
        break;
    }
    sqlite3_str_appendf(sql, ") THEN '%s.%s: %s'", table, name, why);
}

static void append_value(sqlite3_str *sql, const struct rule *rule)
{
    if (rule->brings)
        sqlite3_str_appendf(sql, ", %s", rule->brings);
    else if (rule->column.type == COLUMN_NAME)
        sqlite3_str_appendf(sql, ", (SELECT n.text FROM name n WHERE n.id = t.\"%w\")",
                            rule->column.name);
    else
        sqlite3_str_appendf(sql, ", t.\"%w\"", rule->column.name);
}

const char *import_table_name(enum import_table table)
{
    return tables[table].name;
}

static const char *table_name(enum import_table table, enum record_kind kind)
{
    return table == IMPORT_RECORD ? record_kind_info(kind)->name : tables[table].name;
}

// Gets the rule of a table's column; false behind the last one.
static bool find_rule(enum import_table table, enum record_kind kind, size_t place,
                      struct rule *out)
{
    const struct record_kind_info *info = record_kind_info(kind);
    const bool has_columns = table == IMPORT_RUN || table == IMPORT_RECORD;
    if (place < tables[table].count)
        *out = tables[table].rules[place];
    else if (has_columns && place - tables[table].count < info->column_count)
        *out = rule_of(kind, &info->columns[place - tables[table].count]);
    else
        return false;
    return true;
}

void import_append_select(sqlite3_str *sql, enum import_table table, enum record_kind kind)
{
    struct rule rule;
    sqlite3_str_appendall(sql, "SELECT CASE");
    for (size_t i = 0; find_rule(table, kind, i, &rule); i++)
        append_fault(sql, table_name(table, kind), &rule);
    sqlite3_str_appendall(sql, " END, t.run");
    for (size_t i = 0; find_rule(table, kind, i, &rule); i++)
        append_value(sql, &rule);
    sqlite3_str_appendf(sql, " FROM \"%w\" t", table_name(table, kind));
}

// ---- Batches ------------------------------------------------------------------------------

// The columns have no types: values stay as they are.  Of runs with the same UUID the first one
// stays.
void import_append_create(sqlite3_str *sql, enum import_table table, enum record_kind kind)
{
    struct rule rule;
    sqlite3_str_appendf(sql, "CREATE TABLE \"%w\"(run%s", tables[table].name,
                        table == IMPORT_RUN ? " INTEGER PRIMARY KEY" : "");
    for (size_t i = 0; find_rule(table, kind, i, &rule); i++)
        sqlite3_str_appendf(sql, ", \"%w\"", rule.column.name);
    sqlite3_str_appendall(sql, table == IMPORT_RUN ? ", UNIQUE(uuid));" : ");");
}

// Appends statements that insert the new names of a batch's table into the store's table name.
static void append_names(sqlite3_str *sql, enum import_table table, enum record_kind kind)
{
    struct rule rule;
    for (size_t i = 0; find_rule(table, kind, i, &rule); i++)
        if (rule.column.type == COLUMN_NAME)
            sqlite3_str_appendf(sql,
                                "INSERT INTO main.name(text) SELECT \"%w\" FROM batch.\"%w\""
                                " WHERE \"%w\" IS NOT NULL ON CONFLICT(text)"
                                " DO UPDATE SET owner = 0 WHERE owner <> 0;",
                                rule.column.name, tables[table].name, rule.column.name);
}

// Appends "INSERT INTO table(COLUMNS values...) SELECT FROM values... FROM batch.table b"; COLUMNS
// and FROM are the parameters `columns` and `from`.
static void append_insert(sqlite3_str *sql, enum import_table table, enum record_kind kind,
                          const char *columns, const char *from)
{
    struct rule rule;
    const char *name = table_name(table, kind), *separator = columns[0] ? ", " : "";
    sqlite3_str_appendf(sql, "INSERT OR %s INTO main.\"%w\"(%s",
                        table == IMPORT_RUN ? "IGNORE" : "ABORT", name, columns);
    for (size_t i = 0; find_rule(table, kind, i, &rule); i++) {
        sqlite3_str_appendall(sql, i > 0 ? ", " : separator);
        schema_append_target(sql, kind, &rule.column);
    }
    sqlite3_str_appendf(sql, ") SELECT %s", from);
    for (size_t i = 0; find_rule(table, kind, i, &rule); i++) {
        char value[128];
        (void)sqlite3_snprintf(sizeof value, value,
                               rule.column.type == COLUMN_NAME
                                   ? "(SELECT n.id FROM main.name n WHERE n.text = b.\"%w\")"
                                   : "b.\"%w\"",
                               rule.column.name);
        sqlite3_str_appendall(sql, i > 0 ? ", " : separator);
        schema_append_stored(sql, kind, &rule.column, value);
    }
    sqlite3_str_appendf(sql, " FROM batch.\"%w\" b", tables[table].name);
}

// ---- Functions of this SQL ---------------------------------------------------------------

static void is_text(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    const bool has_type = sqlite3_value_type(values[0]) == SQLITE_TEXT;
    const char *text = (const char *)sqlite3_value_text(values[0]);
    const int size = sqlite3_value_bytes(values[0]);
    sqlite3_result_int(context, has_type && text && size >= sqlite3_value_int(values[1]) &&
                                    size <= sqlite3_value_int(values[2]) &&
                                    text_is_utf8(text, (size_t)size));
}

// Queries merge sketches: one that cannot be decoded is refused.
static void is_sketch(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    struct sketch *sketch = NULL;
    bool is_sound = sqlite3_value_type(values[0]) == SQLITE_BLOB;
    const void *bytes = sqlite3_value_blob(values[0]);
    const int size = sqlite3_value_bytes(values[0]);
    is_sound = is_sound && size <= IMPORT_TEXT_MAX && sketch_new(&sketch) == STATUS_OK;
    is_sound = is_sound && sketch_decode(sketch, bytes, (size_t)size) == STATUS_OK;
    sketch_free(sketch);
    sqlite3_result_int(context, is_sound);
}

// SQL: the set hash of all records that the current run ever had of a kind.
static void add_hash(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    const struct importing *importing = sqlite3_user_data(context);
    const int64_t kind = sqlite3_value_int64(values[0]);
    uint64_t hash = (uint64_t)sqlite3_value_int64(values[1]);
    if (kind >= 0 && kind < RECORD_KIND_COUNT)
        hash += importing->at_run->hashes[kind];
    sqlite3_result_int64(context, set_hash_signed(hash));
}

enum status import_register(sqlite3 *db, struct importing *importing, struct error *err)
{
    const int flags = SQLITE_UTF8 | SQLITE_DIRECTONLY;
    if (sqlite3_create_function(db, "import_is_text", 3, flags, NULL, is_text, NULL, NULL) ==
            SQLITE_OK &&
        sqlite3_create_function(db, "import_is_sketch", 1, flags, NULL, is_sketch, NULL, NULL) ==
            SQLITE_OK &&
        sqlite3_create_function(db, "import_hash", 2, flags, importing, add_hash, NULL, NULL) ==
            SQLITE_OK)
        return STATUS_OK;
    return database_error(db, "store", err);
}

// ---- Names --------------------------------------------------------------------------------

// Runs statements that add names.
static enum status add_names(sqlite3 *db, sqlite3_str *sql, struct error *err)
{
    const int before = sqlite3_total_changes(db);
    int64_t count = 0;
    enum status status = database_exec_built(db, sql, err);
    if (status == STATUS_OK && sqlite3_total_changes(db) != before)
        status = database_integer(db, "SELECT count(*) FROM name", &count, err);
    if (count > IMPORT_NAMES_MAX)
        status = error_set(err, STATUS_FULL, "store: it has as many names as it may");
    return status;
}

// ---- Runs ---------------------------------------------------------------------------------

#define NEW_RUNS                                                                                   \
    " JOIN batch.run f ON f.run = b.run JOIN main.run r ON r.uuid = f.uuid AND r.run > "

// Reads the ids of the runs after `last`.
static enum status read_new_runs(sqlite3 *db, struct import_batch *batch, int64_t last,
                                 struct error *err)
{
    sqlite3_stmt *row = NULL;
    enum status status =
        database_prepare(db, &row, "SELECT f.run, r.run FROM batch.run b" NEW_RUNS "?", false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_int64(row, 1, last);
    int rc;
    while ((rc = sqlite3_step(row)) == SQLITE_ROW && batch->new_run_count < IMPORT_RUNS_MAX)
        batch->new_runs[batch->new_run_count++] =
            (struct import_new_run){sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1)};
    if (rc != SQLITE_DONE)
        status = database_error(db, "store", err);
    (void)sqlite3_finalize(row);
    return status;
}

// A run that is here by now is left out, with what belongs to it.
static enum status apply_runs(sqlite3 *db, struct import_batch *batch, struct error *err)
{
    int64_t last = 0;
    sqlite3_str *sql = sqlite3_str_new(db);
    append_names(sql, IMPORT_RUN, RECORD_KIND_RUN);
    append_names(sql, IMPORT_RUN_NAME, RECORD_KIND_RUN);
    enum status status = add_names(db, sql, err);
    if (status == STATUS_OK)
        status = database_integer(db, "SELECT max(run) FROM main.run", &last, err);
    if (status != STATUS_OK)
        return status;
    sql = sqlite3_str_new(db);
    append_insert(sql, IMPORT_RUN, RECORD_KIND_RUN, "", "");
    sqlite3_str_appendall(sql, " ORDER BY b.run;");
    for (unsigned i = IMPORT_RUN + 1; i < IMPORT_RECORD; i++) {
        append_insert(sql, (enum import_table)i, RECORD_KIND_RUN, "run", "r.run");
        sqlite3_str_appendf(sql, NEW_RUNS "%lld ORDER BY b.rowid;", (long long)last);
    }
    status = database_exec_built(db, sql, err);
    return status == STATUS_OK ? read_new_runs(db, batch, last, err) : status;
}

// ---- Records ------------------------------------------------------------------------------

// The records were counted as cleared when their run was inserted, or were cleared or have expired
// here.  Of a sum modulo 2^64, -x is ~x + 1.
static enum status subtract_from_ledgers(sqlite3 *db, enum record_kind kind, struct error *err)
{
    int64_t runs = 0;
    enum status status =
        database_execf(db, err,
                       // A bundle that gets other records has no time in which it has all.
                       "UPDATE main.meta SET value = json_remove(value, '$.since_ns', '$.until_ns')"
                       " WHERE key = 'bundle';"
                       "UPDATE main.ledger SET cleared = cleared - min(cleared, n),"
                       " expired = expired - (n - min(cleared, n)),"
                       " gone_sum = set_hash_add(set_hash_add(gone_sum, ~sum), 1)"
                       " FROM (SELECT run AS back, count(*) AS n, set_hash(stream, number) AS sum"
                       " FROM batch.record GROUP BY run)"
                       " WHERE run = back AND kind = %d AND cleared + expired >= n",
                       (int)kind);
    const int changed = sqlite3_changes(db);
    if (status == STATUS_OK)
        status = database_integer(db, "SELECT count(DISTINCT run) FROM batch.record", &runs, err);
    if (status == STATUS_OK && runs != changed)
        status = error_set(err, STATUS_CORRUPT,
                           "store: a run does not lack the records that are brought");
    return status;
}

static enum status apply_records(sqlite3 *db, const struct import_batch *batch, int64_t last_id,
                                 struct error *err)
{
    char ids[64];
    int64_t known = 0;
    sqlite3_str *sql = sqlite3_str_new(db);
    append_names(sql, IMPORT_RECORD, batch->kind);
    enum status status = add_names(db, sql, err);
    if (status == STATUS_OK)
        status = gap_last_id(db, batch->kind, &known, err);
    if (status != STATUS_OK)
        return status;
    (void)snprintf(ids, sizeof ids, "%lld + b.rowid, b.run",
                   (long long)(known > last_id ? known : last_id));
    sql = sqlite3_str_new(db);
    append_insert(sql, IMPORT_RECORD, batch->kind, "id, run", ids);
    sqlite3_str_appendall(sql, " ORDER BY b.rowid");
    status = database_exec_built(db, sql, err);
    return status == STATUS_OK ? subtract_from_ledgers(db, batch->kind, err) : status;
}

// ---- Baselines ----------------------------------------------------------------------------

static enum status apply_baseline(sqlite3 *db, struct baseline *baseline, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_stmt *row = NULL;
    append_names(sql, IMPORT_SAMPLED, RECORD_KIND_RUN);
    enum status status = add_names(db, sql, err);
    if (status == STATUS_OK)
        status = database_prepare(db, &row,
                                  "SELECT n.id, d.id FROM batch.sampled b"
                                  " LEFT JOIN main.name n ON n.text = b.subject"
                                  " LEFT JOIN main.name d ON d.text = b.device ORDER BY b.rowid",
                                  false, err);
    for (size_t i = 0; database_step(db, row, &status, err); i++) {
        struct sample_group *group = samples_at(&baseline->samples, i);
        group->key.subject = sqlite3_column_int64(row, 0); // 0: none
        group->key.device = sqlite3_column_int64(row, 1);
    }
    (void)sqlite3_finalize(row);
    return status == STATUS_OK ? baseline_insert(db, baseline, false, err) : status;
}

// ---- Batches ------------------------------------------------------------------------------

// Attaches the rows as the database `batch`, in place.  It is not read-only, since BEGIN IMMEDIATE
// locks each database; nothing writes to it.
static enum status attach(sqlite3 *db, const struct import_batch *batch, struct error *err)
{
    enum status status = database_exec(db, "ATTACH ':memory:' AS batch", err);
    if (status == STATUS_OK &&
        sqlite3_deserialize(db, "batch", batch->rows, batch->size, batch->size, 0) != SQLITE_OK)
        status = database_error(db, "store", err);
    return status;
}

enum status import_apply(sqlite3 *db, struct import_batch *batch, int64_t last_id,
                         struct error *err)
{
    batch->new_run_count = 0;
    enum status status = attach(db, batch, err);
    if (status == STATUS_OK)
        status = database_exec(db, "BEGIN IMMEDIATE", err);
    if (status == STATUS_OK) {
        status = batch->baseline                  ? apply_baseline(db, batch->baseline, err)
                 : batch->kind == RECORD_KIND_RUN ? apply_runs(db, batch, err)
                                                  : apply_records(db, batch, last_id, err);
        status = database_end(db, status, err);
    }
    (void)sqlite3_exec(db, "DETACH batch", NULL, NULL, NULL);
    return status;
}

// ---- Into a file ----------------------------------------------------------------------------

static enum status apply_to_file(void *context, struct import_batch *batch, struct error *err)
{
    return import_apply(context, batch, 0, err);
}

static enum status change_file(struct store *store, struct sqlite3 *db, const struct query *query,
                               void *out, int64_t *rows, struct error *err)
{
    const struct import_sink sink = {apply_to_file, db};
    enum status status = import_file(store, query->file.path, &sink, out, err);
    *rows = status == STATUS_OK ? result_integer(*(struct result **)out, 0, "records", 0) : 0;
    return status;
}

enum status store_import(const char *into, const struct query *query, struct result **out,
                         struct error *err)
{
    return session_change_file(into, query, change_file, out, err);
}
