// The parts of bench_samples.
#pragma once

#include "tests/bench/bench.h"

// A fleet that reports to one inferstatd over ipc, live: each host sends every second a sample of
// each of its devices, of itself and of its process in one batch, and half a second later an
// inference.
struct fleet_plan {
    const char *folder; // for its files
    unsigned hosts, devices, seconds;
    bool has_gaps; // with each inference, a record of the gaps between its tokens
};

struct fleet_result {
    double acknowledged_p50_ms, acknowledged_p99_ms, acknowledged_max_ms; // from when it was due
    double processors, busiest; // of the collector: processors busy, and of its busiest thread
    double own_processors;      // of the bench
    uint64_t peak_bytes;        // resident memory of the collector
    uint64_t log_bytes;         // of the store's log at the end
    double lacking;             // device samples that rollups lacked at the end
    double sample_bytes;        // of the store, a device sample: the row and its index entries
    double host_sample_bytes;
};

void fleet_run(const struct fleet_plan *plan, struct fleet_result *result);

// A history: the same hosts and devices sampled every second for hours up to now, sent to
// inferstatd as fast as it takes them; then it expires what its default retention lets go.
struct history_plan {
    const char *folder;
    unsigned hosts, devices, hours;
};

struct history_result {
    double device_second_bytes;        // of the file, a device and second
    double raw_bytes, rollup_bytes;    // of that: samples with their indexes, and rollups
    double host_p50_ms, host_p99_ms;   // averages of a host in random windows of at least a minute,
                                       // of the last day
    double fleet_p50_ms, fleet_p99_ms; // of all hosts, in those of 10 minutes or more
    double short_p99_ms;               // likewise in shorter ones, which are answered to the second
};

void history_run(const struct history_plan *plan, struct history_result *result);
