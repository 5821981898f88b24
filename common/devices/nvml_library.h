// The NVIDIA management library (NVML), loaded at run time where it is installed: its functions,
// numbers and structures, as its API reference has them.  A function that the installed version
// lacks is NULL; nvml_call then answers NVML_FUNCTION_NOT_FOUND.
#pragma once

#include <stdbool.h>

enum nvml_result {
    NVML_SUCCESS = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_GPU_IS_LOST = 15,
    NVML_RESET_REQUIRED = 16,
    NVML_VERSION_MISMATCH = 18, // of library and driver, after an update of one of them
};

// True if a result says that the library must be opened again: the driver was unloaded, loaded
// again or updated.
static inline bool nvml_is_stale(int result)
{
    return result == NVML_UNINITIALIZED || result == NVML_DRIVER_NOT_LOADED ||
           result == NVML_VERSION_MISMATCH;
}

enum {
    NVML_TEMPERATURE_GPU = 0,
    NVML_THRESHOLD_SLOWDOWN = 1,
    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEMORY = 2,
    NVML_PCIE_TX = 0,
    NVML_PCIE_RX = 1,
    NVML_ECC_CORRECTED = 0,
    NVML_ECC_UNCORRECTED = 1,
    NVML_ECC_VOLATILE = 0, // since the driver was loaded
    NVML_EVENT_XID = 8,
    NVML_FIELD_RETIRED_SINGLE_BIT = 29,
    NVML_FIELD_RETIRED_DOUBLE_BIT = 30,
    NVML_FIELD_MEMORY_TEMPERATURE = 82,
    NVML_UUID_SIZE = 96,
    NVML_TEXT_SIZE = 96,
};

typedef struct nvml_handle *nvml_handle; // a device or MIG instance; opaque
typedef struct nvml_event_set *nvml_event_set;
typedef struct nvml_gpm_sample *nvml_gpm_sample;

struct nvml_memory_v1 {
    unsigned long long total, free, used; // used: with what is reserved
};

enum { NVML_MEMORY_V2 = 0x02000028 };
struct nvml_memory_v2 {
    unsigned int version;
    unsigned long long total, reserved, free, used;
};
_Static_assert(sizeof(struct nvml_memory_v2) == (NVML_MEMORY_V2 & 0xffffff), "as NVML has it");

enum { NVML_TEMPERATURE_V1 = 0x0100000c };
struct nvml_temperature_v1 {
    unsigned int version, sensor;
    int celsius;
};
_Static_assert(sizeof(struct nvml_temperature_v1) == (NVML_TEMPERATURE_V1 & 0xffffff),
               "as NVML has it");

struct nvml_utilization {
    unsigned int gpu, memory; // percent
};

struct nvml_process_v1 {
    unsigned int pid;
    unsigned long long memory; // all bits set: unknown
};
struct nvml_process_v2 { // also of functions ending in _v3
    unsigned int pid;
    unsigned long long memory;
    unsigned int gpu_instance, compute_instance;
};
// What functions ending in _v3 fill in some drivers of release 535, whose header said so, too.
struct nvml_process_535 {
    struct nvml_process_v2 process;
    unsigned long long protected_memory;
};
_Static_assert(sizeof(struct nvml_process_v1) == 16, "as NVML has it");
_Static_assert(sizeof(struct nvml_process_535) == 32, "as NVML has it");
_Static_assert(sizeof(struct nvml_process_v2) == 24, "as NVML has it");

struct nvml_event {
    nvml_handle device;
    unsigned long long type, data;
    unsigned int gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct nvml_event) == 32, "as NVML has it");

struct nvml_field {
    unsigned int id, scope;
    long long timestamp, latency_us;
    unsigned int type, result; // type: 1 unsigned int, 3 unsigned long long, others
    union {
        double real;
        unsigned int number;
        unsigned long long large;
    } value;
};
_Static_assert(sizeof(struct nvml_field) == 40, "as NVML has it");

enum { NVML_GPM_SM_UTIL = 2, NVML_GPM_TENSOR_UTIL = 5, NVML_GPM_DRAM_UTIL = 10 };
struct nvml_gpm_metric {
    unsigned int id, result;
    double value; // percent
    const char *names[3];
};
_Static_assert(sizeof(struct nvml_gpm_metric) == 40, "as NVML has it");

enum { NVML_GPM_METRICS = 3, NVML_GPM_VERSION = 1 };
struct nvml_gpm_request { // the library reads and writes `count` metrics
    unsigned int version, count;
    nvml_gpm_sample first, second;
    struct nvml_gpm_metric metrics[NVML_GPM_METRICS];
};
struct nvml_gpm_support {
    unsigned int version, is_supported;
};

// X(name here, symbol, symbol of earlier versions with the same parameters or "", parameters)
#define NVML_FUNCTIONS(X)                                                                          \
    X(init, "nvmlInit_v2", "nvmlInit", (void))                                                     \
    X(shutdown, "nvmlShutdown", "", (void))                                                        \
    X(driver_version, "nvmlSystemGetDriverVersion", "", (char *text, unsigned int size))           \
    X(count, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount", (unsigned int *out))                   \
    X(by_index, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex",                     \
      (unsigned int index, nvml_handle *out))                                                      \
    X(by_uuid, "nvmlDeviceGetHandleByUUID", "", (const char *uuid, nvml_handle *out))              \
    X(uuid, "nvmlDeviceGetUUID", "", (nvml_handle device, char *text, unsigned int size))          \
    X(name, "nvmlDeviceGetName", "", (nvml_handle device, char *text, unsigned int size))          \
    X(compute_capability, "nvmlDeviceGetCudaComputeCapability", "",                                \
      (nvml_handle device, int *major, int *minor))                                                \
    X(mig_mode, "nvmlDeviceGetMigMode", "",                                                        \
      (nvml_handle device, unsigned int *now, unsigned int *pending))                              \
    X(mig_count, "nvmlDeviceGetMaxMigDeviceCount", "", (nvml_handle device, unsigned int *out))    \
    X(mig_by_index, "nvmlDeviceGetMigDeviceHandleByIndex", "",                                     \
      (nvml_handle device, unsigned int index, nvml_handle *out))                                  \
    X(gpu_instance, "nvmlDeviceGetGpuInstanceId", "", (nvml_handle device, unsigned int *out))     \
    X(memory_v2, "nvmlDeviceGetMemoryInfo_v2", "",                                                 \
      (nvml_handle device, struct nvml_memory_v2 * out))                                           \
    X(memory_v1, "nvmlDeviceGetMemoryInfo", "", (nvml_handle device, struct nvml_memory_v1 * out)) \
    X(utilization, "nvmlDeviceGetUtilizationRates", "",                                            \
      (nvml_handle device, struct nvml_utilization * out))                                         \
    X(encoder, "nvmlDeviceGetEncoderUtilization", "",                                              \
      (nvml_handle device, unsigned int *out, unsigned int *period_us))                            \
    X(decoder, "nvmlDeviceGetDecoderUtilization", "",                                              \
      (nvml_handle device, unsigned int *out, unsigned int *period_us))                            \
    X(temperature_v1, "nvmlDeviceGetTemperatureV", "",                                             \
      (nvml_handle device, struct nvml_temperature_v1 * out))                                      \
    X(temperature, "nvmlDeviceGetTemperature", "",                                                 \
      (nvml_handle device, int sensor, unsigned int *out))                                         \
    X(threshold, "nvmlDeviceGetTemperatureThreshold", "",                                          \
      (nvml_handle device, int threshold, unsigned int *out))                                      \
    X(power, "nvmlDeviceGetPowerUsage", "", (nvml_handle device, unsigned int *milliwatts))        \
    X(power_limit, "nvmlDeviceGetEnforcedPowerLimit", "",                                          \
      (nvml_handle device, unsigned int *milliwatts))                                              \
    X(energy, "nvmlDeviceGetTotalEnergyConsumption", "",                                           \
      (nvml_handle device, unsigned long long *millijoules))                                       \
    X(clock, "nvmlDeviceGetClockInfo", "", (nvml_handle device, int clock, unsigned int *out))     \
    X(clock_max, "nvmlDeviceGetMaxClockInfo", "",                                                  \
      (nvml_handle device, int clock, unsigned int *out))                                          \
    X(pcie_generation, "nvmlDeviceGetCurrPcieLinkGeneration", "",                                  \
      (nvml_handle device, unsigned int *out))                                                     \
    X(pcie_width, "nvmlDeviceGetCurrPcieLinkWidth", "", (nvml_handle device, unsigned int *out))   \
    X(pcie_generation_max, "nvmlDeviceGetMaxPcieLinkGeneration", "",                               \
      (nvml_handle device, unsigned int *out))                                                     \
    X(pcie_width_max, "nvmlDeviceGetMaxPcieLinkWidth", "",                                         \
      (nvml_handle device, unsigned int *out))                                                     \
    X(pcie_throughput, "nvmlDeviceGetPcieThroughput", "",                                          \
      (nvml_handle device, int counter, unsigned int *kilobytes_per_second))                       \
    X(throttle_reasons, "nvmlDeviceGetCurrentClocksEventReasons",                                  \
      "nvmlDeviceGetCurrentClocksThrottleReasons", (nvml_handle device, unsigned long long *out))  \
    X(ecc_errors, "nvmlDeviceGetTotalEccErrors", "",                                               \
      (nvml_handle device, int type, int counter, unsigned long long *out))                        \
    X(remapped_rows, "nvmlDeviceGetRemappedRows", "",                                              \
      (nvml_handle device, unsigned int *corrected, unsigned int *uncorrected,                     \
       unsigned int *is_pending, unsigned int *has_failed))                                        \
    X(fields, "nvmlDeviceGetFieldValues", "",                                                      \
      (nvml_handle device, int count, struct nvml_field *fields))                                  \
    X(fan, "nvmlDeviceGetFanSpeed", "", (nvml_handle device, unsigned int *out))                   \
    X(compute_processes_v3, "nvmlDeviceGetComputeRunningProcesses_v3", "",                         \
      (nvml_handle device, unsigned int *count, void *out))                                        \
    X(compute_processes_v2, "nvmlDeviceGetComputeRunningProcesses_v2", "",                         \
      (nvml_handle device, unsigned int *count, void *out))                                        \
    X(compute_processes_v1, "nvmlDeviceGetComputeRunningProcesses", "",                            \
      (nvml_handle device, unsigned int *count, void *out))                                        \
    X(graphics_processes_v3, "nvmlDeviceGetGraphicsRunningProcesses_v3", "",                       \
      (nvml_handle device, unsigned int *count, void *out))                                        \
    X(graphics_processes_v2, "nvmlDeviceGetGraphicsRunningProcesses_v2", "",                       \
      (nvml_handle device, unsigned int *count, void *out))                                        \
    X(graphics_processes_v1, "nvmlDeviceGetGraphicsRunningProcesses", "",                          \
      (nvml_handle device, unsigned int *count, void *out))                                        \
    X(event_set_create, "nvmlEventSetCreate", "", (nvml_event_set * out))                          \
    X(event_set_free, "nvmlEventSetFree", "", (nvml_event_set set))                                \
    X(register_events, "nvmlDeviceRegisterEvents", "",                                             \
      (nvml_handle device, unsigned long long types, nvml_event_set set))                          \
    X(event_set_wait, "nvmlEventSetWait_v2", "nvmlEventSetWait",                                   \
      (nvml_event_set set, struct nvml_event * out, unsigned int timeout_ms))                      \
    X(gpm_support, "nvmlGpmQueryDeviceSupport", "",                                                \
      (nvml_handle device, struct nvml_gpm_support * out))                                         \
    X(gpm_alloc, "nvmlGpmSampleAlloc", "", (nvml_gpm_sample * out))                                \
    X(gpm_free, "nvmlGpmSampleFree", "", (nvml_gpm_sample sample))                                 \
    X(gpm_get, "nvmlGpmSampleGet", "", (nvml_handle device, nvml_gpm_sample sample))               \
    X(gpm_mig_get, "nvmlGpmMigSampleGet", "",                                                      \
      (nvml_handle device, unsigned int gpu_instance, nvml_gpm_sample sample))                     \
    X(gpm_metrics, "nvmlGpmMetricsGet", "", (struct nvml_gpm_request * request))

struct nvml_library {
    void *file; // of dlopen; NULL: not open
#define NVML_POINTER(name, symbol, earlier, parameters) int(*name) parameters;
    NVML_FUNCTIONS(NVML_POINTER)
#undef NVML_POINTER
};

// The result of a function of `library`: nvml_call(library, count, &count).
#define nvml_call(library, name, ...)                                                              \
    ((library)->name ? (library)->name(__VA_ARGS__) : NVML_FUNCTION_NOT_FOUND)

// Loads libnvidia-ml.so.1, or the file that INFERSTAT_TEST_NVML names (for tests only), and
// initialises it.  Returns false and zeroes `*library` if it is missing, is no NVML or cannot reach
// a driver.
bool nvml_library_open(struct nvml_library *library);
void nvml_library_close(struct nvml_library *library); // a zeroed one is allowed
