#include "common/devices/gpu.h"

#include <stdlib.h>
#include <string.h>

#include "common/devices/gpu_sysfs.h"
#include "common/devices/nvml_set.h"
#include "common/sys/clock.h"

struct gpu_set {
    struct nvml_set nvml;
    struct gpu_sysfs others; // of AMD and Intel
    char *root;              // NULL: that of the system
};

void gpu_snapshot_deinit(struct gpu_snapshot *snapshot)
{
    free(snapshot->gpus);
    *snapshot = (struct gpu_snapshot){0};
}

enum status gpu_set_open(struct gpu_set **out, const char *root)
{
    struct gpu_set *set = calloc(1, sizeof *set);
    if (!set || (root && !(set->root = strdup(root)))) {
        free(set);
        return STATUS_NOMEM;
    }
    *out = set;
    return STATUS_OK;
}

enum status gpu_set_read(struct gpu_set *set, struct gpu_snapshot *snapshot, bool slow)
{
    snapshot->began_ns = clock_monotonic_ns();
    if (!snapshot->gpus && !(snapshot->gpus = calloc(GPU_MAX, sizeof *snapshot->gpus)))
        return STATUS_NOMEM;
    const enum status status = nvml_set_read(&set->nvml, snapshot, slow, set->root);
    snapshot->count += gpu_sysfs_read(&set->others, snapshot->gpus + snapshot->count,
                                      GPU_MAX - snapshot->count, set->root, clock_monotonic_ns());
    snapshot->ended_ns = clock_monotonic_ns();
    return status;
}

void gpu_set_close(struct gpu_set *set)
{
    if (!set)
        return;
    nvml_set_close(&set->nvml);
    free(set->root);
    free(set);
}
