// Sends what a run has recorded to its collector and frees what that has committed:
// the driver of the producer's side of common/core/delivery/delivery.h.  The run may be this
// process's own or that of one that has ended (`replay`): records lie in the rings of
// its run file and in its spool, and are sent from where they are.
//
// Nothing here waits: neither for the collector, nor the engine for this.  Belongs
// to one thread, which also makes and frees it.
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
    bool replay; // the run is over: nothing is added, and it gets its Goodbye
    struct log_sink log;
};

struct publisher;

MUST_CHECK enum status publisher_open(struct publisher **out,
                                      const struct publisher_settings *settings, struct error *err);
// NULL is fine.
void publisher_close(struct publisher *publisher);

// How long publisher_step need not be called, unless the collector says something.
uint64_t publisher_pause_ns(const struct publisher *publisher);

// Waits until the collector says something that cannot wait, `wake_fd` can be read,
// or the time is over.
void publisher_wait(struct publisher *publisher, int wake_fd, int64_t timeout_ns);

// Takes in what came, sends what there is to send, spools what has to be.  Records
// wait up to 25 ms for others, so that one batch and one acknowledgement, with their
// system calls in three threads here and in the collector, serve them all.
void publisher_step(struct publisher *publisher);

// Nothing more will be recorded: from now on say goodbye when all is acknowledged.
void publisher_finish(struct publisher *publisher);

// Moves all that is not acknowledged to the spool.  Returns how many records stay in
// the rings: all of them without a spool, those that it had no room for with one.
uint64_t publisher_spool_all(struct publisher *publisher);

// Whether the collector has committed the end.
bool publisher_is_finished(const struct publisher *publisher);

// Whether the collector answers now.
bool publisher_has_contact(const struct publisher *publisher);

// Why nothing gets on, as far as that can be told, as "words (what to do)", else "":
// what the collector has against the run, or what is wrong with the connection.
const char *publisher_trouble(const struct publisher *publisher);

// Whether the collector answers, but does not take this run.
bool publisher_is_refused(const struct publisher *publisher);

// Records acknowledged so far.  Any thread.
uint64_t publisher_acknowledged(const struct publisher *publisher);

#endif
