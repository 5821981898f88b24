#include "tests/support/store/health.h"

#include <math.h>

#define MB INT64_C(1048576)

// splitmix64 (Steele, Lea, Flood 2014).
double health_uniform(struct health *health)
{
    uint64_t z = health->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

// As NVML tells shares: whole per cent.
static double percent(double ratio)
{
    return round(fmin(fmax(ratio, 0), 1) * 100) / 100;
}

// As a sampler tells those that are measured better.
static double fine(double ratio)
{
    return round(ratio * 10000) / 10000;
}

// The load of a device wanders, and stands still for a while now and then.
static double next_load(struct health *device)
{
    device->load = fmin(fmax(device->load + 0.2 * (health_uniform(device) - 0.5), 0), 1);
    return health_uniform(device) < 0.05 ? 0 : device->load;
}

void health_device_sample(struct record *record, struct health *device, uint32_t name,
                          int64_t started_ns, int64_t duration_ns)
{
    const double load = next_load(device), watts = round((90 + 600 * load) * 1000) / 1000;
    const double joules = round(watts * (double)duration_ns / 1e9 * 1000) / 1000;
    const int64_t throttle = load > 0.95 ? 0x4 : load > 0 ? 0 : 0x1; // power cap, idle
    device->energy_joules += joules;
    record_init(record, RECORD_KIND_DEVICE_SAMPLE, started_ns);
    record_set_name(record, DEVICE_SAMPLE_DEVICE, name);
    record_set_real(record, DEVICE_SAMPLE_GPU_UTIL, percent(load));
    record_set_int(record, DEVICE_SAMPLE_MEMORY_USED, 60000 * MB + (int64_t)(load * 8000) * MB);
    record_set_real(record, DEVICE_SAMPLE_TEMPERATURE, round(32 + 45 * load));
    record_set_real(record, DEVICE_SAMPLE_POWER, watts);
    record_set_real(record, DEVICE_SAMPLE_ENERGY, round(device->energy_joules * 1000) / 1000);
    record_set_int(record, DEVICE_SAMPLE_SM_CLOCK,
                   (throttle == 0x4 ? 1755 : 1980) * INT64_C(1000000));
    record_set_int(record, DEVICE_SAMPLE_MEMORY_CLOCK, INT64_C(2619000000));
    record_set_int(record, DEVICE_SAMPLE_PCIE_GENERATION, 5);
    record_set_int(record, DEVICE_SAMPLE_PCIE_WIDTH, 16);
    record_set_int(record, DEVICE_SAMPLE_THROTTLE, throttle);
    record_set_real(record, DEVICE_SAMPLE_SM_ACTIVE, fine(load * 0.9));
    record_set_real(record, DEVICE_SAMPLE_DRAM_ACTIVE, fine(load * 0.5));
    record_set_int(record, DEVICE_SAMPLE_DURATION_NS, duration_ns);
    record_set_real(record, DEVICE_SAMPLE_ENERGY_USED, joules);
    record_set_int(record, DEVICE_SAMPLE_MEMORY_TOTAL, 143771 * MB);
    record_set_int(record, DEVICE_SAMPLE_MEMORY_RESERVED, 543 * MB);
    record_set_real(record, DEVICE_SAMPLE_MEMORY_UTIL, percent(load * 0.6));
    record_set_real(record, DEVICE_SAMPLE_MEMORY_TEMPERATURE, round(40 + 45 * load));
    record_set_real(record, DEVICE_SAMPLE_POWER_LIMIT, 700);
    record_set_real(record, DEVICE_SAMPLE_ENCODER_UTIL, 0);
    record_set_real(record, DEVICE_SAMPLE_DECODER_UTIL, 0);
    if (health_uniform(device) < 0.1) { // read at a slower cadence
        record_set_real(record, DEVICE_SAMPLE_PCIE_RX, round(load * 2e6) * 1024);
        record_set_real(record, DEVICE_SAMPLE_PCIE_TX, round(load * 1e6) * 1024);
    }
    record_set_int(record, DEVICE_SAMPLE_ECC_CORRECTED, 0);
    record_set_int(record, DEVICE_SAMPLE_ECC_UNCORRECTED, 0);
    record_set_int(record, DEVICE_SAMPLE_REMAPPED_ROWS, 0);
    record_set_real(record, DEVICE_SAMPLE_TENSOR_ACTIVE, fine(load * 0.4));
    record_set_int(record, DEVICE_SAMPLE_PROCESSES, 1);
}

void health_host_sample(struct record *record, struct health *host, int64_t started_ns,
                        int64_t duration_ns)
{
    const double load = next_load(host), seconds = (double)duration_ns / 1e9;
    record_init(record, RECORD_KIND_HOST_SAMPLE, started_ns);
    record_set_int(record, HOST_SAMPLE_DURATION_NS, duration_ns);
    record_set_real(record, HOST_SAMPLE_CPU_UTIL, load);
    record_set_real(record, HOST_SAMPLE_LOAD_1M, round(load * 9600) / 100);
    record_set_int(record, HOST_SAMPLE_CPU_FREQUENCY, (int64_t)(2000 + 1500 * load) * 1000000);
    record_set_int(record, HOST_SAMPLE_MEMORY_TOTAL, 2097152 * MB);
    record_set_int(record, HOST_SAMPLE_MEMORY_AVAILABLE, (int64_t)((2 - load) * 1e6) * MB);
    record_set_int(record, HOST_SAMPLE_SWAP_USED, 0);
    record_set_real(record, HOST_SAMPLE_CPU_PRESSURE, load > 0.8 ? load * 0.1 : 0);
    record_set_real(record, HOST_SAMPLE_MEMORY_PRESSURE, 0);
    record_set_real(record, HOST_SAMPLE_IO_PRESSURE, load > 0.5 ? load * 0.02 : 0);
    record_set_real(record, HOST_SAMPLE_MEMORY_STALLED, 0);
    record_set_real(record, HOST_SAMPLE_IO_STALLED, load > 0.5 ? load * 0.01 : 0);
    record_set_real(record, HOST_SAMPLE_DISK_READ, round(load * 1000) * 4096 / seconds);
    record_set_real(record, HOST_SAMPLE_DISK_WRITE, round(load * 5000) * 4096 / seconds);
    record_set_real(record, HOST_SAMPLE_DISK_BUSY, load * 0.3);
    record_set_real(record, HOST_SAMPLE_NETWORK_RX, round(load * 1e6) / seconds);
    record_set_real(record, HOST_SAMPLE_NETWORK_TX, round(load * 4e6) / seconds);
    record_set_int(record, HOST_SAMPLE_NETWORK_ERRORS, 0);
}
