// Device facts from NVIDIA's management library (NVML), which is loaded at run time;
// without it all facts are unknown.
#ifndef INFERSTAT_SERVER_DEVICE_NVML_H
#define INFERSTAT_SERVER_DEVICE_NVML_H

#include <stdbool.h>
#include <stdint.h>

#include "server/device/pcie.h"

enum { NVML_TEXT_SIZE = 80 };

// Texts are empty, numbers 0, where it does not tell.
struct nvml_facts {
    char driver[NVML_TEXT_SIZE]; // version: "580.95.05"
    double power_cap_watts;      // that the device is held to
    int64_t sm_clock_max_hz, memory_clock_max_hz;
    struct pcie_link pcie; // but for the port's
};

// Reads the facts of the device "GPU-...".  False, with all facts unknown, if the library is
// missing, unusable or does not know the device.  Takes some milliseconds.
bool nvml_read(struct nvml_facts *out, const char *uuid);

#endif
