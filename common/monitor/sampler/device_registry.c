#include "common/monitor/sampler/device_registry.h"

#include <string.h>

void device_registry_init(struct device_registry *registry)
{
    (void)pthread_mutex_init(&registry->lock, NULL);
}

void device_registry_deinit(struct device_registry *registry)
{
    (void)pthread_mutex_destroy(&registry->lock);
}

void device_registry_add(struct device_registry *registry, const struct record *device)
{
    (void)pthread_mutex_lock(&registry->lock);
    uint32_t i = 0;
    while (i < registry->count &&
           registry->devices[i].values[DEVICE_NAME].name != device->values[DEVICE_NAME].name)
        i++;
    if (i < DEVICE_REGISTRY_MAX) {
        registry->devices[i] = *device;
        registry->count += i == registry->count;
    }
    (void)pthread_mutex_unlock(&registry->lock);
}

static bool has_uuid(const struct record *device, const char *uuid)
{
    size_t size;
    if (!record_has(device, DEVICE_UUID))
        return false;
    const char *text = record_get_text(device, DEVICE_UUID, &size);
    return size == strlen(uuid) && memcmp(text, uuid, size) == 0;
}

enum device_match device_registry_find(struct device_registry *registry, const char *uuid,
                                       uint32_t name, struct record *out)
{
    const struct record *found = NULL, *same_name = NULL;
    (void)pthread_mutex_lock(&registry->lock);
    for (uint32_t i = 0; i < registry->count && !found; i++) {
        const struct record *device = &registry->devices[i];
        if (has_uuid(device, uuid))
            found = device;
        else if (device->values[DEVICE_NAME].name == name)
            same_name = device;
    }
    if (!found && same_name && !record_has(same_name, DEVICE_UUID))
        found = same_name;
    if (found)
        *out = *found;
    (void)pthread_mutex_unlock(&registry->lock);
    if (found)
        return DEVICE_DESCRIBED;
    return same_name ? DEVICE_NAME_TAKEN : DEVICE_UNKNOWN;
}
