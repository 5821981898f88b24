// Folders, paths and streams.
#ifndef INFERSTAT_SYS_FILES_H
#define INFERSTAT_SYS_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "common/core/base/error.h"
#include "common/core/query/json_writer.h"

// Creates the folder and its missing parents, all with `mode`.  An existing folder is
// no error; a file of that name is.
MUST_CHECK enum status files_make_folder(const char *path, mode_t mode, struct error *err);

// Writes "FOLDER/NAME"; STATUS_FULL when it does not fit.
MUST_CHECK enum status files_join(char *out, size_t out_size, const char *folder, const char *name,
                                  struct error *err);

// Writes the folder of the file at `path`: "." where the path names none.  Cut where it does not
// fit.
void files_folder_of(char *out, size_t out_size, const char *path);

// Syncs the folder of the file at `path`, so that the file's name survives a loss of power.  False
// with errno set when it fails.
bool files_sync_folder(const char *path);

// The data folder for inferstat: $XDG_DATA_HOME/inferstat when that is set, else
// /var/lib/inferstat for root, else ~/.local/share/inferstat.
MUST_CHECK enum status files_data_folder(char *out, size_t out_size, struct error *err);

// The cache folder: $XDG_CACHE_HOME/inferstat when that is set, else
// ~/.cache/inferstat.
MUST_CHECK enum status files_cache_folder(char *out, size_t out_size, struct error *err);

// A JSON writer to a stream.  Failures stay in the stream (ferror).
struct json_writer files_json(FILE *out);

#endif
