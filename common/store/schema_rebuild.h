// Tables of records made anew in the layout of today.
#ifndef INFERSTAT_STORE_SCHEMA_REBUILD_H
#define INFERSTAT_STORE_SCHEMA_REBUILD_H

#include "common/core/error.h"
#include "common/core/record.h"

struct sqlite3;

// Copies the kind's rows, all of whose columns can be read by their names, into a table
// as schema_append_table has it, which takes the place of theirs; what indexes and
// triggers there were on it, they are made again.  Within a transaction, which may grow
// as large as the table, on disk: memory holds SQLite's page cache and no more.  The room
// of the old rows becomes free pages, which retention gives back.
MUST_CHECK enum status schema_rebuild(struct sqlite3 *db, enum record_kind kind, struct error *err);

#endif
