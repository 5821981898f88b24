#include "server/device/properties.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/core/base/crc32c.h"
#include "common/devices/nvml.h"
#include "common/sys/clock.h"
#include "common/sys/files.h"
#include "server/device/device_ops.h"

double peak_flops_of(unsigned int compute_capability, int processors, int64_t hz)
{
    // Results of multiply-adds per clock and multiprocessor, up to the capability before the next.
    static const struct {
        unsigned int from, results;
    } rows[] = {{50, 128}, {60, 64}, {61, 128}, {70, 64}, {86, 128}, {130, 0}};
    unsigned int results = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (compute_capability >= rows[i].from)
            results = rows[i].results;
    return 2.0 * results * processors * (double)hz;
}

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

double device_energy_joules(const struct device *device)
{
    struct device_properties properties;
    struct nvml_facts facts = {0};
    device_properties(device, &properties);
    (void)(properties.uuid[0] && nvml_read(&facts, properties.uuid));
    return facts.energy_joules;
}

// Its text follows from the device and the rates alone.  A file is taken for one of
// this device only where writing what was read from it gives the same bytes: whatever
// is damaged, or another device's, is not.
enum { CACHE_SIZE = 1024, PATH_SIZE = 1024 };

// Writes who the device is, always less than half of `out`; returns the length.
static size_t write_identity(char out[CACHE_SIZE], const struct device_properties *properties)
{
    return (size_t)snprintf(out, CACHE_SIZE,
                            "# Measured by inferstat; made again when it is removed.\n"
                            "version = 3\ndevice = %s\nproduct = %s\nuuid = %s\ndriver = %s\n"
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
                   "flops_per_second = %.0f\nsteady = %d\nboot = %s\nmeasured_ns = %lld\n",
                   rates->memory, rates->h2d, rates->flops, rates->steady, rates->boot,
                   (long long)rates->measured_ns);
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
    long long measured_ns = 0;
    if (!folder || cache_path(path, sizeof path, folder, properties) != STATUS_OK ||
        !read_file(path, text, sizeof text))
        return false;
    const char *found = strstr(text, "\nmemory_bytes_per_second = ");
    if (!found ||
        sscanf(found,
               " memory_bytes_per_second = %lf h2d_bytes_per_second = %lf"
               " flops_per_second = %lf steady = %d boot = %39s measured_ns = %lld",
               &rates.memory, &rates.h2d, &rates.flops, &steady, rates.boot, &measured_ns) != 6)
        return false;
    rates.steady = steady != 0;
    rates.measured_ns = measured_ns;
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

// The host's boot id; "unknown" where the kernel does not tell.
static void read_boot(char out[RATES_BOOT_SIZE])
{
    if (!read_file("/proc/sys/kernel/random/boot_id", out, RATES_BOOT_SIZE) || out[0] == '\0')
        (void)snprintf(out, RATES_BOOT_SIZE, "unknown");
    out[strcspn(out, "\n")] = '\0';
}

// A reboot may change clocks, firmware and the link; a month, the cooling.
static bool is_outdated(const struct device_rates *rates, const struct device_rates *now)
{
    static const int64_t age_max_ns = INT64_C(30) * 86400 * 1000000000;
    return strcmp(rates->boot, now->boot) != 0 || rates->measured_ns > now->measured_ns ||
           now->measured_ns - rates->measured_ns > age_max_ns;
}

enum status device_calibrate(struct device *device, struct device_properties *properties,
                             const char *folder, struct error *err)
{
    struct device_properties before = *properties;
    struct device_rates now = {.measured_ns = clock_wall_ns()};
    read_boot(now.boot);
    before.rates = (struct device_rates){0};
    if (!device_rates_cached(&before, folder) || is_outdated(&before.rates, &now))
        before.rates = (struct device_rates){0};
    if (before.rates.steady) {
        properties->rates = before.rates;
        return STATUS_OK;
    }
    struct device_rates rates;
    enum status status = device_measure_rates(device, &rates, err);
    if (status != STATUS_OK)
        return status;
    now.memory = fmax(rates.memory, before.rates.memory);
    now.h2d = fmax(rates.h2d, before.rates.h2d);
    now.flops = fmax(rates.flops, before.rates.flops);
    now.steady = rates.steady;
    properties->rates = now;
    if (folder)
        store_rates(properties, folder);
    return STATUS_OK;
}
