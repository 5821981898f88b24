// What a device says of itself, and the file that keeps what was measured.
#include <dirent.h>
#include <sys/stat.h>

#include "common/core/base/crc32c.h"
#include "server/device/properties.h"
#include "tests/support/device_fault.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"
#include "tests/unit/device/stream_fixture.h"

TEST_CASE(speeds_are_generations)
{
    static const struct {
        const char *speed;
        unsigned int generation;
    } cases[] = {
        {"2.5 GT/s PCIe\n", 1},
        {"5.0 GT/s PCIe\n", 2},
        {"8.0 GT/s PCIe\n", 3},
        {"8 GT/s", 3},
        {"16.0 GT/s PCIe\n", 4},
        {"32.0 GT/s PCIe\n", 5},
        {"64.0 GT/s PCIe", 6},
        {"Unknown\n", 0},
        {"", 0},
        {"32.0", 0},
        {"33.0 GT/s PCIe", 0},
        {"-8.0 GT/s PCIe", 0},
        {"nan GT/s PCIe", 0},
        {"32.0GT/s", 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (pcie_generation(cases[i].speed) != cases[i].generation)
            fail_msg("'%s' is taken for %u", cases[i].speed, pcie_generation(cases[i].speed));
}

// Published figures: V100 SXM2 15.7, A100 19.5, RTX 3090 35.6, H100 SXM 66.9 and RTX 4090 82.6
// TFLOP/s.
TEST_CASE(peaks_as_published)
{
    static const struct {
        unsigned int capability;
        int processors, clock_mhz;
        double published;
    } cases[] = {
        {70, 80, 1530, 15.7},  {80, 108, 1410, 19.5}, {86, 82, 1695, 35.6}, {90, 132, 1980, 66.9},
        {89, 128, 2520, 82.6}, {35, 15, 745, 0},      {90, 132, 0, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const double peak = peak_flops_of(cases[i].capability, cases[i].processors,
                                          cases[i].clock_mhz * INT64_C(1000000));
        assert_true(peak >= 0.995e12 * cases[i].published);
        assert_true(peak <= 1.005e12 * cases[i].published);
    }
}

TEST_CASE(a_link_is_read)
{
    static const char *const files[][2] = {
        {"current_link_speed", "16.0 GT/s PCIe\n"},
        {"current_link_width", "8\n"},
        {"max_link_speed", "32.0 GT/s PCIe\n"},
        {"max_link_width", "16\n"},
    };
    char folder[FOLDER_PATH_SIZE];
    char device[FOLDER_PATH_SIZE];
    char path[FOLDER_PATH_SIZE];
    folder_make(folder);
    assert_int_equal(mkdir(folder_path(device, folder, "0000:3b:00.0"), 0700), 0);
    for (size_t i = 0; i < COUNT_OF(files); i++)
        write_file(folder_path(path, device, files[i][0]), files[i][1], strlen(files[i][1]));
    static const char port[] = "8.0 GT/s PCIe\n"; // of the folder above
    write_file(folder_path(path, folder, "max_link_speed"), port, strlen(port));

    struct pcie_link link;
    static const char *const addresses[] = {"0000:3b:00.0", "00000000:3B:00.0", "0:3b:0.0"};
    for (size_t i = 0; i < COUNT_OF(addresses); i++) {
        assert_true(pcie_link_read(&link, folder, addresses[i]));
        assert_int_equal(link.generation, 4);
        assert_int_equal(link.width, 8);
        assert_int_equal(link.generation_max, 5);
        assert_int_equal(link.width_max, 16);
        assert_int_equal(link.generation_port_max, 3);
    }

    static const char *const wrong[] = {"", "3b:00.0", "0000:3b:00.0/../x", "0000:3b:00",
                                        "0000:3b:00.0 "};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_false(pcie_link_read(&link, folder, wrong[i]));
    assert_true(pcie_link_read(&link, folder, "0000:3c:00.0")); // there is none
    assert_int_equal(link.generation + link.width + link.generation_max + link.width_max, 0);

    // What makes no sense is not known; the rest is.
    static const char *const widths[] = {"", "x\n", "-1\n", "8x\n", "255\n"};
    (void)folder_path(path, device, "current_link_width");
    for (size_t i = 0; i < COUNT_OF(widths); i++) {
        write_file(path, widths[i], strlen(widths[i]));
        assert_true(pcie_link_read(&link, folder, addresses[0]));
        assert_int_equal(link.width, 0);
        assert_int_equal(link.width_max, 16);
    }
    folder_remove(folder);
}

TEST_CASE(the_cpu_says_what_it_is)
{
    struct device *device = stream_device(NULL);
    struct device_properties properties;
    device_properties(device, &properties);
    assert_string_equal(properties.name, "cpu");
    assert_true(properties.product[0] != '\0');
    assert_int_equal(strncmp(properties.driver, "Linux ", 6), 0);
    assert_string_equal(properties.uuid, "");
    assert_int_equal(properties.threads, 2);
    assert_int_equal(properties.compute_capability, 0);
    assert_int_equal(properties.pcie.generation + properties.pcie.width_max, 0);
    assert_true(properties.memory_bytes > 0);
    assert_true(properties.rates.memory == 0.0); // not measured yet
    device_close(device);
}

// Measured once, for all tests.
struct kept {
    struct device *device;
    struct device_properties properties;
    char folder[FOLDER_PATH_SIZE];
    char path[FOLDER_PATH_SIZE]; // of the one file in the folder
    char text[1024];
    size_t size;
};

static void find_file(struct kept *kept)
{
    unsigned int files = 0;
    DIR *open = opendir(kept->folder);
    assert_non_null(open);
    for (const struct dirent *entry = readdir(open); entry; entry = readdir(open)) {
        if (entry->d_name[0] == '.')
            continue;
        (void)folder_path(kept->path, kept->folder, entry->d_name);
        files++;
    }
    (void)closedir(open);
    assert_int_equal(files, 1);
}

static int measure_once(void **state)
{
    struct kept *kept = calloc(1, sizeof *kept);
    assert_non_null(kept);
    struct error err = {0};
    folder_make(kept->folder);
    kept->device = stream_device(NULL);
    device_properties(kept->device, &kept->properties);
    assert_false(device_rates_cached(&kept->properties, kept->folder));
    assert_ok(device_calibrate(kept->device, &kept->properties, kept->folder, &err), &err);
    find_file(kept);
    char *text = read_file(kept->path, &kept->size);
    assert_true(kept->size <= sizeof kept->text);
    memcpy(kept->text, text, kept->size);
    free(text);
    *state = kept;
    return 0;
}

static int forget(void **state)
{
    struct kept *kept = *state;
    assert_int_equal(device_memory_used(kept->device), 0);
    device_close(kept->device);
    folder_remove(kept->folder);
    free(kept);
    return 0;
}

static bool is_cached(const struct kept *kept, struct device_rates *rates)
{
    struct device_properties properties = kept->properties;
    properties.rates = (struct device_rates){0};
    bool cached = device_rates_cached(&properties, kept->folder);
    assert_true(cached || properties.rates.memory == 0.0);
    if (rates)
        *rates = properties.rates;
    return cached;
}

static void assert_rates(const struct device_rates *actual, const struct device_rates *expected)
{
    assert_true(actual->memory == expected->memory);
    assert_true(actual->h2d == expected->h2d);
    assert_true(actual->flops == expected->flops);
    assert_true(actual->steady == expected->steady);
}

STATE_CASE(what_was_measured_is_kept, struct kept *kept)
{
    const struct device_rates *rates = &kept->properties.rates;
    assert_true(rates->memory > 0.0 && rates->h2d > 0.0 && rates->flops > 0.0);
    struct device_rates found;
    assert_true(is_cached(kept, &found));
    assert_rates(&found, rates);
}

// Writes a file that says what it is told to, checksum and all.
static void write_rates(struct kept *kept, const struct device_rates *rates)
{
    char text[sizeof kept->text];
    const char *begin = strstr(kept->text, "memory_bytes_per_second");
    assert_non_null(begin);
    size_t length = (size_t)(begin - kept->text);
    memcpy(text, kept->text, length);
    length +=
        (size_t)snprintf(text + length, sizeof text - length,
                         "memory_bytes_per_second = %.0f\nh2d_bytes_per_second = %.0f\n"
                         "flops_per_second = %.0f\nsteady = %d\nboot = %s\nmeasured_ns = %lld\n",
                         rates->memory, rates->h2d, rates->flops, rates->steady, rates->boot,
                         (long long)rates->measured_ns);
    length += (size_t)snprintf(text + length, sizeof text - length, "check = %08x\n",
                               (unsigned int)crc32c(0, text, length));
    write_file(kept->path, text, length);
}

STATE_CASE(what_is_steady_is_not_measured_again, struct kept *kept)
{
    struct device_rates rates = kept->properties.rates;
    struct error err = {0};
    struct device_properties again;
    device_properties(kept->device, &again);
    rates.memory = 1.0;
    rates.steady = true;
    write_rates(kept, &rates);
    assert_ok(device_calibrate(kept->device, &again, kept->folder, &err), &err);
    assert_rates(&again.rates, &rates);
    write_file(kept->path, kept->text, kept->size);
}

// What was measured before a reboot, a month ago, or in a time to come, is used until it has been
// measured again.
STATE_CASE(what_is_outdated_is_measured_again, struct kept *kept)
{
    const int64_t day_ns = INT64_C(86400000000000);
    const struct {
        int64_t later_ns;
        const char *boot; // NULL: this one
        bool again;
    } cases[] = {
        {0, NULL, false},
        {-29 * day_ns, NULL, false},
        {-31 * day_ns, NULL, true},
        {day_ns, NULL, true},
        {0, "00000000-0000-0000-0000-000000000000", true},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct device_rates rates = kept->properties.rates;
        struct device_rates found;
        struct error err = {0};
        struct device_properties again;
        rates.h2d = 9e14;
        rates.steady = true;
        rates.measured_ns += cases[i].later_ns;
        if (cases[i].boot)
            (void)snprintf(rates.boot, sizeof rates.boot, "%s", cases[i].boot);
        write_rates(kept, &rates);
        assert_true(is_cached(kept, &found));
        assert_rates(&found, &rates);
        device_properties(kept->device, &again);
        assert_ok(device_calibrate(kept->device, &again, kept->folder, &err), &err);
        assert_int_equal(again.rates.h2d < 9e14, cases[i].again);
        assert_int_equal(strcmp(again.rates.boot, kept->properties.rates.boot), 0);
        assert_true(again.rates.measured_ns >= rates.measured_ns || cases[i].again);
    }
    write_file(kept->path, kept->text, kept->size);
}

STATE_CASE(the_better_of_unsteady_rates_is_kept, struct kept *kept)
{
    struct device_rates rates = kept->properties.rates;
    rates.memory = 1.0;
    rates.h2d = 9e14;
    rates.steady = false;
    struct error err = {0};
    struct device_properties again;
    struct device_rates found;
    device_properties(kept->device, &again);
    write_rates(kept, &rates);
    assert_true(is_cached(kept, &found));
    assert_rates(&found, &rates);
    assert_ok(device_calibrate(kept->device, &again, kept->folder, &err), &err);
    assert_true(again.rates.memory > 1.0);
    assert_true(again.rates.h2d == 9e14);
    assert_true(again.rates.flops >= rates.flops);
    assert_true(is_cached(kept, &found));
    assert_rates(&found, &again.rates);
    write_file(kept->path, kept->text, kept->size);
}

STATE_CASE(damage_is_not_believed, struct kept *kept)
{
    char text[sizeof kept->text];
    for (size_t i = 0; i < kept->size; i++) {
        memcpy(text, kept->text, kept->size);
        text[i] = (char)(text[i] ^ 1);
        write_file(kept->path, text, kept->size);
        if (is_cached(kept, NULL))
            fail_msg("byte %zu differs, and it is believed", i);
        write_file(kept->path, kept->text, i); // cut
        assert_false(is_cached(kept, NULL));
    }
    memcpy(text, kept->text, kept->size);
    text[kept->size] = '\n';
    write_file(kept->path, text, kept->size + 1);
    assert_false(is_cached(kept, NULL));
    static char large[1 << 16];
    memcpy(large, kept->text, kept->size);
    write_file(kept->path, large, sizeof large);
    assert_false(is_cached(kept, NULL));
    write_file(kept->path, kept->text, kept->size);
    assert_true(is_cached(kept, NULL));
}

STATE_CASE(damage_is_measured_again, struct kept *kept)
{
    struct error err = {0};
    write_file(kept->path, "nonsense\n", 9);
    struct device_properties again;
    device_properties(kept->device, &again);
    assert_ok(device_calibrate(kept->device, &again, kept->folder, &err), &err);
    assert_true(again.rates.memory > 0.0);
    assert_true(is_cached(kept, NULL));
    find_file(kept); // the same one, and nothing left beside it
    write_file(kept->path, kept->text, kept->size);
}

STATE_CASE(anothers_file_is_not_believed, struct kept *kept)
{
    struct device_properties mine = kept->properties;
    (void)snprintf(mine.driver, sizeof mine.driver, "another");
    assert_false(device_rates_cached(&mine, kept->folder));
    mine = kept->properties;
    mine.threads++;
    assert_false(device_rates_cached(&mine, kept->folder));

    // Another's file under this one's name.
    char text[sizeof kept->text];
    memcpy(text, kept->text, kept->size);
    char *number = strstr(text, "threads = ");
    assert_non_null(number);
    number[10] = '9';
    write_file(kept->path, text, kept->size);
    assert_false(is_cached(kept, NULL));
    write_file(kept->path, kept->text, kept->size);
}

STATE_CASE(no_folder_is_done_without, struct kept *kept)
{
    struct error err = {0};
    struct device_properties properties;
    device_properties(kept->device, &properties);
    assert_false(device_rates_cached(&properties, NULL));
    assert_false(device_rates_cached(&properties, kept->path)); // no folder at all
    assert_ok(device_calibrate(kept->device, &properties, kept->path, &err), &err);
    assert_true(properties.rates.h2d > 0.0);
    find_file(kept);
}

// Whatever fails comes up, and nothing is left.
static void measuring_fails_in_order(void **state)
{
    static const struct {
        enum device_fault_kind kind;
        uint64_t number;
    } cases[] = {
        {DEVICE_FAULT_STREAM, 1}, {DEVICE_FAULT_EVENT, 1},  {DEVICE_FAULT_EVENT, 2},
        {DEVICE_FAULT_MEMORY, 1}, {DEVICE_FAULT_MEMORY, 2}, {DEVICE_FAULT_PINNED, 1},
        {DEVICE_FAULT_FILL, 2},   {DEVICE_FAULT_KERNEL, 1}, {DEVICE_FAULT_COPY_IN, 1},
    };
    struct kept *kept = *state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct device_fault_options options = {0};
        options.fail_at[cases[i].kind] = cases[i].number;
        struct error err = {0};
        struct device *device = NULL;
        struct device_properties properties;
        char other[FOLDER_PATH_SIZE];
        folder_make(other);
        assert_ok(device_fault_open(&device, stream_device(NULL), &options, &err), &err);
        device_properties(device, &properties);
        assert_string_equal(properties.product, kept->properties.product);
        assert_int_not_equal(device_calibrate(device, &properties, other, &err), STATUS_OK);
        assert_non_null(strstr(err.text, "made to fail"));
        assert_true(properties.rates.memory == 0.0);
        assert_false(device_rates_cached(&properties, other));
        assert_int_equal(device_memory_used(device), 0);
        device_close(device);
        folder_remove(other);
    }
}

TEST_MAIN_ONCE(measure_once, forget, speeds_are_generations, peaks_as_published, a_link_is_read,
               the_cpu_says_what_it_is, what_was_measured_is_kept,
               what_is_steady_is_not_measured_again, what_is_outdated_is_measured_again,
               the_better_of_unsteady_rates_is_kept, damage_is_not_believed,
               damage_is_measured_again, anothers_file_is_not_believed, no_folder_is_done_without,
               measuring_fails_in_order)
