// Wrapper of the NVIDIA management library (NVML): reads power cap, clocks and PCIe link of a
// device.  The library is loaded at run time if it is installed.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/devices/pcie.h"

// The values of one device; 0: unknown.
struct nvml_facts {
    double power_cap_watts; // enforced limit
    int64_t sm_clock_max_hz, memory_clock_max_hz;
    double energy_joules;  // consumed since the driver was loaded
    struct pcie_link pcie; // generation_port_max stays 0
};

// Fills `*out` for the device whose UUID is `uuid` ("GPU-...").  Returns false and zeroes `*out`
// if the library is missing or unusable, or does not know the device.  Takes some milliseconds.
bool nvml_read(struct nvml_facts *out, const char *uuid);
