// A clock of the emulated CUDA runtime (cuda_runtime.h) that says when a device of given rates
// would have done what is queued.  It moves with the calls of the host, each thread's on its
// own, so that the same calls take the same time whatever machine emulates them.  Guarded by the
// runtime's lock.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Each does one thing at a time, beside the others.
enum engine { ENGINE_COPY_IN, ENGINE_COPY_OUT, ENGINE_COMPUTE, ENGINES };

// Whether it runs (emulation_clock of emulation.h); without it everything is done as late as may
// be.
bool clock_runs();

// The calling thread's time, in ns.
int64_t clock_now();

// The host calls the runtime.
void clock_call();

// The host waits until `due`, in ns, or goes on at once where that is past.
void clock_wait(int64_t due);

// When `engine` will have moved `size` bytes, from `earliest` on as soon as it can.
int64_t clock_queue(engine engine, int64_t earliest, size_t size);
