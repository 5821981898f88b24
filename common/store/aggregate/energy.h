// Energy of requests: what the devices used in a window, divided by what requests did in it, by
// group and time step.
//
//   tokens_per_joule     tokens put out in the window (throughput.h) / joules
//   joules_per_request   joules / requests that ended in the window
//
// The joules are those of all devices on which the group's requests ran, each counted once, idle or
// not: the sum of energy_used_joules of their samples.  A device counts, with its requests, if its
// samples cover at least ENERGY_COVERAGE_LEAST of the window (of a step, its part in the window);
// for the rest of the time it is taken to have used as much.  Groups and filters by model have only
// devices on which requests of no other model ran in the window or step: nothing tells what each of
// several models used.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/store/aggregate/throughput.h"

#define ENERGY_COVERAGE_LEAST 0.9
enum { ENERGY_NOTE_SIZE = 256 };

// Of a group: the devices that count, and their requests.
struct energy_sums {
    double joules, requests, tokens;
    int64_t left_out; // devices, for lack of samples or because several models ran
};

struct energy {
    struct groups *groups;        // by group_by, then step; their data: struct energy_sums
    struct throughput throughput; // of the requests by model, host and device; it counts what was
                                  // read of samples, too
    char note[ENERGY_NOTE_SIZE];  // what was left out; "": nothing
};

// True if the metric with this name is one of those above.
bool energy_has(const char *metric);

// Reads the sums for the query's filter, groups and steps.  `now_ns` is the present.  Returns
// STATUS_INVALID for other dimensions than model, host and device, else errors of throughput_read.
// Call energy_deinit also after a failure.
MUST_CHECK enum status energy_read(struct energy *energy, struct store *store,
                                   const struct query *query, const char *metric, int64_t now_ns,
                                   struct error *err);
void energy_deinit(struct energy *energy);

// What is divided, joules or tokens, and the metric's value; NaN: unknown.
double energy_sum(const char *metric, const struct energy_sums *sums);
double energy_value(const char *metric, const struct energy_sums *sums);
