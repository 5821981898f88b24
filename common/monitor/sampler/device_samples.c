#include "common/monitor/sampler/device_samples.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t processes_ns = UINT64_C(60000000000); // between records of the same processes
static const int64_t minute_ns = INT64_C(60000000000);
static const double watts_max = 100000.0; // more than any device draws: a counter was reset

// Errors (XIDs) of a device.  Of a minute the first are recorded one by one, the others together
// when it is over.
enum { XIDS_A_MINUTE = 8 };
struct error_minute {
    int64_t since_ns;
    unsigned int recorded;
    int64_t more, first_ns, last_ns, last_code; // of the others
};

// A device that was seen.
struct sampled_device {
    struct gpu_info info; // of the last description
    bool is_described;
    bool is_counted;  // among the devices of the run
    bool is_present;  // not lost
    bool has_counter; // it told its energy counter once
    uint64_t seen_in; // number of the last reading that had it
    uint32_t name;
    struct record description; // as recorded

    // The sample before: its time, its energy counter (negative: none), and the monotonic times
    // between which it was read.
    bool has_before;
    int64_t before_ns;
    double before_joules;
    uint64_t before_began_ns, before_ended_ns;
    struct health_detector events;
    struct error_minute errors;

    bool processes_recorded;
    uint64_t processes_at_ns; // when they were recorded
    unsigned int process_count;
    int64_t pids[GPU_PROCESSES_MAX];
};

struct device_samples {
    struct sampler_output output;
    uint64_t interval_ns;
    int64_t own_pid, own_memory;
    uint64_t readings;
    struct error_minute errors; // of no known device
    unsigned int count;
    struct sampled_device devices[GPU_MAX];
};

enum status device_samples_open(struct device_samples **out, const struct sampler_output *output,
                                uint64_t interval_ns, int64_t own_pid, struct error *err)
{
    struct device_samples *samples = calloc(1, sizeof *samples);
    if (!samples)
        return error_no_memory(err, "devices");
    samples->output = *output;
    samples->interval_ns = interval_ns;
    samples->own_pid = own_pid;
    samples->own_memory = -1;
    *out = samples;
    return STATUS_OK;
}

int64_t device_samples_own_memory(const struct device_samples *samples)
{
    return samples->own_memory;
}

// ---- Events ---------------------------------------------------------------

static struct health_sink sink_of(const struct device_samples *samples,
                                  const struct sampled_device *device)
{
    return (struct health_sink){sampler_output_event, &samples->output, device->name};
}

// Records the errors of the minute that are not recorded one by one.
static void end_errors(const struct device_samples *samples, struct error_minute *errors,
                       uint32_t name)
{
    struct health_event event = {.kind = HEALTH_XID,
                                 .started_ns = errors->first_ns,
                                 .duration_ns = errors->last_ns - errors->first_ns,
                                 .code = errors->last_code};
    (void)snprintf(event.detail, sizeof event.detail, "%lld errors: more than %d a minute",
                   (long long)errors->more, XIDS_A_MINUTE);
    if (errors->more > 0)
        sampler_output_event(&samples->output, &event, name);
    *errors = (struct error_minute){0};
}

static void add_errors(const struct device_samples *samples, struct error_minute *errors,
                       uint32_t name, const struct gpu_xid *xid)
{
    struct health_event event = {.kind = HEALTH_XID, .started_ns = xid->at_ns, .code = xid->code};
    if (errors->recorded++ == 0)
        errors->since_ns = xid->at_ns;
    if (errors->recorded <= XIDS_A_MINUTE) {
        if (xid->count > 1)
            (void)snprintf(event.detail, sizeof event.detail, "%lld errors", (long long)xid->count);
        sampler_output_event(&samples->output, &event, name);
        return;
    }
    if (errors->more == 0)
        errors->first_ns = errors->last_ns = xid->at_ns;
    errors->more += xid->count;
    errors->last_ns = xid->at_ns > errors->last_ns ? xid->at_ns : errors->last_ns;
    errors->last_code = xid->code;
}

// Whether the minute is over, or the clock was set back.
static bool is_over(const struct error_minute *errors, int64_t wall_ns)
{
    return errors->recorded > 0 &&
           (wall_ns < errors->since_ns || wall_ns - errors->since_ns >= minute_ns);
}

void device_samples_close(struct device_samples *samples)
{
    if (!samples)
        return;
    for (unsigned int i = 0; i < samples->count; i++) {
        struct sampled_device *device = &samples->devices[i];
        const struct health_sink sink = sink_of(samples, device);
        health_detector_finish(&device->events, &sink);
        end_errors(samples, &device->errors, device->name);
    }
    end_errors(samples, &samples->errors, 0);
    free(samples);
}

static void end_events(struct device_samples *samples, struct sampled_device *device,
                       int64_t wall_ns)
{
    const struct health_sink sink = sink_of(samples, device);
    health_detector_end(&device->events, wall_ns, &sink);
}

static void lose(struct device_samples *samples, struct sampled_device *device, int64_t wall_ns)
{
    const struct health_sink sink = sink_of(samples, device);
    health_detect_lost(&device->events, wall_ns, &sink);
    device->is_present = device->has_before = false;
    device->processes_recorded = false;
}

// ---- Descriptions ---------------------------------------------------------

static void set_missing_int(struct record *record, unsigned int column, int64_t value)
{
    if (value > 0 && (!record_has(record, column) || record->values[column].i == 0))
        record_set_int(record, column, value);
}

static void set_missing_real(struct record *record, unsigned int column, double value)
{
    if (value > 0.0 && !record_has(record, column))
        record_set_real(record, column, value);
}

static void set_missing_text(struct record *record, unsigned int column, const char *text)
{
    if (!record_has(record, column))
        sampler_output_text(record, column, text);
}

// Sets what the application's description lacks.
static void complete(struct record *record, const struct gpu_info *info)
{
    set_missing_int(record, DEVICE_MEMORY_BYTES, info->memory_bytes);
    set_missing_int(record, DEVICE_PCIE_GENERATION, info->pcie.generation);
    set_missing_int(record, DEVICE_PCIE_WIDTH, info->pcie.width);
    set_missing_int(record, DEVICE_PCIE_GENERATION_MAX, info->pcie.generation_max);
    set_missing_int(record, DEVICE_PCIE_WIDTH_MAX, info->pcie.width_max);
    set_missing_real(record, DEVICE_POWER_CAP, info->power_cap_watts);
    set_missing_int(record, DEVICE_SM_CLOCK_MAX, info->sm_clock_max_hz);
    set_missing_int(record, DEVICE_MEMORY_CLOCK_MAX, info->memory_clock_max_hz);
    set_missing_real(record, DEVICE_SLOWDOWN, info->slowdown_celsius);
    set_missing_text(record, DEVICE_COMPUTE_CAPABILITY, info->compute_capability);
    set_missing_text(record, DEVICE_UUID, info->uuid);
    set_missing_text(record, DEVICE_PARENT_UUID, info->parent_uuid);
}

static void record_new(struct record *record, const struct gpu_info *info, unsigned int ordinal,
                       uint32_t name, int64_t wall_ns)
{
    record_init(record, RECORD_KIND_DEVICE, wall_ns);
    record_set_int(record, DEVICE_ORDINAL, ordinal);
    record_set_name(record, DEVICE_NAME, name);
    record_set_int(record, DEVICE_MEMORY_BYTES, info->memory_bytes);
}

static bool is_same_record(const struct record *one, const struct record *other)
{
    return one->present == other->present && one->used == other->used &&
           memcmp(one->values, other->values, one->used) == 0;
}

// Records a description of the device if it is new or its facts have changed.  The link and the
// power limit change all the time, and are in the samples.
static void describe(struct device_samples *samples, struct sampled_device *device,
                     const struct gpu_info *now, unsigned int ordinal, int64_t wall_ns)
{
    const struct sampler_output *output = &samples->output;
    struct gpu_info info = *now;
    struct record record;
    if (device->is_described) {
        info.pcie.generation = device->info.pcie.generation;
        info.pcie.width = device->info.pcie.width;
        info.power_cap_watts = device->info.power_cap_watts;
    }
    uint32_t name = names_add(output->names, info.name);
    const enum device_match match =
        device_registry_find(output->registry, info.uuid, name, &record);
    if (match == DEVICE_NAME_TAKEN) {
        char text[GPU_NAME_SIZE + 8];
        (void)snprintf(text, sizeof text, "host:%s", info.name);
        name = names_add(output->names, text);
    }
    if (match == DEVICE_DESCRIBED)
        name = record.values[DEVICE_NAME].name;
    else
        record_new(&record, &info, ordinal, name, wall_ns);
    if (!name)
        return; // the run has no room for names
    record.started_ns = wall_ns;
    complete(&record, &info);
    if (!device->is_described) {
        log_sink_write(&output->log, INFERSTAT_LOG_INFO, "devices: sampling %s (%s, %s)",
                       names_text(output->names, name, NULL), info.product,
                       *info.uuid ? info.uuid : "no UUID");
    }
    if (match != DEVICE_DESCRIBED && !device->is_described) {
        device->is_counted = true;
        atomic_fetch_add_explicit(output->device_count, 1, memory_order_relaxed);
    } else if (match == DEVICE_DESCRIBED && device->is_counted) {
        device->is_counted = false; // inferstat_add_device has counted it, too
        atomic_fetch_sub_explicit(output->device_count, 1, memory_order_relaxed);
    }
    if (!is_same_record(&record, &device->description) && ring_push(output->ring, &record, 1) > 0)
        device->description = record;
    if (device->is_described && name != device->name)
        end_events(samples, device, wall_ns); // their ends have the name of their beginnings
    device->info = info;
    device->name = name;
    device->is_described = true;
}

// ---- Samples --------------------------------------------------------------

// Sets the energy used in the period: by the counter or, of a device without one, by its power.  A
// long gap, in which the power was not read, has none then.
static void set_energy(const struct device_samples *samples, const struct sampled_device *device,
                       struct record *sample, uint64_t period_ns)
{
    const double seconds = (double)period_ns / 1e9;
    const bool has_counter = record_has(sample, DEVICE_SAMPLE_ENERGY);
    double joules = -1.0;
    if (has_counter && device->before_joules >= 0.0)
        joules = sample->values[DEVICE_SAMPLE_ENERGY].r - device->before_joules;
    else if (!has_counter && !device->has_counter && record_has(sample, DEVICE_SAMPLE_POWER) &&
             period_ns <= 3 * samples->interval_ns)
        joules = sample->values[DEVICE_SAMPLE_POWER].r * seconds;
    if (joules >= 0.0 && joules <= watts_max * seconds)
        record_set_real(sample, DEVICE_SAMPLE_ENERGY_USED, joules);
}

// Ratios are told in steps of 1/10000, watts and joules in steps of 1/1000: the store keeps such
// values in few bytes, and all digits beyond them as well, which mean nothing.
static void round_values(struct record *sample)
{
    const struct record_kind_info *info = record_kind_info(sample->kind);
    for (unsigned int c = 0; c < info->column_count; c++) {
        const struct record_column *column = &info->columns[c];
        const bool is_power = column->unit == UNIT_WATTS || column->unit == UNIT_JOULES;
        const double steps = column->unit == UNIT_RATIO ? 1e4 : is_power ? 1e3 : 0;
        if (steps > 0 && record_has(sample, c))
            sample->values[c].r = round(sample->values[c].r * steps) / steps;
    }
}

// The time from the sample before to one at `at_ns`.  The wall clock tells when each device was
// read even if another one hung meanwhile, unless it was set: the monotonic clock bounds it.
static uint64_t period_of(const struct sampled_device *device, int64_t at_ns,
                          const struct gpu_snapshot *snapshot)
{
    const int64_t least = (int64_t)(snapshot->began_ns - device->before_ended_ns);
    const int64_t most = (int64_t)(snapshot->ended_ns - device->before_began_ns);
    const int64_t period = at_ns - device->before_ns;
    return (uint64_t)(period < least ? least : period > most ? most : period);
}

static void add_sample(struct device_samples *samples, struct sampled_device *device,
                       struct record *sample, const struct gpu_snapshot *snapshot)
{
    const int64_t at_ns = sample->started_ns;
    record_set_name(sample, DEVICE_SAMPLE_DEVICE, device->name);
    if (device->has_before) {
        const uint64_t period_ns = period_of(device, at_ns, snapshot);
        sample->started_ns = at_ns - (int64_t)period_ns;
        record_set_int(sample, DEVICE_SAMPLE_DURATION_NS, (int64_t)period_ns);
        set_energy(samples, device, sample, period_ns);
    }
    round_values(sample);
    (void)ring_push(samples->output.ring, sample, 1);
    sample->started_ns = at_ns;
    device->has_before = true;
    device->before_ns = at_ns;
    device->before_joules =
        record_has(sample, DEVICE_SAMPLE_ENERGY) ? sample->values[DEVICE_SAMPLE_ENERGY].r : -1.0;
    device->has_counter |= device->before_joules >= 0.0;
    device->before_began_ns = snapshot->began_ns;
    device->before_ended_ns = snapshot->ended_ns;
}

static bool are_same_processes(const struct sampled_device *device,
                               const struct gpu_reading *reading)
{
    bool same = device->processes_recorded && device->process_count == reading->process_count;
    for (unsigned int i = 0; same && i < reading->process_count; i++)
        same = device->pids[i] == reading->processes[i].pid;
    return same;
}

// Records the processes of a device together: when others are on it, and once a minute.
static void add_processes(struct device_samples *samples, struct sampled_device *device,
                          const struct gpu_reading *reading, uint64_t now_ns)
{
    struct record records[GPU_PROCESSES_MAX];
    if (!reading->processes_known)
        return;
    if (are_same_processes(device, reading) && now_ns < device->processes_at_ns + processes_ns)
        return;
    for (unsigned int i = 0; i < reading->process_count; i++) {
        const struct gpu_process *process = &reading->processes[i];
        struct record *record = &records[i];
        record_init(record, RECORD_KIND_DEVICE_PROCESS, reading->sample.started_ns);
        record_set_name(record, DEVICE_PROCESS_DEVICE, device->name);
        record_set_int(record, DEVICE_PROCESS_PID, process->pid);
        if (process->memory_bytes >= 0)
            record_set_int(record, DEVICE_PROCESS_MEMORY, process->memory_bytes);
        sampler_output_text(record, DEVICE_PROCESS_NAME, process->name);
        device->pids[i] = process->pid;
    }
    if (reading->process_count > 0)
        (void)ring_push(samples->output.ring, records, reading->process_count);
    device->process_count = reading->process_count;
    device->processes_recorded = true;
    device->processes_at_ns = now_ns;
}

static void count_own_memory(struct device_samples *samples, const struct gpu_reading *reading)
{
    for (unsigned int i = 0; i < reading->process_count; i++) {
        const struct gpu_process *process = &reading->processes[i];
        if (process->pid == samples->own_pid && process->memory_bytes >= 0)
            samples->own_memory =
                (samples->own_memory < 0 ? 0 : samples->own_memory) + process->memory_bytes;
    }
}

// ---- Readings -------------------------------------------------------------

static const char *key_of(const struct gpu_info *info)
{
    return *info->uuid ? info->uuid : info->name;
}

static struct sampled_device *find(struct device_samples *samples, const char *key)
{
    for (unsigned int i = 0; i < samples->count; i++)
        if (strcmp(key_of(&samples->devices[i].info), key) == 0)
            return &samples->devices[i];
    return NULL;
}

// A place for a device not seen before, of one that is gone if all are taken; NULL: there is none.
static struct sampled_device *place_for(struct device_samples *samples, int64_t wall_ns)
{
    struct sampled_device *place = NULL;
    if (samples->count < GPU_MAX)
        return &samples->devices[samples->count++];
    for (unsigned int i = 0; i < samples->count && !place; i++)
        if (!samples->devices[i].is_present)
            place = &samples->devices[i];
    if (place) {
        end_events(samples, place, wall_ns);
        end_errors(samples, &place->errors, place->name);
        memset(place, 0, sizeof *place);
    }
    return place;
}

static void add_reading(struct device_samples *samples, struct gpu_reading *reading,
                        unsigned int ordinal, const struct gpu_snapshot *snapshot, int64_t wall_ns)
{
    struct sampled_device *device = find(samples, key_of(&reading->info));
    if (!device && !reading->lost)
        device = place_for(samples, wall_ns);
    if (!device)
        return;
    device->seen_in = samples->readings;
    if (reading->lost) {
        lose(samples, device, wall_ns);
        return;
    }
    describe(samples, device, &reading->info, ordinal, wall_ns);
    if (!device->is_described)
        return;
    device->is_present = true;
    if (reading->sample.present == 0) { // powered down: there is nothing to read
        device->has_before = false;
        return;
    }
    add_sample(samples, device, &reading->sample, snapshot);
    add_processes(samples, device, reading, snapshot->began_ns);
    count_own_memory(samples, reading);
    const struct health_sink sink = sink_of(samples, device);
    health_detect_device(&device->events, reading, samples->own_pid, &sink);
}

// A MIG instance that is missing was taken away by an administrator: only its GPU can be lost.
static void miss(struct device_samples *samples, struct sampled_device *device, int64_t wall_ns)
{
    if (!*device->info.parent_uuid) {
        lose(samples, device, wall_ns);
        return;
    }
    end_events(samples, device, wall_ns);
    device->is_present = device->has_before = device->processes_recorded = false;
}

static void add_xids(struct device_samples *samples, const struct gpu_snapshot *snapshot,
                     int64_t wall_ns)
{
    for (unsigned int i = 0; i < samples->count; i++)
        if (is_over(&samples->devices[i].errors, wall_ns))
            end_errors(samples, &samples->devices[i].errors, samples->devices[i].name);
    if (is_over(&samples->errors, wall_ns))
        end_errors(samples, &samples->errors, 0);
    for (unsigned int i = 0; i < snapshot->xid_count; i++) {
        const struct gpu_xid *xid = &snapshot->xids[i];
        struct sampled_device *device = find(samples, xid->uuid);
        add_errors(samples, device ? &device->errors : &samples->errors, device ? device->name : 0,
                   xid);
    }
}

void device_samples_add(struct device_samples *samples, struct gpu_snapshot *snapshot,
                        int64_t wall_ns)
{
    samples->own_memory = -1;
    samples->readings++;
    for (unsigned int i = 0; i < snapshot->count; i++)
        add_reading(samples, &snapshot->gpus[i], i, snapshot, wall_ns);
    for (unsigned int i = 0; i < samples->count; i++) {
        struct sampled_device *device = &samples->devices[i];
        if (device->is_present && device->seen_in != samples->readings)
            miss(samples, device, wall_ns);
    }
    add_xids(samples, snapshot, wall_ns);
}
