// Prints a model's profile as tables for people.
#pragma once

#include <stdio.h>

#include "server/device/device.h"
#include "server/workload/llm/layer_profile.h"

// Prints a table for each phase with a row for each operation, and one with a row for each layer.
// MBU, the ratio of bytes/s to the bandwidth of the memory of `device`, is "-" if that has not
// been measured.
void profile_table_print(FILE *out, const struct layer_profile *profile,
                         const struct device *device);
