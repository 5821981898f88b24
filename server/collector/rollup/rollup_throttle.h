// Limits the share of the writer's thread that rollups take: under load a twentieth, up to
// a seventh the more records they are behind, and a fifth while the memtable is about to
// overflow; half of it at a low rate of records; all of it while no records come.
//
// Pure.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_THROTTLE_H
#define INFERSTAT_COLLECTOR_ROLLUP_THROTTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Zero-initialised.  All times are monotonic.
struct rollup_throttle {
    bool busy;         // the thread has other work; set by the caller
    uint64_t lag_rows; // records that rollups lack; set by the caller
    bool light;        // the rate of records is low
    uint64_t heard_ns; // when records came last
    uint64_t counted_ns, counted_rows;
    uint64_t rest_ns; // no work before
};

// Counts incoming records.
void rollup_throttle_hear(struct rollup_throttle *throttle, size_t rows, uint64_t now_ns);

// Whether the rate of records is low.
bool rollup_throttle_is_light(const struct rollup_throttle *throttle);

// Whether no records came for a moment and the thread has no other work.
bool rollup_throttle_is_quiet(const struct rollup_throttle *throttle, uint64_t now_ns);

// Whether a step of work is allowed now.
bool rollup_throttle_allows(const struct rollup_throttle *throttle, uint64_t now_ns);

// Accounts for a step of work.
void rollup_throttle_worked(struct rollup_throttle *throttle, uint64_t began_ns, uint64_t ended_ns);

#endif
