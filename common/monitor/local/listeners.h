// Observer registry: the application's callbacks for events (inferstat_listen), at most 16.
// Any thread may use it.
#ifndef INFERSTAT_MONITOR_LISTENERS_H
#define INFERSTAT_MONITOR_LISTENERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "common/monitor/inferstat.h"

enum { LISTENERS_MAX = 16 };

struct listeners {
    _Atomic uint32_t count;  // active listeners, read without the lock
    pthread_mutex_t lock;    // guards the members below
    pthread_cond_t returned; // a call of a listener that is being removed has returned
    struct listener {
        inferstat_listener *function; // NULL: free
        void *context;
        uint32_t serial;  // distinguishes successive listeners of this slot
        uint32_t running; // calls in progress
        int leaving;      // being removed: no new calls
    } places[LISTENERS_MAX];
    uint32_t next_serial;
};

void listeners_init(struct listeners *listeners);
void listeners_deinit(struct listeners *listeners);

// Implement inferstat_listen and inferstat_unlisten.  A listener may remove itself:
// listeners_remove waits for its calls on other threads, not for those on the calling thread.
int listeners_add(struct listeners *listeners, inferstat_listener *function, void *context);
void listeners_remove(struct listeners *listeners, int handle);

// Calls every listener once, on the calling thread.
void listeners_tell(struct listeners *listeners, const struct inferstat_event *event);

#endif
