// Libraries that lack a function, and files that are no NVML.  A library without a function is a
// copy of the fake in which the function has another name.
#include "common/devices/gpu.h"
#include "common/devices/nvml_library.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

static char folder[FOLDER_PATH_SIZE];
static char *library; // the bytes of the fake
static size_t library_size;

TEST_FIXTURE(set_up)
{
    char path[FOLDER_PATH_SIZE];
    folder_make(folder);
    library = read_file(FAKE_NVML, &library_size);
    (void)write_text(folder_path(path, folder, "script"), "gpus 2\nmig 0 1\nprocess 1 5 4096\n");
    return setenv("INFERSTAT_TEST_NVML_SCRIPT", path, 1);
}

TEST_FIXTURE(tear_down)
{
    free(library);
    folder_remove(folder);
    return 0;
}

static void use(const void *bytes, size_t size, const char *name)
{
    char path[FOLDER_PATH_SIZE];
    (void)write_file(folder_path(path, folder, name), bytes, size);
    assert_int_equal(setenv("INFERSTAT_TEST_NVML", path, 1), 0);
}

static void use_without(const char *function)
{
    const size_t length = strlen(function) + 2; // with the NULs around it
    char *bytes = malloc(library_size);
    char *whole = malloc(length);
    size_t found = 0;
    assert_true(bytes && whole);
    memcpy(bytes, library, library_size);
    whole[0] = '\0';
    memcpy(whole + 1, function, length - 1);
    for (size_t i = 0; i + length <= library_size; i++)
        if (memcmp(bytes + i, whole, length) == 0) {
            bytes[i + 1] = 'x';
            found++;
        }
    assert_int_not_equal(found, 0);
    use(bytes, library_size, function);
    free(whole);
    free(bytes);
}

// The columns of the last device after two readings; 0: there is no device.
static uint64_t columns(struct gpu_snapshot *snapshot)
{
    struct gpu_set *set = NULL;
    assert_int_equal(gpu_set_open(&set, folder), STATUS_OK);
    assert_int_equal(gpu_set_read(set, snapshot, false), STATUS_OK);
    assert_int_equal(gpu_set_read(set, snapshot, true), STATUS_OK);
    gpu_set_close(set);
    return snapshot->count ? snapshot->gpus[snapshot->count - 1].sample.present : 0;
}

#define BIT(column) (UINT64_C(1) << DEVICE_SAMPLE_##column)

// What a sample lacks without a function; functions that are not here cost it nothing.
static const struct {
    const char *function;
    uint64_t lacks;
} losses[] = {
    {"nvmlDeviceGetUtilizationRates", BIT(GPU_UTIL) | BIT(MEMORY_UTIL)},
    {"nvmlDeviceGetEncoderUtilization", BIT(ENCODER_UTIL)},
    {"nvmlDeviceGetDecoderUtilization", BIT(DECODER_UTIL)},
    {"nvmlDeviceGetMemoryInfo_v2", BIT(MEMORY_RESERVED)},
    {"nvmlDeviceGetFieldValues", BIT(MEMORY_TEMPERATURE) | BIT(RETIRED_PAGES)},
    {"nvmlDeviceGetPowerUsage", BIT(POWER)},
    {"nvmlDeviceGetEnforcedPowerLimit", BIT(POWER_LIMIT)},
    {"nvmlDeviceGetTotalEnergyConsumption", BIT(ENERGY)},
    {"nvmlDeviceGetClockInfo", BIT(SM_CLOCK) | BIT(MEMORY_CLOCK)},
    {"nvmlDeviceGetCurrPcieLinkGeneration", BIT(PCIE_GENERATION)},
    {"nvmlDeviceGetCurrPcieLinkWidth", BIT(PCIE_WIDTH)},
    {"nvmlDeviceGetPcieThroughput", BIT(PCIE_RX) | BIT(PCIE_TX)},
    {"nvmlDeviceGetTotalEccErrors", BIT(ECC_CORRECTED) | BIT(ECC_UNCORRECTED)},
    {"nvmlDeviceGetCurrentClocksEventReasons", BIT(THROTTLE)},
    {"nvmlDeviceGetRemappedRows", BIT(REMAPPED_ROWS)},
    {"nvmlDeviceGetFanSpeed", BIT(FAN)},
    {"nvmlGpmQueryDeviceSupport", BIT(SM_ACTIVE) | BIT(TENSOR_ACTIVE) | BIT(DRAM_ACTIVE)},
    {"nvmlGpmSampleAlloc", BIT(SM_ACTIVE) | BIT(TENSOR_ACTIVE) | BIT(DRAM_ACTIVE)},
    {"nvmlGpmSampleFree", BIT(SM_ACTIVE) | BIT(TENSOR_ACTIVE) | BIT(DRAM_ACTIVE)},
    {"nvmlGpmSampleGet", BIT(SM_ACTIVE) | BIT(TENSOR_ACTIVE) | BIT(DRAM_ACTIVE)},
    {"nvmlGpmMetricsGet", BIT(SM_ACTIVE) | BIT(TENSOR_ACTIVE) | BIT(DRAM_ACTIVE)},
};

TEST_CASE(each_function_may_be_missing)
{
    static const char *const required[] = {
        "nvmlInit_v2", "nvmlShutdown", "nvmlDeviceGetCount_v2",
        "nvmlDeviceGetHandleByIndex_v2"}; // the fake has no others
    static const char *const names[] = {
#define NAME(name, symbol, earlier, parameters) symbol,
        NVML_FUNCTIONS(NAME)
#undef NAME
    };
    struct gpu_snapshot snapshot = {0};
    use(library, library_size, "whole");
    const uint64_t whole = columns(&snapshot);
    assert_int_equal(snapshot.count, 3);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        uint64_t expected = whole;
        for (size_t j = 0; j < COUNT_OF(losses); j++)
            if (strcmp(names[i], losses[j].function) == 0)
                expected &= ~losses[j].lacks;
        for (size_t j = 0; j < COUNT_OF(required); j++)
            if (strcmp(names[i], required[j]) == 0)
                expected = 0;
        use_without(names[i]);
        const uint64_t present = columns(&snapshot);
        if (present != expected)
            fail_msg("without %s: %llx in place of %llx", names[i], (unsigned long long)present,
                     (unsigned long long)expected);
    }
    gpu_snapshot_deinit(&snapshot);
}

TEST_CASE(files_that_are_no_nvml)
{
    struct gpu_snapshot snapshot = {0};
    use("no library", 10, "text");
    assert_int_equal(columns(&snapshot), 0);
    use("", 0, "empty");
    assert_int_equal(columns(&snapshot), 0);
    use(library, 64, "cut off");
    assert_int_equal(columns(&snapshot), 0);
    assert_int_equal(setenv("INFERSTAT_TEST_NVML", "/nowhere/lib.so", 1), 0);
    assert_int_equal(columns(&snapshot), 0);
    assert_int_equal(setenv("INFERSTAT_TEST_NVML", "libm.so.6", 1), 0); // a library
    assert_int_equal(columns(&snapshot), 0);
    gpu_snapshot_deinit(&snapshot);
}

TEST_MAIN_ONCE(set_up, tear_down, each_function_may_be_missing, files_that_are_no_nvml)
