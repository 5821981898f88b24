// A disk whose power fails, for SQLite: a VFS that writes through to the real one and
// keeps on a tape, in order, every write, truncation, sync, move and removal of a store's
// files.  From the tape the files are made again as a disk may have them when the
// power went at any point: what was written before a file's last sync is there, and
// of what came after any part, in any order, down to single sectors.  Which files
// there are is certain up to the last sync of their folder, and changes in order.
//
// The torn part of a write stays within its own bytes (SQLite calls such a disk
// "power-safe overwrite", and takes every disk for one).
#pragma once

#include <stddef.h>
#include <stdint.h>

struct power_tape;

// Makes it SQLite's default VFS.  `before`, called ahead of each step that goes on the
// tape, by the thread that takes it, learns how long the tape is until then.  Ends
// the program where there is no memory.
struct power_tape *power_tape_start(void (*before)(void *context, size_t steps), void *context);

// The default is the system's again.  All files must have been closed.
void power_tape_stop(struct power_tape *tape);

void power_tape_free(struct power_tape *tape);

// What was done by other means than SQLite's: the folder was synced; a file was; a file
// got another name, that nothing had.
void power_tape_sync_folder(struct power_tape *tape);
void power_tape_sync_file(struct power_tape *tape, const char *path);
void power_tape_rename(struct power_tape *tape, const char *from, const char *to);

// Any thread.
size_t power_tape_steps(struct power_tape *tape);
// Syncs so far of the file that name ends with ("-wal").
size_t power_tape_syncs(struct power_tape *tape, const char *ending);

// What of the steps after a file's last sync has reached the disk.
enum power_mercy {
    POWER_NOTHING,
    POWER_ALL,
    POWER_UP_TO,  // the first of them, up to one that is torn
    POWER_ANY,    // each, or some of its sectors, or not
    POWER_MERCIES // how many there are
};

// Makes the files anew in `folder` (empty), as after a loss of power before the step
// number `cut` (0 to power_tape_steps).
void power_tape_replay(struct power_tape *tape, size_t cut, enum power_mercy mercy, uint64_t seed,
                       const char *folder);
