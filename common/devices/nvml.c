#include "common/devices/nvml.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

// Of NVML's API reference: what it answers, and the numbers of its enumerations.
enum { NVML_SUCCESS = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 };

typedef struct nvml_device *nvml_handle; // NVML's own, opaque

// More than any device has: what is told past these is nonsense.
enum { WATTS_MAX = 100000, MEGAHERTZ_MAX = 100000, GENERATION_MAX = 16, WIDTH_MAX = 32 };

// Sets the function pointer at `out` to the library's function `name`; false where it has none.
static bool find(void *library, const char *name, void *out)
{
    void *found = dlsym(library, name);
    memcpy(out, &found, sizeof found);
    return found;
}

// The value of one call; 0: unknown or implausible.
static unsigned int number(void *library, const char *name, nvml_handle device, unsigned int most)
{
    int (*get)(nvml_handle device, unsigned int *out);
    unsigned int value = 0;
    const bool told = find(library, name, &get) && get(device, &value) == NVML_SUCCESS;
    return told && value <= most ? value : 0;
}

static int64_t clock_max(void *library, nvml_handle device, int clock)
{
    int (*get)(nvml_handle device, int clock, unsigned int *megahertz);
    unsigned int megahertz = 0;
    if (!find(library, "nvmlDeviceGetMaxClockInfo", &get) ||
        get(device, clock, &megahertz) != NVML_SUCCESS || megahertz > MEGAHERTZ_MAX)
        return 0;
    return (int64_t)megahertz * 1000000;
}

static double energy(void *library, nvml_handle device)
{
    int (*get)(nvml_handle device, unsigned long long *millijoules);
    unsigned long long millijoules = 0;
    const bool told = find(library, "nvmlDeviceGetTotalEnergyConsumption", &get) &&
                      get(device, &millijoules) == NVML_SUCCESS;
    return told ? (double)millijoules / 1e3 : 0.0;
}

static void read_facts(void *library, nvml_handle device, struct nvml_facts *out)
{
    out->power_cap_watts =
        number(library, "nvmlDeviceGetEnforcedPowerLimit", device, WATTS_MAX * 1000U) / 1000.0;
    out->sm_clock_max_hz = clock_max(library, device, NVML_CLOCK_SM);
    out->memory_clock_max_hz = clock_max(library, device, NVML_CLOCK_MEM);
    out->energy_joules = energy(library, device);
    out->pcie = (struct pcie_link){
        .generation =
            number(library, "nvmlDeviceGetCurrPcieLinkGeneration", device, GENERATION_MAX),
        .width = number(library, "nvmlDeviceGetCurrPcieLinkWidth", device, WIDTH_MAX),
        .generation_max =
            number(library, "nvmlDeviceGetMaxPcieLinkGeneration", device, GENERATION_MAX),
        .width_max = number(library, "nvmlDeviceGetMaxPcieLinkWidth", device, WIDTH_MAX),
    };
}

static bool read_device(void *library, struct nvml_facts *out, const char *uuid)
{
    int (*init)(void);
    int (*shutdown)(void);
    int (*find_device)(const char *uuid, nvml_handle *out);
    nvml_handle device = NULL;
    if (!find(library, "nvmlInit_v2", &init) || !find(library, "nvmlShutdown", &shutdown) ||
        !find(library, "nvmlDeviceGetHandleByUUID", &find_device) || init() != NVML_SUCCESS)
        return false;
    const bool found = find_device(uuid, &device) == NVML_SUCCESS && device;
    if (found)
        read_facts(library, device, out);
    (void)shutdown();
    return found;
}

bool nvml_read(struct nvml_facts *out, const char *uuid)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    *out = (struct nvml_facts){0};
    if (!library)
        return false;
    const bool found = read_device(library, out, uuid);
    (void)dlclose(library);
    return found;
}
