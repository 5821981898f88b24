// Reads the PCIe link of a device from sysfs.
#ifndef INFERSTAT_SERVER_DEVICE_PCIE_H
#define INFERSTAT_SERVER_DEVICE_PCIE_H

#include <stdbool.h>

// Zeros: unknown.  An idle device may have negotiated its link down.
struct pcie_link {
    unsigned int generation, width;         // negotiated now
    unsigned int generation_max, width_max; // the device's best
    unsigned int generation_port_max;       // the best of the port above it
};

// Reads the link of the device at `address` ("0000:01:00.0", either case, with or
// without the domain's leading zeros) from `folder`, NULL: /sys/bus/pci/devices.  False
// when `address` is malformed; values that no file has stay 0.
bool pcie_link_read(struct pcie_link *out, const char *folder, const char *address);

// The generation of a speed as the kernel writes it ("32.0 GT/s PCIe"); 0: none.
unsigned int pcie_generation(const char *speed);

#endif
