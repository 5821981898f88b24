// File-descriptor paths for SQLite: lets it open files relative to an open directory, as openat(2)
// does.  /proc/self/fd/N/NAME is the file NAME in the directory of descriptor N, even after that
// directory was renamed or its path replaced.
//
// By default SQLite resolves such a path to the directory's current name and opens that name.  An
// attacker could replace the directory in between (a TOCTOU race).
#pragma once

#include "common/core/base/error.h"

#define FD_PATH "/proc/self/fd/"

// Makes SQLite open paths that begin with FD_PATH unresolved, in the whole process.  To be called
// before any other thread opens a database; repeated calls are harmless.
MUST_CHECK enum status fd_path_allow(struct error *err);
