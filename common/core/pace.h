// How much to do in one step of work that others wait for: as much as takes about so
// long, found out by what the steps before took.  Pure.
#ifndef INFERSTAT_CORE_PACE_H
#define INFERSTAT_CORE_PACE_H

#include <stdint.h>

struct pace {
    unsigned now; // for the next step
    unsigned least, most;
};

// What the last step took that did as much as it might.  More than `aim_ns`: the next
// does less, in proportion but no less than a quarter; less than half of it: twice as
// much.
void pace_took(struct pace *pace, uint64_t took_ns, uint64_t aim_ns);

#endif
