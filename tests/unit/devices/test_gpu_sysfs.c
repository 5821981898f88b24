// GPUs by sysfs, on trees that the tests write.
#include "common/devices/gpu_sysfs.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/sys/files.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

static char root[FOLDER_PATH_SIZE];
static struct gpu_sysfs gpus;
static struct gpu_reading readings[GPU_MAX];
static uint64_t now_ns;

TEST_FIXTURE(set_up)
{
    folder_make(root);
    memset(&gpus, 0, sizeof gpus);
    return 0;
}

TEST_FIXTURE(tear_down)
{
    folder_remove(root);
    return 0;
}

// ---- Trees ----------------------------------------------------------------

static const char *path_of(const char *name)
{
    return format_text("%s/%s", root, name);
}

static void make_parent(const char *path)
{
    char parent[FOLDER_PATH_SIZE * 2];
    files_folder_of(parent, sizeof parent, path);
    assert_int_equal(files_make_folder(parent, 0700, NULL), STATUS_OK);
}

static void put(const char *name, const char *text)
{
    make_parent(path_of(name));
    write_text(path_of(name), text);
}

static void put_link(const char *name, const char *target)
{
    make_parent(path_of(name));
    assert_int_equal(symlink(target, path_of(name)), 0);
}

struct file {
    const char *name, *text;
};

// A card as the kernel has it: its device is a link into the folder of PCI devices.
static void put_card(const char *card, const char *driver, const char *address,
                     const struct file *files, size_t count)
{
    char device[512];
    (void)snprintf(device, sizeof device, "%s/sys/devices/pci0000:00/%s", root, address);
    put(format_text("sys/devices/pci0000:00/%s/uevent", address),
        format_text("DRIVER=%s\nPCI_CLASS=30000\nPCI_SLOT_NAME=%s\nMODALIAS=pci:v\n", driver,
                    address));
    put_link(format_text("sys/class/drm/%s/device", card), device);
    put_link(format_text("sys/bus/pci/devices/%s", address), device);
    for (size_t i = 0; i < count; i++)
        put(format_text("sys/class/drm/%s/%s", card, files[i].name), files[i].text);
}

#define HWMON "device/hwmon/hwmon3/"

static const struct file amd_files[] = {
    {"device/product_name", "Instinct MI210\n"},
    {"device/power/runtime_status", "active\n"},
    {"device/gpu_busy_percent", "57\n"},
    {"device/mem_busy_percent", "12\n"},
    {"device/mem_info_vram_total", "68702699520\n"},
    {"device/mem_info_vram_used", "1073741824\n"},
    {"device/pp_dpm_sclk", "S: 19Mhz \n0: 500Mhz\n1: 800Mhz *\n2: 1700Mhz\n"},
    {"device/pp_dpm_mclk", "0: 400Mhz\n1: 1600Mhz *\n"},
    {"device/current_link_speed", "16.0 GT/s PCIe\n"},
    {"device/current_link_width", "8\n"},
    {"device/max_link_speed", "32.0 GT/s PCIe\n"},
    {"device/max_link_width", "16\n"},
    {"device/ras/umc_err_count", "ue: 2\nce: 31\nde: 0\n"},
    {HWMON "name", "amdgpu\n"},
    {HWMON "temp1_input", "45000\n"},
    {HWMON "temp1_label", "edge\n"},
    {HWMON "temp1_crit", "100000\n"},
    {HWMON "temp2_input", "58500\n"},
    {HWMON "temp2_label", "junction\n"},
    {HWMON "temp2_crit", "110000\n"},
    {HWMON "temp3_input", "52000\n"},
    {HWMON "temp3_label", "mem\n"},
    {HWMON "power1_average", "123000000\n"},
    {HWMON "power1_cap", "300000000\n"},
    {HWMON "energy1_input", "5000000250000\n"},
    {HWMON "fan1_input", "1500\n"},
    {HWMON "fan1_max", "3000\n"},
    {HWMON "freq1_input", "801250000\n"},
    {HWMON "freq2_input", "1600000000\n"},
};

static const struct file xe_files[] = {
    {"device/tile0/physical_vram_size_bytes", "12884901888\n"},
    {"device/tile0/gt0/freq0/act_freq", "1850\n"},
    {"device/tile0/gt0/freq0/max_freq", "2400\n"},
    {"device/tile0/gt0/freq0/rp0_freq", "2850\n"},
    {"device/tile0/memory/freq0/max_freq", "2375\n"},
    {"device/current_link_speed", "2.5 GT/s PCIe\n"},
    {"device/current_link_width", "1\n"},
    {HWMON "name", "xe\n"},
    {HWMON "temp2_input", "61000\n"},
    {HWMON "temp2_label", "pkg\n"},
    {HWMON "temp2_crit", "95000\n"},
    {HWMON "temp3_input", "66000\n"},
    {HWMON "temp3_label", "vram\n"},
    {HWMON "energy1_input", "7000000\n"},
    {HWMON "energy2_input", "6000000\n"},
    {HWMON "power1_max", "190000000\n"},
    {HWMON "power1_cap", "210000000\n"},
    {HWMON "fan1_input", "1200\n"},
};

static const struct file i915_files[] = {
    {"gt/gt0/rps_act_freq_mhz", "1150\n"},
    {"gt/gt0/rps_RP0_freq_mhz", "2050\n"},
    {"device/hwmon/hwmon7/name", "i915_gt0\n"},
    {"device/hwmon/hwmon7/energy1_input", "1\n"},
    {"device/hwmon/hwmon4/name", "i915\n"},
    {"device/hwmon/hwmon4/energy1_input", "2500000\n"},
    {"device/hwmon/hwmon4/temp1_input", "-3000\n"},
};

static const char *const amd_folder = "sys/class/drm/card1/";

static void put_amd(void)
{
    put_card("card1", "amdgpu", "0000:03:00.0", amd_files, COUNT_OF(amd_files));
}

// ---- Readings -------------------------------------------------------------

// What is present: the columns, then the description, "name=value ...".
static const char *text_of(const struct gpu_reading *reading)
{
    static char text[2048];
    const struct record *sample = &reading->sample;
    const struct gpu_info *info = &reading->info;
    const struct record_kind_info *kind = record_kind_info(RECORD_KIND_DEVICE_SAMPLE);
    const struct {
        const char *name;
        double value;
    } facts[] = {{"memory", (double)info->memory_bytes},
                 {"sm_max", (double)info->sm_clock_max_hz},
                 {"memory_max", (double)info->memory_clock_max_hz},
                 {"cap", info->power_cap_watts},
                 {"slowdown", info->slowdown_celsius},
                 {"link_max", info->pcie.generation_max * 100 + info->pcie.width_max}};
    size_t used = 0;
    text[0] = '\0';
    for (unsigned int i = 0; i < kind->column_count; i++) {
        if (!record_has(sample, i))
            continue;
        const double value = kind->columns[i].type == COLUMN_REAL ? sample->values[i].r
                                                                  : (double)sample->values[i].i;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s=%.15g ",
                                 kind->columns[i].name, value);
    }
    used += (size_t)snprintf(text + used, sizeof text - used, "|");
    for (size_t i = 0; i < COUNT_OF(facts); i++)
        if (facts[i].value != 0.0)
            used += (size_t)snprintf(text + used, sizeof text - used, " %s=%.15g", facts[i].name,
                                     facts[i].value);
    assert_true(used < sizeof text);
    return text;
}

static unsigned int read_all(void)
{
    memset(readings, 0x55, sizeof readings);
    now_ns += 1000000000;
    const unsigned int count = gpu_sysfs_read(&gpus, readings, GPU_MAX, root, now_ns);
    for (unsigned int i = 0; i < count; i++) {
        assert_int_equal(readings[i].sample.kind, RECORD_KIND_DEVICE_SAMPLE);
        assert_true(record_is_sound(&readings[i].sample));
        assert_true(readings[i].sample.started_ns > 0);
        assert_false(readings[i].lost || readings[i].processes_known);
        assert_int_equal(readings[i].process_count, 0);
    }
    return count;
}

static const char *const amd_text =
    "gpu_util_ratio=0.57 memory_used_bytes=1073741824 temperature_celsius=45 power_watts=123 "
    "energy_joules=5000000.25 sm_clock_hz=801250000 memory_clock_hz=1600000000 "
    "pcie_generation=4 pcie_width=8 memory_total_bytes=68702699520 memory_util_ratio=0.12 "
    "memory_temperature_celsius=52 power_limit_watts=300 fan_ratio=0.5 ecc_corrected=31 "
    "ecc_uncorrected=2 | memory=68702699520 sm_max=1700000000 memory_max=1600000000 cap=300 "
    "slowdown=100 link_max=516";

TEST_CASE(all_is_told_of_amd)
{
    put_amd();
    assert_int_equal(read_all(), 1);
    const struct gpu_info *info = &readings[0].info;
    assert_string_equal(text_of(&readings[0]), amd_text);
    assert_string_equal(info->name, "amd:0");
    assert_string_equal(info->uuid, "PCI-0000:03:00.0");
    assert_string_equal(info->product, "Instinct MI210");
    assert_string_equal(info->parent_uuid, "");
    assert_string_equal(info->compute_capability, "");
    assert_int_equal(info->vendor, GPU_AMD);
}

TEST_CASE(all_is_told_of_intel)
{
    put_card("card0", "xe", "0000:04:00.0", xe_files, COUNT_OF(xe_files));
    put_card("card2", "i915", "0000:00:02.0", i915_files, COUNT_OF(i915_files));
    assert_int_equal(read_all(), 2);
    assert_string_equal(text_of(&readings[0]), "temperature_celsius=-3 energy_joules=2.5 "
                                               "sm_clock_hz=1150000000 | sm_max=2050000000");
    assert_string_equal(readings[0].info.name, "intel:0");
    assert_string_equal(
        text_of(&readings[1]),
        "temperature_celsius=61 energy_joules=7 sm_clock_hz=1850000000 pcie_generation=1 "
        "pcie_width=1 memory_total_bytes=12884901888 memory_temperature_celsius=66 "
        "power_limit_watts=190 | memory=12884901888 sm_max=2850000000 memory_max=2375000000 "
        "cap=190 slowdown=95");
    assert_string_equal(readings[1].info.name, "intel:1");
    assert_string_equal(readings[1].info.product, "");
    assert_int_equal(readings[1].info.vendor, GPU_INTEL);
}

// The utilisation is that of the busiest GT: of each second, the time that its counter did not
// grow.
TEST_CASE(intel_is_busy_while_it_is_not_idle)
{
    static const struct {
        const char *driver, *files[2];
    } drivers[] = {{"xe",
                    {"device/tile0/gt0/gtidle/idle_residency_ms",
                     "device/tile1/gt1/gtidle/idle_residency_ms"}},
                   {"i915", {"gt/gt0/rc6_residency_ms", "gt/gt1/rc6_residency_ms"}}};
    static const struct {
        const char *texts[2], *power;
        double util; // -1: not known
    } steps[] = {
        {{"1000", "5000"}, "active", -1},  {{"1750", "5900"}, "active", 0.25},
        {{"2650", "6500"}, "active", 0.4}, {{"4000", "7600"}, "active", 0},
        {{"4000", "7600"}, "active", 1},   {{"3999", "8100"}, "active", -1},
        {{"4499", "9000"}, "active", 0.5}, {{"4999", NULL}, "active", -1},
        {{"5499", NULL}, "active", 0.5},   {{"x", NULL}, "active", -1},
        {{"6499", NULL}, "active", -1},    {{"6999", NULL}, "active", 0.5},
        {{"6999", NULL}, "suspended", -1}, {{"6999", NULL}, "active", -1},
        {{"6999", "0"}, "active", 1},      {{"6999", "90"}, "active", -1},
    };
    for (size_t d = 0; d < COUNT_OF(drivers); d++) {
        tear_down(NULL);
        set_up(NULL);
        put_card("card0", drivers[d].driver, "0000:00:02.0", i915_files, 1);
        for (size_t i = 0; i < COUNT_OF(steps); i++) {
            for (int f = 0; f < 2; f++) {
                const char *file = format_text("sys/class/drm/card0/%s", drivers[d].files[f]);
                if (steps[i].texts[f])
                    put(file, format_text("%s\n", steps[i].texts[f]));
                else
                    (void)unlink(path_of(file));
            }
            put("sys/class/drm/card0/device/power/runtime_status", steps[i].power);
            assert_int_equal(read_all(), 1);
            const struct record *sample = &readings[0].sample;
            const double util = record_has(sample, DEVICE_SAMPLE_GPU_UTIL)
                                    ? sample->values[DEVICE_SAMPLE_GPU_UTIL].r
                                    : -1;
            if (!(fabs(util - steps[i].util) < 1e-9))
                fail_msg("%s, step %zu: %g", drivers[d].driver, i, util);
        }
    }
}

// Other files tell what the first choice does not.
TEST_CASE(there_are_second_choices)
{
    static const struct {
        struct file more;
        const char *missing, *part;
    } cases[] = {
        {{HWMON "power1_input", "99000000\n"}, HWMON "power1_average", " power_watts=99 "},
        {{"x", ""}, HWMON "fan1_max", " power_limit_watts=300 ecc"},
        {{HWMON "pwm1", "51\n"}, HWMON "fan1_max", " fan_ratio=0.2 "},
        {{HWMON "pwm1", "51\n"}, HWMON "fan1_input", " fan_ratio=0.2 "},
        {{"x", ""}, HWMON "freq1_input", " sm_clock_hz=800000000 "},
        {{"x", ""}, HWMON "temp1_input", " temperature_celsius=58.5 "},
        {{"x", ""}, HWMON "temp1_input", " slowdown=110 "},
        {{"x", ""}, HWMON "temp1_crit", " cap=300 link_max"},
        {{"device/pp_dpm_sclk", "0: 5Mhz\n1: 9Mhz\n"}, HWMON "freq1_input", "0.25 memory_clock"},
        {{"device/pp_dpm_sclk", "S: 19Mhz *\n0: 615Mhz"}, HWMON "freq1_input", "k_hz=19000000 "},
        {{HWMON "energy2_input", "1\n"}, HWMON "energy1_input", " energy_joules=1e-06 "},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        tear_down(NULL);
        set_up(NULL);
        put_amd();
        put("sys/class/drm/card1/" HWMON "pwm1_max", "255\n");
        put(format_text("%s%s", amd_folder, cases[i].more.name), cases[i].more.text);
        assert_int_equal(unlink(path_of(format_text("%s%s", amd_folder, cases[i].missing))), 0);
        assert_int_equal(read_all(), 1);
        if (!strstr(text_of(&readings[0]), cases[i].part))
            fail_msg("%zu: no \"%s\" in %s", i, cases[i].part, text_of(&readings[0]));
    }
}

// A counter that fails for a moment is not continued by another one.
TEST_CASE(two_counters_do_not_mix)
{
    put_card("card0", "xe", "0000:04:00.0", xe_files, COUNT_OF(xe_files));
    put("sys/class/drm/card0/" HWMON "energy1_input", "");
    assert_int_equal(read_all(), 1);
    assert_false(record_has(&readings[0].sample, DEVICE_SAMPLE_ENERGY));
}

TEST_CASE(facts_that_are_gone_are_unknown)
{
    put_amd();
    assert_int_equal(read_all(), 1);
    assert_int_equal(unlink(path_of("sys/class/drm/card1/" HWMON "name")), 0);
    assert_int_equal(read_all(), 1);
    assert_string_equal(strstr(text_of(&readings[0]), "| memory"),
                        "| memory=68702699520 sm_max=1700000000 memory_max=1600000000 "
                        "link_max=516");
}

// ---- Damage ---------------------------------------------------------------

// No value is what no device has, whatever the files say.
static void assert_plausible(const struct gpu_reading *reading, const char *what)
{
    static const struct {
        unsigned int column;
        double least, most;
    } bounds[] = {{DEVICE_SAMPLE_GPU_UTIL, 0, 1},
                  {DEVICE_SAMPLE_MEMORY_UTIL, 0, 1},
                  {DEVICE_SAMPLE_TEMPERATURE, -50, 200},
                  {DEVICE_SAMPLE_MEMORY_TEMPERATURE, -50, 200},
                  {DEVICE_SAMPLE_POWER, 0, 1e5},
                  {DEVICE_SAMPLE_POWER_LIMIT, 1e-6, 1e5},
                  {DEVICE_SAMPLE_ENERGY, 0, 1e12},
                  {DEVICE_SAMPLE_FAN, 0, 2},
                  {DEVICE_SAMPLE_MEMORY_TOTAL, 1, 0x1p50},
                  {DEVICE_SAMPLE_MEMORY_USED, 0, 0x1p50},
                  {DEVICE_SAMPLE_SM_CLOCK, 0, 1e11},
                  {DEVICE_SAMPLE_MEMORY_CLOCK, 0, 1e11},
                  {DEVICE_SAMPLE_ECC_CORRECTED, 0, 0x1p53},
                  {DEVICE_SAMPLE_ECC_UNCORRECTED, 0, 0x1p53},
                  {DEVICE_SAMPLE_PCIE_GENERATION, 1, 6},
                  {DEVICE_SAMPLE_PCIE_WIDTH, 1, 32}};
    const struct record_column *columns = record_kind_info(RECORD_KIND_DEVICE_SAMPLE)->columns;
    for (size_t i = 0; i < COUNT_OF(bounds); i++) {
        const union record_value *value = &reading->sample.values[bounds[i].column];
        const double number =
            columns[bounds[i].column].type == COLUMN_REAL ? value->r : (double)value->i;
        if (record_has(&reading->sample, bounds[i].column) &&
            !(number >= bounds[i].least && number <= bounds[i].most))
            fail_msg("%s: %s is %g", what, columns[bounds[i].column].name, number);
    }
    assert_in_range(reading->info.slowdown_celsius * 1000, 0, 200000);
    assert_in_range(reading->info.sm_clock_max_hz, 0, INT64_C(100000000000));
    for (const char *at = reading->info.product; *at; at++)
        assert_true((unsigned char)*at >= ' ');
}

// The columns that one file tells; 0: none.
static uint64_t columns_of(const char *file)
{
    static const struct {
        const char *file;
        uint64_t columns;
    } told[] = {
#define BIT(column) (UINT64_C(1) << DEVICE_SAMPLE_##column)
        {"gpu_busy_percent", BIT(GPU_UTIL)},
        {"mem_busy_percent", BIT(MEMORY_UTIL)},
        {"mem_info_vram_total", BIT(MEMORY_TOTAL)},
        {"mem_info_vram_used", BIT(MEMORY_USED)},
        {"current_link_speed", BIT(PCIE_GENERATION)},
        {"current_link_width", BIT(PCIE_WIDTH)},
        {"umc_err_count", BIT(ECC_CORRECTED) | BIT(ECC_UNCORRECTED)},
        {"temp3_input", BIT(MEMORY_TEMPERATURE)},
        {"temp3_label", BIT(MEMORY_TEMPERATURE)},
        {"power1_average", BIT(POWER)},
        {"power1_cap", BIT(POWER_LIMIT)},
        {"energy1_input", BIT(ENERGY)},
        {"fan1_input", BIT(FAN)},
        {"fan1_max", BIT(FAN)},
        {"hwmon3/name", BIT(TEMPERATURE) | BIT(MEMORY_TEMPERATURE) | BIT(POWER) | BIT(POWER_LIMIT) |
                            BIT(ENERGY) | BIT(FAN)},
#undef BIT
    };
    for (size_t i = 0; i < COUNT_OF(told); i++)
        if (strstr(file, told[i].file))
            return told[i].columns;
    return 0;
}

enum damage { MISSING, DANGLING, FOLDER, FIFO, ENDLESS, EMPTY, TEXTS };

// Puts something else in the place of a file.
static void damage(const char *file, enum damage how)
{
    // Numbers that no sensor has, and texts that are no numbers.
    static const char *const texts[] = {"",
                                        "\n",
                                        "-1000000\n",
                                        "9223372036854775807\n",
                                        "18446744073709551616\n",
                                        "0x10\n",
                                        "nan\n",
                                        "1e5\n",
                                        "57 58\n",
                                        " 57\n",
                                        "\xff\xfe\x80\n",
                                        "\033[2J\n",
                                        "-\n",
                                        "N/A\n"};
    const char *path = path_of(format_text("%s%s", amd_folder, file));
    assert_int_equal(unlink(path), 0);
    if (how == DANGLING)
        assert_int_equal(symlink("/nonexistent/inferstat", path), 0);
    else if (how == FOLDER)
        assert_int_equal(mkdir(path, 0700), 0);
    else if (how == FIFO)
        assert_int_equal(mkfifo(path, 0600), 0);
    else if (how == ENDLESS)
        assert_int_equal(symlink("/dev/zero", path), 0);
    else if (how >= EMPTY)
        write_text(path, texts[((unsigned)how - EMPTY) % COUNT_OF(texts)]);
}

// Each file in turn is missing or nonsense: its own columns are absent, all others as before.
TEST_CASE(one_bad_file_spoils_nothing_else)
{
    enum { DAMAGES = TEXTS + 14 };
    put_amd();
    assert_int_equal(read_all(), 1);
    const struct record whole = readings[0].sample;
    for (size_t i = 0; i < COUNT_OF(amd_files); i++)
        for (unsigned int how = MISSING; how < DAMAGES; how++) {
            const char *file = amd_files[i].name;
            damage(file, (enum damage)how);
            assert_int_equal(read_all(), 1);
            const struct record *sample = &readings[0].sample;
            const uint64_t lost = whole.present & ~sample->present;
            const char *what = format_text("%s %u", file, how);
            if (lost != columns_of(file) || (sample->present & ~whole.present) != 0)
                fail_msg("%s: lost %llx, not %llx", what, (unsigned long long)lost,
                         (unsigned long long)columns_of(file));
            assert_plausible(&readings[0], what);
            for (unsigned int k = 0; k < DEVICE_SAMPLE_COLUMNS; k++)
                if (lost >> k & 1)
                    assert_int_equal(sample->values[k].i, 0);
            (void)remove(path_of(format_text("%s%s", amd_folder, file)));
            put(format_text("%s%s", amd_folder, file), amd_files[i].text);
        }
    assert_int_equal(read_all(), 1);
    assert_string_equal(text_of(&readings[0]), amd_text);
}

TEST_CASE(nonsense_together_is_absent)
{
    put_amd();
    put("sys/class/drm/card1/device/mem_info_vram_used", "68702699521\n"); // more than there is
    put("sys/class/drm/card1/" HWMON "fan1_input", "6001\n");
    put("sys/class/drm/card1/" HWMON "temp1_crit", "-5000\n");
    put("sys/class/drm/card1/device/gpu_busy_percent", "200\n");
    put("sys/class/drm/card1/device/ras/umc_err_count", "ue: -1\nce: 9223372036854775807\n");
    put("sys/class/drm/card1/device/pp_dpm_sclk", "0: -5Mhz\n1: 1234567Mhz *\n2: 70\n: 3Mhz\n");
    assert_int_equal(read_all(), 1);
    assert_string_equal(
        text_of(&readings[0]),
        "temperature_celsius=45 power_watts=123 energy_joules=5000000.25 sm_clock_hz=801250000 "
        "memory_clock_hz=1600000000 pcie_generation=4 pcie_width=8 "
        "memory_total_bytes=68702699520 memory_util_ratio=0.12 memory_temperature_celsius=52 "
        "power_limit_watts=300 | memory=68702699520 memory_max=1600000000 cap=300 link_max=516");
}

TEST_CASE(names_are_escaped)
{
    char product[300];
    put_amd();
    memset(product, 'x', sizeof product);
    memcpy(product, "\033]0;\xff", 5);
    write_file(path_of("sys/class/drm/card1/device/product_name"), product, sizeof product);
    assert_int_equal(read_all(), 1);
    assert_int_equal(strncmp(readings[0].info.product, "\\x1B]0;\\xFFxx", 13), 0);
}

// Any files may be damaged in any way at once.
TEST_CASE(rubbish_gives_no_nonsense)
{
    uint64_t random = 17;
    put_amd();
    for (unsigned int round = 0; round < test_volume(50); round++) {
        for (size_t i = 0; i < COUNT_OF(amd_files); i++) {
            char bytes[200];
            const size_t size = test_random(&random) % sizeof bytes;
            const bool is_number = test_random(&random) % 2;
            static const char letters[] = "0123456789-\n: Mhz*ucede.";
            for (size_t k = 0; k < size; k++)
                bytes[k] = is_number ? letters[test_random(&random) % (sizeof letters - 1)]
                                     : (char)test_random(&random);
            const char *path = path_of(format_text("%s%s", amd_folder, amd_files[i].name));
            if (test_random(&random) % 2 == 0)
                continue;
            assert_int_equal(unlink(path), 0); // faster than to write over it
            write_file(path, bytes, is_number && size > 12 ? 12 : size);
        }
        if (read_all() == 1)
            assert_plausible(&readings[0], format_text("round %u", round));
    }
}

// ---- Devices --------------------------------------------------------------

TEST_CASE(without_sysfs_there_is_nothing)
{
    assert_int_equal(read_all(), 0);
    put("sys/class/drm", "a file");
    assert_int_equal(read_all(), 0);
    assert_int_equal(gpu_sysfs_read(&gpus, readings, GPU_MAX, "/nonexistent", now_ns), 0);
    (void)gpu_sysfs_read(&gpus, readings, GPU_MAX, NULL, now_ns); // whatever this host has
}

TEST_CASE(only_gpus_of_known_drivers_count)
{
    static const struct file busy[] = {{"device/gpu_busy_percent", "1\n"}};
    static const char *const drivers[] = {"nvidia", "radeon", "vfio-pci", "ast", "amdgpu_xcp", ""};
    char card[16], address[16];
    for (unsigned int i = 0; i < COUNT_OF(drivers); i++) {
        (void)snprintf(card, sizeof card, "card%u", i + 10);
        (void)snprintf(address, sizeof address, "0000:%02x:00.0", i + 10);
        put_card(card, drivers[i], address, busy, 1);
    }
    put_card("card3", "amdgpu", "../../etc", busy, 1); // no address
    put_card("card3-DP-1", "amdgpu", "0000:33:00.0", busy, 1);
    put_card("renderD128", "amdgpu", "0000:34:00.0", busy, 1);
    put_card("card123456789012345678", "amdgpu", "0000:35:00.0", busy, 1);
    put("sys/class/drm/card4/device/uevent", "DRIVER=amdgpu\n");
    put("sys/class/drm/card5/device/uevent", "PCI_SLOT_NAME=0000:36:00.0\n");
    put("sys/class/drm/card6/device/uevent", "");
    put("sys/class/drm/version", "drm 1.1.0 20060810\n");
    assert_int_equal(read_all(), 0);
    put_amd();
    assert_int_equal(read_all(), 1);
}

TEST_CASE(numbers_follow_addresses)
{
    static const struct file busy[] = {{"device/gpu_busy_percent", "1\n"}};
    static const struct file clock[] = {{"gt/gt0/rps_act_freq_mhz", "300\n"}};
    static const char *const expected[] = {
        "amd:0 PCI-0000:0a:00.0",   "amd:2 PCI-f000:c1:00.0",   "amd:3 PCI-10000:01:00.0",
        "intel:0 PCI-0000:00:02.0", "intel:1 PCI-0000:0b:00.0",
    };
    put_card("card0", "amdgpu", "10000:01:00.0", busy, 1);
    put_card("card1", "i915", "0000:0b:00.0", clock, 1);
    put_card("card2", "amdgpu", "f000:c1:00.0", busy, 1);
    put_card("card3", "amdgpu", "0000:0a:00.0", busy, 1);
    put_card("card4", "amdgpu", "0000:0c:00.0", NULL, 0); // of which nothing can be read
    put_card("card5", "i915", "0000:00:02.0", clock, 1);
    assert_int_equal(read_all(), COUNT_OF(expected));
    for (size_t i = 0; i < COUNT_OF(expected); i++)
        assert_string_equal(format_text("%s %s", readings[i].info.name, readings[i].info.uuid),
                            expected[i]);
    assert_int_equal(gpu_sysfs_read(&gpus, readings, 2, root, now_ns), 2);
    assert_string_equal(readings[1].info.name, "amd:2");
    assert_int_equal(gpu_sysfs_read(&gpus, readings, 0, root, now_ns), 0);
}

TEST_CASE(there_is_an_end_of_devices)
{
    static const struct file busy[] = {{"device/gpu_busy_percent", "1\n"}};
    char card[16], address[16];
    for (unsigned int i = 0; i < GPU_MAX + 3; i++) {
        (void)snprintf(card, sizeof card, "card%u", i);
        (void)snprintf(address, sizeof address, "0000:%02x:00.0", i);
        put_card(card, "amdgpu", address, busy, 1);
    }
    assert_int_equal(read_all(), GPU_MAX);
}

TEST_CASE(devices_come_and_go)
{
    static const struct file busy[] = {{"device/gpu_busy_percent", "1\n"}};
    put_amd();
    assert_int_equal(read_all(), 1);
    put_card("card0", "amdgpu", "0000:01:00.0", busy, 1);
    assert_int_equal(read_all(), 2);
    assert_string_equal(readings[1].info.uuid, "PCI-0000:03:00.0");
    assert_string_equal(text_of(&readings[1]), amd_text);
    // Unplugged while the card's folder is still there, then gone.
    assert_int_equal(unlink(path_of("sys/class/drm/card1/device")), 0);
    assert_int_equal(read_all(), 1);
    assert_string_equal(readings[0].info.uuid, "PCI-0000:01:00.0");
    assert_string_equal(text_of(&readings[0]), "gpu_util_ratio=0.01 |");
    // A known one that tells nothing for now, such as during a reset, stays.
    put("sys/class/drm/card0/device/gpu_busy_percent", "");
    assert_int_equal(read_all(), 1);
    assert_string_equal(text_of(&readings[0]), "|");
}

// A device that sleeps is not asked, and what is known of it remains.
TEST_CASE(sleeping_devices_are_left_asleep)
{
    put_amd();
    assert_int_equal(read_all(), 1);
    put("sys/class/drm/card1/device/power/runtime_status", "suspended\n");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(read_all(), 1);
        assert_string_equal(text_of(&readings[0]), strstr(amd_text, "| memory"));
        assert_int_equal(readings[0].info.pcie.width, 8);
    }
    put("sys/class/drm/card1/device/power/runtime_status", "active\n");
    assert_int_equal(read_all(), 1);
    assert_string_equal(text_of(&readings[0]), amd_text);
    // One that was never awake is there, too.
    memset(&gpus, 0, sizeof gpus);
    put("sys/class/drm/card1/device/power/runtime_status", "suspending\n");
    assert_int_equal(read_all(), 1);
    assert_string_equal(text_of(&readings[0]), "|");
    assert_string_equal(readings[0].info.product, "Instinct MI210");
}

TEST_MAIN_EACH(set_up, tear_down, all_is_told_of_amd, all_is_told_of_intel,
               intel_is_busy_while_it_is_not_idle, there_are_second_choices,
               two_counters_do_not_mix, facts_that_are_gone_are_unknown,
               one_bad_file_spoils_nothing_else, nonsense_together_is_absent, names_are_escaped,
               rubbish_gives_no_nonsense, without_sysfs_there_is_nothing,
               only_gpus_of_known_drivers_count, numbers_follow_addresses,
               there_is_an_end_of_devices, devices_come_and_go, sleeping_devices_are_left_asleep)
