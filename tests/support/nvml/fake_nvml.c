// A management library of NVIDIA for tests, loaded where INFERSTAT_TEST_NVML names its file.  It
// plays the devices of a script (script.h).  Energy grows by the power drawn.  A build with
// FAKE_NVML_OLD lacks the newer functions.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/devices/nvml_library.h"
#include "tests/support/nvml/script.h"

#define EXPORT __attribute__((visibility("default")))

enum { NOT_SUPPORTED = 3, NOT_FOUND = 6, TIMEOUT = 10, FAILED = 999 };

// ---- Calls ------------------------------------------------------------------------------

static void sleep_s(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds))};
    while (nanosleep(&time, &time) != 0)
        ;
}

static double random_share(void)
{
    fake.seed = fake.seed * 1103515245U + 12345U;
    return (double)(fake.seed >> 8) / (double)(UINT32_MAX >> 8);
}

// What every function begins with: the script goes on, the call takes its time.
static int enter(const char *function)
{
    script_play();
    const double hang_s = fake.hang_s;
    fake.hang_s = 0;
    if (hang_s > 0)
        sleep_s(hang_s);
    if (fake.delay_us[1] > 0)
        sleep_s(1e-6 * (fake.delay_us[0] + random_share() * (fake.delay_us[1] - fake.delay_us[0])));
    for (unsigned int i = 0; i < fake.missing_count; i++)
        if (strcmp(fake.missing[i], function) == 0)
            return NVML_FUNCTION_NOT_FOUND;
    if (fake.is_unloaded)
        return NVML_DRIVER_NOT_LOADED;
    return fake.initialised ? NVML_SUCCESS : NVML_UNINITIALIZED;
}

static unsigned int plugged(void)
{
    return fake.gpu_count < fake.plugged ? fake.gpu_count : fake.plugged;
}

// The device or instance of a handle; `*instance`: 0, or 1 more than its number.
static struct gpu *gpu_of(nvml_handle handle, unsigned int *instance)
{
    for (unsigned int i = 0; i < GPUS_MAX; i++) {
        struct gpu *gpu = &fake.gpus[i];
        *instance = 0;
        if ((void *)handle == (void *)gpu)
            return gpu;
        for (unsigned int j = 0; j < INSTANCES_MAX; j++) {
            *instance = j + 1;
            if ((void *)handle == (void *)&gpu->places[j])
                return gpu;
        }
    }
    return NULL;
}

static int enter_device(const char *function, nvml_handle handle, struct gpu **out,
                        unsigned int *instance)
{
    const int result = enter(function);
    if (result != NVML_SUCCESS)
        return result;
    *out = gpu_of(handle, instance);
    if (!*out)
        return NOT_FOUND;
    if ((unsigned int)(*out - fake.gpus) >= plugged())
        return NVML_GPU_IS_LOST;
    if (*instance > (*out)->instances)
        return NOT_FOUND; // it was destroyed
    return (*out)->error;
}

// A figure of a device.
static int tell(const char *function, nvml_handle handle, enum field field, double *out)
{
    struct gpu *gpu = NULL;
    unsigned int instance;
    const int result = enter_device(function, handle, &gpu, &instance);
    if (result != NVML_SUCCESS)
        return result;
    if (gpu->is_missing[field])
        return NOT_SUPPORTED;
    const bool is_noisy = field == FIELD_util || field == FIELD_power || field == FIELD_temperature;
    *out = gpu->values[field];
    if (is_noisy)
        *out *= 1 + fake.noise * (2 * random_share() - 1);
    if (instance && (field == FIELD_memory_total || field == FIELD_memory_used ||
                     field == FIELD_memory_reserved))
        *out /= INSTANCES_MAX;
    else if (instance && field < FIELD_sm_active)
        return NOT_SUPPORTED; // instances tell only their memory and shares of time
    return NVML_SUCCESS;
}

static int tell_number(const char *function, nvml_handle handle, enum field field, double scale,
                       unsigned int *out)
{
    double value = 0;
    const int result = tell(function, handle, field, &value);
    if (result == NVML_SUCCESS)
        *out = value < 0                      ? (unsigned int)(int)(value * scale)
               : value * scale > 4294967295.0 ? 4294967295U
                                              : (unsigned int)(value * scale + 0.5);
    return result;
}

static int tell_large(const char *function, nvml_handle handle, enum field field, double scale,
                      unsigned long long *out)
{
    double value = 0;
    const int result = tell(function, handle, field, &value);
    if (result == NVML_SUCCESS)
        *out = value * scale >= 18446744073709551615.0 || value < 0
                   ? UINT64_MAX
                   : (unsigned long long)(value * scale);
    return result;
}

static int tell_text(int result, char *out, unsigned int size, const char *text)
{
    if (result == NVML_SUCCESS)
        (void)snprintf(out, size, "%s", text);
    return result;
}

// ---- The library's functions ----------------------------------------------------------------

// Declared with the parameters that the project expects of them.
#define DECLARE(name, symbol, earlier, parameters)                                                 \
    EXPORT int fake_##name parameters __asm__(symbol);
NVML_FUNCTIONS(DECLARE)
#undef DECLARE

int fake_init(void)
{
    script_read();
    (void)enter("nvmlInit_v2");
    if (fake.is_broken || fake.is_unloaded)
        return fake.is_broken ? FAILED : NVML_DRIVER_NOT_LOADED;
    fake.initialised++;
    return NVML_SUCCESS;
}

int fake_shutdown(void)
{
    if (!fake.initialised)
        return NVML_UNINITIALIZED;
    fake.initialised--;
    return NVML_SUCCESS;
}

int fake_driver_version(char *text, unsigned int size)
{
    return tell_text(enter("nvmlSystemGetDriverVersion"), text, size, fake.driver);
}

int fake_count(unsigned int *out)
{
    const int result = enter("nvmlDeviceGetCount_v2");
    *out = plugged();
    return result;
}

int fake_by_index(unsigned int index, nvml_handle *out)
{
    const int result = enter("nvmlDeviceGetHandleByIndex_v2");
    if (result != NVML_SUCCESS || index >= plugged())
        return result != NVML_SUCCESS ? result : NOT_FOUND;
    *out = (nvml_handle)(void *)&fake.gpus[index];
    return fake.gpus[index].error;
}

int fake_by_uuid(const char *uuid, nvml_handle *out)
{
    const int result = enter("nvmlDeviceGetHandleByUUID");
    const size_t size = strlen(fake.uuid);
    unsigned int number = 0;
    if (result != NVML_SUCCESS)
        return result;
    if (strncmp(uuid, fake.uuid, size) != 0 || sscanf(uuid + size, "%12x", &number) != 1 ||
        number >= plugged())
        return NOT_FOUND;
    *out = (nvml_handle)(void *)&fake.gpus[number];
    return NVML_SUCCESS;
}

int fake_uuid(nvml_handle device, char *text, unsigned int size)
{
    struct gpu *gpu = NULL;
    unsigned int instance;
    char uuid[128] = "";
    const int result = enter_device("nvmlDeviceGetUUID", device, &gpu, &instance);
    if (result == NVML_SUCCESS && instance)
        (void)snprintf(uuid, sizeof uuid, "MIG-00000000-0000-0000-%04x-%012x", instance - 1,
                       (unsigned int)(gpu - fake.gpus));
    else if (result == NVML_SUCCESS)
        (void)snprintf(uuid, sizeof uuid, "%s%012x", fake.uuid, (unsigned int)(gpu - fake.gpus));
    return tell_text(result, text, size, uuid);
}

int fake_name(nvml_handle device, char *text, unsigned int size)
{
    struct gpu *gpu;
    unsigned int instance;
    return tell_text(enter_device("nvmlDeviceGetName", device, &gpu, &instance), text, size,
                     fake.name);
}

int fake_compute_capability(nvml_handle device, int *major, int *minor)
{
    double value = 0;
    const int result = tell("nvmlDeviceGetCudaComputeCapability", device, FIELD_capability, &value);
    *major = (int)value;
    *minor = 0;
    return result;
}

int fake_mig_mode(nvml_handle device, unsigned int *now, unsigned int *pending)
{
    struct gpu *gpu = NULL;
    unsigned int instance;
    const int result = enter_device("nvmlDeviceGetMigMode", device, &gpu, &instance);
    *now = *pending = result == NVML_SUCCESS && gpu->instances > 0;
    return result == NVML_SUCCESS && instance ? NOT_SUPPORTED : result;
}

int fake_mig_count(nvml_handle device, unsigned int *out)
{
    struct gpu *gpu;
    unsigned int instance;
    *out = INSTANCES_MAX;
    return enter_device("nvmlDeviceGetMaxMigDeviceCount", device, &gpu, &instance);
}

int fake_mig_by_index(nvml_handle device, unsigned int index, nvml_handle *out)
{
    struct gpu *gpu = NULL;
    unsigned int instance;
    const int result = enter_device("nvmlDeviceGetMigDeviceHandleByIndex", device, &gpu, &instance);
    if (result != NVML_SUCCESS || index >= gpu->instances)
        return result != NVML_SUCCESS ? result : NOT_FOUND;
    *out = (nvml_handle)(void *)&gpu->places[index];
    return NVML_SUCCESS;
}

int fake_gpu_instance(nvml_handle device, unsigned int *out)
{
    struct gpu *gpu;
    unsigned int instance = 0;
    const int result = enter_device("nvmlDeviceGetGpuInstanceId", device, &gpu, &instance);
    *out = instance;
    return result == NVML_SUCCESS && !instance ? NOT_SUPPORTED : result;
}

int fake_memory_v1(nvml_handle device, struct nvml_memory_v1 *out)
{
    int result = tell_large("nvmlDeviceGetMemoryInfo", device, FIELD_memory_total, 1, &out->total);
    if (result == NVML_SUCCESS)
        result = tell_large("nvmlDeviceGetMemoryInfo", device, FIELD_memory_used, 1, &out->used);
    out->free = out->total - out->used;
    return result;
}

int fake_temperature(nvml_handle device, int sensor, unsigned int *out)
{
    return sensor == NVML_TEMPERATURE_GPU
               ? tell_number("nvmlDeviceGetTemperature", device, FIELD_temperature, 1, out)
               : NOT_SUPPORTED;
}

int fake_utilization(nvml_handle device, struct nvml_utilization *out)
{
    const int result =
        tell_number("nvmlDeviceGetUtilizationRates", device, FIELD_util, 1, &out->gpu);
    return result != NVML_SUCCESS ? result
                                  : tell_number("nvmlDeviceGetUtilizationRates", device,
                                                FIELD_memory_util, 1, &out->memory);
}

// X(name, symbol, field, scale): functions that tell one number.
#define NUMBERS(X)                                                                                 \
    X(power, "nvmlDeviceGetPowerUsage", power, 1000)                                               \
    X(power_limit, "nvmlDeviceGetEnforcedPowerLimit", power_limit, 1000)                           \
    X(pcie_generation, "nvmlDeviceGetCurrPcieLinkGeneration", pcie_generation, 1)                  \
    X(pcie_width, "nvmlDeviceGetCurrPcieLinkWidth", pcie_width, 1)                                 \
    X(pcie_generation_max, "nvmlDeviceGetMaxPcieLinkGeneration", pcie_generation_max, 1)           \
    X(pcie_width_max, "nvmlDeviceGetMaxPcieLinkWidth", pcie_width_max, 1)                          \
    X(fan, "nvmlDeviceGetFanSpeed", fan, 1)
#define NUMBER_FUNCTION(name, symbol, field, scale)                                                \
    int fake_##name(nvml_handle device, unsigned int *out)                                         \
    {                                                                                              \
        return tell_number(symbol, device, FIELD_##field, scale, out);                             \
    }
NUMBERS(NUMBER_FUNCTION)

#define CODEC_FUNCTION(name, symbol)                                                               \
    int fake_##name(nvml_handle device, unsigned int *out, unsigned int *period_us)                \
    {                                                                                              \
        *period_us = 1000000;                                                                      \
        return tell_number(symbol, device, FIELD_##name, 1, out);                                  \
    }
CODEC_FUNCTION(encoder, "nvmlDeviceGetEncoderUtilization")
CODEC_FUNCTION(decoder, "nvmlDeviceGetDecoderUtilization")

int fake_threshold(nvml_handle device, int threshold, unsigned int *out)
{
    return threshold == NVML_THRESHOLD_SLOWDOWN
               ? tell_number("nvmlDeviceGetTemperatureThreshold", device, FIELD_slowdown, 1, out)
               : NOT_SUPPORTED;
}

int fake_energy(nvml_handle device, unsigned long long *millijoules)
{
    return tell_large("nvmlDeviceGetTotalEnergyConsumption", device, FIELD_energy, 1000,
                      millijoules);
}

int fake_clock(nvml_handle device, int clock, unsigned int *out)
{
    return tell_number("nvmlDeviceGetClockInfo", device,
                       clock == NVML_CLOCK_SM ? FIELD_sm_clock : FIELD_memory_clock, 1, out);
}

int fake_clock_max(nvml_handle device, int clock, unsigned int *out)
{
    return tell_number("nvmlDeviceGetMaxClockInfo", device,
                       clock == NVML_CLOCK_SM ? FIELD_sm_clock_max : FIELD_memory_clock_max, 1,
                       out);
}

int fake_pcie_throughput(nvml_handle device, int counter, unsigned int *out)
{
    return tell_number("nvmlDeviceGetPcieThroughput", device,
                       counter == NVML_PCIE_RX ? FIELD_pcie_rx : FIELD_pcie_tx, 1, out);
}

int fake_ecc_errors(nvml_handle device, int type, int counter, unsigned long long *out)
{
    (void)counter;
    return tell_large("nvmlDeviceGetTotalEccErrors", device,
                      type == NVML_ECC_CORRECTED ? FIELD_ecc_corrected : FIELD_ecc_uncorrected, 1,
                      out);
}

int fake_remapped_rows(nvml_handle device, unsigned int *corrected, unsigned int *uncorrected,
                       unsigned int *is_pending, unsigned int *has_failed)
{
    *uncorrected = *is_pending = *has_failed = 0;
    return tell_number("nvmlDeviceGetRemappedRows", device, FIELD_remapped, 1, corrected);
}

int fake_fields(nvml_handle device, int count, struct nvml_field *out)
{
    for (int i = 0; i < count; i++) {
        out[i].type = 1;
        out[i].result = (unsigned int)tell_number(
            "nvmlDeviceGetFieldValues", device,
            out[i].id == NVML_FIELD_MEMORY_TEMPERATURE ? FIELD_memory_temperature : FIELD_retired,
            1, &out[i].value.number);
        if (out[i].id == NVML_FIELD_RETIRED_DOUBLE_BIT && out[i].result == NVML_SUCCESS)
            out[i].value.number = 0;
    }
    return NVML_SUCCESS;
}

// Entries of `size` bytes each.
static int tell_processes(const char *function, nvml_handle device, unsigned int *count, void *out,
                          size_t size)
{
    struct gpu *gpu = NULL;
    unsigned int instance, found = 0;
    const int result = enter_device(function, device, &gpu, &instance);
    for (unsigned int i = 0; result == NVML_SUCCESS && i < PROCESSES_MAX && found < *count; i++) {
        const struct process *process = &gpu->processes[i];
        const struct nvml_process_535 entry = {
            {process->pid, process->bytes < 0 ? UINT64_MAX : (unsigned long long)process->bytes,
             UINT32_MAX, UINT32_MAX},
            0};
        if (process->pid)
            memcpy((char *)out + found++ * size, &entry, size);
    }
    *count = found;
    return result;
}

int fake_compute_processes_v1(nvml_handle device, unsigned int *count, void *out)
{
    return tell_processes("nvmlDeviceGetComputeRunningProcesses", device, count, out,
                          sizeof(struct nvml_process_v1));
}

// No process draws.
static int tell_none(const char *function, unsigned int *count)
{
    *count = 0;
    return enter(function);
}

int fake_graphics_processes_v1(nvml_handle device, unsigned int *count, void *out)
{
    (void)device;
    (void)out;
    return tell_none("nvmlDeviceGetGraphicsRunningProcesses", count);
}

int fake_event_set_create(nvml_event_set *out)
{
    *out = (nvml_event_set)(void *)fake.xids;
    return enter("nvmlEventSetCreate");
}

int fake_event_set_free(nvml_event_set set)
{
    (void)set;
    return enter("nvmlEventSetFree");
}

int fake_register_events(nvml_handle device, unsigned long long types, nvml_event_set set)
{
    struct gpu *gpu;
    unsigned int instance;
    (void)set;
    return types & NVML_EVENT_XID
               ? enter_device("nvmlDeviceRegisterEvents", device, &gpu, &instance)
               : NOT_SUPPORTED;
}

int fake_event_set_wait(nvml_event_set set, struct nvml_event *out, unsigned int timeout_ms)
{
    const int result = enter("nvmlEventSetWait_v2");
    (void)set;
    (void)timeout_ms;
    if (result != NVML_SUCCESS || fake.xid_count == 0)
        return result != NVML_SUCCESS ? result : TIMEOUT;
    *out = (struct nvml_event){.device = (nvml_handle)(void *)&fake.gpus[fake.xids[0].gpu],
                               .type = NVML_EVENT_XID,
                               .data = fake.xids[0].code};
    fake.xid_count--;
    memmove(fake.xids, fake.xids + 1, fake.xid_count * sizeof *fake.xids);
    return NVML_SUCCESS;
}

// What drivers of some years ago lack.
#ifndef FAKE_NVML_OLD

int fake_memory_v2(nvml_handle device, struct nvml_memory_v2 *out)
{
    const char *function = "nvmlDeviceGetMemoryInfo_v2";
    if (out->version != NVML_MEMORY_V2)
        return FAILED;
    int result = tell_large(function, device, FIELD_memory_total, 1, &out->total);
    if (result == NVML_SUCCESS)
        result = tell_large(function, device, FIELD_memory_used, 1, &out->used);
    if (result == NVML_SUCCESS &&
        tell_large(function, device, FIELD_memory_reserved, 1, &out->reserved) != NVML_SUCCESS)
        out->reserved = UINT64_MAX;
    return result;
}

int fake_temperature_v1(nvml_handle device, struct nvml_temperature_v1 *out)
{
    double celsius = 0;
    if (out->version != NVML_TEMPERATURE_V1 || out->sensor != NVML_TEMPERATURE_GPU)
        return FAILED;
    const int result = tell("nvmlDeviceGetTemperatureV", device, FIELD_temperature, &celsius);
    out->celsius = (int)celsius;
    return result;
}

int fake_throttle_reasons(nvml_handle device, unsigned long long *out)
{
    return tell_large("nvmlDeviceGetCurrentClocksEventReasons", device, FIELD_throttle, 1, out);
}

int fake_compute_processes_v2(nvml_handle device, unsigned int *count, void *out)
{
    return tell_processes("nvmlDeviceGetComputeRunningProcesses_v2", device, count, out,
                          sizeof(struct nvml_process_v2));
}

int fake_compute_processes_v3(nvml_handle device, unsigned int *count, void *out)
{
    return tell_processes("nvmlDeviceGetComputeRunningProcesses_v3", device, count, out,
                          fake.has_processes_535 ? sizeof(struct nvml_process_535)
                                                 : sizeof(struct nvml_process_v2));
}

int fake_graphics_processes_v2(nvml_handle device, unsigned int *count, void *out)
{
    (void)device;
    (void)out;
    return tell_none("nvmlDeviceGetGraphicsRunningProcesses_v2", count);
}

int fake_graphics_processes_v3(nvml_handle device, unsigned int *count, void *out)
{
    (void)device;
    (void)out;
    return tell_none("nvmlDeviceGetGraphicsRunningProcesses_v3", count);
}

int fake_gpm_support(nvml_handle device, struct nvml_gpm_support *out)
{
    struct gpu *gpu = NULL;
    unsigned int instance;
    const int result = enter_device("nvmlGpmQueryDeviceSupport", device, &gpu, &instance);
    out->is_supported = result == NVML_SUCCESS && !instance && gpu->values[FIELD_capability] >= 9;
    return out->version == NVML_GPM_VERSION ? result : FAILED;
}

int fake_gpm_alloc(nvml_gpm_sample *out)
{
    const int result = enter("nvmlGpmSampleAlloc");
    *out = result == NVML_SUCCESS ? calloc(1, sizeof(nvml_handle)) : NULL;
    return result == NVML_SUCCESS && !*out ? FAILED : result;
}

int fake_gpm_free(nvml_gpm_sample sample)
{
    free(sample);
    return NVML_SUCCESS;
}

static int take_sample(const char *function, nvml_handle device, nvml_gpm_sample sample)
{
    struct gpu *gpu;
    unsigned int instance;
    memcpy(sample, &device, sizeof(nvml_handle));
    return enter_device(function, device, &gpu, &instance);
}

int fake_gpm_get(nvml_handle device, nvml_gpm_sample sample)
{
    return take_sample("nvmlGpmSampleGet", device, sample);
}

int fake_gpm_mig_get(nvml_handle device, unsigned int gpu_instance, nvml_gpm_sample sample)
{
    return gpu_instance > 0 ? take_sample("nvmlGpmMigSampleGet", device, sample) : FAILED;
}

int fake_gpm_metrics(struct nvml_gpm_request *request)
{
    nvml_handle first, second;
    memcpy(&first, request->first, sizeof first);
    memcpy(&second, request->second, sizeof second);
    if (request->version != NVML_GPM_VERSION || !first || first != second)
        return FAILED;
    for (unsigned int i = 0; i < request->count; i++) {
        struct nvml_gpm_metric *metric = &request->metrics[i];
        const enum field field = metric->id == NVML_GPM_SM_UTIL       ? FIELD_sm_active
                                 : metric->id == NVML_GPM_TENSOR_UTIL ? FIELD_tensor_active
                                                                      : FIELD_dram_active;
        metric->result = (unsigned int)tell("nvmlGpmMetricsGet", first, field, &metric->value);
    }
    return NVML_SUCCESS;
}

#endif
