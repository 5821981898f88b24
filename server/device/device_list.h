// Parser of device lists on the worker's command line: "cuda:0,1" means cuda:0 and cuda:1.
#ifndef INFERSTAT_SERVER_DEVICE_DEVICE_LIST_H
#define INFERSTAT_SERVER_DEVICE_DEVICE_LIST_H

#include "common/core/base/error.h"
#include "common/core/base/status.h"

enum { DEVICE_LIST_MAX = 16, DEVICE_SPEC_SIZE = 48 };

struct device_list {
    unsigned int count;                            // at least 1
    char specs[DEVICE_LIST_MAX][DEVICE_SPEC_SIZE]; // each for device_open
};

// Splits a list BACKEND:N,N,... into one spec per device.  Copies a `spec` without a comma
// unchecked, since device_open checks it; NULL is "auto".  Fails with STATUS_INVALID if the list is
// malformed, names a device twice, or has more than DEVICE_LIST_MAX devices.
MUST_CHECK enum status device_list_parse(struct device_list *out, const char *spec,
                                         struct error *err);

#endif
