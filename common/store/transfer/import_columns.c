// Generates the SQL that reads and validates rows of an untrusted file.
#include "common/store/transfer/import_reading.h"

#include <string.h>

#include <sqlite3.h>

#include "common/core/base/text.h"
#include "common/core/delivery/delivery.h"
#include "common/core/stats/sketch.h"
#include "common/store/sqlite/database.h"
#include "common/store/sqlite/set_hash.h"
#include "common/store/schema/schema.h"

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

#define INT(name, ...)                                                                             \
    {                                                                                              \
        {name, "", COLUMN_INT, UNIT_NONE, false}, __VA_ARGS__, NULL                                \
    }
#define MAYBE_INT(name, ...)                                                                       \
    {                                                                                              \
        {name, "", COLUMN_INT, UNIT_NONE, true}, __VA_ARGS__, NULL                                 \
    }
#define MAYBE_TEXT(name)                                                                           \
    {                                                                                              \
        {name, "", COLUMN_TEXT, UNIT_NONE, true}, ANY, NULL                                        \
    }

static const struct rule run_rules[] = {
    INT("started_ns", ANY),
    INT("received_ns", ANY),
    INT("heard_ns", ANY),
    INT("refused", 0, IMPORT_VALUE_MAX),
    INT("clock_suspects", 0, IMPORT_VALUE_MAX),
    INT("unknown_columns", 0, IMPORT_VALUE_MAX),
};

static const struct rule record_rules[] = {
    INT("stream", ANY),
    INT("number", ANY),
    INT("started_ns", ANY),
    INT("received_ns", ANY),
};

static const struct rule stream_rules[] = {
    INT("stream", 0, UINT32_MAX),
    INT("next", 0, IMPORT_NUMBER_MAX + 1),
    INT("produced", 0, IMPORT_NUMBER_MAX + 1),
    INT("unnumbered", 0, IMPORT_NUMBER_MAX + 1),
    INT("no_room", 0, IMPORT_NUMBER_MAX + 1),
    MAYBE_TEXT("activity"),
    MAYBE_INT("activity_since_ns", ANY),
};

static const struct rule range_rules[] = {
    INT("stream", 0, UINT32_MAX),
    INT("first", 1, IMPORT_NUMBER_MAX),
    INT("last", 1, IMPORT_NUMBER_MAX),
    INT("state", SCHEMA_RANGE_STORED, SCHEMA_RANGE_DROPPED),
    MAYBE_INT("reason", 0, DELIVERY_REASON_COUNT - 1),
    MAYBE_TEXT("detail"),
    MAYBE_INT("since_ns", ANY),
    MAYBE_INT("until_ns", ANY),
};

static const struct rule unnumbered_rules[] = {
    INT("told_ns", ANY),
    INT("lost", 0, IMPORT_VALUE_MAX),
    INT("since_ns", ANY),
    INT("until_ns", ANY),
};

// All records count as cleared until they are imported.  Those that expired in the file's store
// stay cleared here: they did not expire here.
static const struct rule ledger_rules[] = {
    INT("kind", RECORD_KIND_RUN + 1, RECORD_KIND_COUNT - 1),
    INT("stored", 0, IMPORT_VALUE_MAX),
    {{"expired", "", COLUMN_INT, UNIT_NONE, false}, ANY, "0"},
    {{"cleared", "", COLUMN_INT, UNIT_NONE, false}, ANY, "t.stored"},
    {{"gone_sum", "", COLUMN_INT, UNIT_NONE, false}, ANY, "import_hash(t.kind, t.gone_sum)"},
};

static const struct rule name_rules[] = {
    INT("number", 0, UINT32_MAX),
    {{"name", "", COLUMN_NAME, UNIT_NONE, false}, ANY, NULL},
};

static const struct rule sampled_rules[] = {
    {{"subject", "", COLUMN_NAME, UNIT_NONE, true}, ANY, NULL},
    {{"device", "", COLUMN_NAME, UNIT_NONE, true}, ANY, NULL},
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

void import_append_names(sqlite3_str *sql, enum import_table table, enum record_kind kind)
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

void import_append_insert(sqlite3_str *sql, enum import_table table, enum record_kind kind,
                          const char *columns, const char *from)
{
    struct rule rule;
    const char *name = table_name(table, kind), *separator = columns[0] ? ", " : "";
    sqlite3_str_appendf(sql, "INSERT OR %s INTO main.\"%w\"(%s",
                        table == IMPORT_RUN ? "IGNORE" : "ABORT", name, columns);
    for (size_t i = 0; find_rule(table, kind, i, &rule); i++)
        sqlite3_str_appendf(sql, "%s\"%w\"", i > 0 ? ", " : separator, rule.column.name);
    sqlite3_str_appendf(sql, ") SELECT %s", from);
    for (size_t i = 0; find_rule(table, kind, i, &rule); i++)
        sqlite3_str_appendf(sql,
                            rule.column.type == COLUMN_NAME
                                ? "%s(SELECT n.id FROM main.name n WHERE n.text = b.\"%w\")"
                                : "%sb.\"%w\"",
                            i > 0 ? ", " : separator, rule.column.name);
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
