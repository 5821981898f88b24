// The delivery protocol, at-least-once with deduplication and credit-based flow control, as
// pure state machines: inputs in, actions out, time passed in.  The rules are in
// proto/inferstat.proto under "Delivery".  The collector's machine is in delivery_run.h.
//
// The producer's machine decides what to send and when, what may be freed, and what
// becomes a dropped range.  It holds no records: its driver reads them from ring or
// spool by (stream, number).
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

// The reason in words as the ledger shows it; static.
const char *delivery_reason_text(enum delivery_reason reason);

struct delivery_stream {
    uint32_t stream;
    uint64_t produced;   // highest number assigned
    uint64_t unnumbered; // lost before they got a number
};

struct delivery_next {
    uint32_t stream;
    uint64_t next; // everything below is stored or dropped, committed
};

// An acknowledgement from the collector.
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
    uint64_t resend_after_ns; // acknowledgement timeout: start over with Hello
    uint64_t resend_max_ns;   // that wait doubles up to this
    uint64_t heartbeat_ns;    // longest silence
    // The run is dead and its files are replayed.  After a host crash the collector may
    // know more of it: its answer to Hello is then trusted.
    bool replay;
    // With a spool (spool_after_ns not 0): records are spooled when their ring of
    // `ring_records` is half full of unacknowledged ones, and every spool_after_ns while
    // contact is lost.
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
                           // the spool; answer with delivery_producer_spooled before
                           // any other call
    DELIVERY_FREE,         // release records of `stream` up to `last` in ring and spool
    DELIVERY_LOST_CONTACT, // once per loss: the first answer timeout
    DELIVERY_CONTACT,      // once: the collector answers (again)
    DELIVERY_CLOSED,       // Goodbye is committed: no more actions.  In a replay also when
                           // all but Goodbye was acknowledged, after several attempts
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

// Updates what a stream has produced; counts never decrease.  Adds a new stream, of which
// records up to `released` were freed earlier (0 for a new one).  STATUS_FULL beyond
// DELIVERY_STREAMS_MAX.
MUST_CHECK enum status delivery_producer_stream(struct delivery_producer *producer,
                                                const struct delivery_stream *state,
                                                uint64_t released);

// For a replay: the spool holds records of the stream from `released` + 1 (of
// delivery_producer_stream) to `spooled`.  Call it directly after that function.
void delivery_producer_spool_holds(struct delivery_producer *producer, uint32_t stream,
                                   uint64_t spooled);

// The answer to DELIVERY_SPOOL.  Done: records up to action->last are durable, and the
// driver may release their ring slots.  Otherwise it is retried after spool_retry_ns;
// records stay in the ring, which drops and counts new ones when it is full.
void delivery_producer_spooled(struct delivery_producer *producer,
                               const struct delivery_action *action, bool done, uint64_t now_ns);

// The process closes with unacknowledged records: spools all of them from now on.
void delivery_producer_spool_all(struct delivery_producer *producer);

// The spool lost records range->first..range->last: evicted (DELIVERY_SPOOL_FULL) or
// unreadable (DELIVERY_SPOOL_DAMAGED).  They become a dropped range, merged with an
// adjacent one if possible, and sending continues after it.  Records reported before,
// released, or still in the ring are left out.  STATUS_FULL: there are
// DELIVERY_DROPS_MAX ranges; nothing was changed; call again after further
// acknowledgements.  STATUS_INVALID: no such stream.
MUST_CHECK enum status delivery_producer_lost(struct delivery_producer *producer,
                                              const struct delivery_range *range);

// The number of names of the run (ids 1..count).  Call it after delivery_producer_stream, so
// that the names of all records are included.
void delivery_producer_names(struct delivery_producer *producer, uint32_t count);

// Handles an acknowledgement.  STATUS_INVALID: ignored and counted, because a `next` is
// beyond what was produced, or below what was acknowledged without a new Hello.
MUST_CHECK enum status delivery_producer_ack(struct delivery_producer *producer,
                                             const struct delivery_ack *ack, uint64_t now_ns,
                                             int64_t wall_ns);

// No more records follow: sends Goodbye once everything is acknowledged.
void delivery_producer_close(struct delivery_producer *producer);

// After a reconnect: starts again with Hello.
void delivery_producer_reconnect(struct delivery_producer *producer);

// Returns the next action, or false when there is none.  A SEND counts as sent; if the
// driver cannot send it (no connection, full queue), it calls delivery_producer_unsent
// before any other function, and gets it again after a tenth of resend_after_ns; nothing
// else is sent before.
bool delivery_producer_next(struct delivery_producer *producer, uint64_t now_ns,
                            struct delivery_action *action);
void delivery_producer_unsent(struct delivery_producer *producer,
                              const struct delivery_action *action, uint64_t now_ns);

// Dropped ranges to send with every Batch and Goodbye until they are acknowledged, at most
// DELIVERY_DROPS_MAX, with reasons that the collector's protocol version knows; borrowed
// until the next call.
const struct delivery_range *delivery_producer_drops(const struct delivery_producer *producer,
                                                     size_t *count);

// All streams, for Hello, Batch and Goodbye; borrowed until the next call.
const struct delivery_stream *delivery_producer_streams(const struct delivery_producer *producer,
                                                        size_t *count);

uint64_t delivery_producer_acknowledged(const struct delivery_producer *producer); // records
uint64_t delivery_producer_invalid_acks(const struct delivery_producer *producer);

// ---- Collector ----------------------------------------------------------------

// The rules of delivery_run.h for one range of records.

// What to do with records first..last of a stream whose next expected number is `next`.
enum delivery_verdict {
    DELIVERY_TAKE,  // store from *take_first on; *duplicates before it are known
    DELIVERY_KNOWN, // all are known: *duplicates of them
    DELIVERY_GAP,   // starts beyond next: ignore, answer with next
};

enum delivery_verdict delivery_offer(uint64_t next, uint64_t first, uint64_t last,
                                     uint64_t *take_first, uint64_t *duplicates);

// Clips a dropped range to the part that advances `next`.  False when nothing is left or the
// range starts beyond next.
bool delivery_offer_drop(uint64_t next, struct delivery_range *range);

#endif
