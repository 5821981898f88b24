// Which device of its host a name means.  Several runs of a host may describe its devices: engines,
// by their own names, and the run that samples them, by others.  Two descriptions are of one device
// if their UUIDs are equal; if one of them has none, if their names are.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"

struct sqlite3_str;
struct store;

// Names that are looked at: those of the newest descriptions.
enum { DEVICE_NAMES_MAX = 50000 };

// Appends three common table expressions, separated by commas:
//   described(host, run, name, uuid, samples, works)   `samples`: the run has sampled a device;
//                                                      `works`: it has answered requests or loaded
//                                                      models
//   used(host, name, uuid)                             devices of runs for which `works` is true
//   same_device(host, run, sampled, used)              the used names of a device that a run, which
//                                                      samples, calls `sampled`
void device_names_append(struct sqlite3_str *sql);

// SQL expression for the UUID of the device that a run calls by a name, as it said last; null where
// it did not say.
#define DEVICE_NAMES_UUID(of_run, of_name)                                                         \
    "(SELECT d.uuid FROM device d WHERE d.run = " of_run " AND d.name = " of_name                  \
    " ORDER BY d.id DESC LIMIT 1)"

// SQL condition: two devices of one host are the same.
#define DEVICE_NAMES_SAME(uuid, name, other_uuid, other_name)                                      \
    "coalesce(" uuid " = " other_uuid ", " name " = " other_name ")"

// The names of devices that are sampled, by those that requests use; ids of the table name.
struct device_names {
    struct device_names_pair {
        int64_t host, used;
        int64_t model; // of the run that uses the name; 0: it describes none
        int64_t sampled;
        int64_t device; // the least name by which the device is sampled, of several
    } * pairs;          // sorted
    size_t count, room;
};

// The caller zeroes the structure before its first use.
MUST_CHECK enum status device_names_read(struct device_names *names, struct store *store,
                                         struct error *err);
void device_names_deinit(struct device_names *names);

// The pairs of a device that requests of a model use, `*count` of them; several if runs use the
// name for different devices, as engines that each call theirs cuda:0.  If no run that uses the
// name describes the model, or `model` is 0, those of all models.  0: none is known; samples then
// have the same name.
const struct device_names_pair *device_names_find(const struct device_names *names, int64_t host,
                                                  int64_t used, int64_t model, size_t *count);

// The least name of a device that is sampled by a name; `sampled` itself if no more is known.
int64_t device_names_device(const struct device_names *names, int64_t host, int64_t sampled);
