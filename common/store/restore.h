// Restore: puts a copy of a backup in the place of a store file, which is kept under another name.
#ifndef INFERSTAT_STORE_RESTORE_H
#define INFERSTAT_STORE_RESTORE_H

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"

// Copies the store `backup` (FILE.restored), checks the copy, renames the file at `path`, if there
// is one, to FILE.before-TIME, and the copy to FILE; symbolic links of `path` are resolved.
// Whenever the process is killed, the earlier store and the backup are whole; calling it again
// completes the work.  The new file has the owner and the permissions of the earlier one.
//
// On success sets `*out` to the answer of query_copy (copy.h) with the path of the store, which the
// caller frees, and `before` to the name of the earlier store; "": there was none.  Returns
// STATUS_BUSY if a collector has the store open, STATUS_INVALID if both are one file, or an error
// of store_open or query_copy.
MUST_CHECK enum status store_restore(const char *path, const char *backup, struct result **out,
                                     char before[QUERY_PATH_SIZE], struct error *err);

#endif
