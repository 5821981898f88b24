// Collector's side of the delivery protocol (delivery.h): one state machine per run, a run being
// one life of a reporting process.  No I/O, no clock, no threads.
//
// The state machine tracks up to which number each stream's records are stored or dropped.  It
// converts a message to steps: names to store (texts that records refer to by id), ranges to record
// as dropped, and records to store, without duplicates.  It holds none of these.  For each message
// the caller
//
//   1. decides with delivery_hear whether to accept it;
//   2. executes the steps of delivery_accept and delivery_accept_next in a transaction;
//   3. commits, and only then sends the Ack of delivery_run_answer.
//
// After a rollback the caller rebuilds the state machine from the committed state.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"
#include "common/core/delivery/delivery.h"
#include "common/core/record/record.h"

// State of one stream (struct delivery_stream).  Its index in delivery_run.lanes never changes.
struct delivery_lane {
    uint32_t stream;
    uint64_t next;       // all lower numbers are stored or dropped
    uint64_t produced;   // as reported by the producer, or the highest number received
    uint64_t unnumbered; // records that the producer dropped before they got a number
    uint64_t no_room;    // of these: the thread had no ring
    bool changed;        // differs from the saved state; the caller clears it after saving
    bool touched;        // the next Ack lists this stream
};

// State of one run; free its memory with delivery_run_deinit.  All zero: a new run.  The caller may
// read all fields, and write `changed`, `names_known` and `risen`.  While it restores the committed
// state, it may write all fields.
struct delivery_run {
    struct delivery_lane *lanes; // in the order of their first use
    size_t lane_count, lane_room;
    enum record_run_end end; // RECORD_RUN_END_OPEN until the run ends
    int64_t ended_ns;        // of a silent run, when its connection closed; 0: not known
    int64_t goodbye_ns;      // end time of a Goodbye that waits for missing records; 0: none
    bool goodbye_killed;     // that Goodbye is from a replay: the process was killed
    bool greeted;            // a Hello arrived since the run was restored; before it other messages
                             // are rejected, because the store may be an older copy
    bool replayed;           // the run is dead, and another process replays it
    bool told_all; // a replay has ended the run: no sender has records that are still missing
    bool doubted;  // Hello was requested because the last batch lacked names
    uint32_t names_known; // names 1..names_known are stored
    int64_t duplicates;   // records skipped because they were stored already
    uint64_t risen;       // increase of all `unnumbered` since the caller set it to 0
    bool changed;         // differs from the saved state; the caller clears it after saving
};

void delivery_run_deinit(struct delivery_run *run);

// Adds a stream in its committed state.  Returns STATUS_FULL if the run has DELIVERY_STREAMS_MAX
// streams, STATUS_INVALID if it has this stream already.
MUST_CHECK enum status delivery_run_restore(struct delivery_run *run,
                                            const struct delivery_lane *lane);

// The index of a stream; run->lane_count if the run does not have it.
size_t delivery_run_find(const struct delivery_run *run, uint32_t stream);

// Finds or adds a stream and sets `*place` to its index.  Returns STATUS_FULL if there would be
// more than DELIVERY_STREAMS_MAX streams.
MUST_CHECK enum status delivery_run_know(struct delivery_run *run, uint32_t stream, size_t *place);

// True if the run has ended and all records that it produced are stored or dropped.
bool delivery_run_is_over(const struct delivery_run *run);

// Marks an open run as silent: no message arrived within the caller's timeout.  `ended_ns`: when
// its connection closed, and its process thus ended; 0: the connection is open, or unknown.
void delivery_run_silence(struct delivery_run *run, int64_t ended_ns);

// ---- A message ----------------------------------------------------------------

enum delivery_message_kind { DELIVERY_HELLO, DELIVERY_BATCH, DELIVERY_GOODBYE };

// Who sends a message, as the caller knows from its connection.
enum delivery_sender {
    DELIVERY_SENDER_KNOWN,    // the run is new, or its messages come from this connection
    DELIVERY_SENDER_NEW,      // may send the run's messages from this connection on, after Hello
    DELIVERY_SENDER_SECOND,   // may not send them while the run's other connection is open
    DELIVERY_SENDER_STRANGER, // may not send them: the run belongs to another key or user
};

// Plausibility limits: a stream has at most BURST + PER_S * life (in seconds) records, and likewise
// unnumbered drops; delivery_hear rejects more.  A thread needs at least 60 ns to fill a record,
// and less to drop one.
enum {
    DELIVERY_BURST_RECORDS = 1 << 20,
    DELIVERY_RECORDS_PER_S = 20000000,
    DELIVERY_UNNUMBERED_PER_S = 100000000,
};

// The delivery fields of a message.  All pointers are borrowed until its last step.
struct delivery_message {
    enum delivery_message_kind kind;
    uint32_t protocol; // Hello: the producer's version
    bool replay;       // Hello
    enum delivery_sender sender;
    int64_t life_ns; // age of the run; at least 0
    const struct delivery_stream *streams;
    size_t stream_count;
    const struct delivery_range *drops; // Batch, Goodbye
    size_t drop_count;
    uint32_t stream;      // Batch, as all up to names_missing
    uint64_t first, last; // the records; `first` 0: a heartbeat, without records
    uint32_t names_first; // id of the first name in the message
    size_t name_count;
    bool names_missing; // records refer to names neither known nor in the message
    int64_t ended_ns;   // Goodbye: end of the run
    bool killed;        // Goodbye, of a replay: the process was killed
};

// Verdict on a message.
enum delivery_hearing {
    DELIVERY_HEARD,
    DELIVERY_HELLO_WANTED,     // rejected: Hello must come first
    DELIVERY_FOREIGN,          // rejected: DELIVERY_SENDER_STRANGER
    DELIVERY_BUSY,             // ignored, without an answer: DELIVERY_SENDER_SECOND
    DELIVERY_IMPLAUSIBLE,      // rejected: more records than the run can have produced
    DELIVERY_UNKNOWN_PROTOCOL, // rejected: unsupported protocol version
    DELIVERY_TOO_MANY_STREAMS, // rejected: more than DELIVERY_STREAMS_MAX
};

// Decides whether to accept a message; `run` is NULL if the run is unknown.  If the message refers
// to names that the store does not have, the store may have been restored from a backup: the
// function then requests a Hello, once.  If names are missing again, it accepts the message, and
// the caller refuses the invalid records.
enum delivery_hearing delivery_hear(struct delivery_run *run,
                                    const struct delivery_message *message);

// The value that names_known gets when the message's names are stored.
uint32_t delivery_run_names_after(const struct delivery_run *run,
                                  const struct delivery_message *message);

enum delivery_step_kind {
    DELIVERY_STEP_NAMES, // store names first..last of the message, then set names_known
    DELIVERY_STEP_DROP,  // record first..last as dropped, with the reason of drops[index]
    DELIVERY_STEP_LOST,  // record first..last as dropped (DELIVERY_HOST_LOST): the run has
                         // ended, and no sender holds these records
    DELIVERY_STEP_STORE, // store records first..last of the batch; record invalid ones as
                         // dropped (DELIVERY_REFUSED)
};

struct delivery_step {
    enum delivery_step_kind kind;
    size_t place; // index of the stream in delivery_run.lanes
    uint64_t first, last;
    size_t index; // DELIVERY_STEP_DROP: of the range in message->drops
};

// Iterator over the steps of a message; only the two functions below use the members.
struct delivery_acceptance {
    struct delivery_run *run;
    const struct delivery_message *message;
    unsigned part;
    size_t index;
};

// Starts processing a message that delivery_hear accepted for this `run`: updates the run and its
// streams.  If the function returns STATUS_NOMEM, the caller must roll back the transaction.
MUST_CHECK enum status delivery_accept(struct delivery_acceptance *taking, struct delivery_run *run,
                                       const struct delivery_message *message);

// Sets `*step` to the next step, which counts as done at the next call.  Returns false if there are
// no more steps; the run may then have ended.
bool delivery_accept_next(struct delivery_acceptance *taking, struct delivery_step *step);

// ---- Acknowledgement, after the commit -----------------------------------------

// Sets `next`, `next_count`, `names_known`, `closed` and `protocol` of `ack`; the caller sets the
// other members.  ack->next points to `next`, an array with room for all streams of the run.  The
// Ack of a Hello lists all streams, any other Ack only the `touched` streams.
void delivery_run_answer(const struct delivery_run *run, bool is_hello, struct delivery_ack *ack,
                         struct delivery_next *next);

// Clears `touched` once the Acks of a transaction are built.
void delivery_run_answered(struct delivery_run *run);
