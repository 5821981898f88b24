// Why a host is slower, or faster, than others with the same model and device: what is
// known of it that is otherwise with them.  Pure.
#ifndef INFERSTAT_STORE_QUERY_FLEET_H
#define INFERSTAT_STORE_QUERY_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Numbers that may explain a difference, in the order in which reasons are given.
enum fleet_number {
    FLEET_PCIE_WIDTH,
    FLEET_PCIE_GENERATION,
    FLEET_THROTTLED, // share of the device's samples
    FLEET_SM_CLOCK,  // while it was busy
    FLEET_MEMORY_CLOCK,
    FLEET_TEMPERATURE,
    FLEET_H2D,
    FLEET_BANDWIDTH,
    FLEET_CONCURRENT, // requests at once
    FLEET_PROMPT,     // tokens
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

// What is known of one host, its device and the work it does.
struct fleet_facts {
    double numbers[FLEET_NUMBERS];              // NaN: not known
    char texts[FLEET_TEXTS][FLEET_TEXT_SIZE];   // "": not known
    double pcie_width_max, pcie_generation_max; // NaN: not known
    int64_t throttle_reasons;                   // core/throttle.h
};

// Facts of which nothing is known.
void fleet_facts_init(struct fleet_facts *facts);

// What a difference is in: that decides which facts matter.
enum fleet_subject {
    FLEET_OF_REQUESTS,
    FLEET_OF_LOADS,
};

// Writes what sets a host apart from the others ("PCIe x8 of x16 (peers x16), driver
// 535.1 (peers 550.2)") into `text` (FLEET_REASON_SIZE bytes): numbers that differ in
// the direction that makes a host worse (`is_worse`) or better, texts that differ from
// those of most others.  "" where the facts show nothing.  `others`: `count` facts, the
// host's own not among them.  Returns `text`.
char *fleet_reason(char *text, enum fleet_subject subject, bool is_worse,
                   const struct fleet_facts *host, const struct fleet_facts *const *others,
                   size_t count);

#endif
