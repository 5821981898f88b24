#include "client/cli/doctor/doctor.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/devices/nvml_library.h"
#include "common/monitor/delivery/orphans.h"
#include "common/sys/proc_file.h"
#include "common/sys/process.h"

enum { PATH_ROOM = 4096, FILES_LEAST = 1024, THREADS_LEAST = 512 };

// True if the folder is there and its permissions are right; says what is wrong otherwise.
static bool check_folder(struct doctor *doctor, const char *check, const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0 && errno == ENOENT) {
        doctor_say(doctor, DOCTOR_OK, check, NULL, "%s: not there yet, nothing was kept", path);
        return false;
    }
    if (access(path, R_OK | W_OK | X_OK) != 0)
        doctor_say(doctor, DOCTOR_ERROR, check, "give this user the folder, or name another",
                   "%s: cannot be used: %s", path, strerror(errno));
    else if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !(info.st_mode & S_ISVTX))
        doctor_say(doctor, DOCTOR_ERROR, check, "chmod go-w FOLDER",
                   "%s: others may change it (mode %o)", path, (unsigned)info.st_mode & 07777U);
    else
        return true;
    return false;
}

static void say_space_of(struct doctor *doctor, const char *check, const char *path)
{
    struct statvfs space;
    if (statvfs(path, &space) == 0)
        doctor_say_space(doctor, check, path, (int64_t)(space.f_bavail * space.f_frsize), 0, 0);
}

// Records that dead runs left; those of live ones are on their way.
static void check_backlog(struct doctor *doctor, const char *runs, const char *spools)
{
    const struct orphans_folders folders = {.runs = runs, .spools = spools};
    struct orphans_list list;
    struct error err = {0};
    unsigned waiting = 0;
    uint64_t records = 0, bytes = 0;
    if (orphans_find(&list, &folders, &err) != STATUS_OK) {
        doctor_say(doctor, DOCTOR_ERROR, "spool", "see inferstat spool list", "%s", err.text);
        return;
    }
    for (size_t i = 0; i < list.count; i++) {
        struct runfile_run run;
        struct spool_totals left = {0};
        if (orphans_look(&folders, &list.places[i], &run, &left, &err) != STATUS_OK)
            continue;
        waiting += left.records > 0;
        records += left.records;
        bytes += left.bytes;
    }
    char size[UNIT_TEXT_SIZE], count[UNIT_TEXT_SIZE];
    if (waiting == 0 && access(spools, F_OK) == 0)
        doctor_say(doctor, DOCTOR_OK, "spool", NULL, "%s: nothing waits", spools);
    else if (waiting > 0)
        doctor_say(doctor, DOCTOR_WARNING, "spool",
                   "inferstat spool flush sends what dead runs left, or says why it cannot",
                   "%s: %s records (%s) of %u run%s wait for their collector", spools,
                   unit_format_int(count, UNIT_COUNT, (int64_t)records),
                   unit_format_int(size, UNIT_BYTES, (int64_t)bytes), waiting, cli_plural(waiting));
    orphans_deinit(&list);
}

static void check_records(struct doctor *doctor)
{
    char runs[PATH_ROOM], spools[PATH_ROOM];
    struct error err = {0};
    const char *option = doctor->cli->options.spool;
    if (runfile_default_folder(runs, sizeof runs, &err) != STATUS_OK ||
        spool_default_folder(spools, sizeof spools, option, &err) != STATUS_OK) {
        doctor_say(doctor, DOCTOR_ERROR, "spool", "set INFERSTAT_RUN_DIR and INFERSTAT_SPOOL", "%s",
                   err.text);
        return;
    }
    if (check_folder(doctor, "run files", runs))
        say_space_of(doctor, "run files", runs);
    const bool is_usable = check_folder(doctor, "spool", spools);
    if (is_usable)
        say_space_of(doctor, "spool", spools);
    if (is_usable || access(spools, F_OK) != 0)
        check_backlog(doctor, runs, spools);
}

// Counts the display controllers and accelerators of NVIDIA on the PCI bus.
static unsigned count_nvidia(void)
{
    static const char bus[] = "/sys/bus/pci/devices";
    unsigned count = 0;
    DIR *folder = opendir(bus);
    for (struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder)) {
        char path[sizeof bus + sizeof entry->d_name], vendor[16], class[16];
        (void)snprintf(path, sizeof path, "%s/%s", bus, entry->d_name);
        count += proc_file_read(vendor, sizeof vendor, path, "vendor") &&
                 strncmp(vendor, "0x10de", 6) == 0 &&
                 proc_file_read(class, sizeof class, path, "class") &&
                 (strncmp(class, "0x03", 4) == 0 || strncmp(class, "0x12", 4) == 0);
    }
    if (folder)
        (void)closedir(folder);
    return count;
}

static void check_driver(struct doctor *doctor)
{
    struct nvml_library library;
    char driver[PROCESS_TEXT_SIZE], version[NVML_TEXT_SIZE] = "?";
    unsigned devices = 0;
    const unsigned on_bus = count_nvidia();
    process_driver_read(driver, NULL);
    if (nvml_library_open(&library)) {
        (void)nvml_call(&library, driver_version, version, sizeof version);
        (void)nvml_call(&library, count, &devices);
        doctor_say(doctor, devices > 0 ? DOCTOR_OK : DOCTOR_WARNING, "driver",
                   devices > 0 ? NULL : "see nvidia-smi and dmesg",
                   "NVML of driver %s, %u device%s", version, devices, cli_plural(devices));
        nvml_library_close(&library);
    } else if (driver[0]) {
        doctor_say(doctor, DOCTOR_ERROR, "driver",
                   "install the package with libnvidia-ml.so.1 of the driver's version",
                   "NVIDIA driver %s, but its library NVML cannot be used: devices are not sampled",
                   driver);
    } else if (on_bus > 0) {
        doctor_say(doctor, DOCTOR_ERROR, "driver",
                   "install or load NVIDIA's driver (modprobe nvidia)",
                   "%u NVIDIA device%s without a driver", on_bus, cli_plural(on_bus));
    } else {
        doctor_say(doctor, DOCTOR_OK, "driver", NULL, "no NVIDIA device");
    }
}

static void check_settings(struct doctor *doctor)
{
    struct process_settings settings;
    process_settings_read(&settings, NULL);
    const char *flags = settings.build_flags;
    const bool is_slow = strncmp(flags, "Debug", 5) == 0 || strstr(flags, "-fsanitize") ||
                         strstr(flags, "--coverage") || strstr(flags, "-O0");
    doctor_say(doctor, is_slow ? DOCTOR_WARNING : DOCTOR_OK, "build",
               is_slow ? "measure with scripts/build.sh release: this build is slow" : NULL, "%s",
               flags[0] ? flags : "unknown");
    const char *governor = settings.cpu_governor;
    const bool is_lazy = governor[0] && strcmp(governor, "performance") != 0;
    doctor_say(doctor, is_lazy ? DOCTOR_WARNING : DOCTOR_OK, "processor",
               is_lazy ? "cpupower frequency-set -g performance, for steady figures" : NULL,
               "governor %s", governor[0] ? governor : "not told (a virtual machine or container)");
}

static void check_cgroups(struct doctor *doctor)
{
    struct process_limits limits;
    char used[UNIT_TEXT_SIZE], limit[UNIT_TEXT_SIZE];
    process_limits_read(&limits, NULL);
    if (limits.memory_limit_bytes > 0) {
        const bool is_full =
            (double)limits.memory_used_bytes > 0.9 * (double)limits.memory_limit_bytes;
        doctor_say(doctor, is_full ? DOCTOR_WARNING : DOCTOR_OK, "memory limit",
                   is_full ? "raise the limit of the container or service" : NULL,
                   "%s of the control group's %s are used",
                   unit_format_int(used, UNIT_BYTES, limits.memory_used_bytes),
                   unit_format_int(limit, UNIT_BYTES, limits.memory_limit_bytes));
    }
    if (limits.cpu_quota > 0) {
        const double ratio = limits.cpu_periods > 0
                                 ? (double)limits.cpu_periods_throttled / (double)limits.cpu_periods
                                 : 0;
        doctor_say(doctor, ratio > 0.05 ? DOCTOR_WARNING : DOCTOR_OK, "processor quota",
                   ratio > 0.05 ? "raise the quota: requests wait for it" : NULL,
                   "%.1f processors; used up in %s of the periods", limits.cpu_share,
                   unit_format(used, UNIT_RATIO, ratio));
    }
    if (limits.memory_limit_bytes <= 0 && limits.cpu_quota <= 0)
        doctor_say(doctor, DOCTOR_OK, "control group", NULL, "no limit of memory or processors");
}

static void check_limits(struct doctor *doctor)
{
    static const struct {
        int resource;
        rlim_t least;
        const char *check, *todo;
    } kinds[] = {
        {RLIMIT_NOFILE, FILES_LEAST, "open files",
         "ulimit -n 4096, or LimitNOFILE= of the service"},
        {RLIMIT_NPROC, THREADS_LEAST, "threads", "ulimit -u 4096, or TasksMax= of the service"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct rlimit limit;
        if (getrlimit((__rlimit_resource_t)kinds[i].resource, &limit) != 0)
            continue;
        const bool is_low = limit.rlim_cur < kinds[i].least;
        char count[UNIT_TEXT_SIZE] = "no limit";
        if (limit.rlim_cur != RLIM_INFINITY)
            (void)unit_format_int(count, UNIT_COUNT, (int64_t)limit.rlim_cur);
        doctor_say(doctor, is_low ? DOCTOR_WARNING : DOCTOR_OK, kinds[i].check,
                   is_low ? kinds[i].todo : NULL, "%s", count);
    }
}

void doctor_check_host(struct doctor *doctor)
{
    check_records(doctor);
    check_driver(doctor);
    check_settings(doctor);
    check_cgroups(doctor);
    check_limits(doctor);
}
