// Lets SQLite open files relative to an open directory: /proc/self/fd/N/NAME names the file in
// the directory that was opened, wherever the directory's own path leads by now.
//
// By default SQLite resolves such a path to the directory's current name and opens that; an
// attacker could replace the directory in between.
#ifndef INFERSTAT_STORE_SQLITE_FD_PATH_H
#define INFERSTAT_STORE_SQLITE_FD_PATH_H

#include "common/core/base/error.h"

#define FD_PATH "/proc/self/fd/"

// Makes SQLite use such paths unresolved, in the whole process.  To be called before any other
// thread opens a database; calling it again is fine.
MUST_CHECK enum status fd_path_allow(struct error *err);

#endif
