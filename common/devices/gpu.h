// GPUs of the host: finds them and reads their sensors.  NVIDIA devices and their MIG instances by
// the vendor's library NVML, loaded at run time where it is installed; those of AMD and Intel by
// sysfs.  Sends no records: a reading holds one of kind device_sample, ready to be sent.
//
// Drivers and libraries are not trusted: a value that no device can have counts as absent, texts
// are escaped.  An absent value is never replaced by 0 or by an older one.
#pragma once

#include <stdbool.h>

#include "common/core/base/status.h"
#include "common/devices/gpu_reading.h"

// Frees what the snapshot holds and zeroes it.
void gpu_snapshot_deinit(struct gpu_snapshot *snapshot);

// All GPUs of the host.  Every call may block for as long as a driver does, so a single thread uses
// the set, and no other thread waits for that one.
struct gpu_set;

// Finds the devices.  That there are none, or no drivers, is no error: later readings look again.
// Reads /sys and /proc below the folder `root`; NULL: those of the system.  Fails with
// STATUS_NOMEM.
MUST_CHECK enum status gpu_set_open(struct gpu_set **out, const char *root);

// Reads all devices.  `slow`: also what takes some 20 ms a device (PCIe throughput), and looks for
// devices and MIG instances that were added: about once a minute.  Devices that vanish are gone
// from the snapshot.  Where the driver was reloaded or updated, opens it again; while it cannot be
// opened, tries again every 10 s.  Fails with STATUS_NOMEM, and leaves `*snapshot` valid then.
MUST_CHECK enum status gpu_set_read(struct gpu_set *set, struct gpu_snapshot *snapshot, bool slow);

// Closes the devices and their libraries.  NULL is allowed.
void gpu_set_close(struct gpu_set *set);
