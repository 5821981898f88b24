// Verifies the schema of a file of unknown origin before any of its tables is read.
#ifndef INFERSTAT_STORE_SCHEMA_SCHEMA_VERIFY_H
#define INFERSTAT_STORE_SCHEMA_SCHEMA_VERIFY_H

#include <stdbool.h>

#include "common/core/base/error.h"

struct sqlite3;

// Verifies that whatever has the name of a table of ours is a table of rows: a view or a virtual
// table runs code of the file's author.  `all`: and that none is missing, which an older version
// may lack.  Returns STATUS_CORRUPT and names the first that is not; `path` is only for messages.
MUST_CHECK enum status schema_verify(struct sqlite3 *db, const char *path, bool all,
                                     struct error *err);

#endif
