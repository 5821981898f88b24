// Process and host information: memory, CPU time, hardware, operating system; also random bytes.
// Nothing is cached: each call asks the kernel again.  Any thread.
#ifndef INFERSTAT_SYS_PROCESS_H
#define INFERSTAT_SYS_PROCESS_H

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"

// Resident set size in bytes; negative if it cannot be read.
int64_t process_memory_bytes(void);

// CPU time of all threads so far, in nanoseconds.
uint64_t process_cpu_ns(void);

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
    int64_t cpu_count;                 // CPUs in this process's affinity mask
    int64_t memory_bytes;
};

void process_host_read(struct process_host *out);

// Writes the version of the loaded NVIDIA driver to `out`; "" if no driver is loaded.  `path` is
// the file to read, NULL: the driver's file in /proc.
void process_driver_read(char out[PROCESS_TEXT_SIZE], const char *path);

#endif
