// Schema validation of an untrusted SQLite file, before any of its tables is read.
#ifndef INFERSTAT_STORE_SCHEMA_SCHEMA_VERIFY_H
#define INFERSTAT_STORE_SCHEMA_SCHEMA_VERIFY_H

#include <stdbool.h>

#include "common/core/base/error.h"

struct sqlite3;

// Verifies that no view or virtual table has the name of one of the store's tables: it would run
// code of the file's author.  With `all`, also verifies that no table of this version is missing (a
// store of an older version lacks some).  Returns STATUS_CORRUPT; `err` names the view or virtual
// table.  `path` is only for messages.
MUST_CHECK enum status schema_verify(struct sqlite3 *db, const char *path, bool all,
                                     struct error *err);

#endif
