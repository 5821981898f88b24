// Fleet outlier explanation: the facts (hardware, software, workload) in which a slower or faster
// host differs from its peers, the hosts with the same model and device.  Pure.
#ifndef INFERSTAT_STORE_QUERY_FLEET_H
#define INFERSTAT_STORE_QUERY_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Numeric facts that may explain a difference, in the order of the reported reasons.
enum fleet_number {
    FLEET_PCIE_WIDTH,
    FLEET_PCIE_GENERATION,
    FLEET_THROTTLED, // share of the device's samples
    FLEET_SM_CLOCK,  // while the device was busy
    FLEET_MEMORY_CLOCK,
    FLEET_TEMPERATURE,
    FLEET_H2D,
    FLEET_BANDWIDTH,
    FLEET_CONCURRENT, // concurrent requests
    FLEET_PROMPT,     // prompt tokens
    FLEET_PAGE_CACHE,
    FLEET_DEVICE_MEMORY, // in use
    FLEET_HOST_MEMORY,
    FLEET_CPU_COUNT,
    FLEET_NUMBERS,
};

enum fleet_text {
    FLEET_GOVERNOR,
    FLEET_DRIVER,
    FLEET_CUDA,
    FLEET_KERNEL,
    FLEET_CPU,
    FLEET_VERSION,
    FLEET_TEXTS,
};

enum { FLEET_TEXT_SIZE = 64, FLEET_REASON_SIZE = 512, FLEET_HOSTS_LEAST = 3 };

// Facts about one host, its device and its workload.
struct fleet_facts {
    double numbers[FLEET_NUMBERS];              // NaN: not known
    char texts[FLEET_TEXTS][FLEET_TEXT_SIZE];   // "": not known
    double pcie_width_max, pcie_generation_max; // NaN: not known
    int64_t throttle_reasons;                   // record/throttle.h
};

// Sets all facts to unknown.
void fleet_facts_init(struct fleet_facts *facts);

// The kind of metric that differs; it decides which facts are relevant.
enum fleet_subject {
    FLEET_OF_REQUESTS,
    FLEET_OF_LOADS,
};

// Writes the facts that distinguish a host from its peers ("PCIe x8 of x16 (peers x16), driver
// 535.1 (peers 550.2)") into `text` (FLEET_REASON_SIZE bytes) and returns it: numbers that differ
// in the direction that makes a host worse (`is_worse`) or better, texts that differ from those of
// most peers.  "" if there are none.  `others`: the `count` peers' facts, without the host's own.
char *fleet_reason(char *text, enum fleet_subject subject, bool is_worse,
                   const struct fleet_facts *host, const struct fleet_facts *const *others,
                   size_t count);

#endif
