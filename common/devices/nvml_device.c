#include "common/devices/nvml_device.h"

#include <stdio.h>
#include <string.h>

#include "common/core/base/text.h"
#include "common/sys/clock.h"
#include "common/sys/proc_file.h"

// More than any device has: what is told past these is nonsense.
enum {
    PERCENT_MAX = 100,
    FAN_PERCENT_MAX = 200, // a fan may turn faster than its nominal speed
    CELSIUS_MAX = 200,
    MILLIWATTS_MAX = 100000000,
    MEGAHERTZ_MAX = 100000,
    GENERATION_MAX = 16,
    WIDTH_MAX = 32,
    KILOBYTES_MAX = 2000000000,
    CAPABILITY_MAX = 99,
};
static const unsigned long long memory_max = 1ULL << 50, count_max = 1ULL << 53,
                                millijoules_max = 1ULL << 53;

enum { PROCESSES_ASKED = 512 };

// ---- Numbers --------------------------------------------------------------------------

// One value of NVML: its result, and the most that is plausible.
struct told {
    int result;
    unsigned long long value, most;
};

static bool is_known(const struct told *told)
{
    return told->result == NVML_SUCCESS && told->value <= told->most;
}

// Stores `value` times `scale` in a column of the sample, if it is known.
static void store(struct record *sample, unsigned int column, double scale, struct told told)
{
    if (!is_known(&told))
        return;
    const struct record_column *columns = record_kind_info(RECORD_KIND_DEVICE_SAMPLE)->columns;
    if (columns[column].type == COLUMN_REAL)
        record_set_real(sample, column, (double)told.value * scale);
    else
        record_set_int(sample, column, (int64_t)told.value * (int64_t)scale);
}

// The unsigned int that a function with these parameters tells of a device.
typedef int nvml_number(nvml_handle device, unsigned int *out);
static struct told number(nvml_number *get, nvml_handle device, unsigned int most)
{
    unsigned int value = 0;
    const int result = get ? get(device, &value) : NVML_FUNCTION_NOT_FOUND;
    return (struct told){result, value, most};
}

typedef int nvml_kind_number(nvml_handle device, int kind, unsigned int *out);
static struct told number_of_kind(nvml_kind_number *get, nvml_handle device, int kind,
                                  unsigned int most)
{
    unsigned int value = 0;
    const int result = get ? get(device, kind, &value) : NVML_FUNCTION_NOT_FOUND;
    return (struct told){result, value, most};
}

double nvml_device_energy(const struct nvml_library *library, nvml_handle handle)
{
    struct told told = {.most = millijoules_max};
    told.result = nvml_call(library, energy, handle, &told.value);
    return is_known(&told) ? (double)told.value / 1e3 : -1;
}

// ---- Description ------------------------------------------------------------------------

typedef int nvml_text(nvml_handle device, char *text, unsigned int size);
static void read_text(nvml_text *get, nvml_handle device, char out[GPU_TEXT_SIZE])
{
    char text[NVML_TEXT_SIZE] = "";
    *out = '\0';
    if (get && get(device, text, sizeof text) == NVML_SUCCESS)
        (void)text_escape(out, GPU_TEXT_SIZE, text, strnlen(text, sizeof text));
}

static unsigned int or_zero(struct told told)
{
    return is_known(&told) ? (unsigned int)told.value : 0;
}

static struct nvml_memory_v2 read_memory(const struct nvml_library *library, nvml_handle handle,
                                         int *result)
{
    struct nvml_memory_v2 memory = {.version = NVML_MEMORY_V2};
    *result = nvml_call(library, memory_v2, handle, &memory);
    if (*result == NVML_SUCCESS || *result == NVML_GPU_IS_LOST || *result == NVML_RESET_REQUIRED)
        return memory;
    struct nvml_memory_v1 earlier = {0};
    *result = nvml_call(library, memory_v1, handle, &earlier);
    return (struct nvml_memory_v2){
        .total = earlier.total, .used = earlier.used, .reserved = UINT64_MAX};
}

void nvml_device_describe(const struct nvml_library *library, nvml_handle handle,
                          struct gpu_info *info)
{
    int result, major = 0, minor = 0;
    info->vendor = GPU_NVIDIA;
    read_text(library->uuid, handle, info->uuid);
    read_text(library->name, handle, info->product);
    const struct nvml_memory_v2 memory = read_memory(library, handle, &result);
    info->memory_bytes = result == NVML_SUCCESS && memory.total <= memory_max
                             ? (int64_t)memory.total
                             : info->memory_bytes;
    if (nvml_call(library, compute_capability, handle, &major, &minor) == NVML_SUCCESS &&
        major > 0 && major <= CAPABILITY_MAX && minor >= 0 && minor <= CAPABILITY_MAX)
        (void)snprintf(info->compute_capability, sizeof info->compute_capability, "%d.%d", major,
                       minor);
    info->sm_clock_max_hz =
        INT64_C(1000000) *
        or_zero(number_of_kind(library->clock_max, handle, NVML_CLOCK_SM, MEGAHERTZ_MAX));
    info->memory_clock_max_hz =
        INT64_C(1000000) *
        or_zero(number_of_kind(library->clock_max, handle, NVML_CLOCK_MEMORY, MEGAHERTZ_MAX));
    info->power_cap_watts = or_zero(number(library->power_limit, handle, MILLIWATTS_MAX)) / 1e3;
    info->slowdown_celsius =
        or_zero(number_of_kind(library->threshold, handle, NVML_THRESHOLD_SLOWDOWN, CELSIUS_MAX));
    info->pcie = (struct pcie_link){
        .generation = or_zero(number(library->pcie_generation, handle, GENERATION_MAX)),
        .width = or_zero(number(library->pcie_width, handle, WIDTH_MAX)),
        .generation_max = or_zero(number(library->pcie_generation_max, handle, GENERATION_MAX)),
        .width_max = or_zero(number(library->pcie_width_max, handle, WIDTH_MAX)),
    };
}

// ---- Performance monitoring -------------------------------------------------------------

static void open_gpm(const struct nvml_library *library, struct nvml_device *device)
{
    struct nvml_gpm_support support = {.version = NVML_GPM_VERSION};
    nvml_handle gpu = device->parent ? device->parent : device->handle;
    if (!library->gpm_free || nvml_call(library, gpm_support, gpu, &support) != NVML_SUCCESS ||
        !support.is_supported)
        return;
    for (int i = 0; i < 2; i++)
        if (nvml_call(library, gpm_alloc, &device->gpm[i]) != NVML_SUCCESS)
            device->gpm[i] = NULL;
}

// Shares of the time since the sample before.
static void read_gpm(const struct nvml_library *library, struct nvml_device *device,
                     struct record *sample)
{
    static const struct {
        unsigned int id, column;
    } metrics[NVML_GPM_METRICS] = {{NVML_GPM_SM_UTIL, DEVICE_SAMPLE_SM_ACTIVE},
                                   {NVML_GPM_TENSOR_UTIL, DEVICE_SAMPLE_TENSOR_ACTIVE},
                                   {NVML_GPM_DRAM_UTIL, DEVICE_SAMPLE_DRAM_ACTIVE}};
    if (!device->gpm[0] || !device->gpm[1])
        return;
    nvml_gpm_sample now = device->gpm[device->gpm_next];
    const int taken =
        device->parent ? nvml_call(library, gpm_mig_get, device->parent, device->gpu_instance, now)
                       : nvml_call(library, gpm_get, device->handle, now);
    const bool has_both = taken == NVML_SUCCESS && device->gpm_has_previous;
    struct nvml_gpm_request request = {.version = NVML_GPM_VERSION,
                                       .count = NVML_GPM_METRICS,
                                       .first = device->gpm[!device->gpm_next],
                                       .second = now};
    for (int i = 0; i < NVML_GPM_METRICS; i++)
        request.metrics[i].id = metrics[i].id;
    device->gpm_has_previous = taken == NVML_SUCCESS;
    device->gpm_next = taken == NVML_SUCCESS ? !device->gpm_next : device->gpm_next;
    if (!has_both || nvml_call(library, gpm_metrics, &request) != NVML_SUCCESS)
        return;
    for (int i = 0; i < NVML_GPM_METRICS; i++) {
        const struct nvml_gpm_metric *metric = &request.metrics[i];
        if (metric->result == NVML_SUCCESS && metric->value >= 0 && metric->value <= PERCENT_MAX)
            record_set_real(sample, metrics[i].column, metric->value / 100);
    }
}

// ---- Sensors ------------------------------------------------------------------------------

static int read_memory_use(const struct nvml_library *library, nvml_handle handle,
                           struct gpu_reading *out)
{
    int result;
    const struct nvml_memory_v2 memory = read_memory(library, handle, &result);
    out->lost = result == NVML_GPU_IS_LOST || result == NVML_RESET_REQUIRED;
    if (memory.total > memory_max || memory.used > memory.total)
        return result;
    store(&out->sample, DEVICE_SAMPLE_MEMORY_TOTAL, 1,
          (struct told){result, memory.total, memory_max});
    store(&out->sample, DEVICE_SAMPLE_MEMORY_USED, 1,
          (struct told){result, memory.used, memory_max});
    store(&out->sample, DEVICE_SAMPLE_MEMORY_RESERVED, 1,
          (struct told){result, memory.reserved, memory.total});
    return result;
}

static void read_utilization(const struct nvml_library *library, nvml_handle handle,
                             struct record *sample)
{
    struct nvml_utilization share = {0};
    unsigned int period_us;
    const int result = nvml_call(library, utilization, handle, &share);
    store(sample, DEVICE_SAMPLE_GPU_UTIL, 0.01, (struct told){result, share.gpu, PERCENT_MAX});
    store(sample, DEVICE_SAMPLE_MEMORY_UTIL, 0.01,
          (struct told){result, share.memory, PERCENT_MAX});
    unsigned int percent = 0;
    const int encoder = nvml_call(library, encoder, handle, &percent, &period_us);
    store(sample, DEVICE_SAMPLE_ENCODER_UTIL, 0.01, (struct told){encoder, percent, PERCENT_MAX});
    const int decoder = nvml_call(library, decoder, handle, &percent, &period_us);
    store(sample, DEVICE_SAMPLE_DECODER_UTIL, 0.01, (struct told){decoder, percent, PERCENT_MAX});
}

static void read_temperature(const struct nvml_library *library, nvml_handle handle,
                             struct record *sample)
{
    struct nvml_temperature_v1 temperature = {.version = NVML_TEMPERATURE_V1,
                                              .sensor = NVML_TEMPERATURE_GPU};
    int result = nvml_call(library, temperature_v1, handle, &temperature);
    if (result != NVML_SUCCESS) {
        unsigned int celsius = 0;
        result = nvml_call(library, temperature, handle, NVML_TEMPERATURE_GPU, &celsius);
        temperature.celsius = (int)celsius;
    }
    if (result == NVML_SUCCESS && temperature.celsius >= 0 && temperature.celsius <= CELSIUS_MAX)
        record_set_real(sample, DEVICE_SAMPLE_TEMPERATURE, temperature.celsius);
}

// The value of a field of an unsigned type.
static struct told field_value(const struct nvml_field *field, int result, unsigned long long most)
{
    enum { UNSIGNED_INT = 1, UNSIGNED_LONG = 2, UNSIGNED_LONG_LONG = 3 };
    struct told told = {result, 0, most};
    if (told.result == NVML_SUCCESS)
        told.result = (int)field->result;
    if (field->type == UNSIGNED_INT)
        told.value = field->value.number;
    else if (field->type == UNSIGNED_LONG || field->type == UNSIGNED_LONG_LONG)
        told.value = field->value.large;
    else
        told.result = NVML_FUNCTION_NOT_FOUND;
    return told;
}

static void read_fields(const struct nvml_library *library, nvml_handle handle,
                        struct record *sample)
{
    struct nvml_field fields[] = {{.id = NVML_FIELD_MEMORY_TEMPERATURE},
                                  {.id = NVML_FIELD_RETIRED_SINGLE_BIT},
                                  {.id = NVML_FIELD_RETIRED_DOUBLE_BIT}};
    const int result = nvml_call(library, fields, handle, 3, fields);
    const struct told celsius = field_value(&fields[0], result, CELSIUS_MAX);
    if (celsius.value > 0) // 0 where the memory has no sensor
        store(sample, DEVICE_SAMPLE_MEMORY_TEMPERATURE, 1, celsius);
    struct told retired = field_value(&fields[1], result, count_max);
    const struct told more = field_value(&fields[2], result, count_max);
    if (is_known(&retired) && is_known(&more))
        store(sample, DEVICE_SAMPLE_RETIRED_PAGES, 1,
              (struct told){NVML_SUCCESS, retired.value + more.value, count_max});
}

static void read_errors(const struct nvml_library *library, nvml_handle handle,
                        struct record *sample)
{
    struct told told = {.most = count_max};
    told.result =
        nvml_call(library, ecc_errors, handle, NVML_ECC_CORRECTED, NVML_ECC_VOLATILE, &told.value);
    store(sample, DEVICE_SAMPLE_ECC_CORRECTED, 1, told);
    told.result = nvml_call(library, ecc_errors, handle, NVML_ECC_UNCORRECTED, NVML_ECC_VOLATILE,
                            &told.value);
    store(sample, DEVICE_SAMPLE_ECC_UNCORRECTED, 1, told);
    unsigned int corrected = 0, uncorrected = 0, is_pending, has_failed;
    told.result = nvml_call(library, remapped_rows, handle, &corrected, &uncorrected, &is_pending,
                            &has_failed);
    told.value = (unsigned long long)corrected + uncorrected;
    told.most = UINT32_MAX / 2;
    store(sample, DEVICE_SAMPLE_REMAPPED_ROWS, 1, told);
    told.result = nvml_call(library, throttle_reasons, handle, &told.value);
    told.most = INT64_MAX;
    store(sample, DEVICE_SAMPLE_THROTTLE, 1, told);
}

static void read_pcie(const struct nvml_library *library, struct nvml_device *device, bool slow,
                      struct gpu_reading *out)
{
    nvml_handle handle = device->handle;
    struct pcie_link *link = &out->info.pcie;
    link->generation = or_zero(number(library->pcie_generation, handle, GENERATION_MAX));
    link->width = or_zero(number(library->pcie_width, handle, WIDTH_MAX));
    if (link->generation > 0)
        record_set_int(&out->sample, DEVICE_SAMPLE_PCIE_GENERATION, link->generation);
    if (link->width > 0)
        record_set_int(&out->sample, DEVICE_SAMPLE_PCIE_WIDTH, link->width);
    if (!slow)
        return;
    store(&out->sample, DEVICE_SAMPLE_PCIE_RX, 1e3,
          number_of_kind(library->pcie_throughput, handle, NVML_PCIE_RX, KILOBYTES_MAX));
    store(&out->sample, DEVICE_SAMPLE_PCIE_TX, 1e3,
          number_of_kind(library->pcie_throughput, handle, NVML_PCIE_TX, KILOBYTES_MAX));
}

static void read_power(const struct nvml_library *library, nvml_handle handle,
                       struct gpu_reading *out)
{
    struct record *sample = &out->sample;
    const struct told limit = number(library->power_limit, handle, MILLIWATTS_MAX);
    store(sample, DEVICE_SAMPLE_POWER, 1e-3, number(library->power, handle, MILLIWATTS_MAX));
    store(sample, DEVICE_SAMPLE_POWER_LIMIT, 1e-3, limit);
    if (is_known(&limit))
        out->info.power_cap_watts = (double)limit.value / 1e3;
    const double joules = nvml_device_energy(library, handle);
    if (joules >= 0)
        record_set_real(sample, DEVICE_SAMPLE_ENERGY, joules);
    store(sample, DEVICE_SAMPLE_SM_CLOCK, 1e6,
          number_of_kind(library->clock, handle, NVML_CLOCK_SM, MEGAHERTZ_MAX));
    store(sample, DEVICE_SAMPLE_MEMORY_CLOCK, 1e6,
          number_of_kind(library->clock, handle, NVML_CLOCK_MEMORY, MEGAHERTZ_MAX));
    store(sample, DEVICE_SAMPLE_FAN, 0.01, number(library->fan, handle, FAN_PERCENT_MAX));
}

// ---- Processes ----------------------------------------------------------------------------

static void read_process_name(struct gpu_process *process, const char *root)
{
    char name[64], text[GPU_PROCESS_NAME_SIZE];
    (void)snprintf(name, sizeof name, "proc/%lld/comm", (long long)process->pid);
    if (!proc_file_read(text, sizeof text, root ? root : "", name))
        return;
    const size_t size = strlen(text);
    (void)text_escape(process->name, sizeof process->name, text,
                      size - (size > 0 && text[size - 1] == '\n'));
}

// Adds a process; of one that both computes and draws the larger figure is that of both.
static void add_process(struct gpu_reading *out, unsigned int pid, unsigned long long memory)
{
    const int64_t bytes = memory <= memory_max ? (int64_t)memory : -1;
    unsigned int at = 0;
    while (at < out->process_count && out->processes[at].pid < pid)
        at++;
    struct gpu_process *place = &out->processes[at];
    if (at < out->process_count && place->pid == pid) {
        place->memory_bytes = bytes > place->memory_bytes ? bytes : place->memory_bytes;
        return;
    }
    if (out->process_count == GPU_PROCESSES_MAX)
        return;
    memmove(place + 1, place, (out->process_count - at) * sizeof *place);
    *place = (struct gpu_process){.pid = pid, .memory_bytes = bytes};
    out->process_count++;
}

typedef int nvml_processes(nvml_handle device, unsigned int *count, void *out);

// Adds the processes that the newest of three versions of a function tells.
static bool add_processes(nvml_processes *const versions[3], nvml_handle handle,
                          struct gpu_reading *out)
{
    static const size_t sizes[] = {sizeof(struct nvml_process_v2), sizeof(struct nvml_process_v2),
                                   sizeof(struct nvml_process_v1)};
    unsigned char bytes[PROCESSES_ASKED * sizeof(struct nvml_process_535)];
    unsigned int count = 0;
    int version = -1;
    bool is_told = false;
    while (!is_told && ++version < 3) {
        memset(bytes, 0xff, sizeof bytes);
        count = PROCESSES_ASKED;
        is_told = versions[version] && versions[version](handle, &count, bytes) == NVML_SUCCESS &&
                  count <= PROCESSES_ASKED;
    }
    if (!is_told)
        return false;
    size_t size = sizes[version];
    // It wrote past entries of the usual size: they are larger.
    for (size_t i = count * size; version == 0 && i < count * sizeof(struct nvml_process_535); i++)
        if (bytes[i] != 0xff)
            size = sizeof(struct nvml_process_535);
    for (unsigned int i = 0; i < count; i++) {
        struct nvml_process_v1 process; // the other versions begin like it
        memcpy(&process, bytes + i * size, sizeof process);
        if (process.pid > 0)
            add_process(out, process.pid, process.memory);
    }
    return true;
}

static void read_processes(const struct nvml_library *library, nvml_handle handle, const char *root,
                           struct gpu_reading *out)
{
    nvml_processes *const compute[] = {library->compute_processes_v3, library->compute_processes_v2,
                                       library->compute_processes_v1};
    nvml_processes *const graphics[] = {library->graphics_processes_v3,
                                        library->graphics_processes_v2,
                                        library->graphics_processes_v1};
    const bool computing = add_processes(compute, handle, out);
    const bool drawing = add_processes(graphics, handle, out);
    out->processes_known = computing || drawing;
    for (unsigned int i = 0; i < out->process_count; i++)
        read_process_name(&out->processes[i], root);
    if (out->processes_known)
        record_set_int(&out->sample, DEVICE_SAMPLE_PROCESSES, out->process_count);
}

// ---- The device -----------------------------------------------------------------------------

void nvml_device_open(const struct nvml_library *library, struct nvml_device *device)
{
    nvml_device_describe(library, device->handle, &device->info);
    open_gpm(library, device);
}

void nvml_device_close(const struct nvml_library *library, struct nvml_device *device)
{
    for (int i = 0; i < 2; i++)
        if (device->gpm[i])
            (void)nvml_call(library, gpm_free, device->gpm[i]);
    device->gpm[0] = device->gpm[1] = NULL;
}

int nvml_device_read(const struct nvml_library *library, struct nvml_device *device, bool slow,
                     const char *root, struct gpu_reading *out)
{
    *out = (struct gpu_reading){.info = device->info};
    record_init(&out->sample, RECORD_KIND_DEVICE_SAMPLE, clock_wall_ns());
    const int result = read_memory_use(library, device->handle, out);
    // A MIG instance that was destroyed does not even tell its memory.
    if (out->lost || nvml_is_stale(result) || (device->parent && out->sample.present == 0))
        return result;
    read_utilization(library, device->handle, &out->sample);
    read_temperature(library, device->handle, &out->sample);
    read_power(library, device->handle, out);
    read_pcie(library, device, slow, out);
    read_errors(library, device->handle, &out->sample);
    read_fields(library, device->handle, &out->sample);
    read_gpm(library, device, &out->sample);
    read_processes(library, device->handle, root, out);
    device->info = out->info;
    return result;
}
