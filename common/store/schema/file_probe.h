// File-format probe: reads the header of a file (magic number, application id, version) before
// SQLite opens it, so that SQLite neither opens nor locks another program's file.
#pragma once

#include <stdint.h>

#include "common/core/base/error.h"

// Checks that `path` is a regular file.  Returns STATUS_NOT_FOUND if it does not exist,
// STATUS_DENIED without permission, STATUS_IO for other errors (e.g. it is a directory).
MUST_CHECK enum status file_probe_look(const char *path, struct error *err);

// Calls file_probe_look, then checks the header.  Returns STATUS_CORRUPT if the file is no SQLite
// database or another program's, STATUS_TOO_NEW if a newer version wrote it.  An empty file passes;
// STATUS_OK does not prove that the file is a store.  Must not be called while this process has the
// file open through SQLite: closing any descriptor of a file drops the process's POSIX locks on it.
MUST_CHECK enum status file_probe_check(const char *path, struct error *err);

// Error constructors: the next three functions check nothing; they set `err` and return the status.
// file_probe_is_foreign: STATUS_CORRUPT (another application's file); file_probe_is_newer:
// STATUS_TOO_NEW (a newer version); file_probe_is_no_database: STATUS_CORRUPT (not SQLite).
enum status file_probe_is_foreign(const char *path, int64_t application, struct error *err);
enum status file_probe_is_newer(const char *path, int64_t version, struct error *err);
enum status file_probe_is_no_database(const char *path, struct error *err);
