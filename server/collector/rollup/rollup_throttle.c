#include "server/collector/rollup/rollup_throttle.h"

// After work the thread is left alone, times what that took: less the more records are
// lacking, up to half a sheet.  What does not fit into the two sheets must be read from the
// store, which costs more than twice as much as folding it: so a bit more of the thread, while
// they fill, is less in the end.  Where they are full nevertheless that did not help.
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

// What was not used of the share may be used later: sheets come all at once, and what is
// measured of a step is as uneven as the machine.
#define SLACK_NS UINT64_C(2000000000)

void rollup_throttle_tell(struct rollup_throttle *pace, bool is_busy)
{
    pace->busy = is_busy;
}

void rollup_throttle_lack(struct rollup_throttle *pace, uint64_t rows)
{
    pace->lag_rows = rows;
}

void rollup_throttle_hear(struct rollup_throttle *pace, size_t rows, uint64_t now_ns)
{
    pace->heard_ns = now_ns;
    pace->counted_rows += rows;
    const uint64_t over_ns = now_ns - pace->counted_ns;
    if (over_ns < RATE_NS)
        return;
    pace->light = (double)pace->counted_rows * 1e9 < (double)over_ns * LIGHT_ROWS_PER_SECOND;
    pace->counted_rows = 0;
    pace->counted_ns = now_ns;
}

bool rollup_throttle_is_quiet(const struct rollup_throttle *pace, uint64_t now_ns)
{
    return !pace->busy && now_ns >= pace->heard_ns + QUIET_NS;
}

bool rollup_throttle_is_light(const struct rollup_throttle *pace)
{
    return pace->light && !pace->busy;
}

bool rollup_throttle_allows(const struct rollup_throttle *pace, uint64_t now_ns)
{
    return now_ns >= pace->rest_ns || rollup_throttle_is_quiet(pace, now_ns);
}

static uint64_t rest_ns(const struct rollup_throttle *pace, uint64_t took_ns)
{
    const uint64_t lag_rows = pace->lag_rows < BEHIND_ROWS ? pace->lag_rows : BEHIND_ROWS;
    if (rollup_throttle_is_light(pace))
        return REST_TIMES_LIGHT * took_ns;
    if (pace->lag_rows >= PRESSED_ROWS && pace->lag_rows < FULL_ROWS)
        return REST_TIMES_PRESSED * took_ns;
    return REST_TIMES * took_ns -
           (REST_TIMES - REST_TIMES_BEHIND) * took_ns * lag_rows / BEHIND_ROWS;
}

void rollup_throttle_worked(struct rollup_throttle *pace, uint64_t began_ns, uint64_t ended_ns)
{
    const uint64_t took_ns = ended_ns - began_ns;
    if (rollup_throttle_is_quiet(pace, began_ns)) { // nobody paid: only what came meanwhile waits
        pace->rest_ns = ended_ns + rest_ns(pace, took_ns);
        return;
    }
    const uint64_t oldest_ns = began_ns > SLACK_NS ? began_ns - SLACK_NS : 0;
    if (pace->rest_ns < oldest_ns)
        pace->rest_ns = oldest_ns;
    pace->rest_ns += took_ns + rest_ns(pace, took_ns);
}
