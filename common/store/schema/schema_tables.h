// SQL generator: CREATE TABLE, CREATE VIEW and INSERT for the kinds of records, from the
// column definitions in record.h.  Used by migration, the collector's writer, and copies.
#ifndef INFERSTAT_STORE_SCHEMA_SCHEMA_TABLES_H
#define INFERSTAT_STORE_SCHEMA_SCHEMA_TABLES_H

#include "common/core/record/record.h"

struct sqlite3_str;

// Appends CREATE TABLE `name` for the kind; without indexes.
void schema_append_table(struct sqlite3_str *sql, enum record_kind kind, const char *name);

// The SQL type ("INTEGER", ...) of a column of the kind, by its position from 0; static.
const char *schema_column_type(enum record_kind kind, unsigned column);

// Appends the names of all columns of the kind's table, in table order.  Not for RECORD_KIND_RUN.
void schema_append_columns(struct sqlite3_str *sql, enum record_kind kind);

// Appends CREATE VIEW v_KIND for the kind (schema.h).
void schema_append_view(struct sqlite3_str *sql, enum record_kind kind);

// Appends "INSERT INTO KIND(...) VALUES(?1, ...)".  The parameters are id, run, stream, number,
// started_ns, received_ns, then the kind's columns in stored form (names as ids, enumerations as
// integers).  Not for RECORD_KIND_RUN.
void schema_insert_sql(struct sqlite3_str *sql, enum record_kind kind);
enum { SCHEMA_FIRST_COLUMN = 7 }; // the parameter (?7) of the kind's column 0

#endif
