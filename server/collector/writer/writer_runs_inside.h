// Definition of struct runs, the cache of writer_runs.h: a hash table of runs by UUID.  Private to
// the writer_runs*.c files.
#pragma once

#include "server/collector/writer/writer_runs.h"
#include "server/collector/writer/writer_statements.h"

enum { RUNS_BUCKETS = 1024 };

struct runs {
    struct statements statements;
    struct run *buckets[RUNS_BUCKETS];
    int64_t last_id;        // highest id of a run
    uint32_t names_max;     // limit of names per run
    struct quota *quota;    // of names in the store; borrowed; NULL: none
    bool has_counted_names; // the quota's counts of names are those of the store
    bool names_removed;     // names were removed from the store since `counted_at_ns`
    uint64_t counted_at_ns; // when the names were counted; monotonic
    int64_t other;          // id of the name "other" (runs_other_name); 0: not known yet
};

// Adds a run to the cache, which takes ownership.
void runs_insert(struct runs *runs, struct run *run);

// Reads a run without its streams and names; sets `*out` to NULL when the store has none.
MUST_CHECK enum status runs_read(struct runs *runs, const unsigned char uuid[MESSAGE_RUN_SIZE],
                                 struct run **out, struct error *err);

// Sets `*has` to whether the run has a tombstone.
MUST_CHECK enum status runs_has_tombstone(struct runs *runs,
                                          const unsigned char uuid[MESSAGE_RUN_SIZE], bool *has,
                                          struct error *err);

// Writes the changes of a run in the current transaction.
MUST_CHECK enum status runs_save(struct runs *runs, struct run *run, struct error *err);
