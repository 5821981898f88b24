// Paths by way of a folder that this process holds open: /proc/self/fd/N/NAME is the file
// in the folder that was opened, whatever its name leads to by now.
//
// SQLite as it comes takes such a path for the name that the folder has at that moment,
// and opens that: between the two the name may have come to lead elsewhere.
#ifndef INFERSTAT_STORE_FD_PATH_H
#define INFERSTAT_STORE_FD_PATH_H

#include "common/core/base/error.h"

#define FD_PATH "/proc/self/fd/"

// From now on SQLite takes such paths in this process as they are; all others as before.
// Before any other thread opens a database; again is fine.
MUST_CHECK enum status fd_path_allow(struct error *err);

#endif
