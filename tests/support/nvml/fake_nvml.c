// A management library of NVIDIA for tests, loaded where INFERSTAT_TEST_NVML names its file.  It
// plays the devices of the script that INFERSTAT_TEST_NVML_SCRIPT names, one line each; `#` begins
// a comment.  Times are seconds since the process first initialised the library, of the monotonic
// clock or, where INFERSTAT_TEST_NVML_CLOCK is set, of its value; a script that has changed by a
// later initialisation is read again, and begins again.
//
//   gpus N                     devices, 1 to 16 (default 1)
//   uuid TEXT                  what a UUID begins with; the number follows with 12 hexadecimal
//   digits
//                              (default GPU-00000000-0000-0000-0000-)
//   name TEXT, driver TEXT     may contain \xNN
//   delay MIN MAX              microseconds that each call sleeps
//   noise RATIO                utilisation, power and temperature vary by it, up and down
//   missing FUNCTION           a function that answers that it is not there
//   [at T] gpu N|all FIELD VALUE    sets a figure; `none`: not supported.  The fields are below
//   [at T] process N PID BYTES      a process on a device; 0 bytes: it has ended, none: unknown
//   [at T] xid N CODE          the driver reports an error
//   [at T] error N|all RESULT  all functions of a device answer this; 0: no longer
//   [at T] mig N COUNT         the device has instances
//   [at T] unplug N, plug N    the last devices vanish, from N on; come back
//   [at T] hang S              the next call takes S seconds
//   [at T] driver-unload, driver-load    everything answers that there is no driver; again one
//   broken                     the library cannot be initialised
//   processes-535              functions of processes fill the larger struct of some drivers
//
// Energy grows by the power drawn.  A build with FAKE_NVML_OLD lacks the newer functions.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "common/devices/nvml_library.h"

#define EXPORT __attribute__((visibility("default")))

enum { GPUS_MAX = 16, INSTANCES_MAX = 7, PROCESSES_MAX = 8, ACTIONS_MAX = 4096, XIDS_MAX = 512 };
enum { NOT_SUPPORTED = 3, NOT_FOUND = 6, TIMEOUT = 10, FAILED = 999, UNKNOWN_BYTES = -1 };

// X(field, value at the start); memory in bytes, clocks in MHz, power in watts, ratios in percent.
#define FIELDS(X)                                                                                  \
    X(util, 10)                                                                                    \
    X(memory_util, 5)                                                                              \
    X(encoder, 0)                                                                                  \
    X(decoder, 0)                                                                                  \
    X(memory_total, 151397597184.0)                                                                \
    X(memory_used, 1073741824.0)                                                                   \
    X(memory_reserved, 536870912.0)                                                                \
    X(temperature, 40)                                                                             \
    X(memory_temperature, 45)                                                                      \
    X(slowdown, 92)                                                                                \
    X(power, 120)                                                                                  \
    X(power_limit, 650.5)                                                                          \
    X(energy, 7000000)                                                                             \
    X(sm_clock, 1980)                                                                              \
    X(memory_clock, 3201)                                                                          \
    X(sm_clock_max, 1980)                                                                          \
    X(memory_clock_max, 3201)                                                                      \
    X(pcie_generation, 5)                                                                          \
    X(pcie_width, 16)                                                                              \
    X(pcie_generation_max, 5)                                                                      \
    X(pcie_width_max, 16)                                                                          \
    X(pcie_rx, 1000)                                                                               \
    X(pcie_tx, 2000)                                                                               \
    X(throttle, 0)                                                                                 \
    X(ecc_corrected, 0)                                                                            \
    X(ecc_uncorrected, 0)                                                                          \
    X(retired, 0)                                                                                  \
    X(remapped, 0)                                                                                 \
    X(fan, 30)                                                                                     \
    X(sm_active, 8)                                                                                \
    X(tensor_active, 4)                                                                            \
    X(dram_active, 6)                                                                              \
    X(capability, 9)

enum field {
#define FIELD_NUMBER(name, value) FIELD_##name,
    FIELDS(FIELD_NUMBER)
#undef FIELD_NUMBER
        FIELD_COUNT
};

static const struct {
    const char *name;
    double value;
} fields[FIELD_COUNT] = {
#define FIELD_TEXT(name, value) {#name, value},
    FIELDS(FIELD_TEXT)
#undef FIELD_TEXT
};

struct process {
    unsigned int pid;
    double bytes;
};

struct gpu {
    double values[FIELD_COUNT];
    bool is_missing[FIELD_COUNT];
    struct process processes[PROCESSES_MAX];
    int error;
    unsigned int instances;
    char places[INSTANCES_MAX]; // their addresses are the handles of its instances
};

struct action {
    double at;
    char words[4][64];
};

struct fake {
    struct gpu gpus[GPUS_MAX];
    unsigned int gpu_count, plugged;
    struct action actions[ACTIONS_MAX];
    unsigned int action_count, next_action;
    struct {
        unsigned int gpu, code;
    } xids[XIDS_MAX];
    unsigned int xid_count;
    char uuid[64], name[64], driver[64], missing[32][64];
    unsigned int missing_count;
    double delay_us[2], noise, began, energy_at, hang_s;
    bool is_read, is_broken, is_unloaded, has_processes_535;
    unsigned int initialised, seed;
    struct stat script; // when it was read
};

static const struct fake at_first = {.gpu_count = 1,
                                     .plugged = GPUS_MAX,
                                     .uuid = "GPU-00000000-0000-0000-0000-",
                                     .name = "Fake H200",
                                     .driver = "580.65.06",
                                     .seed = 1};
static struct fake fake;

// ---- The script -------------------------------------------------------------------------

static double now_s(void)
{
    struct timespec now;
    const char *seconds = getenv("INFERSTAT_TEST_NVML_CLOCK");
    if (seconds)
        return strtod(seconds, NULL);
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void fail(const char *line)
{
    (void)fprintf(stderr, "fake_nvml: the script has a line that is none: %s\n", line);
    abort();
}

static void copy_escaped(char out[64], const char *text)
{
    size_t used = 0;
    for (; *text && *text != '\n' && used < 63; text++) {
        unsigned int code;
        if (text[0] == '\\' && text[1] == 'x' && sscanf(text + 2, "%2x", &code) == 1) {
            out[used++] = (char)code;
            text += 3;
        } else {
            out[used++] = *text;
        }
    }
    out[used] = '\0';
}

static void set_value(struct gpu *gpu, const struct action *action)
{
    for (unsigned int i = 0; i < FIELD_COUNT; i++) {
        if (strcmp(fields[i].name, action->words[2]) != 0)
            continue;
        gpu->is_missing[i] = strcmp(action->words[3], "none") == 0;
        gpu->values[i] = strtod(action->words[3], NULL);
        return;
    }
    fail(action->words[2]);
}

static void set_process(struct gpu *gpu, const struct action *action)
{
    const unsigned int pid = (unsigned int)strtoul(action->words[2], NULL, 10);
    struct process *place = NULL;
    for (unsigned int i = 0; i < PROCESSES_MAX; i++)
        if (gpu->processes[i].pid == pid || (!place && gpu->processes[i].pid == 0))
            place = &gpu->processes[i];
    if (!place)
        fail("too many processes");
    place->bytes = strcmp(action->words[3], "none") == 0 ? (double)UNKNOWN_BYTES
                                                         : strtod(action->words[3], NULL);
    place->pid = place->bytes == 0 ? 0 : pid;
}

static void act_on_gpu(unsigned int number, const struct action *action)
{
    const char *verb = action->words[0];
    struct gpu *gpu = &fake.gpus[number];
    if (strcmp(verb, "gpu") == 0) {
        set_value(gpu, action);
    } else if (strcmp(verb, "process") == 0) {
        set_process(gpu, action);
    } else if (strcmp(verb, "error") == 0) {
        gpu->error = atoi(action->words[2]);
    } else if (strcmp(verb, "mig") == 0) {
        gpu->instances = (unsigned int)atoi(action->words[2]) % (INSTANCES_MAX + 1);
    } else if (strcmp(verb, "xid") == 0 && fake.xid_count < XIDS_MAX) {
        fake.xids[fake.xid_count].gpu = number;
        fake.xids[fake.xid_count++].code = (unsigned int)atoi(action->words[2]);
    } else {
        fail(verb);
    }
}

static void act(const struct action *action)
{
    const char *verb = action->words[0];
    const unsigned int number = (unsigned int)strtoul(action->words[1], NULL, 10);
    if (strcmp(verb, "unplug") == 0) {
        fake.plugged = number;
    } else if (strcmp(verb, "plug") == 0) {
        fake.plugged = GPUS_MAX;
    } else if (strcmp(verb, "hang") == 0) {
        fake.hang_s = strtod(action->words[1], NULL);
    } else if (strcmp(verb, "driver-unload") == 0) {
        fake.is_unloaded = true;
    } else if (strcmp(verb, "driver-load") == 0) {
        fake.is_unloaded = false;
    } else if (strcmp(action->words[1], "all") == 0) {
        for (unsigned int i = 0; i < GPUS_MAX; i++)
            act_on_gpu(i, action);
    } else if (number < GPUS_MAX) {
        act_on_gpu(number, action);
    } else {
        fail(action->words[1]);
    }
}

// A line that says how the library is from the start.
static bool read_setting(const char *line)
{
    unsigned int count;
    if (sscanf(line, "gpus %u", &count) == 1 && count <= GPUS_MAX)
        fake.gpu_count = count;
    else if (strncmp(line, "uuid ", 5) == 0)
        copy_escaped(fake.uuid, line + 5);
    else if (strncmp(line, "name ", 5) == 0)
        copy_escaped(fake.name, line + 5);
    else if (strncmp(line, "driver ", 7) == 0)
        copy_escaped(fake.driver, line + 7);
    else if (strncmp(line, "broken", 6) == 0)
        fake.is_broken = true;
    else if (strncmp(line, "processes-535", 13) == 0)
        fake.has_processes_535 = true;
    else if (strncmp(line, "missing ", 8) == 0 && fake.missing_count < 32)
        copy_escaped(fake.missing[fake.missing_count++], line + 8);
    else
        return sscanf(line, "delay %lf %lf", &fake.delay_us[0], &fake.delay_us[1]) == 2 ||
               sscanf(line, "noise %lf", &fake.noise) == 1;
    return true;
}

static void read_line(const char *line)
{
    struct action action = {0};
    int used = 0;
    line += strspn(line, " \t");
    if (*line == '#' || *line == '\n' || !*line || read_setting(line))
        return;
    if (sscanf(line, "at %lf%n", &action.at, &used) == 1)
        line += used;
    if (sscanf(line, "%63s %63s %63s %63s", action.words[0], action.words[1], action.words[2],
               action.words[3]) < 1)
        fail(line);
    if (action.at <= 0) {
        act(&action);
        return;
    }
    if (fake.action_count == ACTIONS_MAX)
        fail("too many lines");
    unsigned int at = fake.action_count++;
    for (; at > 0 && fake.actions[at - 1].at > action.at; at--)
        fake.actions[at] = fake.actions[at - 1];
    fake.actions[at] = action;
}

static void read_script(void)
{
    const char *path = getenv("INFERSTAT_TEST_NVML_SCRIPT");
    char line[512];
    struct stat script = {0};
    if (path && stat(path, &script) != 0)
        fail(path);
    if (fake.is_read && script.st_mtim.tv_sec == fake.script.st_mtim.tv_sec &&
        script.st_mtim.tv_nsec == fake.script.st_mtim.tv_nsec &&
        script.st_size == fake.script.st_size)
        return;
    fake = at_first;
    fake.script = script;
    for (unsigned int i = 0; i < GPUS_MAX; i++)
        for (unsigned int j = 0; j < FIELD_COUNT; j++)
            fake.gpus[i].values[j] = fields[j].value;
    FILE *file = path ? fopen(path, "r") : NULL;
    if (path && !file)
        fail(path);
    while (file && fgets(line, sizeof line, file))
        read_line(line);
    if (file)
        (void)fclose(file);
    fake.is_read = true;
    fake.began = fake.energy_at = now_s();
}

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
    const double now = now_s();
    while (fake.next_action < fake.action_count &&
           fake.actions[fake.next_action].at <= now - fake.began)
        act(&fake.actions[fake.next_action++]);
    for (unsigned int i = 0; i < GPUS_MAX; i++)
        fake.gpus[i].values[FIELD_energy] +=
            fake.gpus[i].values[FIELD_power] * (now - fake.energy_at);
    fake.energy_at = now;
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
    read_script();
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
