// File permissions of a store: restricts who may read its three files.  They are the store itself,
// its write-ahead log (-wal) and the log's index (-shm).  Whoever may read the index may also lock
// it, and thereby block the writer: SQLite's locks on the index need no write permission.
#pragma once

#include <stdbool.h>

// Sets the permissions of the store at `path`, its log and its index, as far as they exist:
//   owner   unchanged
//   group   read if `group_reads`, else none
//   others  none
// Logs a change that takes permissions away; warns if a change fails.  This process may have the
// store open: SQLite's locks stay.  SQLite later creates files with the store's permissions.
void file_mode_restrict(const char *path, bool group_reads);
