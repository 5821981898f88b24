// Delivery protocol: at-least-once delivery of records from a producer (the library in a reporting
// process) to the collector, with deduplication and credit-based flow control.  Both sides are
// state machines without I/O, clock and threads: the caller passes events and the time, and
// performs the actions.  The rules are in proto/inferstat.proto under "Delivery".
//
// This header has the producer's state machine; delivery_run.h has the collector's.  The producer's
// state machine decides when to send which records, when to free records, and which records become
// a dropped range (records that will never reach the store).  It holds no records: the caller keeps
// them in ring buffers (memory) or in the spool (files with unacknowledged records).  The caller
// repeats:
//
//   1. report new records: delivery_producer_stream, then delivery_producer_names
//   2. pass acknowledgements: delivery_producer_ack
//   3. perform the actions of delivery_producer_next until it returns false
//
// Messages: Hello opens a connection and lists the streams (a stream: the records of one ring
// buffer); Batch carries records, or none as a heartbeat; Goodbye ends the run.  The collector's
// answer is an acknowledgement (Ack).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"
#include "common/core/delivery/delivery_range.h"

enum {
    DELIVERY_PROTOCOL = 2,       // our version; the previous and the next version are accepted too
    DELIVERY_STREAMS_MAX = 1024, // of one run; delivery_producer_stream rejects more
    DELIVERY_BATCH_MAX = 4096,   // records in one batch
    DELIVERY_NAMES_MAX = 4096,   // names in one message; delivery_producer_next selects no more
};

// The text of a reason ("spool_full"), as the store keeps it; static.
const char *delivery_reason_text(enum delivery_reason reason);

// A stream is the records of one ring of a run, numbered 1, 2, 3, ...; a run is one life of a
// reporting process.
struct delivery_stream {
    uint32_t stream;
    uint64_t produced;   // highest number assigned
    uint64_t unnumbered; // records dropped before they got a number
    uint64_t no_room;    // of these: the thread had no ring
};

struct delivery_next {
    uint32_t stream;
    uint64_t next; // all lower numbers are committed, as stored or dropped
};

// An acknowledgement from the collector.
struct delivery_ack {
    unsigned char store[16];          // UUID of the collector's store
    uint64_t sequence;                // of the last message acknowledged; 0: Hello
    const struct delivery_next *next; // borrowed for the call
    size_t next_count;
    uint32_t names_known; // names 1..names_known are stored
    uint32_t credit;      // most unacknowledged records allowed, all streams together
    uint32_t protocol;    // the collector's version; 0: not stated
    bool hello_wanted;    // the collector requests Hello
    bool closed;          // the end of the run is committed
};

// ---- Producer ---------------------------------------------------------------

struct delivery_config {
    uint32_t batch_records;   // most records in a batch, 1..DELIVERY_BATCH_MAX
    uint64_t resend_after_ns; // acknowledgement timeout: restart with Hello
    uint64_t resend_max_ns;   // upper bound of that timeout; each timeout doubles the next one
    uint64_t heartbeat_ns;    // longest time without a message sent
    // True to replay a dead run: to send the records in the files that it left.  After a host crash
    // the collector may have more records than the files: its answer to Hello is trusted.
    bool replay;
    // 0: no spool.  Otherwise a ring's unacknowledged records are spooled when they are half as
    // many as fit the ring (delivery_producer_ring_fits).  While the collector is unreachable, the
    // records of all rings are also spooled every spool_after_ns.
    uint64_t spool_after_ns;
    uint64_t spool_retry_ns; // delay after a failed append to the spool
    uint32_t ring_records;   // records that fit a ring
};

enum delivery_action_kind {
    DELIVERY_SEND_HELLO,
    DELIVERY_SEND_BATCH,     // records first..last of `stream`
    DELIVERY_SEND_HEARTBEAT, // a batch without records
    DELIVERY_SEND_GOODBYE,
    DELIVERY_SPOOL,        // append records first..last of `stream` from the ring to the
                           // spool; report the result with delivery_producer_spooled
                           // before any other call
    DELIVERY_FREE,         // release records of `stream` up to `last` in ring and spool
    DELIVERY_LOST_CONTACT, // the first acknowledgement timeout of an outage
    DELIVERY_CONTACT,      // the collector answers, at first or after an outage
    DELIVERY_CLOSED,       // Goodbye is committed: no more actions.  A replay also ends with it
                           // if only Goodbye remains unacknowledged after several attempts
};

struct delivery_action {
    enum delivery_action_kind kind;
    uint32_t stream;
    uint64_t first, last;
    uint64_t sequence;    // sequence number of the message to send
    uint32_t names_first; // names to include: names_first..names_last; none
    uint32_t names_last;  // when names_last < names_first
};

struct delivery_producer;

// Copies `config`.
MUST_CHECK enum status delivery_producer_new(struct delivery_producer **out,
                                             const struct delivery_config *config);
void delivery_producer_free(struct delivery_producer *producer);

// Updates the counts of a stream, which never decrease.  If the stream is new, adds it: its records
// up to `released` were freed earlier (0: none).  Returns STATUS_FULL if there would be more than
// DELIVERY_STREAMS_MAX streams, STATUS_INVALID if `released` is above state->produced.
MUST_CHECK enum status delivery_producer_stream(struct delivery_producer *producer,
                                                const struct delivery_stream *state,
                                                uint64_t released);

// Sets how many records, of the sizes that they have at present, fit the stream's ring.  The
// initial value is config->ring_records.
void delivery_producer_ring_fits(struct delivery_producer *producer, uint32_t stream,
                                 uint32_t records);

// For a replay: the spool holds records `released` + 1 to `spooled` of the stream.  Call it
// directly after delivery_producer_stream, which sets `released`.
void delivery_producer_spool_holds(struct delivery_producer *producer, uint32_t stream,
                                   uint64_t spooled);

// Reports the result of DELIVERY_SPOOL.  `done`: records up to action->last are durable, and
// the caller may release their ring slots.  Otherwise the append is retried after
// spool_retry_ns; meanwhile a full ring drops and counts new records.
void delivery_producer_spooled(struct delivery_producer *producer,
                               const struct delivery_action *action, bool done, uint64_t now_ns);

// Spools all unacknowledged records from now on.  Call it before the process exits.
void delivery_producer_spool_all(struct delivery_producer *producer);

// Reports that the spool lost records range->first..range->last: they were evicted
// (DELIVERY_SPOOL_FULL) or are unreadable (DELIVERY_SPOOL_DAMAGED).  They become a dropped range,
// and sending continues after it.  Records in `range` that were reported before, were released, or
// are still in the ring are not dropped.  Returns STATUS_FULL if there are DELIVERY_DROPS_MAX
// ranges and a part of this one may not be recorded: call again after further acknowledgements.
// Returns STATUS_INVALID if there is no such stream.
MUST_CHECK enum status delivery_producer_lost(struct delivery_producer *producer,
                                              const struct delivery_range *range);

// Sets how many names the run has (texts that records refer to by id): their ids are 1..count.
// Call it after delivery_producer_stream, so that `count` covers the names of all records.
void delivery_producer_names(struct delivery_producer *producer, uint32_t count);

// Handles an acknowledgement.  Returns STATUS_INVALID, and ignores the acknowledgement, if it is
// impossible: a `next` is above the records produced, or below the records acknowledged although no
// Hello was sent since; or the sequence number or a name was never sent.
MUST_CHECK enum status delivery_producer_ack(struct delivery_producer *producer,
                                             const struct delivery_ack *ack, uint64_t now_ns,
                                             int64_t wall_ns);

// Says that the run produces no more records: Goodbye is sent once all are acknowledged.
void delivery_producer_close(struct delivery_producer *producer);

// Starts again with Hello.  Call it after a reconnect.
void delivery_producer_reconnect(struct delivery_producer *producer);

// Sets `*action` to the next action; returns false if there is none.  A DELIVERY_SEND_* action
// counts as sent.  A caller that cannot send the message (no connection, full queue) calls
// delivery_producer_unsent before any other function.  Then the message counts as not sent, and the
// next one follows after a tenth of resend_after_ns.
bool delivery_producer_next(struct delivery_producer *producer, uint64_t now_ns,
                            struct delivery_action *action);
void delivery_producer_unsent(struct delivery_producer *producer,
                              const struct delivery_action *action, uint64_t now_ns);

// The dropped ranges that every Batch and Goodbye must carry until they are acknowledged; at most
// DELIVERY_DROPS_MAX.  Their reasons are those that the collector's protocol version knows.
// Borrowed until the next call.
const struct delivery_range *delivery_producer_drops(struct delivery_producer *producer,
                                                     size_t *count);

// All streams, as Hello, Batch and Goodbye must carry them; borrowed until the next call.
const struct delivery_stream *delivery_producer_streams(const struct delivery_producer *producer,
                                                        size_t *count);

// The number of records acknowledged so far, in all streams; a new stream's `released` counts too.
uint64_t delivery_producer_acknowledged(const struct delivery_producer *producer);
