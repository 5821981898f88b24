// GPUs of AMD (driver amdgpu) and Intel (drivers xe and i915), as sysfs and hwmon tell them.  What
// a device's files lack, or tell wrongly, is absent in its reading.
//
// - The UUID is "PCI-" and the address: every device has one, and no two of a host share it.  (The
//   unique_id of amdgpu is missing on many devices and in virtual machines.)
// - The temperature is that of the edge of an AMD chip, where it has no such sensor of its hottest
//   spot; of an Intel chip that of the package.  `slowdown_celsius` belongs to the same sensor.
// - Of an Intel device with several tiles, clock and memory are those of the first tile.  Its
//   utilisation is the share of time in which its busiest GT was not idle.
// - The PCIe link is the chip's own.  AMD boards with a switch on them have another one to the
// slot.
#pragma once

#include "common/devices/gpu_reading.h"

// What is known of the devices from the reading before.  Initialise it with zeros; nothing is to be
// freed.  One thread uses it.
struct gpu_sysfs {
    unsigned int count;
    struct gpu_info known[GPU_MAX];
};

// Finds the devices and reads all of them into `out`, in order of vendor and PCI address, at most
// `capacity`.  Returns their number.  /sys and /proc are read below the folder `root`; NULL: those
// of the system.  Some 40 files a device, of which those that ask its firmware may block.  `now_ns`
// is the monotonic clock.
//
// A device that its driver has powered down (runtime power management) is not woken: its sample is
// empty, and `info` is what was known before.  A device of which never anything could be read is
// left out, but keeps its number: "amd:1" stays "amd:1".  Processes are not told.
unsigned int gpu_sysfs_read(struct gpu_sysfs *gpus, struct gpu_reading *out, unsigned int capacity,
                            const char *root, uint64_t now_ns);
