// The collector's side of the delivery protocol: one run as a state machine.
//
// The machine knows what of each stream is stored or dropped, and says what a
// message does: which names to keep, which ranges to record as dropped, which
// records to store.  It holds neither records nor ranges; its driver does what the
// steps say inside of one transaction, commits, and only then sends the Ack.  After
// a rollback the driver rebuilds the machine from the committed state.
#ifndef INFERSTAT_CORE_DELIVERY_RUN_H
#define INFERSTAT_CORE_DELIVERY_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"
#include "common/core/delivery/delivery.h"
#include "common/core/record/record.h"

// One stream; its place among the run's streams never changes.
struct delivery_lane {
    uint32_t stream;
    uint64_t next;     // everything below is stored or dropped
    uint64_t produced; // as the producer says, or as came in
    uint64_t unnumbered;
    bool changed; // since the driver has saved it
    bool touched; // to be named in the next Ack
};

// One run.  All zero (with delivery_run_deinit at the end): a run nothing is known
// of.  The driver reads everything and may write `changed`, `names_known`, and all
// of it while it restores what was committed.
struct delivery_run {
    struct delivery_lane *lanes; // in the order in which they came up
    uint16_t *sorted;            // their places, by stream
    size_t lane_count, lane_room;
    enum record_run_end end;
    int64_t ended_ns;    // 0: not known
    int64_t goodbye_ns;  // a Goodbye that waits for the rest; 0: none
    bool goodbye_killed; // and it says that the process did not say it itself
    bool greeted;        // has said Hello since it was restored: its producer knows what
                         // this store, perhaps an older copy, has and lacks
    bool replayed;       // it is dead, and another process sends what it left
    bool told_all;       // its replay has said, and brought, all that was left
    bool doubted;        // it was asked for Hello since its records had unknown names
    uint32_t names_known;
    int64_t duplicates; // records skipped since they were known
    uint64_t risen;     // of `unnumbered` of all lanes, since the driver set it to 0
    bool changed;       // since the driver has saved it
};

void delivery_run_deinit(struct delivery_run *run);

// Adds a stream as it was committed.  STATUS_FULL beyond DELIVERY_STREAMS_MAX,
// STATUS_INVALID for a known stream.
MUST_CHECK enum status delivery_run_restore(struct delivery_run *run,
                                            const struct delivery_lane *lane);

// The place of a stream, or lane_count.
size_t delivery_run_find(const struct delivery_run *run, uint32_t stream);

// The place of a stream, which is there from now on.  STATUS_FULL beyond
// DELIVERY_STREAMS_MAX.
MUST_CHECK enum status delivery_run_know(struct delivery_run *run, uint32_t stream, size_t *place);

// Whether everything the run produced is stored or dropped.
bool delivery_run_is_complete(const struct delivery_run *run);

// Whether the run has ended and nothing of it is missing.
bool delivery_run_is_over(const struct delivery_run *run);

// Nothing was heard of it for too long.
void delivery_run_silence(struct delivery_run *run);

// ---- A message ----------------------------------------------------------------

enum delivery_message_kind { DELIVERY_HELLO, DELIVERY_BATCH, DELIVERY_GOODBYE };

// What of a message concerns delivery.  Everything is borrowed while it is taken.
struct delivery_message {
    enum delivery_message_kind kind;
    uint32_t protocol; // Hello: what the producer speaks
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
    bool names_missing; // its records refer to names that are not known, nor come with it
    int64_t ended_ns;   // Goodbye
    bool killed;
};

enum delivery_hearing {
    DELIVERY_HEARD,
    DELIVERY_HELLO_WANTED,     // nothing is accepted before Hello
    DELIVERY_FOREIGN,          // nor from another key than the owner's
    DELIVERY_UNKNOWN_PROTOCOL, // nor in an unsupported protocol version
    DELIVERY_TOO_MANY_STREAMS, // nor records of more streams than a run has
};

// How a message is heard, before the run is made: `run` is NULL where there is none.
// One whose names are missing shows that its producer takes this store, an older copy
// perhaps, for what it was: it is asked for Hello, once.  Then it is heard, and its
// records can never be taken.
enum delivery_hearing delivery_hear(struct delivery_run *run,
                                    const struct delivery_message *message);

// The highest name known when the message's names have been kept.
uint32_t delivery_run_names_after(const struct delivery_run *run,
                                  const struct delivery_message *message);

enum delivery_step_kind {
    DELIVERY_STEP_NAMES, // keep names first..last of the message; names_known follows
    DELIVERY_STEP_DROP,  // record first..last as dropped, as drops[index] says
    DELIVERY_STEP_LOST,  // record first..last as dropped (DELIVERY_HOST_LOST): the run has
                         // ended, and no sender has them
    DELIVERY_STEP_STORE, // store records first..last of the batch; where that can never
                         // be done, record them as dropped (DELIVERY_REFUSED)
};

struct delivery_step {
    enum delivery_step_kind kind;
    size_t place; // of the stream
    uint64_t first, last;
    size_t index;
};

// A message being taken.
struct delivery_taking {
    struct delivery_run *run;
    const struct delivery_message *message;
    unsigned part;
    size_t index;
};

// Begins to take a message that was heard (with this `run`): what it says of the
// run and its streams counts at once.  STATUS_NOMEM, and then all of it has to be
// rolled back.
MUST_CHECK enum status delivery_take(struct delivery_taking *taking, struct delivery_run *run,
                                     const struct delivery_message *message);

// The next thing to do; each counts as done when the next is asked for.  False when
// there is nothing more; then the run may have ended.
bool delivery_take_next(struct delivery_taking *taking, struct delivery_step *step);

// ---- Acknowledgement, after the commit -----------------------------------------

// Fills what an Ack says of the run; `next` has room for all its streams.  One that
// answers a Hello names all streams, another those touched.
void delivery_run_answer(const struct delivery_run *run, bool is_hello, struct delivery_ack *ack,
                         struct delivery_next *next);

// All Acks of a transaction are made.
void delivery_run_answered(struct delivery_run *run);

#endif
