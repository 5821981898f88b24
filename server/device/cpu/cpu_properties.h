// Hardware metadata of the CPU back end.
#ifndef INFERSTAT_SERVER_DEVICE_CPU_CPU_PROPERTIES_H
#define INFERSTAT_SERVER_DEVICE_CPU_CPU_PROPERTIES_H

#include "server/device/properties.h"

// Sets `product` to the processor's model name and `driver` to the operating system's name.
void cpu_properties(const struct device *device, struct device_properties *out);

#endif
