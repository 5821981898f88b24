// Profiler annotations: named ranges on the time line of Nsight Systems (NVTX) in builds with
// INFERSTAT_NVTX; in other builds the functions are empty.
//
// Ranges nest within a thread; begin and end are called by the same thread.  Without an attached
// profiler they cost one pointer check.
#ifndef INFERSTAT_SERVER_DEVICE_RANGE_H
#define INFERSTAT_SERVER_DEVICE_RANGE_H

#include <stdint.h>

#ifdef INFERSTAT_NVTX

// `name` is copied.
void range_begin(const char *name);
// Names the range "copy 12": `name`, a space and `number`.
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
