// Fleet facts reader: fills fleet.h's facts of hosts and devices from a store: from each host's
// newest run in the window, each device's newest description (the lowest values if devices share a
// name), and device samples spread over the window.
//
// Limits: the FLEET_RUNS_MAX newest runs and descriptions, and the first FLEET_SLICE_SAMPLES
// samples of each of FLEET_SLICES equal parts of the window.
#ifndef INFERSTAT_STORE_QUERY_FLEET_READ_H
#define INFERSTAT_STORE_QUERY_FLEET_READ_H

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/store/query/fleet.h"

struct store;

enum { FLEET_RUNS_MAX = 50000, FLEET_SLICES = 20, FLEET_SLICE_SAMPLES = 5000 };

// One host and device (ids of the table name), and their facts.
struct fleet_place {
    int64_t host, device;
    struct fleet_facts facts;
};

// For qsort: by host, then device.
int fleet_place_compare(const void *left, const void *right);

// Reads the facts of `count` distinct places, sorted by host and device.
MUST_CHECK enum status fleet_read(struct fleet_place *places, size_t count, struct store *store,
                                  const struct query_filter *filter, struct error *err);

// Finds the place of a host and device; NULL if there is none.
struct fleet_place *fleet_find(struct fleet_place *places, size_t count, int64_t host,
                               int64_t device);

#endif
