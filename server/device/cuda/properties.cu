// Properties of a CUDA device.
#include <stdio.h>

#include "server/device/cuda/parts.cuh"

extern "C" {
#include "common/sys/process.h"
#include "server/device/pcie.h"
}

// "GPU-01234567-89ab-...", as nvidia-smi writes it.
void cuda_format_uuid(char out[DEVICE_TEXT_SIZE], const cudaUUID_t *uuid)
{
    size_t at = (size_t)snprintf(out, DEVICE_TEXT_SIZE, "GPU");
    for (size_t i = 0; i < sizeof uuid->bytes; i++) {
        const bool divided = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        at += (size_t)snprintf(out + at, DEVICE_TEXT_SIZE - at, "%s%02x", divided ? "-" : "",
                               (unsigned int)(unsigned char)uuid->bytes[i]);
    }
}

// The driver's version; where the system does not tell it, of CUDA what the driver can.
static void read_driver(char out[DEVICE_TEXT_SIZE])
{
    char text[PROCESS_TEXT_SIZE];
    process_driver_read(text, nullptr);
    int version = 0;
    if (text[0])
        (void)snprintf(out, DEVICE_TEXT_SIZE, "nvidia %.80s", text);
    else if (cudaDriverGetVersion(&version) == cudaSuccess && version > 0)
        (void)snprintf(out, DEVICE_TEXT_SIZE, "CUDA %d.%d", version / 1000, version % 1000 / 10);
}

void cuda_properties(const struct device *device, struct device_properties *out)
{
    const struct cuda *cuda = reinterpret_cast<const struct cuda *>(device);
    cudaDeviceProp properties;
    char address[32];
    if (cudaGetDeviceProperties(&properties, cuda->ordinal) == cudaSuccess) {
        (void)snprintf(out->product, sizeof out->product, "%.90s", properties.name);
        cuda_format_uuid(out->uuid, &properties.uuid);
        out->compute_capability = (unsigned int)(properties.major * 10 + properties.minor);
    }
    const struct nvml_facts *facts = &cuda->facts;
    read_driver(out->driver);
    if (cudaDeviceGetPCIBusId(address, sizeof address, cuda->ordinal) == cudaSuccess)
        (void)pcie_link_read(&out->pcie, nullptr, address);
    if (out->pcie.width_max == 0) // no sysfs, as in some containers
        out->pcie = facts->pcie;
    out->power_cap_watts = facts->power_cap_watts;
    out->sm_clock_max_hz = facts->sm_clock_max_hz;
    out->memory_clock_max_hz = facts->memory_clock_max_hz;
}
