// Inspects a store's file before SQLite opens it, so that another program's file is neither
// opened nor locked.
#ifndef INFERSTAT_STORE_SCHEMA_FILE_PROBE_H
#define INFERSTAT_STORE_SCHEMA_FILE_PROBE_H

#include <stdint.h>

#include "common/core/base/error.h"

// Whether there is a file.  STATUS_NOT_FOUND, STATUS_DENIED, STATUS_IO (a folder
// and the like).
MUST_CHECK enum status file_probe_look(const char *path, struct error *err);

// The same, and what its first bytes can tell: STATUS_CORRUPT (not SQLite, or
// another program's), STATUS_TOO_NEW.  STATUS_OK does not mean that it is a
// store, only that nothing contradicts it; an empty file passes.  Must not be called while this
// process has the file open through SQLite: closing any descriptor of a file drops the
// process's POSIX locks on it.
MUST_CHECK enum status file_probe_check(const char *path, struct error *err);

// Refusals that schema_migrate.c shares.
enum status file_probe_is_foreign(const char *path, int64_t application, struct error *err);
enum status file_probe_is_newer(const char *path, int64_t version, int newest, struct error *err);
enum status file_probe_is_no_database(const char *path, struct error *err);

#endif
