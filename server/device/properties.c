#include "server/device/properties.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/crc32c.h"
#include "common/sys/files.h"
#include "server/device/device_ops.h"

void device_properties(const struct device *device, struct device_properties *out)
{
    *out = (struct device_properties){0};
    struct device_description description;
    device_describe(device, &description);
    memcpy(out->name, description.name, sizeof out->name);
    out->ordinal = description.ordinal;
    out->threads = description.threads;
    out->memory_bytes = description.memory_bytes;
    if (device->ops->properties)
        device->ops->properties(device, out);
}

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

// ---- The file -------------------------------------------------------------

// Its text follows from the device and the rates alone.  A file is taken for one of
// this device only where writing what was read from it gives the same bytes: whatever
// is damaged, or another device's, is not.
enum { CACHE_SIZE = 1024, PATH_SIZE = 1024 };

// Writes who the device is, always less than half of `out`; returns the length.
static size_t write_identity(char out[CACHE_SIZE], const struct device_properties *properties)
{
    return (size_t)snprintf(out, CACHE_SIZE,
                            "# Measured by inferstat; made again when it is removed.\n"
                            "version = 1\ndevice = %s\nproduct = %s\nuuid = %s\ndriver = %s\n"
                            "threads = %u\nmemory_bytes = %lld\n",
                            properties->name, properties->product, properties->uuid,
                            properties->driver, properties->threads,
                            (long long)properties->memory_bytes);
}

static void write_text(char out[CACHE_SIZE], const struct device_properties *properties,
                       const struct device_rates *rates)
{
    size_t length = write_identity(out, properties);
    (void)snprintf(out + length, CACHE_SIZE - length,
                   "memory_bytes_per_second = %.0f\nh2d_bytes_per_second = %.0f\n"
                   "steady = %d\n",
                   rates->memory, rates->h2d, rates->steady);
    length = strlen(out);
    (void)snprintf(out + length, CACHE_SIZE - length, "check = %08x\n",
                   (unsigned int)crc32c(0, out, length));
}

// "FOLDER/device-NAME-CHECKSUM.conf": one for each device and driver.
static enum status cache_path(char *out, size_t size, const char *folder,
                              const struct device_properties *properties)
{
    char identity[CACHE_SIZE];
    char plain[DEVICE_NAME_SIZE];
    char name[2 * DEVICE_NAME_SIZE];
    const size_t length = write_identity(identity, properties);
    memcpy(plain, properties->name, sizeof plain);
    for (char *c = plain; *c; c++)
        if (!isalnum((unsigned char)*c))
            *c = '-';
    (void)snprintf(name, sizeof name, "device-%s-%08x.conf", plain,
                   (unsigned int)crc32c(0, identity, length));
    return files_join(out, size, folder, name, NULL);
}

static bool read_file(const char *path, char *out, size_t size)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t length = fread(out, 1, size - 1, file);
    bool whole = length < size - 1 && !ferror(file) && !memchr(out, '\0', length);
    out[length] = '\0';
    (void)fclose(file);
    return whole;
}

bool device_rates_cached(struct device_properties *properties, const char *folder)
{
    char path[PATH_SIZE];
    char text[CACHE_SIZE];
    char expected[CACHE_SIZE];
    struct device_rates rates = {0};
    int steady = 0;
    if (!folder || cache_path(path, sizeof path, folder, properties) != STATUS_OK ||
        !read_file(path, text, sizeof text))
        return false;
    const char *found = strstr(text, "\nmemory_bytes_per_second = ");
    if (!found || sscanf(found,
                         " memory_bytes_per_second = %lf h2d_bytes_per_second = %lf"
                         " steady = %d",
                         &rates.memory, &rates.h2d, &steady) != 3)
        return false;
    rates.steady = steady != 0;
    write_text(expected, properties, &rates);
    if (strcmp(text, expected) != 0)
        return false;
    properties->rates = rates;
    return true;
}

static void store_rates(const struct device_properties *properties, const char *folder)
{
    char path[PATH_SIZE];
    char text[CACHE_SIZE];
    write_text(text, properties, &properties->rates);
    // The next process measures again what cannot be stored.
    if (files_make_folder(folder, 0700, NULL) == STATUS_OK &&
        cache_path(path, sizeof path, folder, properties) == STATUS_OK)
        (void)!files_write(path, text, 0600, true, NULL);
}

enum status device_calibrate(struct device *device, struct device_properties *properties,
                             const char *folder, struct error *err)
{
    struct device_properties before = *properties;
    before.rates = (struct device_rates){0};
    if (device_rates_cached(&before, folder) && before.rates.steady) {
        properties->rates = before.rates;
        return STATUS_OK;
    }
    struct device_rates rates;
    enum status status = device_measure_rates(device, &rates, err);
    if (status != STATUS_OK)
        return status;
    properties->rates = (struct device_rates){
        .memory = fmax(rates.memory, before.rates.memory),
        .h2d = fmax(rates.h2d, before.rates.h2d),
        .steady = rates.steady,
    };
    if (folder)
        store_rates(properties, folder);
    return STATUS_OK;
}
