// Where the sampler's records go: the ring of the background thread.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "common/core/record/ring.h"
#include "common/monitor/delivery/log_sink.h"
#include "common/monitor/runfile/names.h"
#include "common/monitor/sampler/device_registry.h"
#include "common/monitor/sampler/health_events.h"

// All borrowed.  Background thread only.
struct sampler_output {
    struct ring *ring; // stream 0
    struct names *names;
    struct device_registry *registry;
    _Atomic uint32_t *device_count; // of the run: counts devices that only the sampler describes
    struct log_sink log;
};

// Records an event for `context`, a struct sampler_output: of the device whose name has the id
// `device`; 0: of the host.  Logs lost devices, hanging drivers and XIDs, which need attention.
void sampler_output_event(const void *context, const struct health_event *event, uint32_t device);

// Sets a TEXT column, cut and escaped; "" leaves it absent.
void sampler_output_text(struct record *record, unsigned int column, const char *text);
