// PCIe link status: reads generation and width of a device's link from sysfs.
#ifndef INFERSTAT_SERVER_DEVICE_PCIE_H
#define INFERSTAT_SERVER_DEVICE_PCIE_H

#include <stdbool.h>

// Zeros: unknown.  An idle device may have negotiated its link down.
struct pcie_link {
    unsigned int generation, width;         // currently negotiated
    unsigned int generation_max, width_max; // maximum of the device
    unsigned int generation_port_max;       // maximum of the upstream port
};

// Reads the link of the device at `address` ("0000:01:00.0", either case, with or without the
// domain's leading zeros) from `folder`, NULL: /sys/bus/pci/devices.  Returns false when
// `address` is malformed.  Values that sysfs lacks are 0.
bool pcie_link_read(struct pcie_link *out, const char *folder, const char *address);

// The generation of a link speed in the kernel's format ("32.0 GT/s PCIe"); 0: unknown speed.
unsigned int pcie_generation(const char *speed);

#endif
