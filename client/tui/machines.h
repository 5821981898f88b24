// Joins the answers about hosts and devices into one table: a row per host, followed by a row for
// each of its devices.  No I/O, no global state.
#pragma once

#include "common/core/query/result.h"

// The answers, each of which may be NULL.
struct machines {
    const struct result *hosts;   // HOST_HEALTH
    const struct result *devices; // DEVICE_HEALTH
    const struct result *events;  // records of events in the window, the newest first
};

// Joins them; NULL if there are neither hosts nor devices, or memory is short.  The columns are
// those of the hosts and devices, and: `util_ratio` (of the CPU, or the device),
// `memory_used_ratio` (used), `pcie` ("x16", "x8!" below its most), `trouble` (what is wrong now,
// and the newest XID of the window), `is_host`, and `in_trouble` (of a host: or one of its
// devices).  Hosts in trouble come first.
struct result *machines_join(const struct machines *machines);
