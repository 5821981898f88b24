// Throttle of the work on rollups (pre-aggregated rows): limits the share of the writer thread's
// time that this work may take.  An unused share can be used up to 2 s later.  The share depends
// on load:
//
//   no records come, and the thread has no other work     all of the time
//   a low rate of records, and no other work              1/2
//   otherwise, by lag_rows, the records of all kinds that are not in rollups yet:
//     0 to 65535                                          1/21, rising to 1/7
//     65536 to 131071                                     1/7
//     131072 to 262143                                    1/5
//     262144 and more                                     1/7
//
// A memtable (rollup_memtable.h) holds 131072 records of a kind (more of samples).  Records that do
// not fit must be read from the store later, which costs more.  Near that limit, a larger share
// prevents this. From 262144 on, the larger share has not helped, and ends.  No I/O; the caller
// passes the time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Zero-initialised by the caller.  All times are monotonic.
struct rollup_throttle {
    // Set by the caller.
    bool busy;         // the thread has other work
    uint64_t lag_rows; // number of records of all kinds not in rollups yet
    // Private.
    bool light;                        // the last computed rate was below 20,000 records a second
    uint64_t heard_ns;                 // when records came last
    uint64_t counted_ns, counted_rows; // number of records since `counted_ns`, to compute the rate
    uint64_t rest_ns;                  // no work before this time, unless rollup_throttle_is_quiet
};

// Counts `rows` incoming records.
void rollup_throttle_hear(struct rollup_throttle *throttle, size_t rows, uint64_t now_ns);

// True if the rate of records is low and the thread has no other work.
bool rollup_throttle_is_light(const struct rollup_throttle *throttle);

// True if no records came for half a second and the thread has no other work.
bool rollup_throttle_is_quiet(const struct rollup_throttle *throttle, uint64_t now_ns);

// True if a step of work is allowed now.
bool rollup_throttle_allows(const struct rollup_throttle *throttle, uint64_t now_ns);

// Accounts for a step of work: call it after each, with `lag_rows` updated.
void rollup_throttle_worked(struct rollup_throttle *throttle, uint64_t began_ns, uint64_t ended_ns);
