// Stopwatch for the stages of a model load or a process startup: disjoint intervals, in order.
#ifndef INFERSTAT_MONITOR_LOAD_STAGES_H
#define INFERSTAT_MONITOR_LOAD_STAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/record/record.h"
#include "common/monitor/monitor.h"
#include "common/monitor/thread_slot.h"

enum { LOAD_STAGES_MAX = 32 };

struct load_stages {
    bool running;
    uint64_t started_ns; // of the running stage
    uint32_t count;
    struct stage {
        uint32_t name;
        uint64_t duration_ns;
        uint64_t start_ns;
    } items[LOAD_STAGES_MAX];
};

// Ends the running stage, if any, and starts the stage `name` at the same instant.  After
// LOAD_STAGES_MAX stages, further time is added to the last one.
void load_stages_start(struct load_stages *stages, struct inferstat_monitor *monitor,
                       const char *name, uint64_t now_ns);
void load_stages_end(struct load_stages *stages, uint64_t now_ns);

// Pushes the record `parent` (the load or startup) and then one per stage, all or none.
void load_stages_push(const struct load_stages *stages, struct inferstat_monitor *monitor,
                      struct thread_slot *slot, const struct record *parent);

// Writes "device_selection=1.2ms, file_opening=30us" for the log.  Returns `text`.
char *load_stages_text(char *text, size_t size, const struct load_stages *stages,
                       const struct inferstat_monitor *monitor);

#endif
