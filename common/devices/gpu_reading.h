// What is known of GPUs: their descriptions, and readings of all of them at one moment (gpu.h).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/record/record.h"
#include "common/devices/pcie.h"

enum {
    GPU_MAX = 128, // devices of one host, MIG instances included; more are not read
    GPU_NAME_SIZE = 32,
    GPU_TEXT_SIZE = 96,
    GPU_PROCESSES_MAX = 64,
    GPU_PROCESS_NAME_SIZE = 64,
    GPU_XIDS_MAX = 64,
    GPU_GTS = 7,
};

enum gpu_vendor { GPU_NVIDIA, GPU_AMD, GPU_INTEL };

// What does not change from one reading to the next, but for the PCIe link, the enforced power
// limit and the idle times.  An empty text or a zero means unknown or not applicable.
struct gpu_info {
    char uuid[GPU_TEXT_SIZE]; // "GPU-..." or "MIG-..."; of the others "PCI-" and the address,
                              // "PCI-0000:03:00.0"
    char parent_uuid[GPU_TEXT_SIZE]; // of a MIG instance: the UUID of its GPU
    char name[GPU_NAME_SIZE];        // "cuda:0", "amd:0", "intel:0" in the order of PCI addresses;
                                     // "cuda:0:2" is a MIG instance of cuda:0
    char product[GPU_TEXT_SIZE];     // the vendor's product name
    char compute_capability[16];     // "9.0"; NVIDIA only
    enum gpu_vendor vendor;
    unsigned int index; // the number in `name`; of a MIG instance that of its GPU
    int64_t memory_bytes;
    int64_t sm_clock_max_hz, memory_clock_max_hz;
    double power_cap_watts;  // enforced limit
    double slowdown_celsius; // temperature at which the device reduces its clocks
    struct pcie_link pcie;
    uint64_t idle_at_ns; // Intel: until when (monotonic) each of its GTs had been idle how long
    int64_t idle_ms[GPU_GTS];
};

struct gpu_process {
    int64_t pid;
    int64_t memory_bytes;             // device memory; -1: unknown
    char name[GPU_PROCESS_NAME_SIZE]; // the kernel's name of it, escaped; "": unknown
};

// One device at one moment.
struct gpu_reading {
    struct gpu_info info;
    // Kind device_sample, started_ns the wall clock when the device was asked.  Not set: device,
    // duration_ns and energy_used_joules, which follow from more than one reading.
    struct record sample;
    // True: the driver has lost the device (it fell off the bus, or needs a reset).  The sample is
    // empty then, and `info` is what was known before.
    bool lost;
    bool processes_known; // false: the driver does not tell them
    unsigned int process_count;
    struct gpu_process processes[GPU_PROCESSES_MAX]; // in order of pid; each once
};

// Errors of a device with one code that the NVIDIA driver reported (XIDs) since the reading before.
struct gpu_xid {
    char uuid[GPU_TEXT_SIZE]; // of the GPU, also for errors of a MIG instance; "": of none known
    int64_t code, count;
    int64_t at_ns; // wall clock when the first was read: the driver tells no time
};

// All devices at one moment.  Initialise it with zeros; each reading replaces the one before.
struct gpu_snapshot {
    uint64_t began_ns, ended_ns; // of the reading, by the monotonic clock
    unsigned int count;
    struct gpu_reading *gpus; // `count`; a MIG instance follows its GPU
    unsigned int xid_count;
    struct gpu_xid xids[GPU_XIDS_MAX];
};
