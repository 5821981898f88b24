// Trouble of devices and hosts in words, for the commands that mention it.
#pragma once

#include "client/cli/cli.h"

enum { TROUBLE_TEXT_SIZE = 512 };

// Writes what is wrong with the device or host of a row of the device or host health query, such as
// "throttling: power cap, PCIe downgrade: x8 of x16", to `text` (TROUBLE_TEXT_SIZE bytes), escaped
// for a terminal; "" if nothing is.  Returns `text`.
char *device_trouble_text(char *text, const struct result *result, size_t row);

// Writes the name of an event as words, with its detail: "throttling: power cap", "XID 79".
// `text` has TROUBLE_TEXT_SIZE bytes.  Returns `text`.
char *device_trouble_event(char *text, const struct result *result, size_t row);

// Prints `title` and the devices that have trouble now, at most three, of the hosts and devices of
// the query's filter; nothing if none has, or if the collector does not know.
void device_trouble_note(struct cli *cli, const char *title);
