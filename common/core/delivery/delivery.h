// The delivery protocol, at-least-once with deduplication and credit-based flow control, as
// pure state machines: the caller passes events and the time, and performs the actions.  The
// rules are in proto/inferstat.proto under "Delivery".  The collector's state machine is in
// delivery_run.h.
//
// The producer's state machine decides when to send which records, when to free them, and
// which become a dropped range.  It holds no records: the caller reads them from the ring
// buffer (memory) or the spool (disk) by (stream, number).
#ifndef INFERSTAT_CORE_DELIVERY_H
#define INFERSTAT_CORE_DELIVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"
#include "common/core/delivery/delivery_range.h"

enum {
    DELIVERY_PROTOCOL = 2,       // the version sent; the previous and the next one are understood
    DELIVERY_STREAMS_MAX = 1024, // of one run
    DELIVERY_BATCH_MAX = 4096,   // records in one batch
    DELIVERY_NAMES_MAX = 4096,   // names in one message
};

// The text of a reason, as the collector's ledger shows it; static.
const char *delivery_reason_text(enum delivery_reason reason);

// A stream: the records of one ring of a run, numbered 1, 2, 3, ...
struct delivery_stream {
    uint32_t stream;
    uint64_t produced;   // highest number assigned
    uint64_t unnumbered; // records dropped before they got a number
};

struct delivery_next {
    uint32_t stream;
    uint64_t next; // all lower numbers are committed, as stored or dropped
};

// An acknowledgement from the collector.
struct delivery_ack {
    unsigned char store[16]; // UUID of the collector's store
    uint64_t sequence;       // of the last message acknowledged; 0: Hello
    const struct delivery_next *next;
    size_t next_count;
    uint32_t names_known; // names 1..names_known are stored
    uint32_t credit;      // most unacknowledged records allowed
    uint32_t protocol;    // the collector's version; 0: not stated
    bool hello_wanted;    // the collector requests Hello
    bool closed;          // the end of the run is committed
};

// ---- Producer ---------------------------------------------------------------

struct delivery_config {
    uint32_t batch_records;   // most records in a batch, 1..DELIVERY_BATCH_MAX
    uint64_t resend_after_ns; // acknowledgement timeout: restart with Hello
    uint64_t resend_max_ns;   // upper bound of that timeout, which doubles each time
    uint64_t heartbeat_ns;    // longest time without a message sent
    // A dead run is replayed from its files.  After a host crash the collector may have more
    // records than the files: its answer to Hello is trusted.
    bool replay;
    // 0: no spool.  Else records are spooled when half as many wait as fit their ring
    // (delivery_producer_ring_fits), and every spool_after_ns while the collector is unreachable.
    uint64_t spool_after_ns;
    uint64_t spool_retry_ns; // delay after a failed append
    uint32_t ring_records;
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
    DELIVERY_CLOSED,       // Goodbye is committed: no more actions.  In a replay also when
                           // only Goodbye remains unacknowledged after several attempts
};

struct delivery_action {
    enum delivery_action_kind kind;
    uint32_t stream;
    uint64_t first, last;
    uint64_t sequence;    // of the message
    uint32_t names_first; // names to include: names_first..names_last; none
    uint32_t names_last;  // when names_last < names_first
};

struct delivery_producer;

MUST_CHECK enum status delivery_producer_new(struct delivery_producer **out,
                                             const struct delivery_config *config);
void delivery_producer_free(struct delivery_producer *producer);

// Updates the counts of a stream, which never decrease.  Adds an unknown stream, whose records
// up to `released` were freed earlier (0: none).  STATUS_FULL beyond DELIVERY_STREAMS_MAX.
MUST_CHECK enum status delivery_producer_stream(struct delivery_producer *producer,
                                                const struct delivery_stream *state,
                                                uint64_t released);

// Sets how many records of their present sizes fit the stream's ring, at first
// config->ring_records.
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

// Before the process exits: spools all unacknowledged records from now on.
void delivery_producer_spool_all(struct delivery_producer *producer);

// The spool lost records range->first..range->last: evicted (DELIVERY_SPOOL_FULL) or
// unreadable (DELIVERY_SPOOL_DAMAGED).  They become a dropped range, merged with an
// adjacent one if possible, and sending continues after it.  Excludes records that were
// reported before, were released, or are still in the ring.  STATUS_FULL: there are
// DELIVERY_DROPS_MAX ranges, and a part of this one may be missing: call again after further
// acknowledgements.  STATUS_INVALID: no such stream.
MUST_CHECK enum status delivery_producer_lost(struct delivery_producer *producer,
                                              const struct delivery_range *range);

// Sets the number of interned names of the run (ids 1..count).  Call it after
// delivery_producer_stream, so that it covers the names of all records.
void delivery_producer_names(struct delivery_producer *producer, uint32_t count);

// Handles an acknowledgement.  STATUS_INVALID: ignored and counted, because a `next` is above
// the records produced, or, without a new Hello, below those acknowledged.
MUST_CHECK enum status delivery_producer_ack(struct delivery_producer *producer,
                                             const struct delivery_ack *ack, uint64_t now_ns,
                                             int64_t wall_ns);

// The run produces no more records: sends Goodbye once all are acknowledged.
void delivery_producer_close(struct delivery_producer *producer);

// After a reconnect: starts again with Hello.
void delivery_producer_reconnect(struct delivery_producer *producer);

// Returns the next action, or false when there is none.  A SEND counts as sent; a caller that
// cannot send it (no connection, full queue) calls delivery_producer_unsent before any other
// function.  The action is then repeated after a tenth of resend_after_ns, before any other
// SEND.
bool delivery_producer_next(struct delivery_producer *producer, uint64_t now_ns,
                            struct delivery_action *action);
void delivery_producer_unsent(struct delivery_producer *producer,
                              const struct delivery_action *action, uint64_t now_ns);

// Dropped ranges to send with every Batch and Goodbye until they are acknowledged, at most
// DELIVERY_DROPS_MAX, with reasons that the collector's protocol version knows; borrowed
// until the next call.
const struct delivery_range *delivery_producer_drops(struct delivery_producer *producer,
                                                     size_t *count);

// All streams, for Hello, Batch and Goodbye; borrowed until the next call.
const struct delivery_stream *delivery_producer_streams(const struct delivery_producer *producer,
                                                        size_t *count);

uint64_t delivery_producer_acknowledged(const struct delivery_producer *producer); // records
uint64_t delivery_producer_invalid_acks(const struct delivery_producer *producer);

// ---- Collector ----------------------------------------------------------------

// Verdict on records first..last of a stream whose next expected number is `next`.
enum delivery_verdict {
    DELIVERY_TAKE,  // store records from *take_first on; skip *duplicates before it
    DELIVERY_KNOWN, // all are duplicates: skip *duplicates
    DELIVERY_GAP,   // first > next: ignore; the Ack requests `next`
};

enum delivery_verdict delivery_offer(uint64_t next, uint64_t first, uint64_t last,
                                     uint64_t *take_first, uint64_t *duplicates);

// Clips a dropped range to the part that advances `next`.  False when that is empty or the
// range starts above `next`.
bool delivery_offer_drop(uint64_t next, struct delivery_range *range);

#endif
