// The collector's side of the delivery protocol: one run as a state machine.
//
// The machine tracks up to which number each stream is stored or dropped, deduplicates, and
// turns a message into steps: names to keep, ranges to record as dropped, records to
// store.  It holds neither records nor ranges; its driver executes the steps in one
// transaction, commits, and only then sends the Ack.  After a rollback the driver rebuilds
// the machine from the committed state.
#ifndef INFERSTAT_CORE_DELIVERY_RUN_H
#define INFERSTAT_CORE_DELIVERY_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"
#include "common/core/delivery/delivery.h"
#include "common/core/record/record.h"

// One stream; its index never changes.
struct delivery_lane {
    uint32_t stream;
    uint64_t next;     // everything below is stored or dropped
    uint64_t produced; // as reported, or the highest received
    uint64_t unnumbered;
    bool changed; // since the driver saved it
    bool touched; // to be listed in the next Ack
};

// One run; call delivery_run_deinit at the end.  All zero: an unknown run.  The driver may
// read everything and write `changed` and `names_known`; all of it while it restores the
// committed state.
struct delivery_run {
    struct delivery_lane *lanes; // in the order of their first use
    uint16_t *sorted;            // their indexes, by stream
    size_t lane_count, lane_room, sorted_room;
    enum record_run_end end;
    int64_t ended_ns;    // 0: not known
    int64_t goodbye_ns;  // end time of a Goodbye that waits for missing records; 0: none
    bool goodbye_killed; // it is from a replay: the process was killed
    bool greeted;        // Hello was received since it was restored, so that its producer
                         // knows what this store, perhaps an older copy, has
    bool replayed;       // the run is dead, and another process replays it
    bool told_all;       // the replay sent Goodbye and all records that were left
    bool doubted;        // Hello was requested because names were missing
    uint32_t names_known;
    int64_t duplicates; // records skipped because they were stored already
    uint64_t risen;     // increase of all `unnumbered` since the driver set it to 0
    bool changed;       // since the driver saved it
};

void delivery_run_deinit(struct delivery_run *run);

// Adds a stream in its committed state.  STATUS_FULL beyond DELIVERY_STREAMS_MAX,
// STATUS_INVALID for a known stream.
MUST_CHECK enum status delivery_run_restore(struct delivery_run *run,
                                            const struct delivery_lane *lane);

// The index of a stream, or lane_count.
size_t delivery_run_find(const struct delivery_run *run, uint32_t stream);

// Sets `*place` to the index of a stream, which is added if unknown.  STATUS_FULL beyond
// DELIVERY_STREAMS_MAX.
MUST_CHECK enum status delivery_run_know(struct delivery_run *run, uint32_t stream, size_t *place);

// Whether everything the run produced is stored or dropped.
bool delivery_run_is_complete(const struct delivery_run *run);

// Whether the run has ended and nothing of it is missing.
bool delivery_run_is_over(const struct delivery_run *run);

// Marks an open run as silent: no message arrived for too long.
void delivery_run_silence(struct delivery_run *run);

// ---- A message ----------------------------------------------------------------

enum delivery_message_kind { DELIVERY_HELLO, DELIVERY_BATCH, DELIVERY_GOODBYE };

// The delivery fields of a message.  Everything is borrowed until its last step.
struct delivery_message {
    enum delivery_message_kind kind;
    uint32_t protocol; // Hello: the producer's version
    bool replay;       // Hello
    bool foreign;      // the run belongs to another key than the sender's
    const struct delivery_stream *streams;
    size_t stream_count;
    const struct delivery_range *drops; // Batch, Goodbye
    size_t drop_count;
    uint32_t stream; // Batch
    uint64_t first, last;
    uint32_t names_first;
    size_t name_count;
    bool names_missing; // its records use names that are neither known nor in the message
    int64_t ended_ns;   // Goodbye
    bool killed;
};

enum delivery_hearing {
    DELIVERY_HEARD,
    DELIVERY_HELLO_WANTED,     // rejected: Hello must come first
    DELIVERY_FOREIGN,          // rejected: the run belongs to another key
    DELIVERY_UNKNOWN_PROTOCOL, // rejected: unsupported protocol version
    DELIVERY_TOO_MANY_STREAMS, // rejected: more than DELIVERY_STREAMS_MAX
};

// Whether to accept a message; `run` is NULL if it is unknown.  Missing names show that the
// producer assumes a newer state of this store, which is perhaps an older copy: Hello is
// requested, once.  If names are still missing then, the message is accepted and its
// records are refused.
enum delivery_hearing delivery_hear(struct delivery_run *run,
                                    const struct delivery_message *message);

// The highest known name once the message's names are stored.
uint32_t delivery_run_names_after(const struct delivery_run *run,
                                  const struct delivery_message *message);

enum delivery_step_kind {
    DELIVERY_STEP_NAMES, // keep names first..last of the message; names_known follows
    DELIVERY_STEP_DROP,  // record first..last as dropped, with the reason of drops[index]
    DELIVERY_STEP_LOST,  // record first..last as dropped (DELIVERY_HOST_LOST): the run has
                         // ended, and no sender has them
    DELIVERY_STEP_STORE, // store records first..last of the batch; record invalid ones as
                         // dropped (DELIVERY_REFUSED)
};

struct delivery_step {
    enum delivery_step_kind kind;
    size_t place; // index of the stream
    uint64_t first, last;
    size_t index;
};

// A message being processed.
struct delivery_taking {
    struct delivery_run *run;
    const struct delivery_message *message;
    unsigned part;
    size_t index;
};

// Starts processing a message that delivery_hear accepted (with this `run`): updates the run
// and its streams.  On STATUS_NOMEM the caller rolls everything back.
MUST_CHECK enum status delivery_take(struct delivery_taking *taking, struct delivery_run *run,
                                     const struct delivery_message *message);

// Returns the next step; it counts as done at the next call.  False when there are no more;
// the run may then have ended.
bool delivery_take_next(struct delivery_taking *taking, struct delivery_step *step);

// ---- Acknowledgement, after the commit -----------------------------------------

// Fills an Ack; `next` has room for all streams of the run.  The answer to Hello lists all
// streams, any other those touched.
void delivery_run_answer(const struct delivery_run *run, bool is_hello, struct delivery_ack *ack,
                         struct delivery_next *next);

// Clears `touched` once the Acks of a transaction are built.
void delivery_run_answered(struct delivery_run *run);

#endif
