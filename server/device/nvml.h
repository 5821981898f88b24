// NVIDIA management library (NVML), loaded at run time when installed: reads driver version, power
// cap, clocks and PCIe link of a device.
#ifndef INFERSTAT_SERVER_DEVICE_NVML_H
#define INFERSTAT_SERVER_DEVICE_NVML_H

#include <stdbool.h>
#include <stdint.h>

#include "server/device/pcie.h"

enum { NVML_TEXT_SIZE = 80 };

// Empty texts and zeros: unknown.
struct nvml_facts {
    char driver[NVML_TEXT_SIZE]; // version: "580.95.05"
    double power_cap_watts;      // enforced limit
    int64_t sm_clock_max_hz, memory_clock_max_hz;
    struct pcie_link pcie; // except generation_port_max
};

// Reads the facts of the device with UUID "GPU-...".  Returns false, with `*out` empty, when the
// library is missing or unusable or does not know the device.  Takes some milliseconds.
bool nvml_read(struct nvml_facts *out, const char *uuid);

#endif
