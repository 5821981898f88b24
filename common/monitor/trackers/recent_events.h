// Local event history: the most recent loads, inferences and operations of this process, which
// the application can read even if nothing is reported to a collector.
#ifndef INFERSTAT_MONITOR_RECENT_EVENTS_H
#define INFERSTAT_MONITOR_RECENT_EVENTS_H

#include "common/monitor/monitor.h"

// Adds an event to the calling thread's history (`slot` may be NULL) and calls the listeners.
void recent_events_add(struct inferstat_monitor *monitor, struct thread_slot *slot,
                       enum inferstat_event_kind kind, struct event_entry *entry);

#endif
