// Publisher: the network client that sends a run's records to its collector and frees them
// once the collector has committed them.  The producer state machine of
// common/core/delivery/delivery.h decides what to send; the publisher does the I/O.
//
// The run belongs to this process, or to a dead one (`replay`).  Each thread of the run writes a
// stream: numbered records, in a ring buffer of the run file.  The spool (files on disk) has
// records that were moved from the rings while the collector was unreachable.
//
// One thread uses and closes a publisher: the background thread, the replay thread or
// `inferstat spool flush`.  This thread calls in a loop: publisher_step, then publisher_wait for at
// most pause_ns.  publisher_step never waits for the collector or the engine.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/monitor/delivery/log_sink.h"
#include "common/monitor/runfile/runfile.h"
#include "common/monitor/spool/spool.h"
#include "common/wire/address.h"
#include "common/wire/trust.h"

// The structure is copied; everything that it points to is borrowed until publisher_close.
struct publisher_settings {
    struct runfile *file; // of the run; has stream 0 (the background thread's) unless `replay`
    struct spool *spool;  // of the run; NULL: none
    const struct address *address;
    const struct trust_source *trust;
    const char *cuda; // version of the CUDA runtime that the program uses; "" or NULL: unknown
    bool replay;      // the run has ended: only deliver its remaining records and Goodbye
    struct log_sink log;
};

struct publisher;

// Does not connect yet: the first publisher_step does.  Any thread.
MUST_CHECK enum status publisher_open(struct publisher **out,
                                      const struct publisher_settings *settings, struct error *err);
// NULL is fine.
void publisher_close(struct publisher *publisher);

// Waits until `wake_fd` is readable or `timeout_ns` has passed; also until a message arrives, if an
// urgent one is expected.
void publisher_wait(struct publisher *publisher, int wake_fd, int64_t timeout_ns);

struct publisher_state {
    bool finished;  // the collector has committed the run's Goodbye, or removed the run after it
    bool forgotten; // the collector has removed the run and takes nothing more of it: its records,
                    // and those that its threads still produce, are discarded
    bool has_contact;  // the collector answers
    bool refused;      // the collector answers but rejects this run
    uint64_t pause_ns; // time until publisher_step must be called again if no message arrives
};

// Receives messages, sends batches, and moves records to the spool as needed.  Records wait up
// to 25 ms to be batched, which saves system calls here and in the collector.  The result is valid
// until publisher_close, and changes with each call.
const struct publisher_state *publisher_step(struct publisher *publisher);

// Says that the run produces no more records: later steps send Goodbye, the run's last message,
// once all records are acknowledged.
void publisher_finish(struct publisher *publisher);

// Moves all unacknowledged records to the spool.  Returns the number of records that stay in
// the rings: all if there is no spool, else those that could not be appended.
uint64_t publisher_spool_all(struct publisher *publisher);

// Returns the reason why nothing is delivered (an error of the collector or the connection), as
// "reason (what to do)", valid until publisher_step; "" if unknown.
const char *publisher_trouble(const struct publisher *publisher);

// Returns the number of records acknowledged so far.  Any thread.
uint64_t publisher_acknowledged(const struct publisher *publisher);
