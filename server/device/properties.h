// What a device is, and how fast its memory and its copies are.
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
    bool steady;   // the best rounds agreed: no other load disturbed them
};

// Texts are empty, numbers 0, where there is nothing to say.
struct device_properties {
    char name[DEVICE_NAME_SIZE];    // as records name it
    char product[DEVICE_TEXT_SIZE]; // the maker's name for it
    char uuid[DEVICE_TEXT_SIZE];
    char driver[DEVICE_TEXT_SIZE]; // what drives it, with its version
    unsigned int ordinal;
    unsigned int threads;            // of the CPU back end
    unsigned int compute_capability; // 10 * major + minor
    int64_t memory_bytes;
    struct pcie_link pcie;
    double power_cap_watts; // that the device is held to
    int64_t sm_clock_max_hz, memory_clock_max_hz;
    struct device_rates rates;
};

// All but the rates; measures nothing.
void device_properties(const struct device *device, struct device_properties *out);

// Fills properties->rates from the file that device_calibrate left in `folder` for this
// device and driver.  False where there is none, or it is damaged, or another's.
bool device_rates_cached(struct device_properties *properties, const char *folder);

// Fills properties->rates: from the file in `folder`, or else by measuring, a third of a
// second at most on an idle machine, and leaves the file there.  What was not measured
// steadily is measured again, and the better of both is kept.  A folder that cannot be
// written is done without, and so is NULL.  Fails with STATUS_NOMEM where there is no
// memory to measure with, or as the device's calls do.  The device should be idle.
MUST_CHECK enum status device_calibrate(struct device *device, struct device_properties *properties,
                                        const char *folder, struct error *err);

// Measures, whatever was measured before.
MUST_CHECK enum status device_measure_rates(struct device *device, struct device_rates *out,
                                            struct error *err);

#endif
