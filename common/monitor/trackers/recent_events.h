// Local event history: the most recent loads, inferences and operations of this process.  The
// application reads them (inferstat_history and others in inferstat.h), even if nothing is reported
// to a collector.  The modules that measure them (trackers/) add them here.
#pragma once

#include "common/monitor/monitor.h"

// Adds an event to the history of the calling thread (its `slot`; NULL: to none) and calls the
// listeners.  The caller fills `entry`, except generated_so_far.
void recent_events_add(struct inferstat_monitor *monitor, struct thread_slot *slot,
                       enum inferstat_event_kind kind, struct event_entry *entry);
