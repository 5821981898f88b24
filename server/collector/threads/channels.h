// Shared state of the collector's threads: the message queues between them, the notification of
// commits, the writer's last error, heartbeats and counters.
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/record/record.h"
#include "server/collector/threads/peer_credit.h"
#include "server/collector/threads/queue.h"
#include "server/collector/threads/reader_gate.h"
#include "server/collector/threads/reject_counters.h"

// Limits of the queues; queue_push enforces them.
enum {
    CHANNELS_INBOX_JOBS = 1024, // items of `inbox`
    // Memory of decoded messages in `inbox`: what the writer commits at once, and little more, so
    // that no owner waits long behind another's records.
    CHANNELS_INBOX_BYTES = 4 * 1024 * 1024,
    CHANNELS_ANSWERS = 8192, // items of `acks`, and of `replies`
    CHANNELS_ACKS_BYTES = 8 * 1024 * 1024,
    CHANNELS_REPLIES_BYTES = 32 * 1024 * 1024,
};

// The highest committed id of each kind.
struct commit_ids {
    int64_t last[RECORD_KIND_COUNT]; // [RECORD_KIND_RUN]: id of the last run
};

struct job_return;
struct quota;
struct result;

// Statistics of the durations of the writer's commits, for monitoring.  The writer sets them
// several times a second; relaxed, as they publish no other data.
struct commit_times {
    atomic_uint_fast64_t count;          // of commits since the start
    atomic_uint_fast64_t p50_ns, p99_ns; // of the last COMMIT_TIMES
};

enum { COMMIT_TIMES = 1024 };

struct channels {
    uint64_t started_at_ns; // monotonic
    struct queue *inbox;    // struct job, for the writer
    struct queue *acks;     // struct answer, from the writer to ingest
    struct queue *replies;  // struct answer, from the writer and query workers to the query service
    struct reject_counters rejects;
    struct peer_credit credit; // of producers
    struct reader_gate gate;   // of the query service and its workers
    struct quota *quota;       // borrowed; NULL: none
    // Set by ingest_start: returns true if the connection to ingest is open.  Any thread.  NULL: no
    // connection is.
    bool (*is_connected)(void *connections, const struct job_return *at);
    void *connections;
    struct job *stop; // JOB_STOP, allocated in advance; NULL once it has been queued
    // Heartbeats: the monotonic times of the last rounds of the two threads' loops.  Relaxed, as
    // they publish no other data.
    atomic_uint_fast64_t ingest_beat_ns, writer_beat_ns;
    struct commit_times commit_times;
    // Records of each kind that were received and committed since the start.  Relaxed, too.
    atomic_uint_fast64_t stored[RECORD_KIND_COUNT];
    int commit_fd; // readable after a commit or channels_wake_live; for the live thread

    pthread_mutex_t lock; // of the members below
    struct commit_ids committed;
    char write_error[ERROR_TEXT_SIZE];
};

MUST_CHECK enum status channels_new(struct channels **out, struct error *err);
// Also frees the items left in the queues.  Accepts NULL.
void channels_free(struct channels *channels);

// Notifies the live thread of a commit.  Posts between two reads coalesce.  Writer thread.
void channels_post_commit(struct channels *channels, const struct commit_ids *ids);

// Makes commit_fd readable.  Any thread.
void channels_wake_live(struct channels *channels);

// Resets commit_fd and copies the committed ids to `ids`.  Live thread.
void channels_read_commit(struct channels *channels, struct commit_ids *ids);

// Adds to an answer of PING what only the collector knows of itself (store.h).  `path` is the
// store's file.  Any thread.
void channels_add_to_ping(struct channels *channels, struct listener *listener, const char *path,
                          struct result *answer);

// Sets the reason why the last group of messages could not be committed; "" after a commit.
// Writer thread.
void channels_set_write_error(struct channels *channels, const char *why);

// Copies that reason to `why` and returns its length; 0: none.  Any thread.
size_t channels_read_write_error(struct channels *channels, char why[ERROR_TEXT_SIZE]);
