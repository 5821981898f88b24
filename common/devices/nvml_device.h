// One NVIDIA device or MIG instance: its description, and one reading of its sensors.  What NVML
// does not tell, or tells wrongly, is absent.
#pragma once

#include "common/devices/gpu_reading.h"
#include "common/devices/nvml_library.h"

struct nvml_device {
    nvml_handle handle, parent; // `parent`: the GPU of a MIG instance; NULL: it is a GPU
    unsigned int gpu_instance;  // of a MIG instance
    struct gpu_info info;
    // GPU performance monitoring: two samples, of which the difference tells shares of time; NULL:
    // not supported.
    nvml_gpm_sample gpm[2];
    unsigned int gpm_next; // index of the sample to take next
    bool gpm_has_previous; // the other one is a sample
};

// Fills device->info but for `name` and `index`, and prepares the performance monitoring.
void nvml_device_open(const struct nvml_library *library, struct nvml_device *device);
void nvml_device_close(const struct nvml_library *library, struct nvml_device *device);

// Fills the description of a device.
void nvml_device_describe(const struct nvml_library *library, nvml_handle handle,
                          struct gpu_info *info);

// Reads the sensors and processes.  `slow`: measures the PCIe throughput, too, which takes 20 ms in
// each direction.  /proc is read below `root`.  Returns the result of the first call, which asks
// for the memory.  The sample is empty if the result is stale (nvml_is_stale), and that of a MIG
// instance that was destroyed.
int nvml_device_read(const struct nvml_library *library, struct nvml_device *device, bool slow,
                     const char *root, struct gpu_reading *out);

// The energy that the device used since the driver was loaded; negative: unknown.
double nvml_device_energy(const struct nvml_library *library, nvml_handle handle);
