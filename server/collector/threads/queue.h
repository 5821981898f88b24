// Bounded multi-producer, single-consumer (MPSC) queue of pointers; the collector's threads pass
// jobs and answers in it.  Limits the number of items, and the sum of the bytes that callers
// declare for them.  Pushing and popping an item transfers its ownership.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"

struct queue;

// `capacity` is the largest number of items, `bytes_max` the largest sum of their bytes.
MUST_CHECK enum status queue_new(struct queue **out, size_t capacity, size_t bytes_max,
                                 struct error *err);
// Passes remaining items to `free_item` (NULL: none are freed).  Accepts NULL.
void queue_free(struct queue *queue, void (*free_item)(void *item));

// Any thread.  Returns false if the queue is full; then the caller keeps the item.  An empty queue
// accepts an item larger than its limit of bytes.
bool queue_push(struct queue *queue, void *item, size_t bytes);

// Consumer thread only.  Returns NULL if the queue is empty.
void *queue_pop(struct queue *queue);

// Sets the number of items in the queue at the moment, and the sum of their bytes.  Any thread.
void queue_load(struct queue *queue, size_t *count, size_t *bytes);

// True if the queue has items at the moment.  Any thread.
bool queue_is_nonempty(struct queue *queue);

// Returns a descriptor that is readable while the queue has items, for poll and wire_wait.
// Callers do not read from it.
int queue_fd(const struct queue *queue);

// Waits until the queue has items, a signal arrives, or `timeout_ns` has elapsed.
void queue_wait(const struct queue *queue, int64_t timeout_ns);
