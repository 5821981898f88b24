// The collector: the telemetry server that the daemon inferstatd runs.  This module starts and
// stops its threads: ingest (receives records), writer (stores them), query (answers queries) and
// live (sends new records to subscribers).  They share one store, an SQLite database.  All but the
// writer listen at up to ENDPOINTS_MAX addresses.  Used by the main thread only.
#pragma once

#include "server/collector/options.h"

struct collector;

// Locks the store and each ipc folder, opens the store and the sockets, and starts the threads.
// When the call returns, producers and readers are served.  Returns STATUS_BUSY if another
// collector uses the store, or another program an address.  A failure leaves no new lock file
// behind.  `options` is borrowed until collector_stop.  `keys` are the collector's own keys, which
// are copied; they are used only if options->key is set.
MUST_CHECK enum status collector_start(struct collector **out, const struct options *options,
                                       const struct wire_keypair *keys, struct error *err);

// Reloads the authorized keys if their file has changed.  Call it every second.
void collector_poll(struct collector *collector);

// Reloads the alert rules, the authorized keys and the secrets of the metrics.  If one of the files
// is wrong, the rules and the metrics stay as they were, and alert_config says so; keys that are
// right are taken, as by collector_poll.
MUST_CHECK enum status collector_reload(struct collector *collector, struct error *err);

// Watchdog: true if the ingest and writer threads have completed a round of their loops within
// the last `within_ns`.
bool collector_is_alive(struct collector *collector, uint64_t within_ns);

// Graceful shutdown: commits and acknowledges the received records, then stops.  Accepts NULL.
void collector_stop(struct collector *collector);
