// Publishes a run's records to its collector and frees them once they are committed:
// performs the I/O of the producer state machine in common/core/delivery/delivery.h.
// The run is this process's own or one of a dead process (`replay`); records are read
// from the rings of its run file and from its spool.
//
// Steps never block, neither on the collector nor on the engine.  Belongs to one
// thread, which also opens and closes it.
#ifndef INFERSTAT_MONITOR_PUBLISHER_H
#define INFERSTAT_MONITOR_PUBLISHER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/monitor/delivery/log_sink.h"
#include "common/monitor/runfile/runfile.h"
#include "common/monitor/spool/spool.h"
#include "common/wire/address.h"
#include "common/wire/trust.h"

// Everything is borrowed until publisher_close.
struct publisher_settings {
    struct runfile *file; // with stream 0, where the run lives
    struct spool *spool;  // of the same run; NULL: there is none
    const struct address *address;
    const struct trust_source *trust;
    bool replay; // the run has ended: only deliver what is left, and its Goodbye
    struct log_sink log;
};

struct publisher;

MUST_CHECK enum status publisher_open(struct publisher **out,
                                      const struct publisher_settings *settings, struct error *err);
// NULL is fine.
void publisher_close(struct publisher *publisher);

// How long until publisher_step must be called again, unless a message arrives.
uint64_t publisher_pause_ns(const struct publisher *publisher);

// Waits until an urgent message arrives, `wake_fd` is readable or `timeout_ns` has
// passed.
void publisher_wait(struct publisher *publisher, int wake_fd, int64_t timeout_ns);

// Receives messages, sends batches and spools records as needed.  Records wait up to
// 25 ms to be batched, which saves system calls in three threads here and in the
// collector.
void publisher_step(struct publisher *publisher);

// Nothing more will be recorded: sends Goodbye once everything is acknowledged.
void publisher_finish(struct publisher *publisher);

// Moves all unacknowledged records to the spool.  Returns how many stay in the rings:
// all without a spool, else those for which it had no room.
uint64_t publisher_spool_all(struct publisher *publisher);

// Whether the collector has committed the run's Goodbye.
bool publisher_is_finished(const struct publisher *publisher);

// Whether the collector is answering.
bool publisher_has_contact(const struct publisher *publisher);

// Why nothing is delivered, as "reason (what to do)", if known, else "": the
// collector's error or a problem of the connection.
const char *publisher_trouble(const struct publisher *publisher);

// Whether the collector answers but rejects this run.
bool publisher_is_refused(const struct publisher *publisher);

// Records acknowledged so far.  Any thread.
uint64_t publisher_acknowledged(const struct publisher *publisher);

#endif
