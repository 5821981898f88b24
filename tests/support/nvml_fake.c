// A libnvidia-ml.so.1 for tests, found by LD_LIBRARY_PATH.  It knows the emulated CUDA
// runtime's devices.  FAKE_NVML says what is the matter with it:
//
//   (none)    tells everything
//   init      cannot be used
//   nothing   knows the device, and tells nothing of it
//   nonsense  tells what no device has
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, UNINITIALIZED = 1, NOT_SUPPORTED = 3, NOT_FOUND = 6, UNKNOWN = 999 };

__attribute__((visibility("default"))) int nvmlInit_v2(void);
__attribute__((visibility("default"))) int nvmlShutdown(void);
__attribute__((visibility("default"))) int nvmlDeviceGetHandleByUUID(const char *uuid, void **out);
__attribute__((visibility("default"))) int nvmlDeviceGetEnforcedPowerLimit(void *device,
                                                                           unsigned int *out);
__attribute__((visibility("default"))) int nvmlDeviceGetMaxClockInfo(void *device, int clock,
                                                                     unsigned int *out);
__attribute__((visibility("default"))) int nvmlDeviceGetCurrPcieLinkGeneration(void *device,
                                                                               unsigned int *out);
__attribute__((visibility("default"))) int nvmlDeviceGetCurrPcieLinkWidth(void *device,
                                                                          unsigned int *out);
__attribute__((visibility("default"))) int nvmlDeviceGetMaxPcieLinkGeneration(void *device,
                                                                              unsigned int *out);
__attribute__((visibility("default"))) int nvmlDeviceGetMaxPcieLinkWidth(void *device,
                                                                         unsigned int *out);
__attribute__((visibility("default"))) int
nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *out);

static int initialised;
static char devices[16];

static int is(const char *matter)
{
    const char *said = getenv("FAKE_NVML");
    return said && strcmp(said, matter) == 0;
}

int nvmlInit_v2(void)
{
    if (is("init"))
        return UNKNOWN;
    initialised++;
    return SUCCESS;
}

int nvmlShutdown(void)
{
    if (initialised == 0)
        return UNINITIALIZED;
    initialised--;
    return SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **out)
{
    unsigned int number = 0;
    if (!initialised)
        return UNINITIALIZED;
    if (sscanf(uuid, "GPU-00000000-0000-0000-0000-%12x", &number) != 1 || number >= sizeof devices)
        return NOT_FOUND;
    *out = &devices[number];
    return SUCCESS;
}

// A figure of the device, one more for each that comes before it.
static int tell(const void *device, unsigned int value, unsigned int *out)
{
    if (is("nothing"))
        return NOT_SUPPORTED;
    *out = is("nonsense") ? 0xffffffffU : value + (unsigned int)((const char *)device - devices);
    return SUCCESS;
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned int *out)
{
    return tell(device, 650500, out);
}

int nvmlDeviceGetMaxClockInfo(void *device, int clock, unsigned int *out)
{
    return tell(device, clock == 1 ? 1980 : clock == 2 ? 3201 : 1, out);
}

int nvmlDeviceGetCurrPcieLinkGeneration(void *device, unsigned int *out)
{
    (void)device;
    return tell(devices, 1, out);
}

int nvmlDeviceGetCurrPcieLinkWidth(void *device, unsigned int *out)
{
    (void)device;
    return tell(devices, 8, out);
}

int nvmlDeviceGetMaxPcieLinkGeneration(void *device, unsigned int *out)
{
    (void)device;
    return tell(devices, 5, out);
}

int nvmlDeviceGetMaxPcieLinkWidth(void *device, unsigned int *out)
{
    (void)device;
    return tell(devices, 16, out);
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *out)
{
    unsigned int joules = 0;
    const int result = tell(device, 7000000, &joules);
    *out = 1000ULL * joules;
    return result;
}
