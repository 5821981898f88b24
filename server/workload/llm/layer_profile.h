// Profile of a model by layer and operation: sums the calls that server/device/profile.h measures,
// and records the sums of each request as operations of telemetry.
//
// The thread that uses the device makes all calls.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/monitor/inferstat.h"
#include "server/workload/llm/load.h"

enum profile_phase { PROFILE_PREFILL, PROFILE_DECODE, PROFILE_PHASES };

struct profile_sum {
    uint64_t calls, rows, bytes; // as in struct profile_call
    double flops, ns;
};

struct layer_profile;

// Starts to profile the device of `llm`, which is borrowed until layer_profile_free.  Fails as
// device_profile_start does.
MUST_CHECK enum status layer_profile_new(struct layer_profile **out, const struct llm *llm,
                                         struct error *err);

// Stops profiling.  Accepts NULL.
void layer_profile_free(struct layer_profile *profile);

// Assigns the calls from now on to `phase`.  Accepts NULL.  Fails if the device does.
MUST_CHECK enum status layer_profile_start_phase(struct layer_profile *profile,
                                                 enum profile_phase phase, struct error *err);

// Ends a request: records one operation for each operation and layer, whose duration is the sum of
// its calls, with rows as items; `extra` has the layer and the number of calls.  Accepts NULL.
void layer_profile_end_request(struct layer_profile *profile, struct inferstat_monitor *monitor);

// The number of operations seen, in the order of their first call, and their names: those of the
// weights ("attn_q"), or of operations without ("rope").
size_t layer_profile_operations(const struct layer_profile *profile);
const char *layer_profile_name(const struct layer_profile *profile, size_t operation);

// The number of layers.
size_t layer_profile_layers(const struct layer_profile *profile);

// Sums the calls of all ended requests: of an operation, in a layer, in a phase, or of PROFILE_ALL.
// Layer layer_profile_layers() has the operations outside the layers.
#define PROFILE_ALL SIZE_MAX
struct profile_sum layer_profile_sum(const struct layer_profile *profile, size_t operation,
                                     size_t layer, size_t phase);
