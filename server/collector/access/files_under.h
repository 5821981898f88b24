// Path sandbox: restricts the files that remote administrators may name in backup, bundle and
// import.  Requests over TCP may name only files below one folder, which the collector's owner
// configures; requests over the local ipc address are not restricted.
//
// A link may change between check and use.  The file's folder is therefore opened component by
// component without following links, and the file is accessed through that descriptor.
#pragma once

#include <limits.h>

#include "common/core/base/error.h"

struct files_hold {
    int folder; // descriptor of the folder that contains or will contain the file; -1: none
    // Path of the file through that descriptor (fd_path.h); valid until files_under_release.
    char path[NAME_MAX + 64];
};

#define FILES_HOLD_NONE ((struct files_hold){.folder = -1})

// Checks that the file at `path` (absolute), or the file's folder if the file is missing, is below
// `folder` after all links are resolved.  Returns STATUS_DENIED if not, or `folder` is NULL or "".
MUST_CHECK enum status files_under_check(const char *folder, const char *path, struct error *err);

// Checks the path as files_under_check does and keeps the file's folder open.  Does not open the
// file: callers must not follow it if it is a link.
MUST_CHECK enum status files_under_hold(struct files_hold *out, const char *folder,
                                        const char *path, struct error *err);

// Closes the folder.  Accepts FILES_HOLD_NONE.
void files_under_release(struct files_hold *hold);
