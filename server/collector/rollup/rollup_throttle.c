#include "server/collector/rollup/rollup_throttle.h"

// After a step of work the thread is left alone for a multiple of the time that the step took.  The
// multiple shrinks as more records lag, up to half a memtable.  Records that do not fit into the
// memtable must be read from the store, which costs more than twice as much as adding them from the
// batch: while it is about to overflow, a larger share costs less in the end.  Once it has
// overflowed by another memtable's size, the share shrinks again, since it did not prevent that.
enum {
    REST_TIMES = 20,
    REST_TIMES_BEHIND = 6,
    REST_TIMES_PRESSED = 4,
    BEHIND_ROWS = 65536,
    PRESSED_ROWS = 131072,
    FULL_ROWS = 262144,
    REST_TIMES_LIGHT = 1,
    LIGHT_ROWS_PER_SECOND = 20000,
};

#define QUIET_NS UINT64_C(500000000)
#define RATE_NS  UINT64_C(500000000) // over which rows are counted

// What was not used of the share may be used later: memtables come all at once, and what is
// measured of a step is as uneven as the machine.
#define SLACK_NS UINT64_C(2000000000)

void rollup_throttle_hear(struct rollup_throttle *throttle, size_t rows, uint64_t now_ns)
{
    throttle->heard_ns = now_ns;
    throttle->counted_rows += rows;
    const uint64_t over_ns = now_ns - throttle->counted_ns;
    if (over_ns < RATE_NS)
        return;
    throttle->light =
        (double)throttle->counted_rows * 1e9 < (double)over_ns * LIGHT_ROWS_PER_SECOND;
    throttle->counted_rows = 0;
    throttle->counted_ns = now_ns;
}

bool rollup_throttle_is_quiet(const struct rollup_throttle *throttle, uint64_t now_ns)
{
    return !throttle->busy && now_ns >= throttle->heard_ns + QUIET_NS;
}

bool rollup_throttle_is_light(const struct rollup_throttle *throttle)
{
    return throttle->light && !throttle->busy;
}

bool rollup_throttle_allows(const struct rollup_throttle *throttle, uint64_t now_ns)
{
    return now_ns >= throttle->rest_ns || rollup_throttle_is_quiet(throttle, now_ns);
}

static uint64_t rest_ns(const struct rollup_throttle *throttle, uint64_t took_ns)
{
    const uint64_t lag_rows = throttle->lag_rows < BEHIND_ROWS ? throttle->lag_rows : BEHIND_ROWS;
    if (rollup_throttle_is_light(throttle))
        return REST_TIMES_LIGHT * took_ns;
    if (throttle->lag_rows >= PRESSED_ROWS && throttle->lag_rows < FULL_ROWS)
        return REST_TIMES_PRESSED * took_ns;
    return REST_TIMES * took_ns -
           (REST_TIMES - REST_TIMES_BEHIND) * took_ns * lag_rows / BEHIND_ROWS;
}

void rollup_throttle_worked(struct rollup_throttle *throttle, uint64_t began_ns, uint64_t ended_ns)
{
    const uint64_t took_ns = ended_ns - began_ns;
    const uint64_t oldest_ns = began_ns > SLACK_NS ? began_ns - SLACK_NS : 0;
    if (rollup_throttle_is_quiet(throttle, began_ns)) // no job was delayed: only new ones wait
        throttle->rest_ns = began_ns;
    else if (throttle->rest_ns < oldest_ns)
        throttle->rest_ns = oldest_ns;
    throttle->rest_ns += took_ns + rest_ns(throttle, took_ns);
}
