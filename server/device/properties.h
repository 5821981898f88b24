// Device properties and calibration: hardware metadata, and the measured and cached bandwidth of
// memory and host-device copies.
#ifndef INFERSTAT_SERVER_DEVICE_PROPERTIES_H
#define INFERSTAT_SERVER_DEVICE_PROPERTIES_H

#include <stdbool.h>
#include <stdint.h>

#include "server/device/device.h"
#include "server/device/pcie.h"

enum { DEVICE_TEXT_SIZE = 96 };

// Measured bandwidth in bytes per second, whole numbers; 0: not measured.
struct device_rates {
    double memory; // copies within the device: bytes read plus bytes written
    double h2d;    // copies from pinned memory to the device
    double d2h;    // copies from the device to pinned memory
    bool steady;   // the fastest rounds agreed, so the device was idle
};

// Empty texts and zeros: unknown or not applicable.
struct device_properties {
    char name[DEVICE_NAME_SIZE];    // the name in records
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

// Reads all properties except the rates; measures nothing.
void device_properties(const struct device *device, struct device_properties *out);

// Fills properties->rates from the cache file that device_calibrate wrote to `folder`.  Returns
// false when the file is missing, damaged, or of another device or driver version.
bool device_rates_cached(struct device_properties *properties, const char *folder);

// Fills properties->rates from the cache file in `folder`.  Without one, or when its rates were
// not steady, measures (at most a third of a second on an idle machine), keeps the better rates
// and writes the file.  Without a writable `folder` (may be NULL) nothing is cached.  The device
// should be idle.  Fails with STATUS_NOMEM when memory is short, STATUS_IO when the device fails.
MUST_CHECK enum status device_calibrate(struct device *device, struct device_properties *properties,
                                        const char *folder, struct error *err);

// Measures without reading or writing the cache.
MUST_CHECK enum status device_measure_rates(struct device *device, struct device_rates *out,
                                            struct error *err);

#endif
