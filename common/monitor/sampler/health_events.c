#include "common/monitor/sampler/health_events.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/core/record/throttle.h"

// What one reading says of an event.
enum evidence {
    UNKNOWN, // nothing: the driver does not tell it this time
    UNSURE,  // it neither begins nor ends an event
    ABSENT,
    PRESENT,
};

static const double loaded_ratio = 0.5; // utilisation from which a link must be at its maximum

// Of the host: an event begins above the first and ends below the second value.
static const struct {
    double begin, end;
} pressure = {0.10, 0.05}, throttled = {0.10, 0.02};
static const double available_min = 0.02, available_ample = 0.03; // shares of its memory

// How many successive readings begin and end an event.  An idle device slows its link down, and
// speeds it up only moments after work begins: the first readings under load may still see the slow
// link.  A device at its power limit is throttled on and off.  Errors that are counted happened in
// the period before a reading and do not last: their event ends with the last of them.
static const struct {
    const char *name;
    unsigned int begins, ends;
    bool is_counted;
} kinds[HEALTH_KINDS] = {
    [HEALTH_THROTTLING] = {"throttling", 1, 5},
    [HEALTH_PCIE_DOWNGRADE] = {"pcie_downgrade", 5, 3},
    [HEALTH_ECC_CORRECTED] = {"ecc_corrected", 1, 5, true},
    [HEALTH_ECC_UNCORRECTED] = {"ecc_uncorrected", 1, 5, true},
    [HEALTH_FOREIGN_PROCESS] = {"foreign_process", 1, 3},
    [HEALTH_DEVICE_LOST] = {"device_lost", 1, 1},
    [HEALTH_MEMORY_PRESSURE] = {"memory_pressure", 3, 5},
    [HEALTH_CGROUP_THROTTLED] = {"cgroup_throttled", 3, 5},
    [HEALTH_DRIVER_HANG] = {"driver_hang", 1, 1},
    [HEALTH_XID] = {"xid", 1, 1},
};

const char *health_kind_name(enum health_kind kind)
{
    return kinds[kind].name;
}

// Reports the begin of an event, or its end at `ended_ns`.
static void report(const struct health_watch *watch, enum health_kind kind, int64_t ended_ns,
                   const struct health_sink *sink)
{
    struct health_event event = {
        .kind = kind, .started_ns = watch->bad_ns, .duration_ns = -1, .code = watch->code};
    if (ended_ns >= 0) // the clock may have been set back meanwhile
        event.duration_ns = ended_ns > watch->bad_ns ? ended_ns - watch->bad_ns : 0;
    memcpy(event.detail, watch->detail, sizeof event.detail);
    sink->add(sink->context, &event, sink->device);
}

static void end(struct health_watch *watch, enum health_kind kind, int64_t at_ns,
                const struct health_sink *sink)
{
    report(watch, kind, at_ns, sink);
    *watch = (struct health_watch){0};
}

// Applies what a reading at `at_ns` says.  The caller has set code and detail before.
static void judge(struct health_detector *detector, enum health_kind kind, enum evidence evidence,
                  int64_t at_ns, const struct health_sink *sink)
{
    struct health_watch *watch = &detector->watches[kind];
    if (evidence == PRESENT) {
        watch->good = 0;
        watch->good_ns = at_ns;
        if (!watch->is_active && watch->bad++ == 0)
            watch->bad_ns = at_ns;
        if (!watch->is_active && watch->bad >= kinds[kind].begins) {
            watch->is_active = true;
            report(watch, kind, -1, sink);
        }
    } else if (!watch->is_active && evidence != UNKNOWN) {
        *watch = (struct health_watch){0};
    } else if (watch->is_active && evidence == ABSENT) {
        if (watch->good++ == 0 && !kinds[kind].is_counted)
            watch->good_ns = at_ns;
        if (watch->good >= kinds[kind].ends)
            end(watch, kind, watch->good_ns, sink);
    }
}

// ---- Devices --------------------------------------------------------------

static int64_t value_of(const struct record *sample, unsigned int column)
{
    return record_has(sample, column) ? sample->values[column].i : -1;
}

static enum evidence see_throttling(struct health_watch *watch, const struct record *sample)
{
    if (!record_has(sample, DEVICE_SAMPLE_THROTTLE))
        return UNKNOWN;
    const int64_t bits = throttle_bits(sample->values[DEVICE_SAMPLE_THROTTLE].i);
    watch->code |= bits;
    _Static_assert(sizeof watch->detail >= THROTTLE_TEXT_SIZE, "the text fits");
    (void)throttle_text(watch->detail, watch->code);
    return bits ? PRESENT : ABSENT;
}

// A link has full speed if neither value is known to be below its maximum.
static enum evidence see_link(struct health_watch *watch, const struct gpu_reading *reading)
{
    const struct record *sample = &reading->sample;
    const struct pcie_link *link = &reading->info.pcie;
    const int64_t width = value_of(sample, DEVICE_SAMPLE_PCIE_WIDTH);
    const int64_t generation = value_of(sample, DEVICE_SAMPLE_PCIE_GENERATION);
    const unsigned int generation_max =
        link->generation_port_max > 0 && link->generation_port_max < link->generation_max
            ? link->generation_port_max
            : link->generation_max;
    const bool knows_width = width > 0 && link->width_max > 0;
    const bool knows_generation = generation > 0 && generation_max > 0;
    if (!knows_width && !knows_generation)
        return UNKNOWN;
    if ((!knows_width || width >= link->width_max) &&
        (!knows_generation || generation >= generation_max))
        return ABSENT;
    if (!record_has(sample, DEVICE_SAMPLE_GPU_UTIL) ||
        !(sample->values[DEVICE_SAMPLE_GPU_UTIL].r >= loaded_ratio))
        return UNSURE;
    watch->code = width;
    (void)snprintf(watch->detail, sizeof watch->detail,
                   "generation %" PRId64 " of %u, %" PRId64 " of %u lanes",
                   generation > 0 ? generation : 0, generation_max, width > 0 ? width : 0,
                   link->width_max);
    return PRESENT;
}

// A counter that falls has been reset.
static enum evidence see_errors(struct health_watch *watch, int64_t before, int64_t now)
{
    if (before < 0 || now < before)
        return UNKNOWN;
    watch->code += now - before;
    return now > before ? PRESENT : ABSENT;
}

static const struct gpu_process *find_process(const struct gpu_reading *reading, int64_t pid)
{
    for (unsigned int i = 0; i < reading->process_count; i++)
        if (reading->processes[i].pid == pid)
            return &reading->processes[i];
    return NULL;
}

// The device belongs to this process, if it uses it, else to the one that was there first.
static enum evidence see_processes(struct health_detector *detector,
                                   const struct gpu_reading *reading, int64_t own_pid)
{
    struct health_watch *watch = &detector->watches[HEALTH_FOREIGN_PROCESS];
    if (!reading->processes_known)
        return UNKNOWN;
    if (find_process(reading, own_pid))
        detector->user = own_pid;
    else if (!find_process(reading, detector->user))
        detector->user = reading->process_count > 0 ? reading->processes[0].pid : 0;
    const struct gpu_process *foreign = NULL;
    for (unsigned int i = 0; i < reading->process_count && !foreign; i++)
        if (reading->processes[i].pid != detector->user)
            foreign = &reading->processes[i];
    if (!foreign)
        return ABSENT;
    if (watch->is_active)
        return PRESENT; // its code stays that of the first one
    watch->code = foreign->pid;
    (void)snprintf(watch->detail, sizeof watch->detail, "%s", foreign->name);
    return PRESENT;
}

void health_detect_device(struct health_detector *detector, const struct gpu_reading *reading,
                          int64_t own_pid, const struct health_sink *sink)
{
    const struct record *sample = &reading->sample;
    const int64_t at_ns = sample->started_ns;
    if (reading->lost) {
        health_detect_lost(detector, at_ns, sink);
        return;
    }
    struct health_watch *watches = detector->watches;
    const int64_t corrected = value_of(sample, DEVICE_SAMPLE_ECC_CORRECTED);
    const int64_t uncorrected = value_of(sample, DEVICE_SAMPLE_ECC_UNCORRECTED);
    const enum evidence seen[] = {
        [HEALTH_THROTTLING] = see_throttling(&watches[HEALTH_THROTTLING], sample),
        [HEALTH_PCIE_DOWNGRADE] = see_link(&watches[HEALTH_PCIE_DOWNGRADE], reading),
        [HEALTH_ECC_CORRECTED] =
            see_errors(&watches[HEALTH_ECC_CORRECTED],
                       detector->has_counters ? detector->corrected : -1, corrected),
        [HEALTH_ECC_UNCORRECTED] =
            see_errors(&watches[HEALTH_ECC_UNCORRECTED],
                       detector->has_counters ? detector->uncorrected : -1, uncorrected),
        [HEALTH_FOREIGN_PROCESS] = see_processes(detector, reading, own_pid),
        [HEALTH_DEVICE_LOST] = ABSENT,
    };
    for (unsigned int kind = 0; kind < sizeof seen / sizeof *seen; kind++)
        judge(detector, (enum health_kind)kind, seen[kind],
              kinds[kind].is_counted ? detector->counters_ns : at_ns, sink);
    detector->has_counters = true;
    detector->counters_ns = at_ns;
    detector->corrected = corrected;
    detector->uncorrected = uncorrected;
}

void health_detector_end(struct health_detector *detector, int64_t at_ns,
                         const struct health_sink *sink)
{
    for (unsigned int kind = 0; kind < HEALTH_KINDS; kind++) {
        struct health_watch *watch = &detector->watches[kind];
        if (watch->is_active)
            end(watch, (enum health_kind)kind,
                watch->good > 0 || kinds[kind].is_counted ? watch->good_ns : at_ns, sink);
    }
    *detector = (struct health_detector){0};
}

void health_detect_lost(struct health_detector *detector, int64_t at_ns,
                        const struct health_sink *sink)
{
    if (!detector->watches[HEALTH_DEVICE_LOST].is_active)
        health_detector_end(detector, at_ns, sink); // a driver loaded again counts errors from 0
    detector->watches[HEALTH_DEVICE_LOST].code = -1;
    judge(detector, HEALTH_DEVICE_LOST, PRESENT, at_ns, sink);
}

// ---- The host -------------------------------------------------------------

static double ratio_of(const struct record *sample, unsigned int column)
{
    return record_has(sample, column) ? sample->values[column].r : -1.0;
}

static enum evidence see_memory(struct health_watch *watch, const struct record *sample)
{
    const double waited = ratio_of(sample, HOST_SAMPLE_MEMORY_PRESSURE);
    const int64_t total = value_of(sample, HOST_SAMPLE_MEMORY_TOTAL);
    const int64_t available = value_of(sample, HOST_SAMPLE_MEMORY_AVAILABLE);
    const bool knows_left = total > 0 && available >= 0;
    const double left = knows_left ? (double)available / (double)total : 1.0;
    watch->code = -1;
    if (waited < 0.0 && !knows_left)
        return UNKNOWN;
    if (waited >= pressure.begin || left < available_min) {
        (void)snprintf(watch->detail, sizeof watch->detail,
                       "tasks waited for memory %.0f %% of the time, %.1f %% of it is available",
                       waited > 0.0 ? waited * 100.0 : 0.0, left * 100.0);
        return PRESENT;
    }
    return waited < pressure.end && left > available_ample ? ABSENT : UNSURE;
}

static enum evidence see_quota(struct health_watch *watch, const struct record *sample)
{
    const double held = ratio_of(sample, HOST_SAMPLE_CGROUP_THROTTLED);
    watch->code = -1;
    if (held < 0.0)
        return UNKNOWN;
    if (held >= throttled.begin)
        (void)snprintf(watch->detail, sizeof watch->detail, "a quota of %.2f processors is used up",
                       ratio_of(sample, HOST_SAMPLE_CGROUP_CPU_QUOTA));
    return held >= throttled.begin ? PRESENT : held < throttled.end ? ABSENT : UNSURE;
}

void health_detect_host(struct health_detector *detector, const struct record *sample,
                        int64_t at_ns, const struct health_sink *sink)
{
    struct health_watch *watches = detector->watches;
    judge(detector, HEALTH_MEMORY_PRESSURE, see_memory(&watches[HEALTH_MEMORY_PRESSURE], sample),
          at_ns, sink);
    judge(detector, HEALTH_CGROUP_THROTTLED, see_quota(&watches[HEALTH_CGROUP_THROTTLED], sample),
          at_ns, sink);
}

void health_detect_hang(struct health_detector *detector, bool hangs, int64_t at_ns,
                        const struct health_sink *sink)
{
    detector->watches[HEALTH_DRIVER_HANG].code = -1;
    judge(detector, HEALTH_DRIVER_HANG, hangs ? PRESENT : ABSENT, at_ns, sink);
}

void health_detector_finish(struct health_detector *detector, const struct health_sink *sink)
{
    for (unsigned int kind = 0; kind < HEALTH_KINDS; kind++) {
        struct health_watch *watch = &detector->watches[kind];
        if (watch->is_active && watch->good > 0)
            end(watch, (enum health_kind)kind, watch->good_ns, sink);
    }
}
