#include "server/device/host_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t host_memory_available(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    if (!file)
        return -1;
    char line[128];
    long long kilobytes = -1;
    while (kilobytes < 0 && fgets(line, sizeof line, file))
        if (strncmp(line, "MemAvailable:", 13) == 0)
            kilobytes = strtoll(line + 13, NULL, 10);
    (void)fclose(file);
    return kilobytes < 0 ? -1 : (int64_t)kilobytes * 1024;
}
