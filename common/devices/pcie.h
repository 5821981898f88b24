// PCIe links of devices, as sysfs tells them.
#pragma once

#include <stdbool.h>

// A device's PCIe link.  Zero means unknown.  The link of an idle device may run below its maximum.
struct pcie_link {
    unsigned int generation, width;         // currently negotiated
    unsigned int generation_max, width_max; // maximum of the device
    unsigned int generation_port_max;       // maximum of the upstream port
};

// Reads the link of the device with the PCI address `address` ("0000:01:00.0", in either case, with
// or without the domain's leading zeros).  Tests pass a `folder` in place of /sys/bus/pci/devices;
// others pass NULL.  Returns false if `address` is malformed.  Values that sysfs lacks are 0.
bool pcie_link_read(struct pcie_link *out, const char *folder, const char *address);

// Returns the PCIe generation of a link speed in the kernel's format ("32.0 GT/s PCIe"); 0:
// unknown.
unsigned int pcie_generation(const char *speed);
