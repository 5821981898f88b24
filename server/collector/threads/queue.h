// A bounded queue of pointers from some threads to one, bounded in items and in
// the memory they say they take.  Whoever takes an item out owns it.
#ifndef INFERSTAT_COLLECTOR_THREADS_QUEUE_H
#define INFERSTAT_COLLECTOR_THREADS_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"

struct queue;

MUST_CHECK enum status queue_new(struct queue **out, size_t capacity, size_t bytes_max,
                                 struct error *err);
// What is still inside is handed to `free_item`.
void queue_free(struct queue *queue, void (*free_item)(void *item));

// Any thread.  False when full: the item stays the caller's.  An item larger than
// the whole bound goes into an empty queue.
bool queue_push(struct queue *queue, void *item, size_t bytes);

// Consumer only.  NULL when empty.
void *queue_pop(struct queue *queue);

// Whether anything is queued at the moment.  Any thread.
bool queue_has_some(struct queue *queue);

// A descriptor that can be read from while something is queued, for poll and
// wire_wait; never read by the caller.
int queue_fd(const struct queue *queue);

// Waits until something is queued, or so long.
void queue_wait(const struct queue *queue, int64_t timeout_ns);

#endif
