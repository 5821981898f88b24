// What tests of the spool share: records that their stream and number tell, a model
// of what a spool must hold, and files that fail when told to.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/monitor/runfile/names.h"
#include "common/monitor/runfile/runfile.h"
#include "common/monitor/spool/spool.h"
#include "common/monitor/spool/spool_state.h"

enum { RIG_STREAMS = 6, RIG_NAMES = 300, RIG_LOST_MAX = 8192 };

// The one record of that stream and number: several kinds, with names, texts and blobs.
void rig_record(struct record *out, uint32_t stream, uint64_t number);
const struct record *rig_get(const void *stream, uint64_t number); // a spool_get

// Whether a record is rig_record's, as far as it is used.
bool rig_is_record(const struct record *record, uint32_t stream, uint64_t number);

struct runfile_run rig_run(void);

// A table of RIG_NAMES names; rig_names_free frees the area too.
struct names *rig_names(void);
void rig_names_free(struct names *names);

// The real ones, but nothing waits for the disk.  From the `fail_at`-th call on (1:
// the next), `fail_count` calls fail with errno `fault`; writes and reads that do
// not are cut short by `short_by` bytes, every other one is interrupted where
// `interrupt` is set.
extern const struct spool_io rig_io;

struct rig_faults {
    uint64_t calls; // so far
    uint64_t fail_at, fail_count;
    int fault;
    size_t short_by;
    bool interrupt;
    uint64_t free_bytes; // on the file system; 0: as it is
};

extern struct rig_faults rig_faults;

struct rig_model {
    uint64_t spooled[RIG_STREAMS], released[RIG_STREAMS];
    uint64_t tried[RIG_STREAMS]; // highest number of an append that failed; 0: none
    struct delivery_range lost[RIG_LOST_MAX];
    size_t lost_count;
};

// Takes what the spool says is lost.  Ends the program where that cannot be: released,
// beyond what was spooled, told twice, or no longer lost.
void rig_take_lost(struct rig_model *model, struct spool *spool);
bool rig_is_lost(const struct rig_model *model, uint32_t stream, uint64_t number);

// Reads everything that was spooled and not released: each record is as it was
// written or in a lost range, never both.  Takes what turns out to be lost.  Ends
// the program otherwise.  Returns how many records were there.
uint64_t rig_check(struct rig_model *model, struct spool *spool);

// Begins the model anew for a spool that was attached: what it was told before is
// told again, what was released may be back, and so may what was tried in vain.
void rig_attach(struct rig_model *model, const struct spool *spool);

// Bytes of all segments in a spool's folder.
uint64_t rig_disk_bytes(const char *path);
