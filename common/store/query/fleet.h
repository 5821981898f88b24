// Fleet outlier explanation: finds the facts (hardware, software, workload) in which a slower or
// faster host differs from its peers.  Peers are hosts with the same model and device.  The query
// FLEET uses it.  Facts come from fleet_read, except FLEET_CONCURRENT, FLEET_PROMPT,
// FLEET_ITEMS and FLEET_PAGE_CACHE: the query FLEET computes these.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/store/rollup/aggregate.h"

struct store;

// Numeric facts, in the order in which reasons are reported.
enum fleet_number {
    FLEET_PCIE_WIDTH,
    FLEET_PCIE_GENERATION,
    FLEET_THROTTLED, // share of the device's samples
    FLEET_SM_CLOCK,  // while the device was busy
    FLEET_MEMORY_CLOCK,
    FLEET_TEMPERATURE,
    FLEET_H2D,           // host-to-device copy rate
    FLEET_BANDWIDTH,     // measured bandwidth of the device's memory
    FLEET_CONCURRENT,    // median over requests: concurrent requests
    FLEET_PROMPT,        // median over requests: prompt tokens
    FLEET_ITEMS,         // median over requests: items of the batch
    FLEET_PAGE_CACHE,    // median over loads: share of the model's file in the host's page cache
    FLEET_DEVICE_MEMORY, // in use
    FLEET_HOST_MEMORY,   // memory of the host, used or not
    FLEET_CPU_COUNT,
    FLEET_TOLD,
    // Not reported by themselves: what the device supports, and the reasons for throttling, ORed
    // (record/throttle.h).
    FLEET_PCIE_WIDTH_MAX = FLEET_TOLD,
    FLEET_PCIE_GENERATION_MAX,
    FLEET_THROTTLE_REASONS,
    FLEET_NUMBERS,
};

enum fleet_text {
    FLEET_GOVERNOR,
    FLEET_DRIVER,
    FLEET_CUDA,
    FLEET_KERNEL,
    FLEET_CPU,
    FLEET_VERSION, // of the reporting program
    FLEET_HUGE_PAGES,
    FLEET_ALLOCATOR,
    FLEET_TEXTS,
};

// FLEET_HOSTS_LEAST: the query FLEET does not compare fewer hosts; fleet_reason takes any count.
enum { FLEET_TEXT_SIZE = 64, FLEET_REASON_SIZE = 512, FLEET_HOSTS_LEAST = 3 };

// Facts about one host, its device and its workload.
struct fleet_facts {
    double numbers[FLEET_NUMBERS];            // NaN: not known
    char texts[FLEET_TEXTS][FLEET_TEXT_SIZE]; // "": not known
};

// Sets all facts to unknown.
void fleet_facts_init(struct fleet_facts *facts);

// The kind of metric in which the host differs; it decides which facts are relevant.
enum fleet_subject {
    FLEET_OF_REQUESTS,
    FLEET_OF_LOADS,
};

// Writes the facts that distinguish a host from its peers into `text` (FLEET_REASON_SIZE bytes) and
// returns it: "PCIe x8 of x16 (peers x16), driver 535.1 (peers 550.2)"; "" if there are none.  A
// number is reported if it differs enough from the peers' median, in the direction that makes a
// host worse (`is_worse`) or better; a text, if more than half of the peers that have one share
// another.  `others` are the facts of the `count` peers, without the host.
char *fleet_reason(char *text, enum fleet_subject subject, bool is_worse,
                   const struct fleet_facts *host, const struct fleet_facts *const *others,
                   size_t count);

// Limits of fleet_read: the newest runs, the newest descriptions of devices, and the first samples
// in each of equal parts of the window.
enum { FLEET_RUNS_MAX = 50000, FLEET_SLICES = 20, FLEET_SLICE_SAMPLES = 5000 };

// Sets all facts of all groups that the caller has added to `places`; those not found are unknown.
// Sources: each host's newest run in the window, each device's newest description (the lowest
// values, if devices share a name), and device samples spread over the window.  The keys of a group
// are host and device (ids of the table name); its data are a struct fleet_facts.
MUST_CHECK enum status fleet_read(struct groups *places, struct store *store,
                                  const struct query_filter *filter, struct error *err);
