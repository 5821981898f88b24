#include "common/devices/nvml_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/sys/clock.h"

static const uint64_t retry_after_ns = UINT64_C(10000000000);
enum { XIDS_A_READING = 1024 }; // the rest waits for the next one
#define GPUS_UNKNOWN UINT32_MAX // of set->gpus: the next reading finds the devices again

// ---- Devices ------------------------------------------------------------------------------

static void close_devices(struct nvml_set *set)
{
    for (unsigned int i = 0; i < set->count; i++)
        nvml_device_close(&set->library, &set->devices[i]);
    if (set->events)
        (void)nvml_call(&set->library, event_set_free, set->events);
    free(set->devices);
    set->devices = NULL;
    set->events = NULL;
    set->count = set->gpus = 0;
}

void nvml_set_close(struct nvml_set *set)
{
    close_devices(set);
    nvml_library_close(&set->library);
}

// Adds a device that has no place yet.
static struct nvml_device *add_device(struct nvml_set *set, nvml_handle handle, nvml_handle parent)
{
    if (set->count == GPU_MAX)
        return NULL;
    struct nvml_device *device = &set->devices[set->count++];
    *device = (struct nvml_device){.handle = handle, .parent = parent};
    if (parent &&
        nvml_call(&set->library, gpu_instance, handle, &device->gpu_instance) != NVML_SUCCESS)
        device->gpu_instance = 0;
    nvml_device_open(&set->library, device);
    return device;
}

// The MIG instances of a GPU; returns their number.  Where a place has none, its handle is NULL.
static unsigned int find_instances(const struct nvml_set *set, nvml_handle gpu,
                                   nvml_handle out[GPU_MAX])
{
    unsigned int enabled = 0, pending, most = 0;
    if (nvml_call(&set->library, mig_mode, gpu, &enabled, &pending) != NVML_SUCCESS ||
        enabled != 1 || nvml_call(&set->library, mig_count, gpu, &most) != NVML_SUCCESS)
        return 0;
    most = most < GPU_MAX ? most : GPU_MAX;
    for (unsigned int i = 0; i < most; i++)
        if (nvml_call(&set->library, mig_by_index, gpu, i, &out[i]) != NVML_SUCCESS)
            out[i] = NULL;
    return most;
}

static void add_instances(struct nvml_set *set, const struct nvml_device *gpu)
{
    const struct gpu_info *parent = &gpu->info;
    nvml_handle handles[GPU_MAX];
    const unsigned int count = find_instances(set, gpu->handle, handles);
    for (unsigned int i = 0; i < count; i++) {
        struct nvml_device *device = handles[i] ? add_device(set, handles[i], gpu->handle) : NULL;
        if (!device)
            continue;
        device->info.index = parent->index;
        memcpy(device->info.parent_uuid, parent->uuid, sizeof parent->uuid);
        (void)snprintf(device->info.name, sizeof device->info.name, "%.16s:%u", parent->name, i);
    }
}

static void add_gpu(struct nvml_set *set, unsigned int index)
{
    nvml_handle handle = NULL;
    if (nvml_call(&set->library, by_index, index, &handle) != NVML_SUCCESS)
        return; // lost, or without permission
    struct nvml_device *device = add_device(set, handle, NULL);
    if (!device)
        return;
    device->info.index = index;
    (void)snprintf(device->info.name, sizeof device->info.name, "cuda:%u", index);
    if (set->events)
        (void)nvml_call(&set->library, register_events, handle, NVML_EVENT_XID, set->events);
    add_instances(set, device);
}

static enum status find_devices(struct nvml_set *set, unsigned int gpus)
{
    close_devices(set);
    set->devices = calloc(GPU_MAX, sizeof *set->devices);
    if (!set->devices)
        return STATUS_NOMEM;
    if (!set->library.event_set_free ||
        nvml_call(&set->library, event_set_create, &set->events) != NVML_SUCCESS)
        set->events = NULL;
    set->gpus = gpus;
    for (unsigned int i = 0; i < gpus && i < GPU_MAX; i++)
        add_gpu(set, i);
    return STATUS_OK;
}

// ---- The library ----------------------------------------------------------------------------

static bool open_library(struct nvml_set *set)
{
    const uint64_t now = clock_monotonic_ns();
    if (now < set->retry_ns)
        return false;
    if (nvml_library_open(&set->library))
        return true;
    set->retry_ns = now + retry_after_ns;
    return false;
}

static bool is_known(const struct nvml_set *set, nvml_handle handle)
{
    char uuid[NVML_UUID_SIZE] = "";
    (void)nvml_call(&set->library, uuid, handle, uuid, sizeof uuid);
    for (unsigned int i = 0; i < set->count; i++)
        if (strcmp(set->devices[i].info.uuid, uuid) == 0)
            return true;
    return false;
}

// True if the MIG instances of a GPU are no longer those that are known.
static bool has_new_instances(const struct nvml_set *set)
{
    nvml_handle handles[GPU_MAX];
    unsigned int known = 0, found = 0;
    for (unsigned int i = 0; i < set->count; i++) {
        const struct nvml_device *device = &set->devices[i];
        known += device->parent ? 1 : 0;
        const unsigned int count =
            device->parent ? 0 : find_instances(set, device->handle, handles);
        for (unsigned int j = 0; j < count; j++) {
            if (handles[j] && !is_known(set, handles[j]))
                return true;
            found += handles[j] ? 1 : 0;
        }
    }
    return known != found;
}

// Opens the library where that is due, and finds the devices where they have changed.
static enum status refresh(struct nvml_set *set)
{
    unsigned int gpus = 0;
    if (set->library.file && nvml_call(&set->library, count, &gpus) != NVML_SUCCESS)
        nvml_set_close(set); // the driver was unloaded, reloaded or updated
    if (!set->library.file &&
        (!open_library(set) || nvml_call(&set->library, count, &gpus) != NVML_SUCCESS)) {
        nvml_set_close(set);
        set->retry_ns = clock_monotonic_ns() + retry_after_ns;
        return STATUS_OK;
    }
    if (set->devices && gpus == set->gpus && !has_new_instances(set))
        return STATUS_OK;
    return find_devices(set, gpus);
}

// ---- Readings --------------------------------------------------------------------------------

static void add_xid(struct gpu_snapshot *snapshot, const char *uuid, int64_t code)
{
    unsigned int i = 0;
    while (i < snapshot->xid_count &&
           (snapshot->xids[i].code != code || strcmp(snapshot->xids[i].uuid, uuid) != 0))
        i++;
    if (i == GPU_XIDS_MAX)
        return;
    struct gpu_xid *xid = &snapshot->xids[i];
    if (i == snapshot->xid_count) {
        snapshot->xid_count++;
        *xid = (struct gpu_xid){.code = code, .at_ns = clock_wall_ns()};
        (void)snprintf(xid->uuid, sizeof xid->uuid, "%s", uuid);
    }
    xid->count++;
}

static void collect_xids(struct nvml_set *set, struct gpu_snapshot *snapshot)
{
    for (unsigned int n = 0; set->events && n < XIDS_A_READING; n++) {
        struct nvml_event event = {0};
        const char *uuid = "";
        if (nvml_call(&set->library, event_set_wait, set->events, &event, 0) != NVML_SUCCESS)
            return;
        if (event.type != NVML_EVENT_XID || event.data > INT32_MAX)
            continue;
        for (unsigned int i = 0; i < set->count; i++)
            if (set->devices[i].handle == event.device)
                uuid = set->devices[i].info.uuid;
        add_xid(snapshot, uuid, (int64_t)event.data);
    }
}

enum status nvml_set_read(struct nvml_set *set, struct gpu_snapshot *snapshot, bool slow,
                          const char *root)
{
    snapshot->count = snapshot->xid_count = 0;
    collect_xids(set, snapshot); // before refresh, which drops them with the devices
    const enum status status = refresh(set);
    bool is_stale = false;
    for (unsigned int i = 0; i < set->count && status == STATUS_OK && !is_stale; i++) {
        struct gpu_reading *reading = &snapshot->gpus[snapshot->count++];
        is_stale =
            nvml_is_stale(nvml_device_read(&set->library, &set->devices[i], slow, root, reading));
        if (set->devices[i].parent && !reading->lost && reading->sample.present == 0) {
            snapshot->count--; // the MIG instance was destroyed
            set->gpus = GPUS_UNKNOWN;
        }
    }
    if (is_stale) { // the next reading opens the library again
        nvml_set_close(set);
        snapshot->count = 0;
    }
    return status;
}
