#include "common/monitor/sampler/sampler_output.h"

#include <inttypes.h>

static void log_event(const struct sampler_output *output, const struct health_event *event,
                      uint32_t device)
{
    const char *name = names_text(output->names, device, NULL);
    const bool ends = event->duration_ns >= 0;
    const double seconds = (double)event->duration_ns / 1e9;
    if (event->kind == HEALTH_XID)
        log_sink_write(&output->log, INFERSTAT_LOG_WARNING,
                       "%s: the driver reports XID %" PRId64 "%s%s", *name ? name : "GPU",
                       event->code, *event->detail ? ", " : "", event->detail);
    else if (event->kind == HEALTH_DEVICE_LOST && ends)
        log_sink_write(&output->log, INFERSTAT_LOG_WARNING, "%s: is back after %.1f s", name,
                       seconds);
    else if (event->kind == HEALTH_DEVICE_LOST)
        log_sink_write(&output->log, INFERSTAT_LOG_WARNING,
                       "%s: the driver does not find the device any more", name);
    else if (event->kind == HEALTH_DRIVER_HANG && ends)
        log_sink_write(&output->log, INFERSTAT_LOG_WARNING,
                       "the GPU driver answers again, after %.1f s", seconds);
    else if (event->kind == HEALTH_DRIVER_HANG)
        log_sink_write(&output->log, INFERSTAT_LOG_WARNING,
                       "the GPU driver does not answer: no samples of devices until it does");
}

void sampler_output_event(const void *context, const struct health_event *event, uint32_t device)
{
    const struct sampler_output *output = context;
    struct record record;
    const uint32_t name = names_add(output->names, health_kind_name(event->kind));
    log_event(output, event, device);
    if (!name)
        return;
    record_init(&record, RECORD_KIND_EVENT, event->started_ns);
    record_set_name(&record, EVENT_EVENT, name);
    if (device)
        record_set_name(&record, EVENT_DEVICE, device);
    if (event->duration_ns >= 0)
        record_set_int(&record, EVENT_DURATION_NS, event->duration_ns);
    if (event->code >= 0)
        record_set_int(&record, EVENT_CODE, event->code);
    sampler_output_text(&record, EVENT_DETAIL, event->detail);
    (void)ring_push(output->ring, &record, 1);
}

void sampler_output_text(struct record *record, unsigned int column, const char *text)
{
    char clean[256];
    const size_t size = names_clean(clean, sizeof clean, text);
    if (size > 0)
        (void)record_set_text(record, column, clean, size);
}
