// Fleet outlier explanation: finds the facts (hardware, software, workload) in which a slower or
// faster host differs from its peers.  Peers are hosts with the same model and device.  The query
// FLEET uses it.  No I/O: fleet_read.h reads most facts, and the query FLEET itself the medians of
// requests and loads.
#ifndef INFERSTAT_STORE_QUERY_FLEET_H
#define INFERSTAT_STORE_QUERY_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    FLEET_PAGE_CACHE,    // median over loads: share of the model's file in the host's page cache
    FLEET_DEVICE_MEMORY, // in use
    FLEET_HOST_MEMORY,   // in use
    FLEET_CPU_COUNT,
    FLEET_NUMBERS,
};

enum fleet_text {
    FLEET_GOVERNOR,
    FLEET_DRIVER,
    FLEET_CUDA,
    FLEET_KERNEL,
    FLEET_CPU,
    FLEET_VERSION, // of the reporting program
    FLEET_TEXTS,
};

// FLEET_HOSTS_LEAST: the query FLEET does not compare fewer hosts; fleet_reason takes any count.
enum { FLEET_TEXT_SIZE = 64, FLEET_REASON_SIZE = 512, FLEET_HOSTS_LEAST = 3 };

// Facts about one host, its device and its workload.
struct fleet_facts {
    double numbers[FLEET_NUMBERS];              // NaN: not known
    char texts[FLEET_TEXTS][FLEET_TEXT_SIZE];   // "": not known
    double pcie_width_max, pcie_generation_max; // what the device supports; NaN: not known
    int64_t throttle_reasons;                   // bitwise OR (record/throttle.h)
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
// number is reported if it differs from the peers' median in the direction that makes a host worse
// (`is_worse`) or better; a text, if more than half of the peers share another one.  `others` are
// the facts of the `count` peers, without the host.
char *fleet_reason(char *text, enum fleet_subject subject, bool is_worse,
                   const struct fleet_facts *host, const struct fleet_facts *const *others,
                   size_t count);

#endif
