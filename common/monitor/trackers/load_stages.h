// Lap timer for the stages of a model load or a process startup: disjoint intervals, in order.
// Used by the trackers of loads and startups.
#ifndef INFERSTAT_MONITOR_LOAD_STAGES_H
#define INFERSTAT_MONITOR_LOAD_STAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/record/record.h"
#include "common/monitor/monitor.h"
#include "common/monitor/thread_slot.h"

enum { LOAD_STAGES_MAX = 32 };

// The caller zeroes it before the first stage.
struct load_stages {
    bool running;        // a stage is running: the last item
    uint64_t started_ns; // when load_stages_start was last called, monotonic
    uint32_t count;      // of items used
    struct stage {
        uint32_t name;        // id of the name
        uint64_t duration_ns; // 0 until the stage has ended
        uint64_t start_ns;    // monotonic
    } items[LOAD_STAGES_MAX];
};

// Starts the stage `name` at `now_ns`, at which the running stage, if any, ends.  After
// LOAD_STAGES_MAX stages, the time of further ones is added to the last.
void load_stages_start(struct load_stages *stages, struct inferstat_monitor *monitor,
                       const char *name, uint64_t now_ns);
// Ends the running stage, if any.
void load_stages_end(struct load_stages *stages, uint64_t now_ns);

// Pushes the record `parent` (the load or startup) and a record for each stage, all or none, to the
// ring of the calling thread's `slot` (may be NULL).  No stage may be running.
void load_stages_push(const struct load_stages *stages, struct inferstat_monitor *monitor,
                      struct thread_slot *slot, const struct record *parent);

// Writes the stages to `text` for the log, as "device_selection=1.2ms, file_opening=30us".
// Returns `text`.
char *load_stages_text(char *text, size_t size, const struct load_stages *stages,
                       const struct inferstat_monitor *monitor);

#endif
