#include "common/devices/pcie.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/sys/proc_file.h"

enum { WIDTH_MAX = 32 };

unsigned int pcie_generation(const char *speed)
{
    // Of one lane, in tenths of a gigatransfer per second.
    static const unsigned int tenths[] = {25, 50, 80, 160, 320, 640};
    char *end = NULL;
    double value = strtod(speed, &end);
    if (end == speed || strncmp(end, " GT/s", 5) != 0)
        return 0;
    for (size_t i = 0; i < sizeof tenths / sizeof *tenths; i++)
        if (value == tenths[i] / 10.0)
            return (unsigned int)i + 1;
    return 0;
}

static unsigned int lanes(const char *text)
{
    char *end = NULL;
    unsigned long value = strtoul(text, &end, 10);
    return end != text && (*end == '\0' || *end == '\n') && value <= WIDTH_MAX ? (unsigned int)value
                                                                               : 0;
}

// The value in one file; 0: unknown.
static unsigned int read_attribute(const char *folder, const char *name,
                                   unsigned int (*parse)(const char *text))
{
    char line[64];
    return proc_file_read(line, sizeof line, folder, name) ? parse(line) : 0;
}

bool pcie_link_read(struct pcie_link *out, const char *folder, const char *address)
{
    *out = (struct pcie_link){0};
    unsigned int domain, bus, slot, function;
    int length = 0;
    if (sscanf(address, "%8x:%2x:%2x.%1x%n", &domain, &bus, &slot, &function, &length) != 4 ||
        address[length] != '\0')
        return false;
    char path[384];
    length = snprintf(path, sizeof path, "%.300s/%04x:%02x:%02x.%x",
                      folder ? folder : "/sys/bus/pci/devices", domain, bus, slot, function);
    if (length < 0 || (size_t)length >= sizeof path)
        return false;
    out->generation = read_attribute(path, "current_link_speed", pcie_generation);
    out->width = read_attribute(path, "current_link_width", lanes);
    out->generation_max = read_attribute(path, "max_link_speed", pcie_generation);
    out->width_max = read_attribute(path, "max_link_width", lanes);
    out->generation_port_max = read_attribute(path, "../max_link_speed", pcie_generation);
    return true;
}
