// What was not taken, counted by reason: any thread counts, the writer adds what
// has come together to the store's table `refusal` along with its commits.
#ifndef INFERSTAT_COLLECTOR_THREADS_REJECT_COUNTERS_H
#define INFERSTAT_COLLECTOR_THREADS_REJECT_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"

// Reason, its key in the table, and what one of it is.
#define REFUSALS(X)                                                                                \
    X(UNDECODABLE, "undecodable")   /* a frame that was no message, or not for its socket */       \
    X(MESSAGE_SIZE, "message_size") /* a batch larger than one may be */                           \
    X(NAMES, "names")               /* a name beyond what a run, or the store, may have */         \
    X(STREAMS, "streams")           /* a message of one stream more than a run may have */         \
    X(RUNS, "runs")                 /* a Hello of one run more than a key may have open */         \
    X(CONNECTIONS, "connections")   /* a connection beyond the limit */                            \
    X(OVER_CREDIT, "over_credit")   /* a message of a peer far beyond its credit */                \
    X(DENIED, "denied")             /* a message whose sender has not the role for it */           \
    X(WRONG_OWNER, "wrong_owner")   /* a message of a run that belongs to another key */           \
    X(REVOKED, "revoked")           /* a message under a key that is authorized no longer */       \
    X(STRANGER, "stranger")         /* a connection under a key that is not authorized */          \
    X(HANDSHAKE, "handshake")       /* a connection that broke off before it stood */

enum refusal {
#define REFUSAL_ENUM(name, key) REFUSAL_##name,
    REFUSALS(REFUSAL_ENUM)
#undef REFUSAL_ENUM
        REFUSAL_COUNT
};

struct reject_counters;

MUST_CHECK enum status reject_counters_new(struct reject_counters **out, struct error *err);
void reject_counters_free(struct reject_counters *reject_counters); // NULL is fine

// The key of a reason; static.
const char *refusal_key(enum refusal reason);

// Any thread.  NULL: not counted.
void reject_counters_count(struct reject_counters *reject_counters, enum refusal reason,
                           uint64_t count);

// ---- The writer -----------------------------------------------------------------

// Whether something was counted that is not in the store.
bool reject_counters_are_waiting(struct reject_counters *reject_counters);

// What was counted and is not in the store, by reason: to be written in the
// transaction that is open.  Then either that was committed, or it was not and all is
// still to be written.  Borrowed until the next call.
const uint64_t *reject_counters_save(struct reject_counters *reject_counters);
void reject_counters_saved(struct reject_counters *reject_counters, bool committed);

#endif
