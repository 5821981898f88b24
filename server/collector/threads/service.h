// A thread of the collector that reports once whether it could start.
#ifndef INFERSTAT_COLLECTOR_THREADS_SERVICE_H
#define INFERSTAT_COLLECTOR_THREADS_SERVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"

struct service {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool running; // the thread exists and has not been joined
    bool reported;
    enum status status;
    struct error error;
    atomic_uint_fast64_t beat_ns; // monotonic; tells nothing else, so relaxed
};

// Starts `body` with `context` and waits for its report, whose failure it
// returns; then the thread has ended.  The structure is the caller's, zeroed.
MUST_CHECK enum status service_start(struct service *service, void *(*body)(void *context),
                                     void *context, struct error *err);

// The thread's report, exactly once; `error` may be NULL.
void service_report(struct service *service, enum status status, const struct error *error);

// The thread says that it is alive: once in each of its turns.
void service_beat(struct service *service, uint64_t now_ns);

// When it last said so; 0: it has not yet.  Any thread.
uint64_t service_beaten_ns(struct service *service);

// Waits for the thread's end, if there is one.
void service_join(struct service *service);

#endif
