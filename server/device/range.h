// Profiler annotations (NVTX): mark named ranges on the time line of Nsight Systems.  In builds
// without INFERSTAT_NVTX the functions are empty.
//
// A range begins and ends in the same thread; a thread's ranges nest.  Without an attached profiler
// a call costs one pointer check.
#pragma once

#include <stdint.h>

#ifdef INFERSTAT_NVTX

// Begins a range.  Copies `name`.
void range_begin(const char *name);
// Begins a range that is named `name`, a space and `number`: "copy 12".
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
