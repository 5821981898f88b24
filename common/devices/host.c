#include "common/devices/host.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/sys/proc_file.h"
#include "common/sys/process.h"

enum {
    TEXT_SIZE = 64 * 1024, // what is read of a file
    UNITS_MAX = 64,        // disks, or network interfaces
    NAME_SIZE = 32,
    FREQUENCIES_MAX = 8, // processors whose frequency is read
    SECTOR_BYTES = 512,  // of /proc/diskstats, whatever the disk's own
};

// Counters of a disk or network interface.
enum { COUNTER_IN, COUNTER_OUT, COUNTER_THIRD, COUNTERS };

struct unit_counters {
    char name[NAME_SIZE];
    int64_t values[COUNTERS];
};

struct units {
    unsigned int count;
    bool has_physical;
    struct unit_counters of[UNITS_MAX];
};

enum pressure { CPU_SOME, MEMORY_SOME, MEMORY_FULL, IO_SOME, IO_FULL, PRESSURES };

// Counters since the host's start; negative: unknown.
struct totals {
    int64_t cpu_busy, cpu_idle;                 // ticks
    int64_t pressure_us[PRESSURES];             // time in which tasks waited
    int64_t cpu_periods, cpu_periods_throttled; // of the control group
    struct units disks, links;
};

struct host {
    char *root;
    bool has_before;
    uint64_t before_ns; // monotonic, of `before`
    struct totals before, now;
    char text[TEXT_SIZE];
};

enum status host_open(struct host **out, const char *root, struct error *err)
{
    struct host *host = calloc(1, sizeof *host);
    if (host)
        host->root = strdup(root ? root : "");
    if (!host || !host->root) {
        free(host);
        return error_no_memory(err, "host");
    }
    *out = host;
    return STATUS_OK;
}

void host_close(struct host *host)
{
    if (!host)
        return;
    free(host->root);
    free(host);
}

// ---- Values ---------------------------------------------------------------

static void set_int(struct record *sample, unsigned int column, int64_t value)
{
    if (value >= 0)
        record_set_int(sample, column, value);
}

static void set_real(struct record *sample, unsigned int column, double value)
{
    if (value >= 0.0)
        record_set_real(sample, column, value);
}

// The difference of two counters; negative: unknown.
static int64_t difference(int64_t now, int64_t before)
{
    return before >= 0 && now >= before ? now - before : -1;
}

// A share of a whole; the two are not read at the same instant.  Negative: unknown.
static double share(int64_t part, double whole)
{
    if (part < 0 || !(whole > 0.0))
        return -1.0;
    const double ratio = (double)part / whole;
    return ratio < 1.0 ? ratio : 1.0;
}

static bool read_text(struct host *host, const char *name)
{
    return proc_file_read(host->text, sizeof host->text, host->root, name);
}

static void set_kilobytes(struct record *sample, unsigned int column, int64_t kilobytes)
{
    if (kilobytes >= 0 && kilobytes < INT64_MAX / 1024)
        record_set_int(sample, column, kilobytes * 1024);
}

// ---- Processors and memory ------------------------------------------------

// The mean of some processors, of the `count` that there are.
static void read_frequency(const struct host *host, struct record *sample, unsigned int count)
{
    const unsigned int step = count > FREQUENCIES_MAX ? count / FREQUENCIES_MAX : 1;
    double sum = 0.0;
    int known = 0;
    for (unsigned int i = 0; i < FREQUENCIES_MAX && i * step < count; i++) {
        char name[96];
        int64_t kilohertz;
        (void)snprintf(name, sizeof name, "sys/devices/system/cpu/cpu%u/cpufreq/scaling_cur_freq",
                       i * step);
        if (!proc_file_number(&kilohertz, host->root, name) || kilohertz <= 0 ||
            kilohertz > 100000000)
            continue;
        sum += (double)kilohertz * 1000.0;
        known++;
    }
    if (known > 0)
        record_set_int(sample, HOST_SAMPLE_CPU_FREQUENCY, (int64_t)(sum / known));
}

static void read_cpu(struct host *host, struct record *sample)
{
    int64_t user, nice, system, idle, wait = 0, irq = 0, softirq = 0, stolen = 0;
    struct totals *now = &host->now;
    now->cpu_busy = now->cpu_idle = -1;
    if (!read_text(host, "proc/stat") ||
        sscanf(host->text,
               "cpu %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64
               " %" SCNd64 " %" SCNd64,
               &user, &nice, &system, &idle, &wait, &irq, &softirq, &stolen) < 4)
        return;
    const double busy = (double)user + (double)nice + (double)system + (double)irq +
                        (double)softirq + (double)stolen;
    const double unused = (double)idle + (double)wait;
    if (busy < 0.0 || busy > 1e18 || unused < 0.0 || unused > 1e18)
        return;
    now->cpu_busy = (int64_t)busy;
    now->cpu_idle = (int64_t)unused;
    unsigned int count = 0;
    for (const char *line = host->text; (line = strstr(line, "\ncpu")); line++)
        count++;
    read_frequency(host, sample, count);
}

// Not by sscanf: the application's locale may have another decimal point.
static void read_load(struct host *host, struct record *sample)
{
    unsigned int whole, hundredths;
    if (read_text(host, "proc/loadavg") && sscanf(host->text, "%7u.%2u", &whole, &hundredths) == 2)
        record_set_real(sample, HOST_SAMPLE_LOAD_1M, whole + hundredths / 100.0);
}

static void read_memory(struct host *host, struct record *sample)
{
    int64_t kilobytes, swap, swap_free;
    if (!read_text(host, "proc/meminfo"))
        return;
    if (proc_file_find(&kilobytes, host->text, "MemTotal:"))
        set_kilobytes(sample, HOST_SAMPLE_MEMORY_TOTAL, kilobytes);
    if (proc_file_find(&kilobytes, host->text, "MemAvailable:"))
        set_kilobytes(sample, HOST_SAMPLE_MEMORY_AVAILABLE, kilobytes);
    if (proc_file_find(&swap, host->text, "SwapTotal:") &&
        proc_file_find(&swap_free, host->text, "SwapFree:"))
        set_kilobytes(sample, HOST_SAMPLE_SWAP_USED, difference(swap, swap_free));
}

static void read_cgroup(struct host *host, struct record *sample)
{
    struct process_limits limits;
    process_limits_read(&limits, host->root);
    set_int(sample, HOST_SAMPLE_CGROUP_MEMORY_LIMIT, limits.memory_limit_bytes);
    set_int(sample, HOST_SAMPLE_CGROUP_MEMORY_USED, limits.memory_used_bytes);
    if (limits.cpu_quota > 0)
        record_set_real(sample, HOST_SAMPLE_CGROUP_CPU_QUOTA, limits.cpu_share);
    host->now.cpu_periods = limits.cpu_periods;
    host->now.cpu_periods_throttled = limits.cpu_periods_throttled;
}

// ---- Pressure, disks, network ---------------------------------------------

// The counter "total=" of the line that starts with `kind`; negative: unknown.
static int64_t stall_us(const char *text, const char *kind)
{
    int64_t total;
    const char *line = strstr(text, kind);
    const char *at = line ? strstr(line, " total=") : NULL;
    return at && sscanf(at, " total=%" SCNd64, &total) == 1 ? total : -1;
}

static void read_pressure(struct host *host)
{
    int64_t *us = host->now.pressure_us;
    for (int i = 0; i < PRESSURES; i++)
        us[i] = -1;
    if (read_text(host, "proc/pressure/cpu"))
        us[CPU_SOME] = stall_us(host->text, "some ");
    if (read_text(host, "proc/pressure/memory")) {
        us[MEMORY_SOME] = stall_us(host->text, "some ");
        us[MEMORY_FULL] = stall_us(host->text, "full ");
    }
    if (read_text(host, "proc/pressure/io")) {
        us[IO_SOME] = stall_us(host->text, "some ");
        us[IO_FULL] = stall_us(host->text, "full ");
    }
}

// Adds a disk or interface.  It is physical if the folder FOLDER/NAME has a link "device"; others
// are made of physical ones, and count only where there are none.
static void add_unit(const struct host *host, struct units *units, const char *folder,
                     const char *name, const int64_t values[COUNTERS])
{
    char path[PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s/%s/%s/device", host->root, folder, name);
    const bool is_physical = length > 0 && (size_t)length < sizeof path && access(path, F_OK) == 0;
    if (is_physical && !units->has_physical)
        units->count = 0;
    units->has_physical = units->has_physical || is_physical;
    if (units->count == UNITS_MAX || is_physical != units->has_physical)
        return;
    struct unit_counters *unit = &units->of[units->count++];
    (void)snprintf(unit->name, sizeof unit->name, "%s", name);
    memcpy(unit->values, values, sizeof unit->values);
}

static void read_disks(struct host *host)
{
    struct units *disks = &host->now.disks;
    disks->count = 0;
    disks->has_physical = true; // partitions and layers above disks would count their bytes again
    if (!read_text(host, "proc/diskstats"))
        return;
    for (char *rest = host->text, *line; (line = strsep(&rest, "\n"));) {
        char name[NAME_SIZE];
        int64_t values[COUNTERS];
        if (sscanf(line,
                   "%*u %*u %31s %*u %*u %" SCNd64 " %*u %*u %*u %" SCNd64 " %*u %*u %" SCNd64,
                   name, &values[COUNTER_IN], &values[COUNTER_OUT], &values[COUNTER_THIRD]) == 4)
            add_unit(host, disks, "sys/block", name, values);
    }
}

static void read_links(struct host *host)
{
    struct units *links = &host->now.links;
    links->count = 0;
    links->has_physical = false;
    if (!read_text(host, "proc/net/dev"))
        return;
    for (char *rest = host->text, *line; (line = strsep(&rest, "\n"));) {
        char name[NAME_SIZE];
        int64_t values[COUNTERS], lost[4];
        if (sscanf(line,
                   " %31[^: ]:%" SCNd64 " %*u %" SCNd64 " %" SCNd64 " %*u %*u %*u %*u %" SCNd64
                   " %*u %" SCNd64 " %" SCNd64,
                   name, &values[COUNTER_IN], &lost[0], &lost[1], &values[COUNTER_OUT], &lost[2],
                   &lost[3]) != 7 ||
            strcmp(name, "lo") == 0)
            continue;
        values[COUNTER_THIRD] = (lost[0] & INT32_MAX) + (lost[1] & INT32_MAX) +
                                (lost[2] & INT32_MAX) + (lost[3] & INT32_MAX);
        add_unit(host, links, "sys/class/net", name, values);
    }
}

// Sums the differences of the units that were there before, too, and whose counters all grew.
// `most`: the greatest third one.  Returns false if there is none.
static bool sum_units(const struct units *now, const struct units *before, int64_t sums[COUNTERS],
                      int64_t *most)
{
    bool known = false;
    memset(sums, 0, COUNTERS * sizeof *sums);
    *most = 0;
    for (unsigned int i = 0; i < now->count; i++) {
        const struct unit_counters *unit = &now->of[i], *old = before->of;
        const struct unit_counters *end = old + before->count;
        while (old < end && strcmp(old->name, unit->name) != 0)
            old++;
        if (old == end)
            continue;
        int64_t grown[COUNTERS];
        bool is_sound = true;
        for (int j = 0; j < COUNTERS; j++) {
            grown[j] = difference(unit->values[j], old->values[j]);
            is_sound =
                is_sound && grown[j] >= 0 && grown[j] < INT64_MAX / (SECTOR_BYTES * UNITS_MAX);
        }
        if (!is_sound)
            continue;
        for (int j = 0; j < COUNTERS; j++)
            sums[j] += grown[j];
        *most = grown[COUNTER_THIRD] > *most ? grown[COUNTER_THIRD] : *most;
        known = true;
    }
    return known;
}

// ---- Rates ----------------------------------------------------------------

static void set_shares(const struct host *host, struct record *sample, double period_ns)
{
    static const unsigned int columns[PRESSURES] = {
        [CPU_SOME] = HOST_SAMPLE_CPU_PRESSURE,      [MEMORY_SOME] = HOST_SAMPLE_MEMORY_PRESSURE,
        [MEMORY_FULL] = HOST_SAMPLE_MEMORY_STALLED, [IO_SOME] = HOST_SAMPLE_IO_PRESSURE,
        [IO_FULL] = HOST_SAMPLE_IO_STALLED,
    };
    const struct totals *now = &host->now, *before = &host->before;
    const int64_t busy = difference(now->cpu_busy, before->cpu_busy);
    const int64_t idle = difference(now->cpu_idle, before->cpu_idle);
    if (idle >= 0)
        set_real(sample, HOST_SAMPLE_CPU_UTIL, share(busy, (double)busy + (double)idle));
    for (int i = 0; i < PRESSURES; i++)
        set_real(sample, columns[i],
                 share(difference(now->pressure_us[i], before->pressure_us[i]), period_ns / 1e3));
    set_real(sample, HOST_SAMPLE_CGROUP_THROTTLED,
             share(difference(now->cpu_periods_throttled, before->cpu_periods_throttled),
                   (double)difference(now->cpu_periods, before->cpu_periods)));
}

static void set_rates(const struct host *host, struct record *sample, double period_ns)
{
    int64_t sums[COUNTERS], most;
    const double seconds = period_ns / 1e9;
    if (sum_units(&host->now.disks, &host->before.disks, sums, &most)) {
        set_real(sample, HOST_SAMPLE_DISK_READ, (double)sums[COUNTER_IN] * SECTOR_BYTES / seconds);
        set_real(sample, HOST_SAMPLE_DISK_WRITE,
                 (double)sums[COUNTER_OUT] * SECTOR_BYTES / seconds);
        set_real(sample, HOST_SAMPLE_DISK_BUSY, share(most, period_ns / 1e6));
    }
    if (sum_units(&host->now.links, &host->before.links, sums, &most)) {
        set_real(sample, HOST_SAMPLE_NETWORK_RX, (double)sums[COUNTER_IN] / seconds);
        set_real(sample, HOST_SAMPLE_NETWORK_TX, (double)sums[COUNTER_OUT] / seconds);
        record_set_int(sample, HOST_SAMPLE_NETWORK_ERRORS, sums[COUNTER_THIRD]);
    }
}

void host_read(struct host *host, struct record *sample, uint64_t monotonic_ns, int64_t wall_ns)
{
    record_init(sample, RECORD_KIND_HOST_SAMPLE, wall_ns);
    read_cpu(host, sample);
    read_load(host, sample);
    read_memory(host, sample);
    read_cgroup(host, sample);
    read_pressure(host);
    read_disks(host);
    read_links(host);
    if (host->has_before && monotonic_ns > host->before_ns) {
        const uint64_t period_ns = monotonic_ns - host->before_ns;
        sample->started_ns = wall_ns - (int64_t)period_ns;
        record_set_int(sample, HOST_SAMPLE_DURATION_NS, (int64_t)period_ns);
        set_shares(host, sample, (double)period_ns);
        set_rates(host, sample, (double)period_ns);
    }
    host->before = host->now;
    host->before_ns = monotonic_ns;
    host->has_before = true;
}
