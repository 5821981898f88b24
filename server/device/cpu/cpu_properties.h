// Properties of the CPU back end.
#ifndef INFERSTAT_SERVER_DEVICE_CPU_CPU_PROPERTIES_H
#define INFERSTAT_SERVER_DEVICE_CPU_CPU_PROPERTIES_H

#include "server/device/properties.h"

// Fills `product` with the processor's name and `driver` with the system's.
void cpu_properties(const struct device *device, struct device_properties *out);

#endif
