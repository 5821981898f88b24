#include "common/monitor/sampler.h"

#include <string.h>

#include "common/sys/clock.h"
#include "common/sys/process.h"

void sampler_set_clock(struct sampled *sampled)
{
    const uint64_t before = clock_monotonic_ns();
    const int64_t wall = clock_wall_ns();
    const uint64_t after = clock_monotonic_ns();
    const int64_t middle = (int64_t)(before + (after - before) / 2);
    atomic_store_explicit(&sampled->wall_offset_ns, wall - middle, memory_order_relaxed);
}

void sampler_start(struct sampler *sampler, struct sampled *sampled)
{
    sampler_set_clock(sampled);
    const double none = -1;
    uint64_t bits;
    memcpy(&bits, &none, sizeof bits);
    atomic_store_explicit(&sampled->cpu_ratio_bits, bits, memory_order_relaxed);
    const int64_t memory = process_memory_bytes();
    atomic_store_explicit(&sampled->host_memory, memory < 0 ? 0 : memory, memory_order_relaxed);
    sampler->sampled_ns = clock_monotonic_ns();
    sampler->cpu_ns = process_cpu_ns();
}

static void record_sample(const struct sampled *sampled, struct ring *ring, uint64_t since_ns,
                          double cpu_ratio, int64_t memory)
{
    struct record record;
    record_init(&record, RECORD_KIND_PROCESS_SAMPLE, sampled_wall_ns(sampled, since_ns));
    record_set_real(&record, PROCESS_SAMPLE_CPU, cpu_ratio);
    record_set_int(&record, PROCESS_SAMPLE_HOST_MEMORY, memory);
    const int64_t device = atomic_load_explicit(&sampled->device_memory, memory_order_relaxed);
    if (device >= 0)
        record_set_int(&record, PROCESS_SAMPLE_DEVICE_MEMORY, device);
    (void)ring_push(ring, &record, 1);
}

void sampler_sample(struct sampler *sampler, struct sampled *sampled, struct ring *ring)
{
    const uint64_t now = clock_monotonic_ns();
    const uint64_t cpu = process_cpu_ns();
    const int64_t memory = process_memory_bytes();
    if (now <= sampler->sampled_ns)
        return;
    const uint64_t busy = cpu > sampler->cpu_ns ? cpu - sampler->cpu_ns : 0;
    const double ratio = (double)busy / (double)(now - sampler->sampled_ns);
    uint64_t bits;
    memcpy(&bits, &ratio, sizeof bits);
    atomic_store_explicit(&sampled->cpu_ratio_bits, bits, memory_order_relaxed);
    if (memory >= 0)
        atomic_store_explicit(&sampled->host_memory, memory, memory_order_relaxed);
    if (ring)
        record_sample(sampled, ring, sampler->sampled_ns, ratio,
                      atomic_load_explicit(&sampled->host_memory, memory_order_relaxed));
    sampler->sampled_ns = now;
    sampler->cpu_ns = cpu;
}
