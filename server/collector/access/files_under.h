// Which files on the collector's host somebody may name who is not on it: over TCP an
// administrator has a backup, bundle or import read or write files below one folder
// only, which the collector's owner names; over ipc nothing is asked.
//
// Where names lead may change at any time, also between the question and the use of the
// answer: so the folder that the file is in is opened, a component after the other without
// following links, and held while the file is used, by way of it.
#ifndef INFERSTAT_COLLECTOR_ACCESS_FILES_UNDER_H
#define INFERSTAT_COLLECTOR_ACCESS_FILES_UNDER_H

#include <limits.h>

#include "common/core/base/error.h"

struct files_hold {
    int folder;               // that the file is in, or is to be; -1: none
    char path[NAME_MAX + 64]; // of the file by way of it (common/store/sqlite/fd_path.h)
};

#define FILES_HOLD_NONE ((struct files_hold){.folder = -1})

// Whether the file at `path`, or where there is none its folder, lies below `folder`, with
// all links followed.  STATUS_DENIED, in words: no, or `folder` is NULL or empty.
MUST_CHECK enum status files_under_check(const char *folder, const char *path, struct error *err);

// The same, and keeps the file's folder open.  The file itself is not opened: callers must
// not follow it if it is a link.
MUST_CHECK enum status files_under_hold(struct files_hold *out, const char *folder,
                                        const char *path, struct error *err);

// FILES_HOLD_NONE is fine.
void files_under_release(struct files_hold *hold);

#endif
