// Restore from backup: replaces a store file by a copy of a backup, and keeps the replaced file
// under another name.
#ifndef INFERSTAT_STORE_RESTORE_H
#define INFERSTAT_STORE_RESTORE_H

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"

// Restores FILE, the file at `path` with symbolic links resolved:
//   1. copies `backup` to FILE.restored, and checks the copy
//   2. renames FILE, if it exists, to FILE.before-TIME
//   3. renames FILE.restored to FILE, with the owner and permissions of the earlier file
// If the process is killed, the earlier store and the backup are intact, and another call completes
// the restore.
//
// On success sets `*out` to the answer of query_copy (copy.h) with the path of the store, which the
// caller frees, and `before` to the name of the earlier store; "": there was none.  Returns
// STATUS_BUSY if a collector has the store open, STATUS_INVALID if both are one file, or an error
// of store_open or query_copy.
MUST_CHECK enum status store_restore(const char *path, const char *backup, struct result **out,
                                     char before[QUERY_PATH_SIZE], struct error *err);

#endif
