// The callbacks that the application registered for events: at most 16.
#ifndef INFERSTAT_MONITOR_LISTENERS_H
#define INFERSTAT_MONITOR_LISTENERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "common/monitor/inferstat.h"

enum { LISTENERS_MAX = 16 };

struct listeners {
    _Atomic uint32_t count; // those listening: a look without the lock
    pthread_mutex_t lock;   // guards what follows
    pthread_cond_t returned;
    struct listener {
        inferstat_listener *function; // NULL: the place is free
        void *context;
        uint32_t serial;  // tells who listens from who did at the same place before
        uint32_t running; // calls under way
        int leaving;      // unlisten waits for them: no new calls
    } places[LISTENERS_MAX];
    uint32_t next_serial;
};

void listeners_init(struct listeners *listeners);
void listeners_deinit(struct listeners *listeners);

// As inferstat_listen and inferstat_unlisten say.  A listener may take itself
// off: then its own call under way is not waited for.
int listeners_add(struct listeners *listeners, inferstat_listener *function, void *context);
void listeners_remove(struct listeners *listeners, int number);

// Tells everyone, each once.  Any thread.
void listeners_tell(struct listeners *listeners, const struct inferstat_event *event);

#endif
