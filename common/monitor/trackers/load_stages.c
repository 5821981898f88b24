#include "common/monitor/trackers/load_stages.h"

#include <stdio.h>

#include "common/core/base/unit.h"

void load_stages_end(struct load_stages *stages, uint64_t now_ns)
{
    if (!stages->running)
        return;
    stages->running = false;
    stages->items[stages->count - 1].duration_ns += now_ns - stages->started_ns;
}

void load_stages_start(struct load_stages *stages, struct inferstat_monitor *monitor,
                       const char *name, uint64_t now_ns)
{
    load_stages_end(stages, now_ns);
    if (stages->count < LOAD_STAGES_MAX) {
        struct stage *stage = &stages->items[stages->count++];
        stage->name = monitor_known_name(monitor, inferstat_name(monitor, name));
        stage->start_ns = now_ns;
    }
    stages->started_ns = now_ns;
    stages->running = true;
}

void load_stages_push(const struct load_stages *stages, struct inferstat_monitor *monitor,
                      struct thread_slot *slot, const struct record *parent)
{
    struct record records[1 + LOAD_STAGES_MAX];
    records[0] = *parent;
    const struct ring *ring = slot ? slot->stream.ring : NULL;
    const int64_t number = ring ? (int64_t)ring_next_number(ring) : 0;
    for (uint32_t i = 0; i < stages->count; i++) {
        const struct stage *stage = &stages->items[i];
        struct record *record = &records[1 + i];
        record_init(record, RECORD_KIND_LOAD_STAGE, monitor_wall_ns(monitor, stage->start_ns));
        record_set_int(record, LOAD_STAGE_PARENT, number);
        record_set_int(record, LOAD_STAGE_ORDINAL, i);
        record_set_name(record, LOAD_STAGE_STAGE, stage->name);
        record_set_int(record, LOAD_STAGE_DURATION_NS, (int64_t)stage->duration_ns);
    }
    (void)thread_slot_push(&monitor->slots, slot, records, 1 + stages->count);
}

char *load_stages_text(char *text, size_t size, const struct load_stages *stages,
                       const struct inferstat_monitor *monitor)
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < stages->count && used < size; i++) {
        char duration[UNIT_TEXT_SIZE];
        const struct stage *stage = &stages->items[i];
        const int written =
            snprintf(text + used, size - used, "%s%s=%s", i ? ", " : "",
                     names_text(monitor->names, stage->name, NULL),
                     unit_format_int(duration, UNIT_DURATION, (int64_t)stage->duration_ns));
        used += written > 0 ? (size_t)written : 0;
    }
    return text;
}
