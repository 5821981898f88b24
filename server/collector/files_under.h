// Which files on the collector's host somebody may name who is not on it: over TCP an
// administrator has a backup, bundle or import read or write files below one folder
// only, which the collector's owner names; over ipc nothing is asked.
#ifndef INFERSTAT_COLLECTOR_FILES_UNDER_H
#define INFERSTAT_COLLECTOR_FILES_UNDER_H

#include "common/core/error.h"

// Whether the file at `path`, or where there is none its folder, lies below `folder`, with
// all links followed.  STATUS_DENIED, in words: no, or `folder` is NULL or empty.
MUST_CHECK enum status files_under_check(const char *folder, const char *path, struct error *err);

#endif
