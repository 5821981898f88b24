// Computes the memory that an encoding needs before anything is allocated.
#include <string.h>

#include "common/core/base/unit.h"
#include "server/device/host_memory.h"
#include "server/workload/encode/run_parts.h"

struct memory_budget {
    uint64_t device, host;
};

// Products and sums saturate: an overflow exceeds any memory.
static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static struct memory_budget budget_of(const struct device_share *share)
{
    const struct encoding *e = share->encoding;
    const struct pipeline_plan *plan = &share->report.plan;
    uint64_t kept = plan->buffers + PIPELINE_GROUPS_BEHIND; // batches of results on the host
    uint64_t states = (uint64_t)2 << e->launch.qubits;
    uint64_t slots = plan->borrows ? 0 : times(plan->pool_size, plan->chunk_bytes);
    return (struct memory_budget){
        .device = times(plan->buffers, plus(plan->group_bytes, plan->result_bytes)),
        .host = plus(plus(slots, times(kept, plan->out_bytes)),
                     e->options.check ? states * sizeof(double) : 0),
    };
}

// Devices of the CPU back end use the host's memory.
static bool is_host(const struct device_description *device)
{
    return strncmp(device->name, "cpu", 3) == 0;
}

static enum status check(const struct encoding *e, uint64_t wanted, int64_t available,
                         const char *what, const char *name, struct error *err)
{
    if (available < 0 || wanted <= (uint64_t)available)
        return STATUS_OK;
    char text[2][UNIT_TEXT_SIZE];
    return error_set(
        err, STATUS_NOMEM,
        "encode: %u qubits, batches of %zu: %s of memory are needed on %s%s, it "
        "has %s left (use fewer qubits or a smaller --batch-size)",
        e->launch.qubits, e->launch.samples,
        unit_format_int(text[0], UNIT_BYTES, wanted < INT64_MAX ? (int64_t)wanted : INT64_MAX),
        what, name, unit_format_int(text[1], UNIT_BYTES, available));
}

enum status encoding_check_memory(const struct encoding *e, struct error *err)
{
    uint64_t host = inputs_get_shape(e->inputs)->stretch;
    enum status status = STATUS_OK;
    for (unsigned int i = 0; i < e->share_count && status == STATUS_OK; i++) {
        const struct device_description *device = &e->shares[i].report.device;
        struct memory_budget budget = budget_of(&e->shares[i]);
        host = plus(host, budget.host);
        if (is_host(device)) {
            host = plus(host, budget.device);
            continue;
        }
        status =
            check(e, budget.device, device->memory_available_bytes, "device ", device->name, err);
    }
    if (status != STATUS_OK)
        return status;
    const struct device_description *first = &e->shares[0].report.device;
    if (e->share_count == 1 && is_host(first))
        return check(e, host, first->memory_available_bytes, "device ", first->name, err);
    return check(e, host, host_memory_available(), "the host", "", err);
}
