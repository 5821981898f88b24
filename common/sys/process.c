#include "common/sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/core/base/text.h"
#include "common/sys/clock.h"

// Reads a small file of /proc or /sys, terminated.  False when it cannot.
static bool read_small(char *out, size_t size, const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const ssize_t used = read(fd, out, size - 1);
    (void)close(fd);
    if (used < 0)
        return false;
    out[used] = '\0';
    return true;
}

int64_t process_memory_bytes(void)
{
    char text[128];
    long long total, resident;
    if (!read_small(text, sizeof text, "/proc/self/statm") ||
        sscanf(text, "%lld %lld", &total, &resident) != 2)
        return -1;
    return resident * sysconf(_SC_PAGESIZE);
}

uint64_t process_cpu_ns(void)
{
    return (uint64_t)clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
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

static int64_t count_cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? online : 1;
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
    if (read_small(text, sizeof text, "/etc/os-release"))
        copy_value(out->os, text, "PRETTY_NAME");
    if (read_small(text, sizeof text, "/proc/cpuinfo"))
        copy_value(out->cpu, text, "model name");
    if (read_small(text, sizeof text, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
        copy_line(out->cpu_governor, text);
    read_container(out->container);
    out->cpu_count = count_cpus();
    out->memory_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

void process_driver_read(char out[PROCESS_TEXT_SIZE], const char *path)
{
    char text[PROCESS_TEXT_SIZE];
    out[0] = '\0';
    if (read_small(text, sizeof text, path ? path : "/sys/module/nvidia/version"))
        copy_line(out, text);
}
