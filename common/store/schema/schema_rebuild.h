// Recreates tables of records in the current layout.
#ifndef INFERSTAT_STORE_SCHEMA_SCHEMA_REBUILD_H
#define INFERSTAT_STORE_SCHEMA_SCHEMA_REBUILD_H

#include "common/core/base/error.h"
#include "common/core/record/record.h"

struct sqlite3;

// Moves the kind's rows, all of whose columns can be read by their names, into a table as
// schema_append_table has it, which takes the place of theirs; what indexes and triggers
// there were on it, they are made again, and views find it by its name.
//
// Within a transaction.  Memory holds SQLite's page cache and no more; the log grows as
// large as the table, the file does not: pages of rows that have moved take the next.
// What is free in the end, retention gives back.
MUST_CHECK enum status schema_rebuild(struct sqlite3 *db, enum record_kind kind, struct error *err);

#endif
