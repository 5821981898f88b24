#include "common/devices/gpu.h"

#include <stdlib.h>

#include "common/sys/clock.h"

struct gpu_set {
    const char *root;
};

void gpu_snapshot_deinit(struct gpu_snapshot *snapshot)
{
    free(snapshot->gpus);
    *snapshot = (struct gpu_snapshot){0};
}

enum status gpu_set_open(struct gpu_set **out, const char *root, struct error *err)
{
    struct gpu_set *set = calloc(1, sizeof *set);
    if (!set)
        return error_no_memory(err, "gpu");
    set->root = root;
    *out = set;
    return STATUS_OK;
}

enum status gpu_set_read(struct gpu_set *set, struct gpu_snapshot *snapshot, bool slow,
                         struct error *err)
{
    (void)set;
    (void)slow;
    (void)err;
    snapshot->began_ns = clock_monotonic_ns();
    snapshot->count = 0;
    snapshot->xid_count = 0;
    snapshot->ended_ns = clock_monotonic_ns();
    return STATUS_OK;
}

void gpu_set_close(struct gpu_set *set)
{
    free(set);
}
