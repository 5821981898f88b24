// Permissions of a store's files: who may read them.  A reader needs the store, its write-ahead log
// (-wal) and the log's index (-shm).  Whoever may read the index may also lock it, which stops the
// writer: SQLite's locks on it need no permission to write.
#ifndef INFERSTAT_STORE_SQLITE_FILE_MODE_H
#define INFERSTAT_STORE_SQLITE_FILE_MODE_H

#include <stdbool.h>

// Takes all permissions of others from the store at `path` and from its log and index, if they
// exist, and those of the group, except reading if `group_reads`.  The owner's stay.  Logs what it
// takes away, and a warning if it fails.  Does not disturb connections to the store, of which this
// process may have some; files made by SQLite later have the permissions of the store.
void file_mode_restrict(const char *path, bool group_reads);

#endif
