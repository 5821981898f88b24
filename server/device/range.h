// Named stretches of a thread's time for a profiler's time line (NVTX, as Nsight Systems
// shows it), in builds with INFERSTAT_NVTX; in others nothing of them is left.
//
// Ranges nest within a thread; begin and end are of one thread.  Where no profiler has
// attached they cost a look at a pointer.
#ifndef INFERSTAT_SERVER_DEVICE_RANGE_H
#define INFERSTAT_SERVER_DEVICE_RANGE_H

#include <stdint.h>

#ifdef INFERSTAT_NVTX

// `name` is copied.
void range_begin(const char *name);
// "copy 12": one of many alike.
void range_begin_at(const char *name, uint64_t number);
void range_end(void);

#else

static inline void range_begin(const char *name)
{
    (void)name;
}

static inline void range_begin_at(const char *name, uint64_t number)
{
    (void)name;
    (void)number;
}

static inline void range_end(void)
{
}

#endif

#endif
