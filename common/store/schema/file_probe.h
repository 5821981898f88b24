// File-format probe: reads a store file's header (magic number, application id, version), so that
// SQLite neither opens nor locks another program's file.
#ifndef INFERSTAT_STORE_SCHEMA_FILE_PROBE_H
#define INFERSTAT_STORE_SCHEMA_FILE_PROBE_H

#include <stdint.h>

#include "common/core/base/error.h"

// Checks that `path` is a regular file.  STATUS_NOT_FOUND, STATUS_DENIED, STATUS_IO (e.g. a
// folder).
MUST_CHECK enum status file_probe_look(const char *path, struct error *err);

// The same, then checks the SQLite header: STATUS_CORRUPT (not SQLite, or another program's file),
// STATUS_TOO_NEW.  STATUS_OK does not prove that the file is a store; an empty file passes.  Must
// not be called while this process has the file open through SQLite: closing any descriptor of a
// file drops the process's POSIX locks on it.
MUST_CHECK enum status file_probe_check(const char *path, struct error *err);

// Set the error for a file of another application (STATUS_CORRUPT), of a newer version
// (STATUS_TOO_NEW), or that is not SQLite (STATUS_CORRUPT).  Shared with schema_migrate.c.
enum status file_probe_is_foreign(const char *path, int64_t application, struct error *err);
enum status file_probe_is_newer(const char *path, int64_t version, struct error *err);
enum status file_probe_is_no_database(const char *path, struct error *err);

#endif
