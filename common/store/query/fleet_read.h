// What a store knows of hosts and their devices, for fleet.h: of each host the newest
// run in the window, of each of its devices the newest description (of several devices
// of one name the worst), and samples of the devices from all over the window.
//
// Bounds: the FLEET_RUNS_MAX newest runs and descriptions are looked at, and of samples
// the first FLEET_SLICE_SAMPLES of each of FLEET_SLICES equal parts of the window.
#ifndef INFERSTAT_STORE_QUERY_FLEET_READ_H
#define INFERSTAT_STORE_QUERY_FLEET_READ_H

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/store/query/fleet.h"

struct store;

enum { FLEET_RUNS_MAX = 50000, FLEET_SLICES = 20, FLEET_SLICE_SAMPLES = 5000 };

// A host's device; ids of the table name.
struct fleet_place {
    int64_t host, device;
    struct fleet_facts facts;
};

// For qsort: by host, then device.
int fleet_place_compare(const void *left, const void *right);

// Reads the facts of `count` places, rising by host and device, each once.
MUST_CHECK enum status fleet_read(struct fleet_place *places, size_t count, struct store *store,
                                  const struct query_filter *filter, struct error *err);

// The place of those names, or NULL.
struct fleet_place *fleet_find(struct fleet_place *places, size_t count, int64_t host,
                               int64_t device);

#endif
