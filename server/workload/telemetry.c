#include "server/workload/telemetry.h"

#include <stdio.h>

#include "common/sys/files.h"

void device_look_up(const struct device *device, struct device_properties *out)
{
    char folder[1024];
    device_properties(device, out);
    if (files_cache_folder(folder, sizeof folder, NULL) == STATUS_OK &&
        device_rates_cached(out, folder) && !out->rates.steady)
        out->rates = (struct device_rates){0};
}

static const char *text(const char *text)
{
    return text[0] ? text : NULL;
}

// Negative if unknown.
static double known(double value)
{
    return value > 0.0 ? value : -1.0;
}

uint32_t device_record(struct inferstat_monitor *monitor,
                       const struct device_properties *properties)
{
    char capability[16] = "";
    if (properties->compute_capability > 0)
        (void)snprintf(capability, sizeof capability, "%u.%u", properties->compute_capability / 10,
                       properties->compute_capability % 10);
    struct inferstat_device device;
    inferstat_device_init(&device);
    device.ordinal = properties->ordinal;
    device.name = properties->name;
    device.uuid = text(properties->uuid);
    device.memory_bytes = properties->memory_bytes;
    device.compute_capability = text(capability);
    device.pcie_generation = (int)known(properties->pcie.generation);
    device.pcie_width = (int)known(properties->pcie.width);
    device.pcie_generation_max = (int)known(properties->pcie.generation_max);
    device.pcie_width_max = (int)known(properties->pcie.width_max);
    device.memory_bandwidth_bytes_per_second = known(properties->rates.memory);
    device.h2d_bytes_per_second = known(properties->rates.h2d);
    device.flops_per_second = known(properties->rates.flops);
    device.power_cap_watts = known(properties->power_cap_watts);
    device.sm_clock_max_hz = (int64_t)known((double)properties->sm_clock_max_hz);
    device.memory_clock_max_hz = (int64_t)known((double)properties->memory_clock_max_hz);
    return inferstat_add_device(monitor, &device);
}

void device_calibrate_for_later(struct device *device)
{
    char folder[1024];
    struct device_properties properties;
    device_properties(device, &properties);
    if (files_cache_folder(folder, sizeof folder, NULL) == STATUS_OK)
        (void)!device_calibrate(device, &properties, folder, NULL);
}

enum inferstat_result telemetry_result(enum status status)
{
    if (status == STATUS_OK)
        return INFERSTAT_RESULT_OK;
    return status == STATUS_CANCELLED ? INFERSTAT_RESULT_CANCELLED : INFERSTAT_RESULT_ERROR;
}

static int64_t figure(uint64_t value)
{
    return value <= INT64_MAX ? (int64_t)value : INT64_MAX;
}

// Times that were not measured are absent.
static int64_t measured(uint64_t ns)
{
    return ns > 0 ? figure(ns) : -1;
}

bool pipeline_knows_overlap(const struct pipeline_plan *plan,
                            const struct pipeline_figures *figures)
{
    return plan->overlap_tracking &&
           (figures->overlap.span_ns > 0 || figures->overlap.unmeasured == 0);
}

bool pipeline_knows_pool(const struct pipeline_plan *plan)
{
    return plan->pool_metrics && !plan->borrows;
}

static void record_overlap(struct inferstat_pipeline *out, const struct pipeline_figures *figures)
{
    const struct overlap_figures *overlap = &figures->overlap;
    out->copy_busy_ns = figure(overlap->busy_ns[OVERLAP_COPY]);
    out->compute_busy_ns = figure(overlap->busy_ns[OVERLAP_COMPUTE]);
    out->both_busy_ns = figure(overlap->both_ns);
    out->exposed_copy_ns = figure(overlap->exposed_copy_ns);
    out->copy_starved_ns = figure(figures->copy_starved_ns);
    out->idle_ns = figure(overlap->idle_ns);
}

// Counts the waits shorter than `us`, a power of two, which ends a bin.
static int64_t waits_below(const struct pool_figures *pool, unsigned int us)
{
    uint64_t waits = 0;
    for (unsigned int bin = 0; bin < POOL_WAIT_BINS && us >> bin > 1; bin++)
        waits += pool->wait_histogram[bin];
    return figure(waits);
}

// The number of free slots is known only after the first acquisition.
static void record_pool(struct inferstat_pipeline *out, const struct pool_figures *pool)
{
    out->pool_acquires = figure(pool->acquires);
    out->pool_waits = figure(pool->waits);
    out->pool_wait_ns = figure(pool->wait_ns);
    out->pool_waits_below_64us = waits_below(pool, 64);
    out->pool_waits_below_4096us = waits_below(pool, 4096);
    if (pool->acquires == 0)
        return;
    out->pool_available_min = pool->available_min;
    out->pool_available_max = pool->available_max;
}

void pipeline_record(struct inferstat_pipeline *out, const struct pipeline_plan *plan,
                     const struct pipeline_figures *figures)
{
    inferstat_pipeline_init(out);
    out->duration_ns = figures->duration_ns;
    out->chunk_bytes = plan->chunk_bytes;
    out->pool_size = plan->pool_size;
    out->prefetch = plan->prefetch;
    out->sync =
        plan->sync == PIPELINE_SYNC_EVENTS ? INFERSTAT_SYNC_EVENTS : INFERSTAT_SYNC_PERIODIC;
    out->bytes_h2d = figures->bytes_h2d;
    if (plan->overlap_tracking)
        out->unmeasured_chunks = figure(figures->overlap.unmeasured);
    if (pipeline_knows_overlap(plan, figures))
        record_overlap(out, figures);
    if (pipeline_knows_pool(plan))
        record_pool(out, &figures->pool);
    out->item_p50_ns = measured(figures->group_p50_ns);
    out->item_p95_ns = measured(figures->group_p95_ns);
    out->item_p99_ns = measured(figures->group_p99_ns);
}
