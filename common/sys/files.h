// File-system helpers: directories, paths, syncing, atomic writing of files, the user's data and
// cache directories (XDG), standard descriptors, and JSON output to a file.  A folder is a
// directory.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "common/core/base/error.h"
#include "common/core/query/json_writer.h"

// Creates the directory `path` and its missing parents, all with `mode`.  Succeeds if the directory
// exists.  Returns STATUS_INVALID if `path` exists and is no directory.
MUST_CHECK enum status files_make_folder(const char *path, mode_t mode, struct error *err);

// Writes "FOLDER/NAME" to `out`.  Returns STATUS_FULL if it does not fit.
MUST_CHECK enum status files_join(char *out, size_t out_size, const char *folder, const char *name,
                                  struct error *err);

// Writes the directory part of `path` (dirname) to `out`; "." if `path` has none.  Truncates it if
// it does not fit.
void files_folder_of(char *out, size_t out_size, const char *path);

// Syncs a file or directory to the disk.  Returns false and sets errno on failure.
bool files_sync(const char *path);

// Syncs the directory of the file at `path`, so that the file's creation or renaming survives a
// power loss.  Returns false and sets errno on failure.
bool files_sync_folder(const char *path);

// Writes a text file atomically: writes and syncs a temporary file in the same directory, then
// renames it.  If a file exists at `path`, `replace` says whether to replace it or to return
// STATUS_BUSY.  Returns STATUS_DENIED if writing is not permitted, STATUS_FULL if the disk or quota
// is full, STATUS_INVALID if the path is too long, STATUS_IO for other failures.
MUST_CHECK enum status files_write(const char *path, const char *text, mode_t mode, bool replace,
                                   struct error *err);

// Opens the null device in place of each of the descriptors 0, 1 and 2 that is closed, so that no
// file opened later becomes standard input or output.  main calls it first.
void files_open_standard(void);

// ---- Output files ------------------------------------------------------------------

// Atomic write of an output file that the user named: the program writes to a temporary file, which
// is then synced and renamed to the target.  If the target is a terminal, a pipe or a device, the
// program writes to it directly.
struct output {
    FILE *out;       // write to this
    char *path;      // the target; symbolic links are resolved
    char *temporary; // path of the temporary file; NULL if `path` is written directly
};

// Opens the temporary file PATH.tmp-PID, with the permissions of the file at `path` if one exists;
// for a terminal, pipe or device opens `path`.  Only after STATUS_OK call output_close.
MUST_CHECK enum status output_open(struct output *output, const char *path, struct error *err);

// Ends the output.  `status` is the caller's result of writing.  If it is STATUS_OK and the sync
// succeeds, renames the temporary file to `path`; otherwise removes the temporary file and leaves
// the old file unchanged.  Returns `status`, or STATUS_IO if the sync or the renaming failed.
// Frees the members of `output`.
MUST_CHECK enum status output_close(struct output *output, enum status status, struct error *err);

// ---- Folders of the user -----------------------------------------------------------

// Writes the path of inferstat's data directory: $XDG_DATA_HOME/inferstat if the variable is set,
// else /var/lib/inferstat for root, else ~/.local/share/inferstat.  Returns STATUS_NOT_FOUND if
// neither the variable nor HOME is set.
MUST_CHECK enum status files_data_folder(char *out, size_t out_size, struct error *err);

// Writes the path of the cache directory: $XDG_CACHE_HOME/inferstat if the variable is set, else
// ~/.cache/inferstat.  Returns STATUS_NOT_FOUND if neither the variable nor HOME is set.
MUST_CHECK enum status files_cache_folder(char *out, size_t out_size, struct error *err);

// Returns a JSON writer whose output goes to `out`.  The caller checks ferror for write errors.
struct json_writer files_json(FILE *out);
