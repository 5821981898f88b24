// Restricts the paths that remote administrators may pass to backup, bundle and import:
// over TCP these read and write files only below one folder, which the collector's owner
// configures.  The owner at the ipc address is not restricted.
//
// Links may change between check and use.  So the file's folder is opened component by
// component without following links, and the file is accessed through that descriptor.
#ifndef INFERSTAT_COLLECTOR_ACCESS_FILES_UNDER_H
#define INFERSTAT_COLLECTOR_ACCESS_FILES_UNDER_H

#include <limits.h>

#include "common/core/base/error.h"

struct files_hold {
    int folder;               // that contains or will contain the file; -1: none
    char path[NAME_MAX + 64]; // of the file through that descriptor (common/store/sqlite/fd_path.h)
};

#define FILES_HOLD_NONE ((struct files_hold){.folder = -1})

// Checks that the file at `path`, or if it is missing its folder, is below `folder` with all
// links resolved.  Fails with STATUS_DENIED, also when `folder` is NULL or empty.
MUST_CHECK enum status files_under_check(const char *folder, const char *path, struct error *err);

// The same, and keeps the file's folder open.  The file itself is not opened: callers must
// not follow it if it is a link.
MUST_CHECK enum status files_under_hold(struct files_hold *out, const char *folder,
                                        const char *path, struct error *err);

// Accepts FILES_HOLD_NONE.
void files_under_release(struct files_hold *hold);

#endif
