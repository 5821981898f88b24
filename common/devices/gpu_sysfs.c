#include "common/devices/gpu_sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/parse.h"
#include "common/core/base/text.h"
#include "common/sys/clock.h"
#include "common/sys/files.h"
#include "common/sys/proc_file.h"

enum {
    CARD_SIZE = 16,
    ADDRESS_SIZE = 20, // "0000:03:00.0", domains may be longer
    TEMPERATURES = 8,  // of one device
};

// A device that was found.
struct card {
    const char *driver;
    enum gpu_vendor vendor;
    char name[CARD_SIZE]; // "card0", in sys/class/drm
    char address[ADDRESS_SIZE];
};

// A device that is read.  Names of files are relative to its folders.
struct source {
    char card[PATH_MAX]; // ROOT/sys/class/drm/card0
    char hwmon[PATH_MAX];
    struct gpu_info *info;
    struct record *sample;
};

// ---- Values ---------------------------------------------------------------

// What the numbers of a file mean: value = number * multiplier / divisor.  Numbers outside
// least..most are nonsense.
struct scale {
    int64_t least, most;
    double multiplier, divisor;
};

static const struct scale percent = {0, 100, 1.0, 100.0};
static const struct scale bytes = {0, INT64_C(1) << 50, 1.0, 1.0};
static const struct scale megahertz = {0, 100000, 1e6, 1.0};
static const struct scale plain = {0, INT64_C(100000000000), 1.0, 1.0}; // hertz, steps of a fan
static const struct scale microwatts = {0, INT64_C(100000000000), 1.0, 1e6};
static const struct scale microjoules = {0, INT64_C(1000000000000000000), 1.0, 1e6};
static const struct scale millidegrees = {-50000, 200000, 1.0, 1e3};
static const struct scale threshold = {1, 200000, 1.0, 1e3};            // millidegrees
static const struct scale limit = {1, INT64_C(100000000000), 1.0, 1e6}; // microwatts; 0: off
static const struct scale capacity_bytes = {1, INT64_C(1) << 50, 1.0, 1.0};

// Files that tell a column, relative to the card's folder or that of its hwmon.  Of several for the
// same column the first that exists counts, whatever it tells: two energy counters do not mix.
// xe numbers what it measures: 1 is the card, 2 the chip.
enum place { CARD, HWMON };
static const struct sensor {
    enum place place;
    const char *file;
    unsigned int column;
    const struct scale *scale;
} sensors[] = {
    {CARD, "device/gpu_busy_percent", DEVICE_SAMPLE_GPU_UTIL, &percent},
    {CARD, "device/mem_busy_percent", DEVICE_SAMPLE_MEMORY_UTIL, &percent},
    {CARD, "device/mem_info_vram_total", DEVICE_SAMPLE_MEMORY_TOTAL, &capacity_bytes},
    {CARD, "device/tile0/physical_vram_size_bytes", DEVICE_SAMPLE_MEMORY_TOTAL, &capacity_bytes},
    {CARD, "lmem_total_bytes", DEVICE_SAMPLE_MEMORY_TOTAL, &capacity_bytes},
    {HWMON, "power1_average", DEVICE_SAMPLE_POWER, &microwatts},
    {HWMON, "power1_input", DEVICE_SAMPLE_POWER, &microwatts},
    {HWMON, "energy1_input", DEVICE_SAMPLE_ENERGY, &microjoules},
    {HWMON, "energy2_input", DEVICE_SAMPLE_ENERGY, &microjoules},
    {HWMON, "power1_max", DEVICE_SAMPLE_POWER_LIMIT, &limit},
    {HWMON, "power1_cap", DEVICE_SAMPLE_POWER_LIMIT, &limit},
    {HWMON, "power2_max", DEVICE_SAMPLE_POWER_LIMIT, &limit},
    {HWMON, "freq1_input", DEVICE_SAMPLE_SM_CLOCK, &plain},
    {CARD, "device/tile0/gt0/freq0/act_freq", DEVICE_SAMPLE_SM_CLOCK, &megahertz},
    {CARD, "gt/gt0/rps_act_freq_mhz", DEVICE_SAMPLE_SM_CLOCK, &megahertz},
    {HWMON, "freq2_input", DEVICE_SAMPLE_MEMORY_CLOCK, &plain},
};

// Fails with the errno ENOENT if there is no such file.
static bool read_value(double *out, const char *folder, const char *file, const struct scale *scale)
{
    char text[64];
    int64_t number;
    errno = ENOENT;
    if (!*folder || !proc_file_read(text, sizeof text, folder, file))
        return false;
    errno = 0;
    text[strcspn(text, "\n")] = '\0';
    if (parse_int(&number, text, scale->least, scale->most, file, NULL) != STATUS_OK)
        return false;
    *out = (double)number * scale->multiplier / scale->divisor;
    return true;
}

static void read_sensors(struct source *source)
{
    const struct record_column *columns = record_kind_info(RECORD_KIND_DEVICE_SAMPLE)->columns;
    unsigned int told = DEVICE_SAMPLE_COLUMNS; // column of the file before, if that exists
    for (size_t i = 0; i < sizeof sensors / sizeof *sensors; i++) {
        const struct sensor *sensor = &sensors[i];
        const char *folder = sensor->place == CARD ? source->card : source->hwmon;
        double value;
        if (sensor->column == told)
            continue;
        const bool has_value = read_value(&value, folder, sensor->file, sensor->scale);
        told = has_value || errno != ENOENT ? sensor->column : DEVICE_SAMPLE_COLUMNS;
        if (has_value && columns[sensor->column].type == COLUMN_REAL)
            record_set_real(source->sample, sensor->column, value);
        else if (has_value)
            record_set_int(source->sample, sensor->column, (int64_t)value);
    }
}

// The first line of a file, escaped; "": unknown.
static void read_line(char *out, size_t size, const char *folder, const char *file)
{
    char text[GPU_TEXT_SIZE];
    if (!proc_file_read(text, sizeof text, folder, file))
        text[0] = '\0';
    (void)text_escape(out, size, text, strcspn(text, "\n"));
}

// ---- Sensors --------------------------------------------------------------

// Sensors by their labels; of the chip's the first that there is counts.
static void read_temperatures(struct source *source)
{
    static const char *const chip[] = {"edge", "junction", "pkg", ""};
    enum { CHIP_LABELS = sizeof chip / sizeof *chip };
    unsigned int best = CHIP_LABELS;
    for (int i = 1; i <= TEMPERATURES; i++) {
        double celsius;
        char file[32], label[16];
        (void)snprintf(file, sizeof file, "temp%d_input", i);
        if (!read_value(&celsius, source->hwmon, file, &millidegrees))
            continue;
        (void)snprintf(file, sizeof file, "temp%d_label", i);
        read_line(label, sizeof label, source->hwmon, file);
        if (strcmp(label, "mem") == 0 || strcmp(label, "vram") == 0)
            record_set_real(source->sample, DEVICE_SAMPLE_MEMORY_TEMPERATURE, celsius);
        unsigned int rank = 0;
        while (rank < best && strcmp(label, chip[rank]) != 0)
            rank++;
        if (rank == best)
            continue;
        best = rank;
        record_set_real(source->sample, DEVICE_SAMPLE_TEMPERATURE, celsius);
        (void)snprintf(file, sizeof file, "temp%d_crit", i);
        source->info->slowdown_celsius = 0.0;
        (void)read_value(&source->info->slowdown_celsius, source->hwmon, file, &threshold);
    }
}

static void read_fan(struct source *source)
{
    static const char *const fans[][2] = {{"fan1_input", "fan1_max"}, {"pwm1", "pwm1_max"}};
    for (size_t i = 0; i < sizeof fans / sizeof *fans; i++) {
        double now, most;
        // A fan may turn faster than its nominal speed.
        if (!read_value(&now, source->hwmon, fans[i][0], &plain) ||
            !read_value(&most, source->hwmon, fans[i][1], &plain) || now > 2.0 * most || most < 1.0)
            continue;
        record_set_real(source->sample, DEVICE_SAMPLE_FAN, now / most);
        return;
    }
}

// Reads the clocks that an AMD device may run at, "1: 800Mhz *" a line: the highest, and the
// current one, which has the star, if it is not known more exactly.
static int64_t read_levels(struct source *source, const char *file, unsigned int column)
{
    char text[4096];
    char *rest = NULL;
    int64_t highest_hz = 0;
    if (!proc_file_read(text, sizeof text, source->card, file))
        return 0;
    for (const char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        unsigned int mhz;
        int length = 0;
        // "S: 19Mhz *" is the level of deep sleep.
        if (sscanf(line, "%*[0-9S]: %6uMhz%n", &mhz, &length) != 1 || length == 0 ||
            mhz > megahertz.most)
            continue;
        const int64_t clock_hz = (int64_t)mhz * 1000000;
        highest_hz = clock_hz > highest_hz ? clock_hz : highest_hz;
        if (strchr(line + length, '*') && !record_has(source->sample, column))
            record_set_int(source->sample, column, clock_hz);
    }
    return highest_hz;
}

static void read_clocks(struct source *source)
{
    static const char *const highest[] = {"device/tile0/gt0/freq0/rp0_freq",
                                          "device/tile0/gt0/freq0/max_freq",
                                          "gt/gt0/rps_RP0_freq_mhz", "gt/gt0/rps_max_freq_mhz"};
    struct gpu_info *info = source->info;
    double clock_hz;
    info->sm_clock_max_hz = read_levels(source, "device/pp_dpm_sclk", DEVICE_SAMPLE_SM_CLOCK);
    info->memory_clock_max_hz =
        read_levels(source, "device/pp_dpm_mclk", DEVICE_SAMPLE_MEMORY_CLOCK);
    for (size_t i = 0; info->sm_clock_max_hz == 0 && i < sizeof highest / sizeof *highest; i++)
        if (read_value(&clock_hz, source->card, highest[i], &megahertz))
            info->sm_clock_max_hz = (int64_t)clock_hz;
    if (info->memory_clock_max_hz == 0 &&
        read_value(&clock_hz, source->card, "device/tile0/memory/freq0/max_freq", &megahertz))
        info->memory_clock_max_hz = (int64_t)clock_hz;
}

// "ue: 0" and "ce: 0": the memory's errors since the driver was loaded.
static void read_errors(struct source *source)
{
    static const struct {
        const char *name;
        unsigned int column;
    } counters[] = {{"ue: ", DEVICE_SAMPLE_ECC_UNCORRECTED}, {"ce: ", DEVICE_SAMPLE_ECC_CORRECTED}};
    char text[256];
    int64_t count;
    if (!proc_file_read(text, sizeof text, source->card, "device/ras/umc_err_count"))
        return;
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        if (proc_file_find(&count, text, counters[i].name) && count >= 0 &&
            count <= INT64_C(1) << 53)
            record_set_int(source->sample, counters[i].column, count);
}

#define XE_GT(place) "device/tile" place "/gtidle/idle_residency_ms"

// A GT whose counter is new, gone or lower makes the utilisation since the reading before unknown.
static void read_idle(struct source *source, const struct gpu_info *before, uint64_t now_ns)
{
    static const char *const files[GPU_GTS] = {XE_GT("0/gt0"),           XE_GT("0/gt1"),
                                               XE_GT("1/gt1"),           XE_GT("1/gt2"),
                                               XE_GT("1/gt3"),           "gt/gt0/rc6_residency_ms",
                                               "gt/gt1/rc6_residency_ms"};
    int64_t *now = source->info->idle_ms;
    double least = HUGE_VAL;
    source->info->idle_at_ns = now_ns;
    for (unsigned int i = 0; i < GPU_GTS; i++) {
        double ms;
        now[i] = read_value(&ms, source->card, files[i], &plain) ? (int64_t)ms : 0;
        if (now[i] == 0 && before->idle_ms[i] == 0)
            continue;
        const bool is_known = before->idle_ms[i] > 0 && now[i] >= before->idle_ms[i];
        least = fmin(least, is_known ? (double)(now[i] - before->idle_ms[i]) : -HUGE_VAL);
    }
    if (isfinite(least))
        record_set_real(source->sample, DEVICE_SAMPLE_GPU_UTIL,
                        fmax(0.0, 1.0 - least * 1e6 / (double)(now_ns - before->idle_at_ns)));
}

// ---- One device -----------------------------------------------------------

// Finds the device's folder of sensors; i915 has further ones for parts of the chip.  "": none.
static void find_hwmon(struct source *source, const char *driver)
{
    char folder[PATH_MAX], file[NAME_MAX + 8], name[32];
    DIR *entries = NULL;
    if (files_join(folder, sizeof folder, source->card, "device/hwmon", NULL) == STATUS_OK)
        entries = opendir(folder);
    const struct dirent *entry;
    while (entries && !source->hwmon[0] && (entry = readdir(entries)) != NULL) {
        (void)snprintf(file, sizeof file, "%s/name", entry->d_name);
        read_line(name, sizeof name, folder, file);
        if (strcmp(name, driver) == 0)
            (void)!files_join(source->hwmon, sizeof source->hwmon, folder, entry->d_name, NULL);
    }
    if (entries)
        (void)closedir(entries);
}

static void read_samples(struct source *source, const char *root, const char *address)
{
    struct record *sample = source->sample;
    struct gpu_info *info = source->info;
    char folder[PATH_MAX];
    double used;
    read_sensors(source);
    read_temperatures(source);
    read_fan(source);
    read_clocks(source);
    read_errors(source);
    if (files_join(folder, sizeof folder, root, "sys/bus/pci/devices", NULL) == STATUS_OK)
        (void)pcie_link_read(&info->pcie, folder, address);
    if (info->pcie.generation > 0)
        record_set_int(sample, DEVICE_SAMPLE_PCIE_GENERATION, info->pcie.generation);
    if (info->pcie.width > 0)
        record_set_int(sample, DEVICE_SAMPLE_PCIE_WIDTH, info->pcie.width);
    // Values of absent columns are 0.
    info->memory_bytes = sample->values[DEVICE_SAMPLE_MEMORY_TOTAL].i;
    info->power_cap_watts = sample->values[DEVICE_SAMPLE_POWER_LIMIT].r;
    if (read_value(&used, source->card, "device/mem_info_vram_used", &bytes) &&
        (info->memory_bytes == 0 || used <= (double)info->memory_bytes))
        record_set_int(sample, DEVICE_SAMPLE_MEMORY_USED, (int64_t)used);
}

// Reads one device.  Returns false if nothing of it can be read, now or before.
static bool read_card(const struct gpu_sysfs *gpus, struct gpu_reading *out, const char *root,
                      const struct card *card, unsigned int index, uint64_t now_ns)
{
    struct source source = {.info = &out->info, .sample = &out->sample};
    struct gpu_info *info = &out->info;
    const struct gpu_info *known = NULL;
    char uuid[GPU_TEXT_SIZE], name[64], power[16];
    (void)snprintf(uuid, sizeof uuid, "PCI-%s", card->address);
    for (unsigned int i = 0; i < gpus->count; i++)
        if (strcmp(gpus->known[i].uuid, uuid) == 0)
            known = &gpus->known[i];
    (void)snprintf(name, sizeof name, "sys/class/drm/%s", card->name);
    if (files_join(source.card, sizeof source.card, root, name, NULL) != STATUS_OK)
        return false;
    read_line(power, sizeof power, source.card, "device/power/runtime_status");
    const bool is_asleep = strncmp(power, "suspend", 7) == 0;

    *out = (struct gpu_reading){0};
    record_init(&out->sample, RECORD_KIND_DEVICE_SAMPLE, clock_wall_ns());
    if (known && is_asleep)
        *info = *known;
    memset(info->idle_ms, 0, sizeof info->idle_ms); // a device that sleeps does not count
    memcpy(info->uuid, uuid, sizeof uuid);
    (void)snprintf(info->name, sizeof info->name, "%s:%u",
                   card->vendor == GPU_AMD ? "amd" : "intel", index);
    info->vendor = card->vendor;
    info->index = index;
    read_line(info->product, sizeof info->product, source.card, "device/product_name");
    if (is_asleep) // to read more would wake it
        return true;
    find_hwmon(&source, card->driver);
    read_samples(&source, root, card->address);
    if (card->vendor == GPU_INTEL)
        read_idle(&source, known ? known : &(struct gpu_info){0}, now_ns);
    return known || out->sample.present != 0;
}

// ---- All devices ----------------------------------------------------------

// Fills `card` if the entry of this name in `folder`, sys/class/drm, is a device of a driver that
// is known here.
static bool find_card(struct card *card, const char *folder, const char *name)
{
    static const struct {
        const char *driver;
        enum gpu_vendor vendor;
    } drivers[] = {{"amdgpu", GPU_AMD}, {"xe", GPU_INTEL}, {"i915", GPU_INTEL}};
    char file[64], text[2048] = "\n", driver[16];
    int end = 0;
    // Others are connectors, "card0-DP-1", and nodes for rendering.
    const size_t length = strlen(name);
    if (strncmp(name, "card", 4) != 0 || strspn(name + 4, "0123456789") != length - 4 ||
        length >= sizeof card->name)
        return false;
    memcpy(card->name, name, length + 1);
    (void)snprintf(file, sizeof file, "%s/device/uevent", card->name);
    if (!proc_file_read(text + 1, sizeof text - 1, folder, file))
        return false;
    const char *bound = strstr(text, "\nDRIVER="), *slot = strstr(text, "\nPCI_SLOT_NAME=");
    if (!bound || sscanf(bound, " DRIVER=%15[^\n]", driver) != 1 || !slot ||
        sscanf(slot, " PCI_SLOT_NAME=%19[0-9a-f:.]%n", card->address, &end) != 1 ||
        (slot[end] != '\n' && slot[end] != '\0'))
        return false;
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++)
        if (strcmp(driver, drivers[i].driver) == 0) {
            card->driver = drivers[i].driver;
            card->vendor = drivers[i].vendor;
            return true;
        }
    return false;
}

// By vendor and address.  Longer addresses have higher domains.
static int compare_cards(const void *left, const void *right)
{
    const struct card *one = left, *other = right;
    const size_t size = strlen(one->address), other_size = strlen(other->address);
    if (one->vendor != other->vendor)
        return one->vendor < other->vendor ? -1 : 1;
    if (size != other_size)
        return size < other_size ? -1 : 1;
    return strcmp(one->address, other->address);
}

static unsigned int find_cards(struct card cards[GPU_MAX], const char *root)
{
    char folder[PATH_MAX];
    unsigned int count = 0;
    DIR *entries = NULL;
    if (files_join(folder, sizeof folder, root, "sys/class/drm", NULL) == STATUS_OK)
        entries = opendir(folder);
    const struct dirent *entry;
    while (entries && count < GPU_MAX && (entry = readdir(entries)) != NULL)
        count += find_card(&cards[count], folder, entry->d_name);
    if (entries)
        (void)closedir(entries);
    qsort(cards, count, sizeof *cards, compare_cards);
    return count;
}

unsigned int gpu_sysfs_read(struct gpu_sysfs *gpus, struct gpu_reading *out, unsigned int capacity,
                            const char *root, uint64_t now_ns)
{
    struct card cards[GPU_MAX];
    const char *folder = root ? root : "";
    const unsigned int found = find_cards(cards, folder);
    unsigned int count = 0, index = 0;
    for (unsigned int i = 0; i < found && count < capacity; i++) {
        index = i > 0 && cards[i].vendor == cards[i - 1].vendor ? index + 1 : 0;
        count += read_card(gpus, &out[count], folder, &cards[i], index, now_ns);
    }
    gpus->count = count < GPU_MAX ? count : GPU_MAX;
    for (unsigned int i = 0; i < gpus->count; i++)
        gpus->known[i] = out[i].info;
    return count;
}
