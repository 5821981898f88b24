// What NVML tells, by a library of the tests' own (tests/support/nvml_fake.c); and where
// there is none.
#include "common/devices/nvml.h"

#include "server/device/properties.h"
#include "tests/support/cuda/emulation.h"
#include "tests/support/test.h"

static const char first[] = "GPU-00000000-0000-0000-0000-000000000000";
static const char third[] = "GPU-00000000-0000-0000-0000-000000000002";

TEST_CASE(all_is_told)
{
    struct nvml_facts facts;
    assert_true(nvml_read(&facts, third));
    assert_true(facts.power_cap_watts == 650.502);
    assert_true(facts.energy_joules == 7000002.0);
    assert_int_equal(facts.sm_clock_max_hz, INT64_C(1982000000));
    assert_int_equal(facts.memory_clock_max_hz, INT64_C(3203000000));
    assert_int_equal(facts.pcie.generation, 1);
    assert_int_equal(facts.pcie.width, 8);
    assert_int_equal(facts.pcie.generation_max, 5);
    assert_int_equal(facts.pcie.width_max, 16);
}

static void assert_nothing(const struct nvml_facts *facts)
{
    assert_true(facts->power_cap_watts == 0.0);
    assert_int_equal(facts->sm_clock_max_hz, 0);
    assert_int_equal(facts->memory_clock_max_hz, 0);
    assert_int_equal(facts->pcie.generation, 0);
    assert_int_equal(facts->pcie.width, 0);
    assert_int_equal(facts->pcie.generation_max, 0);
    assert_int_equal(facts->pcie.width_max, 0);
}

TEST_CASE(what_is_not_told_is_not_known)
{
    static const struct {
        const char *matter, *uuid;
        bool found;
    } cases[] = {{"nothing", first, true},
                 {"nonsense", first, true},
                 {"init", first, false},
                 {"", "GPU-99999999-0000-0000-0000-000000000000", false},
                 {"", "", false}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct nvml_facts facts;
        assert_int_equal(setenv("FAKE_NVML", cases[i].matter, 1), 0);
        memset(&facts, 0x55, sizeof facts);
        assert_int_equal(nvml_read(&facts, cases[i].uuid), cases[i].found);
        assert_nothing(&facts);
    }
    assert_int_equal(unsetenv("FAKE_NVML"), 0);
}

// A device of the CUDA back end says so; where the library tells nothing, the rest stands.
TEST_CASE(devices_say_so)
{
    struct device *device = NULL;
    struct device_properties properties;
    emulation_devices(2);
    assert_int_equal(device_open(&device, &(struct device_options){.spec = "cuda:1"}, NULL),
                     STATUS_OK);
    device_properties(device, &properties);
    assert_true(properties.power_cap_watts == 650.501);
    assert_int_equal(properties.sm_clock_max_hz, INT64_C(1981000000));
    assert_int_equal(properties.memory_clock_max_hz, INT64_C(3202000000));
    assert_int_equal(properties.pcie.generation_max, 5); // sysfs knows no such device
    assert_int_equal(properties.pcie.width, 8);
    assert_true(device_energy_joules(device) == 7000001.0);
    device_close(device);
    assert_int_equal(setenv("FAKE_NVML", "init", 1), 0);
    assert_int_equal(device_open(&device, &(struct device_options){.spec = "cuda:1"}, NULL),
                     STATUS_OK);
    device_properties(device, &properties);
    assert_true(properties.power_cap_watts == 0.0);
    assert_true(device_energy_joules(device) == 0.0);
    assert_string_equal(properties.product, "Emulated device 1");
    device_close(device);
    assert_int_equal(unsetenv("FAKE_NVML"), 0);
    emulation_devices(1);
}

TEST_CASE(without_a_library_nothing_is_known)
{
    struct nvml_facts facts;
    assert_false(nvml_read(&facts, first));
    assert_nothing(&facts);
}

// "none": where LD_LIBRARY_PATH names no library of the tests' (a real one does not know
// the device).
int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "none") == 0)
        return TEST_RUN(without_a_library_nothing_is_known);
    return TEST_RUN(all_is_told, what_is_not_told_is_not_known, devices_say_so);
}
