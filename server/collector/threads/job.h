// Messages between the collector's threads: jobs for the writer thread, and encoded answers for
// the threads that own the sockets (ingest and query).  The queues pass ownership.
#pragma once

#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"
#include "common/store/sqlite/admin_log.h"
#include "common/wire/message.h"
#include "common/wire/listener/listener.h"
#include "server/collector/threads/peer_credit.h"

struct baseline;
struct import_batch;
struct queue;
struct reject_counters;

// Return address of an answer: the index of the socket in the thread's admission.sockets, and the
// peer's route.
struct job_return {
    unsigned socket;
    struct wire_route route;
};

// True for answers to the same connection.
bool job_return_is_same(const struct job_return *a, const struct job_return *b);

enum job_kind {
    JOB_MESSAGE,    // Hello, Batch or Goodbye
    JOB_CLEAR,      // delete records, for an administrator
    JOB_FORGET,     // remove runs with their records, for an administrator
    JOB_BASELINE,   // save or delete a baseline, for an administrator
    JOB_IMPORT,     // apply an import batch
    JOB_ALERTS,     // a change of the tables of alerts, by the thread that waits for it
    JOB_ALERT_EDIT, // acknowledge or silence alerts, for an administrator
    JOB_NOTE,       // add `act` to the list of what administrators did
    JOB_STOP,       // the last job
};

// A job for the writer.
struct job {
    enum job_kind kind;
    struct job_return from;
    struct wire_peer peer;           // JOB_MESSAGE: the sender
    unsigned owner;                  // JOB_MESSAGE: number of its owner, from quota_admit
    int64_t received_ns;             // JOB_MESSAGE; the collector's wall clock
    struct message message;          // JOB_MESSAGE; owned
    struct peer_credit_slot *credit; // counts the message's records as in flight; or NULL
    uint32_t records;                // JOB_MESSAGE: as passed to peer_credit_acquire
    uint64_t query_id;               // JOB_CLEAR, JOB_FORGET, JOB_BASELINE, JOB_ALERT_EDIT
    struct query *query;             // of these; owned
    struct job_request *request;     // JOB_IMPORT, JOB_ALERTS; owned by the waiting thread
    struct admin_act act;            // of an administrator's job: what is noted when it ends
    struct baseline *baseline;       // JOB_BASELINE: the baseline to save; owned; NULL: delete
};

// Changes rows of the tables of alerts in the writer's transaction.
typedef enum status job_change(struct sqlite3 *db, const void *context, struct error *err);

// A request to the writer whose thread waits for the result.
struct job_request {
    struct import_batch *batch; // JOB_IMPORT
    job_change *change;         // JOB_ALERTS, with its context
    const void *context;
    enum status status;
    struct error err;
    sem_t done; // posted once `status` and `err` are set
};

// Creates an empty job; NULL when out of memory.
struct job *job_new(enum job_kind kind);
void job_free(void *job); // accepts NULL

// Creates a job of the kind for a query, of which it keeps a copy.  Consumes `baseline` (may be
// NULL), also on failure.  Returns NULL when out of memory.
struct job *job_new_query(enum job_kind kind, const struct job_return *from,
                          const struct message_query *asked, struct baseline *baseline);

// Queues a query's job in the writer's inbox; the writer will answer it.  Consumes `job`, also
// on failure.  Returns STATUS_NOMEM if `job` is NULL, STATUS_BUSY if the inbox is full.
MUST_CHECK enum status job_submit(struct queue *inbox, struct job *job, struct error *err);

// Queues an act, which has ended, for the writer to note.  Waits while the inbox is full, for 2 s
// at most; an act that is not noted then is logged.  Acts without an action are ignored.
void job_note(struct queue *inbox, const struct admin_act *act);

// Queues the batch in the writer's inbox and waits until the writer has applied or rejected it.
MUST_CHECK enum status job_import(struct queue *inbox, struct import_batch *batch,
                                  struct error *err);

// Queues a JOB_ALERTS in the writer's inbox and waits until the writer has called `change` with
// `context`, in a transaction of its own, and has committed.  Returns the status of `change` or of
// the commit.
MUST_CHECK enum status job_change_alerts(struct queue *inbox, job_change *change,
                                         const void *context, struct error *err);

// Sets the result of the job's request and wakes the thread that waits for it; job->request is NULL
// then.
void job_request_end(struct job *job, enum status status, const struct error *err);

// An encoded answer for the thread that owns the socket.  An answer of size 0 only wakes the
// thread.
struct answer {
    struct job_return to;
    size_t size;
    unsigned char *bytes;
};

void answer_free(void *answer); // accepts NULL

// Sends an answer from its socket and frees it; an empty answer is only freed.  Returns
// STATUS_NOMEM if `answer` is NULL, or an error of port_send: then the answer is lost.
enum status answer_send(struct port *const *sockets, struct answer *answer);

// The same; counts a lost answer in `rejects`, unless its peer has disconnected.
void answer_send_counted(struct port *const *sockets, struct answer *answer,
                         struct reject_counters *rejects);

// Sends all answers of the queue, and counts lost ones.  The calling thread is the queue's
// consumer.
void answer_send_queued(struct port *const *sockets, struct queue *queue,
                        struct reject_counters *rejects);

// Queues an answer for the thread that owns its socket.  Consumes the answer.  If the queue is
// full the answer is dropped, and the peer asks again or times out.  Accepts NULL.
void answer_submit(struct queue *queue, struct answer *answer);

// Wakes the queue's consumer with an empty answer, unless the queue is full.
void answer_wake(struct queue *queue);

// Encodes `message` as an answer; NULL when out of memory or too large to encode.
struct answer *answer_encode(const struct job_return *to, const struct message *message);

// Encodes the reply to query `id`: `result` when `status` is STATUS_OK, else the error `why`.
// A result too large for a message becomes the error REPLY_TOO_LARGE.  Returns NULL when out of
// memory.
struct answer *reply_encode(const struct job_return *to, uint64_t id, enum status status,
                            struct result *result, const struct error *why);
