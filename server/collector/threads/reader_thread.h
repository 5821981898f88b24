// Reader thread: a thread that reads the store at intervals, through a read-only connection of its
// own, until it is told to end.  Alerts and the exporter of metrics have one each.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/sys/thread.h"
#include "server/collector/threads/reader_gate.h"

struct store;

// Zeros: neither opened nor started.
struct reader_thread {
    struct store *store; // of the thread
    struct reader_gate *gate;
    struct thread thread;
    pthread_mutex_t lock; // of the members below
    pthread_cond_t wake;
    bool is_open, must_end;
};

// Opens the store at `path`.  Borrows `gate`, and all of `out`, until reader_thread_end.
MUST_CHECK enum status reader_thread_open(struct reader_thread *out, const char *path,
                                          struct reader_gate *gate, struct error *err);

// Starts the thread, which runs `body` until reader_thread_wait returns false.
MUST_CHECK enum status reader_thread_start(struct reader_thread *reader, const char *name,
                                           void *(*body)(void *context), void *context,
                                           struct error *err);

// Waits until the monotonic time, or until the thread is to end: then returns false.
bool reader_thread_wait(struct reader_thread *reader, uint64_t until_ns);

// Enters the gate for a query of the kind, which may take so long and let the log grow as
// reader_gate_log_limit says.  Call reader_thread_leave after it.
void reader_thread_enter(struct reader_thread *reader, enum reader_kind kind, unsigned seconds);
void reader_thread_leave(struct reader_thread *reader, enum reader_kind kind);

// Cancels the running query, ends the thread and closes the store.  Accepts one of zeros.
void reader_thread_end(struct reader_thread *reader);
