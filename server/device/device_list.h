// Several devices named at once: "cuda:0,1" is cuda:0 and cuda:1.
#ifndef INFERSTAT_SERVER_DEVICE_DEVICE_LIST_H
#define INFERSTAT_SERVER_DEVICE_DEVICE_LIST_H

#include "common/core/base/error.h"
#include "common/core/base/status.h"

enum { DEVICE_LIST_MAX = 16, DEVICE_SPEC_SIZE = 48 };

struct device_list {
    unsigned int count;                            // at least 1
    char specs[DEVICE_LIST_MAX][DEVICE_SPEC_SIZE]; // each for device_open
};

// Takes apart BACKEND:N,N,...; without a comma `spec` is one device, whatever it says (NULL
// is "auto"): device_open looks at that.  Fails with STATUS_INVALID on what is no list, a
// device named twice, or more than DEVICE_LIST_MAX.
MUST_CHECK enum status device_list_parse(struct device_list *out, const char *spec,
                                         struct error *err);

#endif
