// File-system helpers: creates folders, builds paths, writes files, syncs folders, finds the XDG
// folders.
#ifndef INFERSTAT_SYS_FILES_H
#define INFERSTAT_SYS_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "common/core/base/error.h"
#include "common/core/query/json_writer.h"

// Creates the folder and its missing parents, all with `mode`.  Succeeds if the folder exists;
// STATUS_INVALID if the path exists and is no folder.
MUST_CHECK enum status files_make_folder(const char *path, mode_t mode, struct error *err);

// Writes "FOLDER/NAME"; STATUS_FULL if it does not fit.
MUST_CHECK enum status files_join(char *out, size_t out_size, const char *folder, const char *name,
                                  struct error *err);

// Writes the folder part of `path` (dirname): "." if `path` has none.  Truncated if too long.
void files_folder_of(char *out, size_t out_size, const char *path);

// Syncs the folder of the file at `path`, so that a created or renamed file survives a power loss.
// Returns false and sets errno on failure.
bool files_sync_folder(const char *path);

// Writes a text file in one step: under a temporary name beside it, synced, then renamed.  If the
// path exists, replaces that file, or without `replace` fails with STATUS_BUSY.  STATUS_DENIED,
// STATUS_FULL, STATUS_IO.
MUST_CHECK enum status files_write(const char *path, const char *text, mode_t mode, bool replace,
                                   struct error *err);

// The data folder of inferstat: $XDG_DATA_HOME/inferstat if that is set, else /var/lib/inferstat
// for root, else ~/.local/share/inferstat.  STATUS_NOT_FOUND without a home.
MUST_CHECK enum status files_data_folder(char *out, size_t out_size, struct error *err);

// The cache folder: $XDG_CACHE_HOME/inferstat if that is set, else ~/.cache/inferstat.
// STATUS_NOT_FOUND without a home.
MUST_CHECK enum status files_cache_folder(char *out, size_t out_size, struct error *err);

// A JSON writer to a stream.  The caller checks ferror for write errors.
struct json_writer files_json(FILE *out);

#endif
