// The delivery protocol as pure state machines: inputs in, actions out, time
// passed in.  The rules are in proto/inferstat.proto under "Delivery".  The
// collector's machine is in delivery_run.h.
//
// The producer's machine decides what to send when, what may be freed, and what
// has to be given up as a dropped range.  It holds no records: its driver reads
// them from where they lie by (stream, number).
#ifndef INFERSTAT_CORE_DELIVERY_H
#define INFERSTAT_CORE_DELIVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"
#include "common/core/delivery/delivery_range.h"

enum {
    DELIVERY_PROTOCOL = 2, // the version spoken here; those before and after it are understood
    DELIVERY_STREAMS_MAX = 1024, // of one run
    DELIVERY_BATCH_MAX = 4096,   // records in one batch
    DELIVERY_NAMES_MAX = 4096,   // names in one message
};

// The reason in words as the ledger shows it; static.
const char *delivery_reason_text(enum delivery_reason reason);

struct delivery_stream {
    uint32_t stream;
    uint64_t produced;   // highest number given out
    uint64_t unnumbered; // lost before they got a number
};

struct delivery_next {
    uint32_t stream;
    uint64_t next; // everything below is stored or dropped, committed
};

// An acknowledgement as it came from the collector.
struct delivery_ack {
    unsigned char store[16];
    uint64_t sequence; // 0 answers a Hello
    const struct delivery_next *next;
    size_t next_count;
    uint32_t names_known;
    uint32_t credit;
    uint32_t protocol; // spoken by the collector; 0: not said
    bool hello_wanted;
    bool closed;
};

// ---- Producer ---------------------------------------------------------------

struct delivery_config {
    uint32_t batch_records;   // most records in a batch, 1..DELIVERY_BATCH_MAX
    uint64_t resend_after_ns; // no acknowledgement for so long: start over with Hello
    uint64_t resend_max_ns;   // that wait doubles up to this
    uint64_t heartbeat_ns;    // longest silence
    // The run is dead, and this machine has what it left.  Where its host went down,
    // the collector may know more of it: what it says at Hello is then believed.
    bool replay;
    // Where there is a spool (spool_after_ns not 0): records go there when their
    // ring of `ring_records` is half full of unacknowledged ones, or when contact
    // has been lost for spool_after_ns, and each time so long after that.
    uint64_t spool_after_ns;
    uint64_t spool_retry_ns; // after it could not be written
    uint32_t ring_records;
};

enum delivery_action_kind {
    DELIVERY_SEND_HELLO,
    DELIVERY_SEND_BATCH,     // records first..last of `stream`
    DELIVERY_SEND_HEARTBEAT, // a batch without records
    DELIVERY_SEND_GOODBYE,
    DELIVERY_SPOOL,        // write records first..last of `stream`, which the ring holds, to
                           // the spool; answered at once with delivery_producer_spooled
    DELIVERY_FREE,         // records of `stream` up to `last` are needed no more, be they
                           // in the ring or in the spool
    DELIVERY_LOST_CONTACT, // once, when the first wait for an answer ran out
    DELIVERY_CONTACT,      // once, when answers come (again)
    DELIVERY_CLOSED,       // the end is committed: nothing more will follow.  Of a replay
                           // also when all is committed but its end, time and again
};

struct delivery_action {
    enum delivery_action_kind kind;
    uint32_t stream;
    uint64_t first, last;
    uint64_t sequence;    // to be sent with the message
    uint32_t names_first; // names to be sent along: names_first..names_last, none
    uint32_t names_last;  // when names_last < names_first
};

struct delivery_producer;

MUST_CHECK enum status delivery_producer_new(struct delivery_producer **out,
                                             const struct delivery_config *config);
void delivery_producer_free(struct delivery_producer *producer);

// What a stream has produced by now; figures never go down.  A stream not seen
// before is added: `released` says how much of it was freed earlier (0 for a new
// one).  STATUS_FULL beyond DELIVERY_STREAMS_MAX.
MUST_CHECK enum status delivery_producer_stream(struct delivery_producer *producer,
                                                const struct delivery_stream *state,
                                                uint64_t released);

// What the spool already holds of a stream when the machine is made for a run
// that was begun before: records up to `spooled`, from `released` + 1 of
// delivery_producer_stream on.  Before anything else is done with the stream.
void delivery_producer_spool_holds(struct delivery_producer *producer, uint32_t stream,
                                   uint64_t spooled);

// The answer to DELIVERY_SPOOL.  Done: records up to action->last are safe, and
// their slots in the ring may be used again (which the driver sees to itself).
// Else nothing has changed, and the next attempt is spool_retry_ns away; records
// stay in the ring, and engines lose what has no room there, counted.
void delivery_producer_spooled(struct delivery_producer *producer,
                               const struct delivery_action *action, bool done, uint64_t now_ns);

// The owner is about to leave while records are unacknowledged: from now on all of
// them go to the spool at once.
void delivery_producer_spool_all(struct delivery_producer *producer);

// Records range->first..range->last that the spool held are gone, for the reason:
// it was full and they were the oldest (DELIVERY_SPOOL_FULL), or they cannot be
// read back (DELIVERY_SPOOL_DAMAGED).  What of them is not acknowledged becomes a
// dropped range, merged with its neighbour where it can be; sending goes on behind
// it.  What was told before, is acknowledged and freed, or is in the ring, is left
// out.  STATUS_FULL: there are DELIVERY_DROPS_MAX ranges already; nothing was
// changed, and it has to be told again once acknowledgements have made room.
// STATUS_INVALID: there is no such stream.
MUST_CHECK enum status delivery_producer_lost(struct delivery_producer *producer,
                                              const struct delivery_range *range);

// How many names the run has given out by now (ids 1..count).  To be told after
// the streams, so that every record's names are among them.
void delivery_producer_names(struct delivery_producer *producer, uint32_t count);

// An acknowledgement arrived.  One that cannot be true (a `next` beyond what was
// produced, or below what was acknowledged without a new Hello) is ignored and
// counted, STATUS_INVALID.
MUST_CHECK enum status delivery_producer_ack(struct delivery_producer *producer,
                                             const struct delivery_ack *ack, uint64_t now_ns,
                                             int64_t wall_ns);

// The owner is done: once everything is acknowledged, say goodbye.
void delivery_producer_close(struct delivery_producer *producer);

// After a reconnect: starts again with Hello.
void delivery_producer_reconnect(struct delivery_producer *producer);

// The next thing to do now, or false when there is nothing.  A SEND is taken as
// sent; where the driver could not send it (no connection, full queue) it calls
// delivery_producer_unsent at once, and is given it again after a tenth of
// resend_after_ns; nothing else is sent before.
bool delivery_producer_next(struct delivery_producer *producer, uint64_t now_ns,
                            struct delivery_action *action);
void delivery_producer_unsent(struct delivery_producer *producer,
                              const struct delivery_action *action, uint64_t now_ns);

// Dropped ranges that have to go along with every Batch and Goodbye until they
// are acknowledged, at most DELIVERY_DROPS_MAX, with reasons that the collector's
// version of the protocol knows; borrowed until the next call.
const struct delivery_range *delivery_producer_drops(const struct delivery_producer *producer,
                                                     size_t *count);

// Streams as last told, for Hello and Goodbye; borrowed until the next call.
const struct delivery_stream *delivery_producer_streams(const struct delivery_producer *producer,
                                                        size_t *count);

uint64_t delivery_producer_acknowledged(const struct delivery_producer *producer); // records
uint64_t delivery_producer_invalid_acks(const struct delivery_producer *producer);

// ---- Collector ----------------------------------------------------------------

// The machine is in delivery_run.h; these are its rules for one offer.

// What to do with records first..last of a stream whose next wanted is `next`.
enum delivery_verdict {
    DELIVERY_TAKE,  // store from *take_first on; *duplicates before it are known
    DELIVERY_KNOWN, // all are known: *duplicates of them
    DELIVERY_GAP,   // starts beyond next: ignore, answer with next
};

enum delivery_verdict delivery_offer(uint64_t next, uint64_t first, uint64_t last,
                                     uint64_t *take_first, uint64_t *duplicates);

// The part of a dropped range that moves `next`: clips what is already stored
// or dropped away.  False when nothing is left or the range starts beyond next.
bool delivery_offer_drop(uint64_t next, struct delivery_range *range);

#endif
