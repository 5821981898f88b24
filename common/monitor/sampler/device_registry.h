// The devices that the application has described (inferstat_add_device), so that samples of a
// device have the name that its requests have, and its facts are recorded together.
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "common/core/record/record.h"

enum { DEVICE_REGISTRY_MAX = 64 }; // devices of a run; later ones are not kept

struct device_registry {
    pthread_mutex_t lock; // guards the members below
    uint32_t count;
    struct record devices[DEVICE_REGISTRY_MAX];
};

void device_registry_init(struct device_registry *registry);
void device_registry_deinit(struct device_registry *registry);

// Keeps a copy of a record of kind device, in place of one with the same name.  Any thread.
void device_registry_add(struct device_registry *registry, const struct record *device);

enum device_match {
    DEVICE_UNKNOWN,
    DEVICE_DESCRIBED,  // the application has described the device
    DEVICE_NAME_TAKEN, // it has described another one under that name
};

// Finds the device with this UUID, else one without UUID under the name with the id `name`, and
// copies its record to `*out`.  Any thread.
enum device_match device_registry_find(struct device_registry *registry, const char *uuid,
                                       uint32_t name, struct record *out);
