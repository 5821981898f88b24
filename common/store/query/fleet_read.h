// Fleet facts reader: fills struct fleet_facts (fleet.h) of hosts and devices from a store, for the
// query FLEET.  It reads each host's newest run in the window, each device's newest description
// (the lowest values, if devices share a name), and device samples spread over the window.
//
// It reads at most the FLEET_RUNS_MAX newest runs and descriptions, and the first
// FLEET_SLICE_SAMPLES samples in each of FLEET_SLICES equal parts of the window.
#ifndef INFERSTAT_STORE_QUERY_FLEET_READ_H
#define INFERSTAT_STORE_QUERY_FLEET_READ_H

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/store/query/fleet.h"
#include "common/store/rollup/aggregate.h"

struct store;

enum { FLEET_RUNS_MAX = 50000, FLEET_SLICES = 20, FLEET_SLICE_SAMPLES = 5000 };

// Fills the facts of all groups that the caller has added to `places`.  The keys of a group are
// host and device (ids of the table name); its data are a struct fleet_facts.
MUST_CHECK enum status fleet_read(struct groups *places, struct store *store,
                                  const struct query_filter *filter, struct error *err);

#endif
