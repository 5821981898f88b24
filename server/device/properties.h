// Device properties and calibration: reads a device's hardware metadata and the state of its PCIe
// link.  Also measures the device's rates (memory and host-to-device bandwidth, arithmetic of the
// CPU) and caches them.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/devices/pcie.h"
#include "server/device/device.h"

enum { DEVICE_TEXT_SIZE = 96, RATES_BOOT_SIZE = 40 };

// Measured rates per second, rounded to integers; 0: not measured.
struct device_rates {
    double memory;              // copies within the device: bytes read plus bytes written
    double h2d;                 // bytes copied from pinned memory to the device
    double flops;               // single-precision multiplications and additions in the registers
                                // of all threads; CPU only
    bool steady;                // the fastest measurements agreed, so the device was idle
    char boot[RATES_BOOT_SIZE]; // the host's boot id at that time
    int64_t measured_ns;        // wall clock
};

// An empty text or a zero means unknown or not applicable.
struct device_properties {
    char name[DEVICE_NAME_SIZE];    // the name in records
    char product[DEVICE_TEXT_SIZE]; // the vendor's product name
    char uuid[DEVICE_TEXT_SIZE];
    char driver[DEVICE_TEXT_SIZE]; // driver and its version
    unsigned int ordinal;
    unsigned int threads;            // number of threads of the CPU back end
    unsigned int compute_capability; // 10 * major + minor
    int64_t memory_bytes;
    struct pcie_link pcie;
    double power_cap_watts; // enforced limit
    int64_t sm_clock_max_hz, memory_clock_max_hz;
    double peak_flops; // single-precision operations per second without tensor cores
    struct device_rates rates;
};

// Returns the highest rate of single-precision floating-point operations per second, without tensor
// cores, of a CUDA device with `processors` multiprocessors at a clock of `hz`; 0: unknown. Source:
// CUDA C++ Programming Guide, "Arithmetic Instructions".
double peak_flops_of(unsigned int compute_capability, int processors, int64_t hz);

// Reads all properties except the rates, which become 0; measures nothing.
void device_properties(const struct device *device, struct device_properties *out);

// Fills properties->rates from the cache file that device_calibrate wrote to the directory
// `folder`. Returns false if the file is missing, damaged, or of another device or driver version.
bool device_rates_cached(struct device_properties *properties, const char *folder);

// Fills properties->rates from the cache file in the directory `folder`.  If there is no such file,
// or its rates are not steady, were measured before the host was booted, or more than 30 days ago,
// measures the rates (at most half a second on an idle machine) and writes the file.  Of rates that
// are neither steady nor outdated it keeps the larger of the old and new value.  Caches nothing if
// `folder` is NULL or not writable.  The device should be idle.  Fails with STATUS_NOMEM, or with
// STATUS_IO if the device fails.
MUST_CHECK enum status device_calibrate(struct device *device, struct device_properties *properties,
                                        const char *folder, struct error *err);

// Measures the rates without reading or writing the cache file; leaves boot and measured_ns empty.
MUST_CHECK enum status device_measure_rates(struct device *device, struct device_rates *out,
                                            struct error *err);

// Returns the energy that a CUDA device has consumed since its driver was loaded; 0: unknown, as of
// the CPU.  Takes some milliseconds.
double device_energy_joules(const struct device *device);
