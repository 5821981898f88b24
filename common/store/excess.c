#include "common/store/excess.h"

#include <string.h>

#include <sqlite3.h>

#include "common/store/schema.h"

// Trackers take ttft_ns, prefill_ns, decode_ns and e2e_ns from the same stamps
// (common/monitor/tracker_inference.c).  Of those, prefill_ns and decode_ns are asked for
// less often than what they are worked out from.
static const struct excess table[] = {
    {.kept = "received_after_ns",
     .meaning = "received_ns less started_ns",
     .column = EXCESS_RECEIVED,
     .base = EXCESS_STARTED,
     .less = EXCESS_NONE,
     .kind = RECORD_KIND_COUNT},
    {.kept = "prefill_excess_ns",
     .meaning = "what prefill_ns is beyond ttft_ns - queue_ns",
     .column = INFERENCE_PREFILL_NS,
     .base = INFERENCE_TTFT_NS,
     .less = INFERENCE_QUEUE_NS,
     .kind = RECORD_KIND_INFERENCE},
    {.kept = "decode_excess_ns",
     .meaning = "what decode_ns is beyond e2e_ns - ttft_ns",
     .column = INFERENCE_DECODE_NS,
     .base = INFERENCE_E2E_NS,
     .less = INFERENCE_TTFT_NS,
     .kind = RECORD_KIND_INFERENCE},
};

enum { TABLE_COUNT = sizeof table / sizeof *table };

static bool is_of(const struct excess *excess, enum record_kind kind)
{
    return excess->kind == kind || (excess->kind == RECORD_KIND_COUNT && kind != RECORD_KIND_RUN);
}

const struct excess *excess_find(enum record_kind kind, int column)
{
    for (unsigned i = 0; i < TABLE_COUNT; i++)
        if (table[i].column == column && is_of(&table[i], kind))
            return &table[i];
    return NULL;
}

const struct excess *excess_of_kept(enum record_kind kind, const char *name)
{
    for (unsigned i = 0; i < TABLE_COUNT; i++)
        if (is_of(&table[i], kind) && strcmp(table[i].kept, name) == 0)
            return &table[i];
    return NULL;
}

const char *excess_name(enum record_kind kind, int column)
{
    if (column == EXCESS_STARTED)
        return "started_ns";
    if (column == EXCESS_RECEIVED)
        return "received_ns";
    return record_kind_info(kind)->columns[column].name;
}

bool excess_of(int64_t *out, int64_t value, int64_t base, int64_t less)
{
    int64_t expected;
    return !__builtin_sub_overflow(base, less, &expected) &&
           !__builtin_sub_overflow(value, expected, out);
}

// ---- As SQL -------------------------------------------------------------------------------

// How a column of the row is said: by its name, or as a parameter.
typedef void append_operand(sqlite3_str *sql, enum record_kind kind, int column);

static void append_name(sqlite3_str *sql, enum record_kind kind, int column)
{
    sqlite3_str_appendf(sql, "\"%w\"", excess_name(kind, column));
}

static void append_parameter(sqlite3_str *sql, enum record_kind kind, int column)
{
    (void)kind;
    sqlite3_str_appendf(sql, "?%d", SCHEMA_FIRST_COLUMN + column);
}

static void append_or_zero(sqlite3_str *sql, enum record_kind kind, int column,
                           append_operand *operand)
{
    const bool maybe = column >= 0 && record_kind_info(kind)->columns[column].maybe;
    sqlite3_str_appendall(sql, maybe ? "coalesce(" : "");
    operand(sql, kind, column);
    sqlite3_str_appendall(sql, maybe ? ", 0)" : "");
}

static void append_expected(sqlite3_str *sql, enum record_kind kind, const struct excess *excess,
                            append_operand *operand)
{
    append_or_zero(sql, kind, excess->base, operand);
    if (excess->less == EXCESS_NONE)
        return;
    sqlite3_str_appendall(sql, " - ");
    append_or_zero(sql, kind, excess->less, operand);
}

// Numbers are less than texts, and bytes (which only damage puts there) more.
void excess_append_generated(sqlite3_str *sql, enum record_kind kind, const struct excess *excess)
{
    sqlite3_str_appendf(sql, "INTEGER GENERATED ALWAYS AS (CASE WHEN \"%w\" < '' THEN ",
                        excess->kept);
    append_expected(sql, kind, excess, append_name);
    sqlite3_str_appendf(sql, " + \"%w\" ELSE \"%w\" END) VIRTUAL", excess->kept, excess->kept);
}

static void append_excess(sqlite3_str *sql, enum record_kind kind, const struct excess *excess,
                          append_operand *operand)
{
    operand(sql, kind, excess->column);
    sqlite3_str_appendall(sql, " - (");
    append_expected(sql, kind, excess, operand);
    sqlite3_str_appendall(sql, ")");
}

static void append_kept(sqlite3_str *sql, enum record_kind kind, const struct excess *excess,
                        append_operand *operand)
{
    sqlite3_str_appendall(sql, "typeof(");
    append_excess(sql, kind, excess, operand);
    sqlite3_str_appendall(sql, ") = 'integer' THEN ");
    append_excess(sql, kind, excess, operand);
    sqlite3_str_appendall(sql, " ELSE CAST(");
    operand(sql, kind, excess->column);
    sqlite3_str_appendall(sql, " AS TEXT) END");
}

void excess_append_kept_bound(sqlite3_str *sql, enum record_kind kind, const struct excess *excess)
{
    sqlite3_str_appendall(sql, "CASE WHEN ");
    append_kept(sql, kind, excess, append_parameter);
}

// Arithmetic would take a text that is no number for 0.
void excess_append_kept_of(sqlite3_str *sql, enum record_kind kind, const struct excess *excess)
{
    sqlite3_str_appendf(sql, "CASE WHEN typeof(\"%w\") = 'integer' AND ",
                        excess_name(kind, excess->column));
    append_kept(sql, kind, excess, append_name);
}
