// What a device of the CUDA back end says of itself, where NVML knows it and where it does not.
#include "server/device/properties.h"
#include "tests/support/cuda/emulation.h"
#include "tests/support/test.h"

static void open_second(struct device **out)
{
    assert_int_equal(device_open(out, &(struct device_options){.spec = "cuda:1"}, NULL), STATUS_OK);
}

TEST_CASE(devices_say_so)
{
    struct device *device = NULL;
    struct device_properties properties;
    emulation_devices(2);
    open_second(&device);
    device_properties(device, &properties);
    assert_true(properties.power_cap_watts == 650.5);
    assert_int_equal(properties.sm_clock_max_hz, INT64_C(1980000000));
    assert_int_equal(properties.memory_clock_max_hz, INT64_C(3201000000));
    assert_int_equal(properties.pcie.generation_max, 5); // sysfs knows no such device
    assert_int_equal(properties.pcie.width, 16);
    assert_true(device_energy_joules(device) >= 7000000.0);
    device_close(device);
    emulation_devices(1);
}

// Where the library is missing, the rest stands.
TEST_CASE(without_a_library)
{
    struct device *device = NULL;
    struct device_properties properties;
    assert_int_equal(setenv("INFERSTAT_TEST_NVML", "/nowhere", 1), 0);
    emulation_devices(2);
    open_second(&device);
    device_properties(device, &properties);
    assert_true(properties.power_cap_watts == 0.0);
    assert_true(device_energy_joules(device) == 0.0);
    assert_string_equal(properties.product, "Emulated device 1");
    device_close(device);
    emulation_devices(1);
}

int main(void)
{
    return TEST_RUN(devices_say_so, without_a_library);
}
