#include "server/device/nvml.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

// Of NVML's API reference: what it answers, and the numbers of its enumerations.
enum { NVML_SUCCESS = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 };

typedef struct nvml_device *nvml_handle; // NVML's own, opaque

// More than any device has: what is told past these is nonsense.
enum { WATTS_MAX = 100000, MEGAHERTZ_MAX = 100000, GENERATION_MAX = 16, WIDTH_MAX = 32 };

struct nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*find)(const char *uuid, nvml_handle *out);
    int (*enforced_power)(nvml_handle device, unsigned int *milliwatts);
    int (*clock_max)(nvml_handle device, int clock, unsigned int *megahertz);
    int (*generation)(nvml_handle device, unsigned int *out);
    int (*width)(nvml_handle device, unsigned int *out);
    int (*generation_max)(nvml_handle device, unsigned int *out);
    int (*width_max)(nvml_handle device, unsigned int *out);
};

// ---- The library ----------------------------------------------------------

static const struct symbol_line {
    const char *name;
    size_t place; // in struct nvml
} symbols[] = {
    {"nvmlInit_v2", offsetof(struct nvml, init)},
    {"nvmlShutdown", offsetof(struct nvml, shutdown)},
    {"nvmlDeviceGetHandleByUUID", offsetof(struct nvml, find)},
    {"nvmlDeviceGetEnforcedPowerLimit", offsetof(struct nvml, enforced_power)},
    {"nvmlDeviceGetMaxClockInfo", offsetof(struct nvml, clock_max)},
    {"nvmlDeviceGetCurrPcieLinkGeneration", offsetof(struct nvml, generation)},
    {"nvmlDeviceGetCurrPcieLinkWidth", offsetof(struct nvml, width)},
    {"nvmlDeviceGetMaxPcieLinkGeneration", offsetof(struct nvml, generation_max)},
    {"nvmlDeviceGetMaxPcieLinkWidth", offsetof(struct nvml, width_max)},
};

// Every driver of a supported device has all symbols.
static bool open_library(struct nvml *nvml)
{
    *nvml = (struct nvml){.library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
    if (!nvml->library)
        return false;
    bool whole = true;
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *found = dlsym(nvml->library, symbols[i].name);
        memcpy((unsigned char *)nvml + symbols[i].place, &found, sizeof found);
        whole = whole && found;
    }
    if (!whole)
        (void)dlclose(nvml->library);
    return whole;
}

// ---- Facts ----------------------------------------------------------------

// The value of one call; 0: unknown or implausible.
static unsigned int number(int (*get)(nvml_handle device, unsigned int *out), nvml_handle device,
                           unsigned int most)
{
    unsigned int value = 0;
    return get(device, &value) == NVML_SUCCESS && value <= most ? value : 0;
}

static int64_t clock_max(const struct nvml *nvml, nvml_handle device, int clock)
{
    unsigned int megahertz = 0;
    if (nvml->clock_max(device, clock, &megahertz) != NVML_SUCCESS || megahertz > MEGAHERTZ_MAX)
        return 0;
    return (int64_t)megahertz * 1000000;
}

static void read_facts(const struct nvml *nvml, nvml_handle device, struct nvml_facts *out)
{
    out->power_cap_watts = number(nvml->enforced_power, device, WATTS_MAX * 1000U) / 1000.0;
    out->sm_clock_max_hz = clock_max(nvml, device, NVML_CLOCK_SM);
    out->memory_clock_max_hz = clock_max(nvml, device, NVML_CLOCK_MEM);
    out->pcie.generation = number(nvml->generation, device, GENERATION_MAX);
    out->pcie.width = number(nvml->width, device, WIDTH_MAX);
    out->pcie.generation_max = number(nvml->generation_max, device, GENERATION_MAX);
    out->pcie.width_max = number(nvml->width_max, device, WIDTH_MAX);
}

bool nvml_read(struct nvml_facts *out, const char *uuid)
{
    struct nvml nvml;
    nvml_handle device = NULL;
    *out = (struct nvml_facts){0};
    if (!open_library(&nvml))
        return false;
    bool found = false;
    if (nvml.init() == NVML_SUCCESS) {
        found = nvml.find(uuid, &device) == NVML_SUCCESS && device;
        if (found)
            read_facts(&nvml, device, out);
        (void)nvml.shutdown();
    }
    (void)dlclose(nvml.library);
    return found;
}
