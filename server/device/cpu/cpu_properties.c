#include "server/device/cpu/cpu_properties.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "common/core/base/text.h"

// The text behind the first "model name" of /proc/cpuinfo, cut; nothing where there is
// none.
static void read_processor(char *out, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (!file)
        return;
    char line[256];
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "model name", 10) != 0)
            continue;
        const char *colon = strchr(line, ':');
        const char *name = colon ? colon + 1 : line + 10;
        name += strspn(name, " \t");
        (void)text_escape(out, size, name, strcspn(name, "\n"));
        break;
    }
    (void)fclose(file);
}

void cpu_properties(const struct device *device, struct device_properties *out)
{
    (void)device;
    read_processor(out->product, sizeof out->product);
    struct utsname system;
    if (uname(&system) != 0)
        return;
    if (out->product[0] == '\0')
        (void)snprintf(out->product, sizeof out->product, "%.64s", system.machine);
    (void)snprintf(out->driver, sizeof out->driver, "%.16s %.64s", system.sysname, system.release);
}
