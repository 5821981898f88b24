// What tests ask of the emulated CUDA runtime (cuda_runtime.h).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The n-th call from now on (1: the next) of the runtime named `call`, or of any where
// that is NULL, fails with `code`; 0: none does.
void emulation_fail(const char *call, unsigned int n, int code);

// A call that fails, and that no test made to fail, ends the program, as a sanitizer on a device
// would report it; but not with this code from now on.  0: with any.
void emulation_allow(int code);

// What a device and its host take; bytes per second.  A kernel takes as long as reading all of
// the memory that its arguments point to.
struct emulation_rates {
    int64_t call_ns; // of the host, each
    double h2d, d2h, memory;
};

// From now on, with nothing queued, the device does things when one of these rates would, and
// times of events are by that clock; NULL: it does them as late as it may again.
void emulation_clock(const struct emulation_rates *rates);

// The calling thread's time by that clock, in ns.
int64_t emulation_now(void);

// The host does something else for so long.
void emulation_pass(int64_t ns);

// Whether a call is still to fail.
bool emulation_pending(void);

// From now on every call fails, as when a device is lost, until called with false.
void emulation_lose(bool lost);

// One device is lost from the n-th call for it on; -1: none.
void emulation_lose_device(int ordinal, unsigned int n);

// How many devices there are: 1 at the start.
void emulation_devices(int count);

// Of which compute capability they are, its first number: 9 at the start.  Before 9 there are
// no clusters, and blocks have less shared memory; from 12 on they have less still.
void emulation_capability(int major);

// Allocations of device and pinned memory, streams and events that are not freed.
long emulation_live(void);

#ifdef __cplusplus
}
#endif
