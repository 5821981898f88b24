// A monitor that reports to nobody, and loads it hears of: for tests of what the worker
// records.
#pragma once

#include <stdint.h>

#include "common/monitor/inferstat.h"
#include "server/workload/llm/load.h"

enum { LOAD_LINE_SIZE = 2048 };

extern char load_line[LOAD_LINE_SIZE]; // the last [LOAD] line
extern int64_t load_resident;          // memory of the process when it came

struct inferstat_monitor *open_monitor(void);
void close_monitor(struct inferstat_monitor *monitor);

// The newest event of that kind; there must be one.
struct inferstat_event last_event(struct inferstat_monitor *monitor,
                                  enum inferstat_event_kind kind);

// llm_load with one thread.
MUST_CHECK enum status load(struct llm **llm, struct inferstat_monitor *monitor,
                            struct llm_load_options options, struct error *err);
