// Process and host information: memory, CPU time, hardware, operating system; also random bytes.
// Nothing is cached: each call asks the kernel again.  Any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"

// Resident set size in bytes; negative if it cannot be read.
int64_t process_memory_bytes(void);

// CPU time of all threads so far, in nanoseconds.
uint64_t process_cpu_ns(void);

// Time since the kernel started the process, known to 10 ms and rounded up; 0: unknown.
uint64_t process_age_ns(void);

// Fills `out` with `size` random bytes from the kernel, 256 at most.
MUST_CHECK enum status process_random(void *out, size_t size, struct error *err);

enum { PROCESS_TEXT_SIZE = 128 };

// Description of the host.  Texts are NUL-terminated; "": unknown.
struct process_host {
    char host[PROCESS_TEXT_SIZE]; // environment variable INFERSTAT_HOST, else the host name
    char os[PROCESS_TEXT_SIZE];   // PRETTY_NAME in os-release, else the kernel's name
    char kernel[PROCESS_TEXT_SIZE];
    char cpu[PROCESS_TEXT_SIZE];
    char cpu_governor[PROCESS_TEXT_SIZE];
    char container[PROCESS_TEXT_SIZE]; // "docker", "podman", "kubernetes", ...
    int64_t cpu_count; // CPUs that this process may use: those of its affinity mask, at most as
                       // many as process_limits.cpu_quota
    int64_t memory_bytes;
};

void process_host_read(struct process_host *out);

// Limits of this process.  Those of control groups (v1 and v2) are the strictest of the process's
// cgroup and all above it.
struct process_limits {
    // Memory that can be used without swapping: the kernel's estimate for the host, or what is left
    // of a cgroup's limit, cached files counted as free.  Negative: unknown.
    int64_t memory_available_bytes;
    char memory_cgroup[PROCESS_TEXT_SIZE]; // path of the cgroup whose limit that is; "": the host's
    // The lowest memory limit of a cgroup, and the memory that this cgroup uses without cached
    // files; negative: no limit.
    int64_t memory_limit_bytes, memory_used_bytes;
    int64_t cpu_quota; // CPUs that cgroups allow to be busy at once, rounded up; 0: no quota
    double cpu_share;  // the same, not rounded
    // Periods in which that quota was enforced so far, and those in which the cgroup used it up and
    // had to wait; negative: unknown.
    int64_t cpu_periods, cpu_periods_throttled;
};

// Reads /proc and /sys/fs/cgroup below the folder `root`; NULL: those of the system.
void process_limits_read(struct process_limits *out, const char *root);

// Writes the version of the loaded NVIDIA driver to `out`; "" if no driver is loaded.  `path` is
// the file to read, NULL: the driver's file in /proc.
void process_driver_read(char out[PROCESS_TEXT_SIZE], const char *path);

enum { PROCESS_FLAGS_SIZE = 256 };

// Settings that change measured results, of the host and of this process.  "": unknown.
struct process_settings {
    char cpu_governor[PROCESS_TEXT_SIZE]; // as in process_host
    // Mode of transparent huge pages, such as "madvise", or "never for this process"; if the host
    // has reserved pages (hugetlbfs), also how many: "madvise, 512 reserved".
    char huge_pages[PROCESS_TEXT_SIZE];
    // The library that the loader takes malloc from: "glibc 2.36", "musl", or the name of another
    // one, such as "jemalloc" of libjemalloc.so.2.  An own malloc of the program: its file name.
    char allocator[PROCESS_TEXT_SIZE];
    // How this library was compiled: build type, compiler with its version, flags.
    char build_flags[PROCESS_FLAGS_SIZE];
};

// Reads /proc and /sys below the folder `root`; NULL: those of the system.
void process_settings_read(struct process_settings *out, const char *root);
