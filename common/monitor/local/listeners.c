#include "common/monitor/local/listeners.h"

#include <stdbool.h>
#include <string.h>

// A listener's handle is its slot in the low bits and the slot's serial above them.
enum { PLACE_BITS = 4, SERIAL_MAX = INT32_MAX >> PLACE_BITS };

_Static_assert(LISTENERS_MAX == 1 << PLACE_BITS, "a place fits its bits");

// Listener calls in progress on this thread, innermost first.
struct call {
    const struct listener *listener;
    const struct call *outer;
};

static __thread const struct call *calls;

void listeners_init(struct listeners *listeners)
{
    (void)pthread_mutex_init(&listeners->lock, NULL);
    (void)pthread_cond_init(&listeners->returned, NULL);
}

void listeners_deinit(struct listeners *listeners)
{
    (void)pthread_cond_destroy(&listeners->returned);
    (void)pthread_mutex_destroy(&listeners->lock);
}

int listeners_add(struct listeners *listeners, inferstat_listener *function, void *context)
{
    int handle = 0;
    (void)pthread_mutex_lock(&listeners->lock);
    for (int i = 0; i < LISTENERS_MAX && handle == 0; i++) {
        struct listener *listener = &listeners->places[i];
        if (listener->function)
            continue;
        listeners->next_serial = listeners->next_serial % SERIAL_MAX + 1;
        *listener = (struct listener){
            .function = function, .context = context, .serial = listeners->next_serial};
        handle = (int)(listener->serial << PLACE_BITS) | i;
        atomic_fetch_add_explicit(&listeners->count, 1, memory_order_relaxed);
    }
    (void)pthread_mutex_unlock(&listeners->lock);
    return handle;
}

static uint32_t own_calls(const struct listener *listener)
{
    uint32_t count = 0;
    for (const struct call *call = calls; call; call = call->outer)
        count += call->listener == listener;
    return count;
}

void listeners_remove(struct listeners *listeners, int handle)
{
    if (handle <= 0)
        return;
    struct listener *listener = &listeners->places[handle & (LISTENERS_MAX - 1)];
    const uint32_t serial = (uint32_t)handle >> PLACE_BITS;

    (void)pthread_mutex_lock(&listeners->lock);
    if (listener->function && listener->serial == serial && !listener->leaving) {
        listener->leaving = 1;
        atomic_fetch_sub_explicit(&listeners->count, 1, memory_order_relaxed);
    }
    // The last call to return frees the slot; a concurrent unlisten waits too.
    const uint32_t own = own_calls(listener);
    while (listener->serial == serial && listener->function && listener->running > own)
        (void)pthread_cond_wait(&listeners->returned, &listeners->lock);
    if (listener->serial == serial && listener->running == 0)
        listener->function = NULL;
    (void)pthread_mutex_unlock(&listeners->lock);
}

static void finish_call(struct listeners *listeners, struct listener *listener)
{
    listener->running--;
    if (!listener->leaving)
        return;
    if (listener->running == 0)
        listener->function = NULL;
    (void)pthread_cond_broadcast(&listeners->returned);
}

void listeners_tell(struct listeners *listeners, const struct inferstat_event *event)
{
    if (atomic_load_explicit(&listeners->count, memory_order_relaxed) == 0)
        return;
    (void)pthread_mutex_lock(&listeners->lock);
    for (int i = 0; i < LISTENERS_MAX; i++) {
        struct listener *listener = &listeners->places[i];
        if (!listener->function || listener->leaving)
            continue;
        listener->running++;
        inferstat_listener *const function = listener->function;
        void *const context = listener->context;
        (void)pthread_mutex_unlock(&listeners->lock);

        const struct call call = {.listener = listener, .outer = calls};
        calls = &call;
        function(context, event);
        calls = call.outer;

        (void)pthread_mutex_lock(&listeners->lock);
        finish_call(listeners, listener);
    }
    (void)pthread_mutex_unlock(&listeners->lock);
}
