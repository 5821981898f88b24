// The stages of a load or of a startup: disjoint intervals, in order.
#ifndef INFERSTAT_MONITOR_LOAD_STAGES_H
#define INFERSTAT_MONITOR_LOAD_STAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/record.h"
#include "common/monitor/monitor.h"
#include "common/monitor/thread_slot.h"

enum { STAGES_MAX = 32 };

struct stages {
    bool running;
    uint64_t started_ns; // of the running one
    uint32_t count;
    struct stage {
        uint32_t name;
        uint64_t duration_ns;
        uint64_t start_ns;
    } items[STAGES_MAX];
};

// Ends the running stage, if any, and starts one at the same instant.  Beyond
// STAGES_MAX its time goes to the last one.
void stages_start(struct stages *stages, struct inferstat_monitor *monitor, const char *name,
                  uint64_t now_ns);
void stages_end(struct stages *stages, uint64_t now_ns);

// Pushes `parent` and the stages behind it, all or none.
void stages_push(const struct stages *stages, struct inferstat_monitor *monitor, struct seat *seat,
                 const struct record *parent);

// Writes "device_selection=1.2ms, file_opening=30us" for the log.  Returns `text`.
char *stages_text(char *text, size_t size, const struct stages *stages,
                  const struct inferstat_monitor *monitor);

#endif
