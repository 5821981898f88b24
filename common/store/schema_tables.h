// The tables and views of record kinds, made from the record table and from how
// columns are kept (excess.h).
#ifndef INFERSTAT_STORE_SCHEMA_TABLES_H
#define INFERSTAT_STORE_SCHEMA_TABLES_H

#include "common/core/record/record.h"

struct sqlite3_str;

// Appends the statement that makes the kind's table, by that name; without indexes.
void schema_append_table(struct sqlite3_str *sql, enum record_kind kind, const char *name);

// Appends the name and type of a column of the kind, or of EXCESS_RECEIVED, that it has
// in the table; generated where it is kept as another (excess.h).
void schema_append_column(struct sqlite3_str *sql, enum record_kind kind, int column);

// Appends the names of the columns that the kind's rows keep, from id on.  Not for
// RECORD_KIND_RUN.
void schema_append_kept(struct sqlite3_str *sql, enum record_kind kind);

// What is kept as expressions over a row that has the columns as they are read.
void schema_append_kept_of(struct sqlite3_str *sql, enum record_kind kind);

// Appends the statement that makes the kind's view.
void schema_append_view(struct sqlite3_str *sql, enum record_kind kind);

#endif
