// Computes the memory that an encoding needs before anything is allocated.
#include <math.h>
#include <string.h>

#include "common/core/base/unit.h"
#include "server/device/host_memory.h"
#include "server/workload/encode/run_parts.h"

// In bytes; a double holds any product of sizes.
struct memory_budget {
    double device, host;
};

static struct memory_budget budget_of(const struct device_share *share)
{
    const struct encoding *e = share->encoding;
    const struct pipeline_plan *plan = &share->report.plan;
    double kept = plan->buffers + PIPELINE_GROUPS_BEHIND; // batches of results on the host
    double states = ldexp(1.0, (int)e->launch.qubits + 1);
    double slots = plan->borrows ? 0.0 : (double)plan->pool_size * (double)plan->chunk_bytes;
    return (struct memory_budget){
        .device = plan->buffers * ((double)plan->group_bytes + (double)plan->result_bytes),
        .host = slots + kept * (double)plan->out_bytes +
                (e->options.check ? states * sizeof(double) : 0.0),
    };
}

// Devices of the CPU back end use the host's memory.
static bool is_host(const struct device_description *device)
{
    return strncmp(device->name, "cpu", 3) == 0;
}

static enum status check(const struct encoding *e, double wanted, int64_t available,
                         const char *what, const char *name, struct error *err)
{
    if (available < 0 || wanted <= (double)available)
        return STATUS_OK;
    char text[2][UNIT_TEXT_SIZE];
    return error_set(err, STATUS_NOMEM,
                     "encode: %u qubits, batches of %zu: %s of memory are needed on %s%s, it "
                     "has %s left (use fewer qubits or a smaller --batch-size)",
                     e->launch.qubits, e->launch.samples, unit_format(text[0], UNIT_BYTES, wanted),
                     what, name, unit_format_int(text[1], UNIT_BYTES, available));
}

enum status encoding_check_memory(const struct encoding *e, struct error *err)
{
    double host = (double)inputs_get_shape(e->inputs)->stretch;
    enum status status = STATUS_OK;
    for (unsigned int i = 0; i < e->share_count && status == STATUS_OK; i++) {
        const struct device_description *device = &e->shares[i].report.device;
        struct memory_budget budget = budget_of(&e->shares[i]);
        host += budget.host;
        if (is_host(device)) {
            host += budget.device;
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
