// GPUs of NVIDIA, by a library that plays a script (tests/support/nvml/fake_nvml.c).
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/devices/gpu.h"
#include "common/devices/nvml.h"
#include "common/devices/nvml_library.h"
#include "tests/support/test.h"

static struct gpu_set *set;
static struct gpu_snapshot snapshot;
static char script_path[] = "/tmp/inferstat-nvml.XXXXXX";

// The library plays these lines from the next opening on.
static void play(const char *lines)
{
    FILE *file = fopen(script_path, "w");
    assert_non_null(file);
    assert_true(fputs(lines, file) >= 0);
    assert_int_equal(fclose(file), 0);
    gpu_set_close(set);
    gpu_snapshot_deinit(&snapshot);
    set = NULL;
    assert_int_equal(gpu_set_open(&set, NULL), STATUS_OK);
}

static void read_all(bool slow)
{
    assert_int_equal(gpu_set_read(set, &snapshot, slow), STATUS_OK);
    assert_true(snapshot.ended_ns >= snapshot.began_ns);
}

// The library's clock stands still but for this.
static void advance_ms(unsigned int ms)
{
    static double seconds;
    seconds += ms / 1e3;
    assert_int_equal(setenv("INFERSTAT_TEST_NVML_CLOCK", format_text("%.3f", seconds), 1), 0);
}

static double value_of(const struct record *sample, unsigned int column)
{
    assert_true(record_has(sample, column));
    const struct record_column *info =
        &record_kind_info(RECORD_KIND_DEVICE_SAMPLE)->columns[column];
    return info->type == COLUMN_REAL ? sample->values[column].r : (double)sample->values[column].i;
}

// A field of the script, its value there, and the column with what becomes of it.
static const struct {
    const char *field, *value;
    unsigned int column;
    double expected;
    const char *nonsense; // NULL: every number is possible
} columns[] = {
    {"util", "57", DEVICE_SAMPLE_GPU_UTIL, 0.57, "200"},
    {"memory_util", "31", DEVICE_SAMPLE_MEMORY_UTIL, 0.31, "101"},
    {"encoder", "12", DEVICE_SAMPLE_ENCODER_UTIL, 0.12, "1000"},
    {"decoder", "13", DEVICE_SAMPLE_DECODER_UTIL, 0.13, "4294967295"},
    {"memory_total", "80000000000", DEVICE_SAMPLE_MEMORY_TOTAL, 8e10, "9223372036854775808"},
    {"memory_used", "70000000000", DEVICE_SAMPLE_MEMORY_USED, 7e10, "9223372036854775808"},
    {"memory_reserved", "600000000", DEVICE_SAMPLE_MEMORY_RESERVED, 6e8, "9223372036854775808"},
    {"temperature", "71", DEVICE_SAMPLE_TEMPERATURE, 71, "-1"},
    {"memory_temperature", "88", DEVICE_SAMPLE_MEMORY_TEMPERATURE, 88, "255"},
    {"power", "512.25", DEVICE_SAMPLE_POWER, 512.25, "4294967"},
    {"power_limit", "700", DEVICE_SAMPLE_POWER_LIMIT, 700, "4294967"},
    {"sm_clock", "1755", DEVICE_SAMPLE_SM_CLOCK, 1.755e9, "4294967295"},
    {"memory_clock", "2619", DEVICE_SAMPLE_MEMORY_CLOCK, 2.619e9, "4294967295"},
    {"pcie_generation", "4", DEVICE_SAMPLE_PCIE_GENERATION, 4, "99"},
    {"pcie_width", "8", DEVICE_SAMPLE_PCIE_WIDTH, 8, "4294967295"},
    {"pcie_rx", "1500", DEVICE_SAMPLE_PCIE_RX, 1.5e6, "4294967295"},
    {"pcie_tx", "2500", DEVICE_SAMPLE_PCIE_TX, 2.5e6, "4294967295"},
    {"throttle", "4", DEVICE_SAMPLE_THROTTLE, 4, "18446744073709551615"},
    {"ecc_corrected", "3", DEVICE_SAMPLE_ECC_CORRECTED, 3, "18446744073709551615"},
    {"ecc_uncorrected", "1", DEVICE_SAMPLE_ECC_UNCORRECTED, 1, "18446744073709551615"},
    {"retired", "2", DEVICE_SAMPLE_RETIRED_PAGES, 2, NULL},
    {"remapped", "5", DEVICE_SAMPLE_REMAPPED_ROWS, 5, "4294967295"},
    {"fan", "45", DEVICE_SAMPLE_FAN, 0.45, "4294967295"},
    {"sm_active", "62.5", DEVICE_SAMPLE_SM_ACTIVE, 0.625, "150"},
    {"tensor_active", "41.5", DEVICE_SAMPLE_TENSOR_ACTIVE, 0.415, "-1"},
    {"dram_active", "33.25", DEVICE_SAMPLE_DRAM_ACTIVE, 0.3325, "nan"},
};

// All columns but one have what the script says, and that one has `expected`, or is absent.
static void play_fields(size_t odd, const char *value)
{
    char lines[4096] = "", line[128];
    for (size_t i = 0; i < COUNT_OF(columns); i++) {
        (void)snprintf(line, sizeof line, "gpu 0 %s %s\n", columns[i].field,
                       i == odd ? value : columns[i].value);
        assert_true(strlen(lines) + strlen(line) < sizeof lines);
        (void)strcat(lines, line);
    }
    play(lines);
    read_all(true);
    read_all(true); // shares of time need two readings
    assert_int_equal(snapshot.count, 1);
}

TEST_CASE(every_field)
{
    play_fields(COUNT_OF(columns), "");
    const struct record *sample = &snapshot.gpus[0].sample;
    for (size_t i = 0; i < COUNT_OF(columns); i++)
        assert_true(fabs(value_of(sample, columns[i].column) - columns[i].expected) <=
                    1e-9 * columns[i].expected);
    assert_true(value_of(sample, DEVICE_SAMPLE_ENERGY) >= 7e6);
    assert_int_equal(value_of(sample, DEVICE_SAMPLE_PROCESSES), 0);
    assert_true(record_is_sound(sample));
    assert_false(record_has(sample, DEVICE_SAMPLE_DURATION_NS));
}

// What a device does not tell, or what no device can have, is absent, and the rest is there.
TEST_CASE(what_is_not_known_is_absent)
{
    for (size_t odd = 0; odd < COUNT_OF(columns); odd++) {
        const char *const values[] = {"none", columns[odd].nonsense};
        for (size_t v = 0; v < 2 && values[v]; v++) {
            play_fields(odd, values[v]);
            const struct record *sample = &snapshot.gpus[0].sample;
            const bool takes_others = columns[odd].column == DEVICE_SAMPLE_MEMORY_TOTAL ||
                                      columns[odd].column == DEVICE_SAMPLE_MEMORY_USED ||
                                      columns[odd].column == DEVICE_SAMPLE_GPU_UTIL ||
                                      columns[odd].column == DEVICE_SAMPLE_MEMORY_UTIL;
            assert_false(record_has(sample, columns[odd].column));
            for (size_t i = 0; i < COUNT_OF(columns) && !takes_others; i++)
                assert_true(i == odd || record_has(sample, columns[i].column));
        }
    }
}

TEST_CASE(descriptions)
{
    play("gpus 2\nname A\\x1b[2Jcard\ngpu 1 slowdown 87\n");
    read_all(true);
    const struct gpu_info *info = &snapshot.gpus[1].info;
    assert_int_equal(snapshot.count, 2);
    assert_string_equal(info->uuid, "GPU-00000000-0000-0000-0000-000000000001");
    assert_string_equal(info->name, "cuda:1");
    assert_string_equal(info->product, "A\\x1B[2Jcard");
    assert_string_equal(info->compute_capability, "9.0");
    assert_int_equal(info->memory_bytes, INT64_C(151397597184));
    assert_int_equal(info->sm_clock_max_hz, INT64_C(1980000000));
    assert_int_equal(info->memory_clock_max_hz, INT64_C(3201000000));
    assert_true(info->power_cap_watts == 650.5 && info->slowdown_celsius == 87);
    assert_int_equal(info->pcie.generation_max, 5);
    assert_int_equal(info->pcie.width_max, 16);
}

// Functions of earlier versions tell the same, but for what they never told.
TEST_CASE(an_old_library)
{
    const char *today = getenv("INFERSTAT_TEST_NVML");
    assert_int_equal(setenv("INFERSTAT_TEST_NVML", getenv("INFERSTAT_TEST_NVML_OLD"), 1), 0);
    play("gpu 0 temperature 66\nprocess 0 77 1000\n");
    read_all(true);
    read_all(true);
    const struct gpu_reading *gpu = &snapshot.gpus[0];
    assert_true(value_of(&gpu->sample, DEVICE_SAMPLE_MEMORY_USED) == 1073741824.0);
    assert_true(value_of(&gpu->sample, DEVICE_SAMPLE_TEMPERATURE) == 66);
    assert_int_equal(gpu->process_count, 1);
    assert_int_equal(gpu->processes[0].memory_bytes, 1000);
    assert_false(record_has(&gpu->sample, DEVICE_SAMPLE_MEMORY_RESERVED));
    assert_false(record_has(&gpu->sample, DEVICE_SAMPLE_THROTTLE));
    assert_false(record_has(&gpu->sample, DEVICE_SAMPLE_SM_ACTIVE));
    assert_int_equal(setenv("INFERSTAT_TEST_NVML", today, 1), 0);
}

// Whichever function is missing, the readings go on.
TEST_CASE(missing_functions)
{
    static const char *const functions[] = {
#define NAME_OF(name, symbol, earlier, parameters) symbol,
        NVML_FUNCTIONS(NAME_OF)
#undef NAME_OF
    };
    for (size_t i = 0; i < COUNT_OF(functions); i++) {
        char lines[128];
        (void)snprintf(lines, sizeof lines, "missing %s\n", functions[i]);
        play(lines);
        read_all(true);
        read_all(true);
        const bool is_needed = strcmp(functions[i], "nvmlDeviceGetCount_v2") == 0 ||
                               strcmp(functions[i], "nvmlDeviceGetHandleByIndex_v2") == 0;
        assert_int_equal(snapshot.count, is_needed ? 0 : 1);
    }
}

TEST_CASE(processes)
{
    char lines[256];
    (void)snprintf(lines, sizeof lines,
                   "process 0 %d 5000000\nprocess 0 4000000000 none\nprocess 0 3999999999 7\n",
                   (int)getpid());
    play(lines);
    read_all(false);
    const struct gpu_reading *gpu = &snapshot.gpus[0];
    assert_true(gpu->processes_known);
    assert_int_equal(gpu->process_count, 3);
    assert_int_equal(gpu->processes[0].pid, getpid());
    assert_int_equal(gpu->processes[0].memory_bytes, 5000000);
    assert_string_equal(gpu->processes[0].name, "test_nvml_set");
    assert_int_equal(gpu->processes[1].pid, INT64_C(3999999999));
    assert_string_equal(gpu->processes[1].name, "");
    assert_int_equal(gpu->processes[2].memory_bytes, -1);
    assert_int_equal(value_of(&gpu->sample, DEVICE_SAMPLE_PROCESSES), 3);
}

// Each version of the functions tells the same, also by calls that fail.
TEST_CASE(versions_of_processes)
{
    static const char *const versions[] = {"", "processes-535\n",
                                           "missing nvmlDeviceGetComputeRunningProcesses_v3\n",
                                           "missing nvmlDeviceGetComputeRunningProcesses_v3\n"
                                           "missing nvmlDeviceGetComputeRunningProcesses_v2\n"};
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        play(format_text("%sprocess 0 4000000000 4096\nprocess 0 3999999999 none\n"
                         "process 0 3999999998 7\n",
                         versions[i]));
        read_all(false);
        const struct gpu_reading *gpu = &snapshot.gpus[0];
        assert_int_equal(gpu->process_count, 3);
        for (int j = 0; j < 3; j++)
            assert_int_equal(gpu->processes[j].pid, INT64_C(3999999998) + j);
        assert_int_equal(gpu->processes[0].memory_bytes, 7);
        assert_int_equal(gpu->processes[1].memory_bytes, -1);
        assert_int_equal(gpu->processes[2].memory_bytes, 4096);
    }
    play("missing nvmlDeviceGetComputeRunningProcesses_v3\n"
         "missing nvmlDeviceGetComputeRunningProcesses_v2\n"
         "missing nvmlDeviceGetComputeRunningProcesses\n"
         "missing nvmlDeviceGetGraphicsRunningProcesses_v3\n"
         "missing nvmlDeviceGetGraphicsRunningProcesses_v2\n"
         "missing nvmlDeviceGetGraphicsRunningProcesses\n");
    read_all(false);
    assert_false(snapshot.gpus[0].processes_known);
    assert_false(record_has(&snapshot.gpus[0].sample, DEVICE_SAMPLE_PROCESSES));
}

TEST_CASE(instances)
{
    play("gpus 2\nmig 1 2\ngpu 1 memory_used 7000000000\nat 0.2 mig 1 3\nat 0.4 mig 0 1\n");
    read_all(true);
    read_all(true);
    assert_int_equal(snapshot.count, 4);
    const struct gpu_reading *second = &snapshot.gpus[3];
    assert_string_equal(second->info.name, "cuda:1:1");
    assert_string_equal(second->info.uuid, "MIG-00000000-0000-0000-0001-000000000001");
    assert_string_equal(second->info.parent_uuid, snapshot.gpus[1].info.uuid);
    assert_true(value_of(&second->sample, DEVICE_SAMPLE_MEMORY_USED) == 1e9);
    assert_true(value_of(&second->sample, DEVICE_SAMPLE_SM_ACTIVE) == 0.08);
    assert_false(record_has(&second->sample, DEVICE_SAMPLE_GPU_UTIL));
    advance_ms(250);
    read_all(false);
    assert_int_equal(snapshot.count, 5);
    advance_ms(200);
    read_all(false);
    assert_int_equal(snapshot.count, 6); // the mode of the other GPU has changed
}

TEST_CASE(unplugged_and_lost)
{
    play("gpus 3\nat 0.1 unplug 2\nat 0.2 plug 0\nat 0.3 error 0 15\nat 0.4 error 0 0\n");
    read_all(true);
    assert_int_equal(snapshot.count, 3);
    advance_ms(110);
    read_all(false);
    assert_int_equal(snapshot.count, 2);
    advance_ms(100);
    read_all(false);
    assert_int_equal(snapshot.count, 3);
    advance_ms(100);
    read_all(false);
    assert_true(snapshot.gpus[0].lost);
    assert_string_equal(snapshot.gpus[0].info.name, "cuda:0");
    assert_true(snapshot.gpus[0].sample.present == 0);
    assert_false(snapshot.gpus[1].lost);
    advance_ms(100);
    read_all(false);
    assert_false(snapshot.gpus[0].lost);
}

TEST_CASE(xids)
{
    play("gpus 2\nat 0.1 xid 1 79\nat 0.1 xid 0 13\n");
    read_all(false);
    assert_int_equal(snapshot.xid_count, 0);
    advance_ms(110);
    read_all(false);
    assert_int_equal(snapshot.xid_count, 2);
    assert_int_equal(snapshot.xids[0].code, 79);
    assert_string_equal(snapshot.xids[0].uuid, snapshot.gpus[1].info.uuid);
    assert_string_equal(snapshot.xids[1].uuid, snapshot.gpus[0].info.uuid);
    read_all(false);
    assert_int_equal(snapshot.xid_count, 0);
}

// Errors of one code are counted: as many as come do not hold up those of other devices.
TEST_CASE(many_xids)
{
    char lines[8192] = "gpus 2\n";
    for (int i = 0; i < 300; i++)
        (void)strcat(lines, i % 2 ? "at 0.05 xid 0 31\n" : "at 0.05 xid 0 43\n");
    (void)strcat(lines, "at 0.05 xid 1 79\n");
    play(lines);
    read_all(false);
    advance_ms(60);
    read_all(false);
    assert_int_equal(snapshot.xid_count, 3);
    assert_int_equal(snapshot.xids[0].code, 43);
    assert_int_equal(snapshot.xids[0].count, 150);
    assert_int_equal(snapshot.xids[1].count, 150);
    assert_int_equal(snapshot.xids[2].code, 79);
    assert_int_equal(snapshot.xids[2].count, 1);
}

// An error is told also where its device is gone at the same moment.
TEST_CASE(xid_of_an_unplugged_device)
{
    play("gpus 2\nat 0.05 xid 1 79\nat 0.05 unplug 1\n");
    read_all(false);
    advance_ms(60);
    read_all(false);
    assert_int_equal(snapshot.count, 1);
    assert_int_equal(snapshot.xid_count, 1);
    assert_int_equal(snapshot.xids[0].code, 79);
    assert_string_equal(snapshot.xids[0].uuid, "GPU-00000000-0000-0000-0000-000000000001");
}

TEST_CASE(destroyed_instances_are_gone)
{
    play("mig 0 2\nat 0.05 mig 0 1\n");
    read_all(false);
    assert_int_equal(snapshot.count, 3);
    advance_ms(60);
    for (int i = 0; i < 2; i++) {
        read_all(false);
        assert_int_equal(snapshot.count, 2);
    }
}

// A driver that is replaced while devices are read leaves no half of a snapshot; the next reading
// opens the library again.
TEST_CASE(stale_in_the_middle)
{
    static const int results[] = {1, 9, 18};
    for (size_t i = 0; i < COUNT_OF(results); i++) {
        play(format_text("gpus 2\nat 0.05 error 1 %d\nat 0.1 error 1 0\n", results[i]));
        read_all(false);
        assert_int_equal(snapshot.count, 2);
        advance_ms(60);
        read_all(false);
        assert_int_equal(snapshot.count, 0);
        advance_ms(60);
        read_all(false);
        assert_int_equal(snapshot.count, 2);
        assert_int_not_equal(snapshot.gpus[1].sample.present, 0);
    }
}

// While there is no driver there are no devices, and the library is not asked at every reading.
TEST_CASE(driver_unloaded)
{
    play("at 0.05 driver-unload\n");
    read_all(false);
    assert_int_equal(snapshot.count, 1);
    advance_ms(60);
    for (int i = 0; i < 3; i++) {
        read_all(true);
        assert_int_equal(snapshot.count, 0);
    }
}

TEST_CASE(no_library)
{
    static const char *const files[] = {"/nowhere/libnvidia-ml.so.1", "/bin/true", script_path,
                                        "libm.so.6"};
    const char *fake = getenv("INFERSTAT_TEST_NVML");
    struct nvml_facts facts;
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        assert_int_equal(setenv("INFERSTAT_TEST_NVML", files[i], 1), 0);
        play("");
        read_all(true);
        assert_int_equal(snapshot.count, 0);
        memset(&facts, 0x55, sizeof facts);
        assert_false(nvml_read(&facts, "GPU-00000000-0000-0000-0000-000000000000"));
        assert_true(facts.power_cap_watts == 0 && facts.energy_joules == 0);
    }
    assert_int_equal(setenv("INFERSTAT_TEST_NVML", fake, 1), 0);
    play("broken\n");
    read_all(true);
    assert_int_equal(snapshot.count, 0);
}

int main(void)
{
    const int fd = mkstemp(script_path);
    if (fd < 0 || close(fd) != 0 || setenv("INFERSTAT_TEST_NVML_SCRIPT", script_path, 1) != 0)
        return 1;
    advance_ms(0);
    const int failed =
        TEST_RUN(every_field, what_is_not_known_is_absent, descriptions, an_old_library,
                 missing_functions, processes, versions_of_processes, instances, unplugged_and_lost,
                 xids, many_xids, xid_of_an_unplugged_device, destroyed_instances_are_gone,
                 stale_in_the_middle, driver_unloaded, no_library);
    gpu_set_close(set);
    gpu_snapshot_deinit(&snapshot);
    (void)unlink(script_path);
    return failed;
}
