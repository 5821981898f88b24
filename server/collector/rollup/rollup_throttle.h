// How much of the writer's thread rollups take: where records come in fast a twentieth of
// it, up to a seventh the more records they lack, and a fifth while what they lack is about
// to be too much for memory; half of it where few come; all of it where none did for a
// moment.
//
// As long as folding a record takes no more of the thread than a quarter of what storing it
// does, they never lack many, however fast records come, and take what folding takes; where
// it takes more than that they lack ever more, and take a seventh.  Pure.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_THROTTLE_H
#define INFERSTAT_COLLECTOR_ROLLUP_THROTTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Zeroed at first.  All times are monotonic.
struct rollup_throttle {
    bool busy; // as told last
    uint64_t lag_rows;
    bool light;
    uint64_t heard_ns, counted_ns, counted_rows;
    uint64_t rest_ns;
};

// Others have work for the thread, or not.
void rollup_throttle_tell(struct rollup_throttle *pace, bool is_busy);

// How many records rollups lack.
void rollup_throttle_lack(struct rollup_throttle *pace, uint64_t rows);

// Records came in.
void rollup_throttle_hear(struct rollup_throttle *pace, size_t rows, uint64_t now_ns);

// Whether few records come.
bool rollup_throttle_is_light(const struct rollup_throttle *pace);

// Whether nobody would wait for the thread.
bool rollup_throttle_is_quiet(const struct rollup_throttle *pace, uint64_t now_ns);

// Whether some work may be done now.
bool rollup_throttle_allows(const struct rollup_throttle *pace, uint64_t now_ns);

// After some work.
void rollup_throttle_worked(struct rollup_throttle *pace, uint64_t began_ns, uint64_t ended_ns);

#endif
