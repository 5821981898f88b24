#include "common/devices/nvml.h"

#include "common/devices/nvml_device.h"

bool nvml_read(struct nvml_facts *out, const char *uuid)
{
    struct nvml_library library;
    struct gpu_info info = {0};
    nvml_handle device = NULL;
    *out = (struct nvml_facts){0};
    if (!nvml_library_open(&library))
        return false;
    const bool found = nvml_call(&library, by_uuid, uuid, &device) == NVML_SUCCESS && device;
    if (found) {
        nvml_device_describe(&library, device, &info);
        const double joules = nvml_device_energy(&library, device);
        *out = (struct nvml_facts){.power_cap_watts = info.power_cap_watts,
                                   .sm_clock_max_hz = info.sm_clock_max_hz,
                                   .memory_clock_max_hz = info.memory_clock_max_hz,
                                   .energy_joules = joules > 0 ? joules : 0,
                                   .pcie = info.pcie};
    }
    nvml_library_close(&library);
    return found;
}
