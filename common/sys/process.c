#include "common/sys/process.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "common/core/base/text.h"
#include "common/sys/clock.h"
#include "common/sys/proc_file.h"

int64_t process_memory_bytes(void)
{
    char text[128];
    long long total, resident;
    if (!proc_file_read(text, sizeof text, "/proc/self", "statm") ||
        sscanf(text, "%lld %lld", &total, &resident) != 2)
        return -1;
    return resident * sysconf(_SC_PAGESIZE);
}

uint64_t process_cpu_ns(void)
{
    return (uint64_t)clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t process_age_ns(void)
{
    char text[1024];
    unsigned long long ticks;
    const long rate = sysconf(_SC_CLK_TCK);
    if (rate <= 0 || !proc_file_read(text, sizeof text, "/proc/self", "stat"))
        return 0;
    // The name, in brackets, may contain anything; 19 fields lie between it and the start.
    const char *at = strrchr(text, ')');
    if (!at || sscanf(at + 1,
                      " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                      "%*d %llu",
                      &ticks) != 1)
        return 0;
    const int64_t age = clock_read_ns(CLOCK_BOOTTIME) -
                        (int64_t)(ticks / (unsigned long)rate * 1000000000U +
                                  ticks % (unsigned long)rate * 1000000000U / (unsigned long)rate);
    return age > 0 ? (uint64_t)age : 0;
}

enum status process_random(void *out, size_t size, struct error *err)
{
    if (getentropy(out, size) == 0)
        return STATUS_OK;
    return error_set(err, STATUS_IO, "no random numbers: %s", strerror(errno));
}

// Copies text up to the end of its line, without quotes, if it is UTF-8.
static void copy_line(char out[PROCESS_TEXT_SIZE], const char *text)
{
    size_t size = strcspn(text, "\n");
    if (size >= 2 && text[0] == '"' && text[size - 1] == '"') {
        text++;
        size -= 2;
    }
    size = text_cut(text, size, PROCESS_TEXT_SIZE - 1);
    if (!text_is_utf8(text, size))
        size = 0;
    memcpy(out, text, size);
    out[size] = '\0';
}

// Copies what follows `key` at the start of a line of `text`.
static void copy_value(char out[PROCESS_TEXT_SIZE], const char *text, const char *key)
{
    const size_t size = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, size) == 0) {
            copy_line(out, line + size + strspn(line + size, " \t:="));
            return;
        }
    }
}

static void read_container(char out[PROCESS_TEXT_SIZE])
{
    static const struct {
        const char *file, *name;
    } marks[] = {{"/.dockerenv", "docker"}, {"/run/.containerenv", "podman"}};
    const char *named = getenv("container");
    if (named && *named)
        copy_line(out, named);
    else if (getenv("KUBERNETES_SERVICE_HOST"))
        copy_line(out, "kubernetes");
    for (size_t i = 0; !*out && i < sizeof marks / sizeof *marks; i++)
        if (access(marks[i].file, F_OK) == 0)
            copy_line(out, marks[i].name);
}

// ---- Limits ---------------------------------------------------------------

// The files of a cgroup.  Names of v1 follow those of v2.
enum { CGROUP_V2, CGROUP_V1 };
static const char *const limit_files[] = {"memory.max", "memory.limit_in_bytes"};
static const char *const usage_files[] = {"memory.current", "memory.usage_in_bytes"};
static const char *const cached_keys[][2] = {{"inactive_file ", "active_file "},
                                             {"total_inactive_file ", "total_active_file "}};

// Unlimited memory is a number in v1.
static const int64_t unlimited_bytes = INT64_C(1) << 60;

static void limit_memory(struct process_limits *limits, const char *folder, int version,
                         const char *cgroup)
{
    int64_t limit, used, cached = 0;
    char stat[8192];
    if (!proc_file_number(&limit, folder, limit_files[version]) ||
        !proc_file_number(&used, folder, usage_files[version]))
        return;
    const bool has_stat = proc_file_read(stat, sizeof stat, folder, "memory.stat");
    for (int i = 0; has_stat && i < 2; i++) {
        int64_t bytes = 0;
        if (proc_file_find(&bytes, stat, cached_keys[version][i]))
            cached += bytes;
    }
    used = used > cached ? used - cached : 0;
    if (limit >= 0 && limit < unlimited_bytes &&
        (limits->memory_limit_bytes < 0 || limit < limits->memory_limit_bytes)) {
        limits->memory_limit_bytes = limit;
        limits->memory_used_bytes = used;
    }
    const int64_t left = limit > used ? limit - used : 0;
    if (limits->memory_available_bytes >= 0 && left >= limits->memory_available_bytes)
        return;
    limits->memory_available_bytes = left;
    (void)snprintf(limits->memory_cgroup, sizeof limits->memory_cgroup, "%s", cgroup);
}

static void limit_cpus(struct process_limits *limits, const char *folder, int version)
{
    int64_t quota = -1, period = 0;
    char text[1024];
    bool known;
    if (version == CGROUP_V2)
        known = proc_file_read(text, sizeof text, folder, "cpu.max") &&
                sscanf(text, "%" SCNd64 " %" SCNd64, &quota, &period) == 2;
    else
        known = proc_file_number(&quota, folder, "cpu.cfs_quota_us") &&
                proc_file_number(&period, folder, "cpu.cfs_period_us");
    if (!known || quota <= 0 || period <= 0)
        return;
    const double share = (double)quota / (double)period;
    if (limits->cpu_quota > 0 && share >= limits->cpu_share)
        return;
    limits->cpu_quota = (quota - 1) / period + 1;
    limits->cpu_share = share;
    if (!proc_file_read(text, sizeof text, folder, "cpu.stat") ||
        !proc_file_find(&limits->cpu_periods, text, "nr_periods ") ||
        !proc_file_find(&limits->cpu_periods_throttled, text, "nr_throttled "))
        limits->cpu_periods = limits->cpu_periods_throttled = -1;
}

// Applies the limits of the cgroup that a line "ID:CONTROLLERS:PATH" names and of all above it.  In
// a container the path may be that on its host: then only the mounted folder is there.
static void limit_by(struct process_limits *limits, const char *root, char *line)
{
    char folder[PATH_MAX];
    (void)strsep(&line, ":");
    const char *controllers = strsep(&line, ":");
    if (!line)
        return;
    const int version = *controllers ? CGROUP_V1 : CGROUP_V2;
    const int start = snprintf(folder, sizeof folder, "%s/sys/fs/cgroup/%s", root, controllers);
    if (start < 0 || (size_t)start + strlen(line) >= sizeof folder)
        return;
    (void)strcpy(folder + start, line);
    for (;;) {
        const char *cgroup = folder[start] ? folder + start : "/";
        limit_memory(limits, folder, version, cgroup);
        limit_cpus(limits, folder, version);
        char *slash = strrchr(folder + start, '/');
        if (!slash)
            return;
        *slash = '\0';
    }
}

void process_limits_read(struct process_limits *out, const char *root)
{
    char folder[PATH_MAX], text[8192];
    memset(out, 0, sizeof *out);
    out->memory_available_bytes = out->memory_limit_bytes = out->memory_used_bytes = -1;
    out->cpu_periods = out->cpu_periods_throttled = -1;
    if (!root)
        root = "";
    (void)snprintf(folder, sizeof folder, "%s/proc", root);
    if (proc_file_read(text, sizeof text, folder, "meminfo") &&
        proc_file_find(&out->memory_available_bytes, text, "MemAvailable:"))
        out->memory_available_bytes *= 1024;
    if (!proc_file_read(text, sizeof text, folder, "self/cgroup"))
        return;
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
        limit_by(out, root, line);
}

// ---- The host -------------------------------------------------------------

static int64_t count_cpus(void)
{
    cpu_set_t set;
    struct process_limits limits;
    int64_t cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        cpus = CPU_COUNT(&set);
    process_limits_read(&limits, NULL);
    if (limits.cpu_quota > 0 && limits.cpu_quota < cpus)
        cpus = limits.cpu_quota;
    return cpus > 0 ? cpus : 1;
}

static void read_governor(char out[PROCESS_TEXT_SIZE], const char *root)
{
    char text[PROCESS_TEXT_SIZE];
    if (proc_file_read(text, sizeof text, root,
                       "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
        copy_line(out, text);
}

void process_host_read(struct process_host *out)
{
    memset(out, 0, sizeof *out);
    struct utsname names;
    if (uname(&names) == 0) {
        copy_line(out->host, names.nodename);
        copy_line(out->os, names.sysname);
        copy_line(out->kernel, names.release);
    }
    const char *host = getenv("INFERSTAT_HOST");
    if (host && *host)
        copy_line(out->host, host);
    if (!*out->host)
        copy_line(out->host, "localhost");

    char text[4096];
    if (proc_file_read(text, sizeof text, "/etc", "os-release"))
        copy_value(out->os, text, "PRETTY_NAME");
    if (proc_file_read(text, sizeof text, "/proc", "cpuinfo"))
        copy_value(out->cpu, text, "model name");
    read_governor(out->cpu_governor, "");
    read_container(out->container);
    out->cpu_count = count_cpus();
    out->memory_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

void process_driver_read(char out[PROCESS_TEXT_SIZE], const char *path)
{
    char text[PROCESS_TEXT_SIZE];
    out[0] = '\0';
    if (proc_file_read(text, sizeof text, "", path ? path : "sys/module/nvidia/version"))
        copy_line(out, text);
}

// ---- Settings -------------------------------------------------------------

// The kernel puts the mode in brackets: "always [madvise] never".
static void read_huge_pages(char out[PROCESS_TEXT_SIZE], const char *root)
{
    char text[PROCESS_TEXT_SIZE];
    int64_t reserved = 0;
    if (!proc_file_read(text, sizeof text, root, "sys/kernel/mm/transparent_hugepage/enabled"))
        return;
    const char *mode = strchr(text, '[');
    const int size = mode ? (int)strcspn(mode + 1, "]\n") : 0;
    if (size == 0)
        return;
    if (prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1)
        (void)snprintf(out, PROCESS_TEXT_SIZE, "never for this process");
    else
        (void)snprintf(out, PROCESS_TEXT_SIZE, "%.*s", size < 32 ? size : 32, mode + 1);
    if (proc_file_number(&reserved, root, "proc/sys/vm/nr_hugepages") && reserved > 0)
        (void)text_append(out, PROCESS_TEXT_SIZE, ", ", "%" PRId64 " reserved", reserved);
}

// The C library's own malloc has its version; the name of another library has neither "lib" nor
// what follows ".so".
static void read_allocator(char out[PROCESS_TEXT_SIZE])
{
    Dl_info place;
    const void *function = dlsym(RTLD_DEFAULT, "malloc");
    if (!function || dladdr(function, &place) == 0 || !place.dli_fname)
        return;
    const char *slash = strrchr(place.dli_fname, '/');
    const char *name = slash ? slash + 1 : place.dli_fname;
    const bool is_library = strncmp(name, "lib", 3) == 0;
    name += is_library ? 3 : 0;
    copy_line(out, name);
    if (is_library)
        out[strcspn(out, ".")] = '\0';
#ifdef __GLIBC__
    if (is_library && strcmp(out, "c") == 0)
        (void)snprintf(out, PROCESS_TEXT_SIZE, "glibc %s", gnu_get_libc_version());
#endif
    if (strncmp(name, "ld-musl", 7) == 0 || (is_library && strcmp(out, "c") == 0))
        copy_line(out, "musl");
}

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

void process_settings_read(struct process_settings *out, const char *root)
{
    memset(out, 0, sizeof *out);
    read_governor(out->cpu_governor, root ? root : "");
    read_huge_pages(out->huge_pages, root ? root : "");
    read_allocator(out->allocator);
    static const char flags[] = INFERSTAT_BUILD_TYPE " " COMPILER " " INFERSTAT_BUILD_FLAGS;
    const size_t size = text_cut(flags, sizeof flags - 1, sizeof out->build_flags - 1);
    memcpy(out->build_flags, flags, text_is_utf8(flags, size) ? size : 0);
}
