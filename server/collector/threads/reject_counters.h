// Counters of rejected messages, names and connections, by reason.  Any thread counts; the
// writer adds the counts to the store's table `refusal` within its commits.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

// X(reason, its text in the SQL table), and what is counted.
#define REFUSALS(X)                                                                                \
    X(UNDECODABLE, "undecodable")   /* a frame that cannot be decoded, or is not for its socket */ \
    X(MESSAGE_SIZE, "message_size") /* a batch above the size limit */                             \
    X(NAMES, "names")               /* a name beyond the limit of a run or the store */            \
    X(STREAMS, "streams")           /* a message of a stream beyond a run's limit */               \
    X(RUNS, "runs")                 /* a Hello of a run beyond a key's limit */                    \
    X(CONNECTIONS, "connections")   /* a connection beyond the limit */                            \
    X(OVER_CREDIT, "over_credit")   /* a message of a peer far beyond its credit */                \
    X(QUOTA, "quota")               /* a message beyond a quota of its owner */                    \
    X(DENIED, "denied")             /* a message whose sender lacks the role */                    \
    X(WRONG_OWNER, "wrong_owner")   /* a message of a run that belongs to another key or user */   \
    X(BUSY_RUN, "busy_run")         /* ... of a run that another process of its owner reports */   \
    X(IMPLAUSIBLE, "implausible")   /* ... with more records than the run can have produced */     \
    X(FORGOTTEN, "forgotten")       /* a Hello of a run that the store has removed */              \
    X(REVOKED, "revoked")           /* a message with a key that was revoked */                    \
    X(STRANGER, "stranger")         /* a connection with an unauthorized key */                    \
    X(HANDSHAKE, "handshake")       /* a connection that failed its handshake */                   \
    X(UNDELIVERED, "undelivered")   /* a call of an alert's hook that was given up */              \
    X(UNANSWERED, "unanswered")     /* a message whose answer found no memory, or no room at its   \
                                       connection */                                               \
    /* connections that were closed because their peer ... */                                      \
    X(GARBAGE, "garbage")           /* broke the protocol of ZeroMQ */                             \
    X(ROUTING_ID, "routing_id")     /* set a routing id */                                         \
    X(FRAMES, "frames")             /* sent a message of several frames */                         \
    X(FRAME_SIZE, "frame_size")     /* announced a frame that is too large */                      \
    X(SLOW_FRAME, "slow_frame")     /* did not complete a frame in time */                         \
    X(DEAF, "deaf")                 /* did not read what was sent to it */                         \
    X(HEARTBEATS, "heartbeats")     /* sent too many heartbeats */                                 \
    X(CONNECT_RATE, "connect_rate") /* connected too often */

enum refusal {
#define REFUSAL_ENUM(name, key) REFUSAL_##name,
    REFUSALS(REFUSAL_ENUM)
#undef REFUSAL_ENUM
        REFUSAL_COUNT
};

struct reject_counters {
    // Relaxed, as they publish no other data.
    atomic_uint_fast64_t unsaved[REFUSAL_COUNT];
    atomic_uint_fast64_t total[REFUSAL_COUNT]; // since the start
};

// Returns the reason's text in the SQL table; static.
const char *refusal_key(enum refusal reason);

// Adds `count` to the reason's counter.  Any thread.
void reject_counters_count(struct reject_counters *reject_counters, enum refusal reason,
                           uint64_t count);

// True if there are counts that are not in the store.
bool reject_counters_are_unsaved(struct reject_counters *reject_counters);

// Copies the unsaved counts by reason, to be written in a transaction.  reject_counters_saved
// subtracts them after the commit.  Writer thread.
void reject_counters_read(struct reject_counters *reject_counters, uint64_t counts[REFUSAL_COUNT]);
void reject_counters_saved(struct reject_counters *reject_counters,
                           const uint64_t counts[REFUSAL_COUNT]);
