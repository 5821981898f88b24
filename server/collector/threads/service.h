// A thread with a start-up handshake and a heartbeat.
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
    bool running; // the thread was created and has not been joined
    bool reported;
    enum status status;
    struct error error;
    atomic_uint_fast64_t beat_ns; // monotonic; publishes nothing else: relaxed
};

// Starts a thread that runs `body` and waits until it reports its start-up status, which is
// returned; after a failure the thread has been joined.  `service` is zeroed by the caller.
MUST_CHECK enum status service_start(struct service *service, void *(*body)(void *context),
                                     void *context, struct error *err);

// Reports the start-up status.  Called by the thread, exactly once; `error` may be NULL.
void service_report(struct service *service, enum status status, const struct error *error);

// Records that the thread is alive.  Called by the thread in each iteration of its loop.
void service_set_heartbeat(struct service *service, uint64_t now_ns);

// Time of the last heartbeat; 0: none yet.  Any thread.
uint64_t service_heartbeat_ns(struct service *service);

// Joins the thread, if one is running.
void service_join(struct service *service);

#endif
