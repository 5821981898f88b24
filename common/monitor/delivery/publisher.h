// Publisher: sends a run's records to its collector and frees them once they are committed,
// as the I/O layer of the producer state machine in common/core/delivery/delivery.h.  The run
// is that of this process or of a dead one (`replay`); records are read from the rings of its
// run file and from its spool.
//
// Steps never block on the collector or the engine.  One thread opens, uses and closes it.
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
    struct runfile *file; // of the run; unless `replay`, stream 0 exists
    struct spool *spool;  // of the run; NULL: none
    const struct address *address;
    const struct trust_source *trust;
    bool replay; // the run has ended: only deliver its remaining records and Goodbye
    struct log_sink log;
};

struct publisher;

MUST_CHECK enum status publisher_open(struct publisher **out,
                                      const struct publisher_settings *settings, struct error *err);
// NULL is fine.
void publisher_close(struct publisher *publisher);

// The time until publisher_step must be called again if no message arrives.
uint64_t publisher_pause_ns(const struct publisher *publisher);

// Waits until an urgent message arrives, `wake_fd` is readable or `timeout_ns` has
// passed.
void publisher_wait(struct publisher *publisher, int wake_fd, int64_t timeout_ns);

// Receives messages, sends batches and spools records as needed.  Records wait up to 25 ms
// to be batched, which saves system calls here and in the collector.
void publisher_step(struct publisher *publisher);

// The run produces no more records: sends Goodbye once all are acknowledged.
void publisher_finish(struct publisher *publisher);

// Moves all unacknowledged records to the spool.  Returns the number that stay in the
// rings: all without a spool, else those that could not be appended.
uint64_t publisher_spool_all(struct publisher *publisher);

// Whether the collector has committed the run's Goodbye.
bool publisher_is_finished(const struct publisher *publisher);

// Whether the collector is answering.
bool publisher_has_contact(const struct publisher *publisher);

// The reason why nothing is delivered (an error of the collector or the connection), as
// "reason (what to do)"; "" if unknown.
const char *publisher_trouble(const struct publisher *publisher);

// Whether the collector answers but rejects this run.
bool publisher_is_refused(const struct publisher *publisher);

// Records acknowledged so far.  Any thread.
uint64_t publisher_acknowledged(const struct publisher *publisher);

#endif
