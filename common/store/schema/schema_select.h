// SQL generator for the tables of records, from the column definitions in record.h: CREATE TABLE,
// CREATE VIEW, INSERT, select lists and expressions.  Select lists give values as users see them:
// names and enumerations as text, derived metrics, and the losses of a run by reason.  Expressions
// refer to the table of the record kind by the alias t.
#pragma once

#include "common/core/delivery/delivery.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"
#include "common/core/record/record.h"

struct sqlite3_str;

// SQL expression for a dimension of a row `t` of the kind: a name id, the run's id, or a number (of
// the status: 0 ok, 1 error, 2 cancelled).  NULL if the kind lacks the dimension.  Static.
const char *schema_dimension(enum record_kind kind, enum query_dimension dimension);

// Appends the select list of the kind's user-visible columns, over a row `t`: run, host, stream,
// number, started_ns, received_ns, the columns of the record table (record_table.h), and derived
// columns; for runs also the losses by reason (drop_key).  Names and enumerations are text.  Also
// adds each column to `columns`, unless that is NULL.  Returns STATUS_NOMEM when out of memory.
enum status schema_select_list(struct sqlite3_str *sql, enum record_kind kind,
                               struct result *columns);

// Appends the expression for an enumeration column of row `t` as text; null for an unknown value.
void schema_select_enum(struct sqlite3_str *sql, const struct record_column *column);

// Appends a derived metric's two expressions, as "numerator, denominator".
void append_derived(struct sqlite3_str *sql, const struct record_derived *derived);
// Appends the SQL expression for a metric of records; its value is null if the denominator of a
// derived metric is null or not positive.
void schema_select_metric(struct sqlite3_str *sql, const struct query_metric *metric);

// Initializers {key, unit} of the result columns of lost records, one per reason, such as
// "dropped_spool_full": the elements of an array of struct answer_column.
#define DROP_COLUMN(name, text) {"dropped_" text, UNIT_COUNT},
#define DROP_COLUMNS            DELIVERY_REASONS(DROP_COLUMN)

// The name of the column of lost records with that reason; static.
const char *drop_key(enum delivery_reason reason);

// ---- Tables, views and INSERT ----------------------------------------------------------

// Appends CREATE TABLE `name` for the kind; without indexes.
void schema_append_table(struct sqlite3_str *sql, enum record_kind kind, const char *name);

// The SQL type ("INTEGER", ...) of a column of the kind, by its position from 0; static.
const char *schema_column_type(enum record_kind kind, unsigned column);

// Appends the names of the kind's columns, with those before them.  Not for RECORD_KIND_RUN.
void schema_append_columns(struct sqlite3_str *sql, enum record_kind kind);

// Appends "INTO `to`(...) SELECT ...", which inserts rows of the columns of schema_append_columns
// into a table of schema_append_table; the caller appends FROM.  Not for RECORD_KIND_RUN.
void schema_append_copy(struct sqlite3_str *sql, enum record_kind kind, const char *to);

// Appends CREATE VIEW v_KIND for the kind (schema.h).
void schema_append_view(struct sqlite3_str *sql, enum record_kind kind);

// Appends "INSERT INTO KIND(...) VALUES(?1, ...)".  The parameters are id, run, stream, number,
// started_ns, received_ns, then the kind's columns in stored form (names as ids, enumerations as
// integers).  Not for RECORD_KIND_RUN.
void schema_insert_sql(struct sqlite3_str *sql, enum record_kind kind);
enum { SCHEMA_FIRST_COLUMN = 7 }; // the parameter (?7) of the kind's column 0
