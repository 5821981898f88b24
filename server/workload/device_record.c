#include "server/workload/device_record.h"

#include <stdio.h>

#include "common/sys/files.h"

void device_look_up(const struct device *device, struct device_properties *out)
{
    char folder[1024];
    device_properties(device, out);
    if (files_cache_folder(folder, sizeof folder, NULL) == STATUS_OK)
        (void)device_rates_cached(out, folder);
}

static const char *text(const char *text)
{
    return text[0] ? text : NULL;
}

// Negative if unknown.
static double known(double value)
{
    return value > 0.0 ? value : -1.0;
}

uint32_t device_record(struct inferstat_monitor *monitor,
                       const struct device_properties *properties)
{
    char capability[16] = "";
    if (properties->compute_capability > 0)
        (void)snprintf(capability, sizeof capability, "%u.%u", properties->compute_capability / 10,
                       properties->compute_capability % 10);
    struct inferstat_device device;
    inferstat_device_init(&device);
    device.ordinal = properties->ordinal;
    device.name = properties->name;
    device.uuid = text(properties->uuid);
    device.memory_bytes = properties->memory_bytes;
    device.compute_capability = text(capability);
    device.pcie_generation = (int)known(properties->pcie.generation);
    device.pcie_width = (int)known(properties->pcie.width);
    device.pcie_generation_max = (int)known(properties->pcie.generation_max);
    device.pcie_width_max = (int)known(properties->pcie.width_max);
    device.memory_bandwidth_bytes_per_second = known(properties->rates.memory);
    device.h2d_bytes_per_second = known(properties->rates.h2d);
    device.power_cap_watts = known(properties->power_cap_watts);
    device.sm_clock_max_hz = (int64_t)known((double)properties->sm_clock_max_hz);
    device.memory_clock_max_hz = (int64_t)known((double)properties->memory_clock_max_hz);
    return inferstat_add_device(monitor, &device);
}

void device_calibrate_for_later(struct device *device)
{
    char folder[1024];
    struct device_properties properties;
    device_properties(device, &properties);
    if (files_cache_folder(folder, sizeof folder, NULL) == STATUS_OK)
        (void)!device_calibrate(device, &properties, folder, NULL);
}
