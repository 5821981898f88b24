#include "server/device/properties.h"

#include <ctype.h>
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

// ---- The file -------------------------------------------------------------

// Its text follows from the device and the rates alone.  A file is taken for one of
// this device only where writing what was read from it gives the same bytes: whatever
// is damaged, or another device's, is not.
enum { CACHE_SIZE = 1024, PATH_SIZE = 1024, RATES = 3 };

static const char *const rate_keys[RATES] = {"memory_bytes_per_second", "h2d_bytes_per_second",
                                             "d2h_bytes_per_second"};

// More than any memory moves in a second.
#define RATE_MAX 1e15

// Writes who the device is; returns the length.
static size_t write_identity(char *out, size_t size, const struct device_properties *properties)
{
    int length =
        snprintf(out, size,
                 "# Measured by inferstat; made again when it is removed.\n"
                 "version = 1\ndevice = %s\nproduct = %s\nuuid = %s\ndriver = %s\n"
                 "threads = %u\nmemory_bytes = %lld\n",
                 properties->name, properties->product, properties->uuid, properties->driver,
                 properties->threads, (long long)properties->memory_bytes);
    return length > 0 && (size_t)length < size ? (size_t)length : 0;
}

// Returns the length; 0 where it does not fit.
static size_t write_text(char *out, size_t size, const struct device_properties *properties,
                         const double rates[RATES], bool steady)
{
    size_t length = write_identity(out, size, properties);
    for (size_t i = 0; i < RATES && length > 0; i++) {
        int more = snprintf(out + length, size - length, "%s = %.0f\n", rate_keys[i], rates[i]);
        length = more > 0 && (size_t)more < size - length ? length + (size_t)more : 0;
    }
    if (length == 0)
        return 0;
    int more = snprintf(out + length, size - length, "steady = %d\n", steady);
    length = more > 0 && (size_t)more < size - length ? length + (size_t)more : 0;
    if (length == 0)
        return 0;
    more = snprintf(out + length, size - length, "check = %08x\n",
                    (unsigned int)crc32c(0, out, length));
    return more > 0 && (size_t)more < size - length ? length + (size_t)more : 0;
}

// "FOLDER/device-NAME-CHECKSUM.conf": one for each device and driver.
static enum status cache_path(char *out, size_t size, const char *folder,
                              const struct device_properties *properties)
{
    char identity[CACHE_SIZE];
    char plain[DEVICE_NAME_SIZE];
    char name[2 * DEVICE_NAME_SIZE];
    size_t length = write_identity(identity, sizeof identity, properties);
    memcpy(plain, properties->name, sizeof plain);
    for (char *c = plain; *c; c++)
        if (!isalnum((unsigned char)*c))
            *c = '-';
    (void)snprintf(name, sizeof name, "device-%s-%08x.conf", plain,
                   (unsigned int)crc32c(0, identity, length));
    return files_join(out, size, folder, name, NULL);
}

// The rate behind its key; 0 where there is none.
static double read_rate(const char *text, const char *key)
{
    char start[64];
    (void)snprintf(start, sizeof start, "\n%s = ", key);
    const char *found = strstr(text, start);
    if (!found)
        return 0.0;
    char *end = NULL;
    double rate = strtod(found + strlen(start), &end);
    return *end == '\n' && rate > 0.0 && rate < RATE_MAX ? rate : 0.0;
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
    double rates[RATES];
    if (!folder || cache_path(path, sizeof path, folder, properties) != STATUS_OK ||
        !read_file(path, text, sizeof text))
        return false;
    for (size_t i = 0; i < RATES; i++) {
        rates[i] = read_rate(text, rate_keys[i]);
        if (rates[i] == 0.0)
            return false;
    }
    bool steady = strstr(text, "\nsteady = 1\n");
    if (write_text(expected, sizeof expected, properties, rates, steady) == 0 ||
        strcmp(text, expected) != 0)
        return false;
    properties->rates = (struct device_rates){
        .memory = rates[0], .h2d = rates[1], .d2h = rates[2], .steady = steady};
    return true;
}

static void store_rates(const struct device_properties *properties, const char *folder)
{
    char path[PATH_SIZE];
    char text[CACHE_SIZE];
    const double rates[RATES] = {properties->rates.memory, properties->rates.h2d,
                                 properties->rates.d2h};
    size_t size = write_text(text, sizeof text, properties, rates, properties->rates.steady);
    // The next process measures again what cannot be stored.
    if (size > 0 && files_make_folder(folder, 0700, NULL) == STATUS_OK &&
        cache_path(path, sizeof path, folder, properties) == STATUS_OK)
        (void)!files_write(path, text, 0600, true, NULL);
}

static double better(double a, double b)
{
    return a > b ? a : b;
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
        .memory = better(rates.memory, before.rates.memory),
        .h2d = better(rates.h2d, before.rates.h2d),
        .d2h = better(rates.d2h, before.rates.d2h),
        .steady = rates.steady,
    };
    if (folder)
        store_rates(properties, folder);
    return STATUS_OK;
}
