// Sealed rows as a virtual table of SQLite: sealed_KIND, with the columns of KIND.
//
// There is nothing of it in the file: the connections of our own programs know it.  It
// looks at segments whose ids and times a statement's conditions let through, at their
// rows one by one, and decodes the columns that are asked for.  Rows come rising or
// falling by id.
#ifndef INFERSTAT_STORE_SEALED_TABLE_H
#define INFERSTAT_STORE_SEALED_TABLE_H

#include "common/core/error.h"

struct sqlite3;

// Makes the tables known to a connection.
MUST_CHECK enum status sealed_table_register(struct sqlite3 *db, struct error *err);

// STATUS_UNSUPPORTED where the file has a table or view of such a name, which everybody
// would read in place of the sealed rows.
MUST_CHECK enum status sealed_table_check(struct sqlite3 *db, const char *path, struct error *err);

#endif
