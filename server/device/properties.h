// Properties of a device, and the measured rates of its memory and copies.
#ifndef INFERSTAT_SERVER_DEVICE_PROPERTIES_H
#define INFERSTAT_SERVER_DEVICE_PROPERTIES_H

#include <stdbool.h>
#include <stdint.h>

#include "server/device/device.h"
#include "server/device/pcie.h"

enum { DEVICE_TEXT_SIZE = 96 };

// Measured, in bytes per second, whole numbers; 0: not measured.
struct device_rates {
    double memory; // copies within the device, bytes read and bytes written
    double h2d;    // copies from pinned memory to the device
    double d2h;    // and back
    bool steady;   // the best rounds agreed: the device was idle
};

// Empty texts and zeros: unknown or not applicable.
struct device_properties {
    char name[DEVICE_NAME_SIZE];    // as records name it
    char product[DEVICE_TEXT_SIZE]; // the vendor's product name
    char uuid[DEVICE_TEXT_SIZE];
    char driver[DEVICE_TEXT_SIZE]; // driver and its version
    unsigned int ordinal;
    unsigned int threads;            // of the CPU back end
    unsigned int compute_capability; // 10 * major + minor
    int64_t memory_bytes;
    struct pcie_link pcie;
    double power_cap_watts; // enforced limit
    int64_t sm_clock_max_hz, memory_clock_max_hz;
    struct device_rates rates;
};

// Fills all but the rates; measures nothing.
void device_properties(const struct device *device, struct device_properties *out);

// Fills properties->rates from the file that device_calibrate wrote to `folder` for this device
// and driver.  Returns false when it is missing, damaged, or of another device or driver.
bool device_rates_cached(struct device_properties *properties, const char *folder);

// Fills properties->rates from the file in `folder`, or else measures (a third of a second at
// most on an idle machine) and writes the file.  Rates that were not steady are measured again
// and the better ones kept.  Without a writable `folder` (it may be NULL) nothing is cached.
// Fails with STATUS_NOMEM when there is no memory to measure with, or as the device's calls do.
// The device should be idle.
MUST_CHECK enum status device_calibrate(struct device *device, struct device_properties *properties,
                                        const char *folder, struct error *err);

// Measures without looking at cached rates.
MUST_CHECK enum status device_measure_rates(struct device *device, struct device_rates *out,
                                            struct error *err);

#endif
