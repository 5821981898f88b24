#include "server/collector/threads/queue.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/sys/clock.h"

struct queue {
    pthread_mutex_t lock;
    size_t capacity, count, first;
    size_t bytes_max, bytes;
    int event; // readable exactly while count > 0; changed under the lock
    struct item {
        void *pointer;
        size_t bytes;
    } items[];
};

enum status queue_new(struct queue **out, size_t capacity, size_t bytes_max, struct error *err)
{
    struct queue *queue = calloc(1, sizeof *queue + capacity * sizeof queue->items[0]);
    if (!queue)
        return error_no_memory(err, "queue");
    queue->capacity = capacity;
    queue->bytes_max = bytes_max;
    (void)pthread_mutex_init(&queue->lock, NULL);
    queue->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (queue->event < 0) {
        enum status status = error_set(err, STATUS_IO, "eventfd: %s", strerror(errno));
        queue_free(queue, NULL);
        return status;
    }
    *out = queue;
    return STATUS_OK;
}

void queue_free(struct queue *queue, void (*free_item)(void *item))
{
    if (!queue)
        return;
    for (size_t i = 0; i < queue->count && free_item; i++)
        free_item(queue->items[(queue->first + i) % queue->capacity].pointer);
    if (queue->event >= 0)
        (void)close(queue->event);
    (void)pthread_mutex_destroy(&queue->lock);
    free(queue);
}

bool queue_push(struct queue *queue, void *item, size_t bytes)
{
    (void)pthread_mutex_lock(&queue->lock);
    const bool room =
        queue->count == 0 || (queue->count < queue->capacity && queue->bytes < queue->bytes_max &&
                              bytes <= queue->bytes_max - queue->bytes);
    if (room) {
        queue->items[(queue->first + queue->count) % queue->capacity] = (struct item){item, bytes};
        queue->bytes += bytes;
        if (queue->count++ == 0)
            (void)eventfd_write(queue->event, 1);
    }
    (void)pthread_mutex_unlock(&queue->lock);
    return room;
}

void queue_load(struct queue *queue, size_t *count, size_t *bytes)
{
    (void)pthread_mutex_lock(&queue->lock);
    *count = queue->count;
    *bytes = queue->bytes;
    (void)pthread_mutex_unlock(&queue->lock);
}

void *queue_pop(struct queue *queue)
{
    void *item = NULL;
    (void)pthread_mutex_lock(&queue->lock);
    if (queue->count > 0) {
        item = queue->items[queue->first].pointer;
        queue->bytes -= queue->items[queue->first].bytes;
        queue->first = (queue->first + 1) % queue->capacity;
        eventfd_t ignored;
        if (--queue->count == 0)
            (void)eventfd_read(queue->event, &ignored);
    }
    (void)pthread_mutex_unlock(&queue->lock);
    return item;
}

bool queue_is_nonempty(struct queue *queue)
{
    size_t count, bytes;
    queue_load(queue, &count, &bytes);
    return count > 0;
}

int queue_fd(const struct queue *queue)
{
    return queue->event;
}

void queue_wait(const struct queue *queue, int64_t timeout_ns)
{
    struct pollfd event = {.fd = queue->event, .events = POLLIN};
    const struct timespec timeout = clock_timespec((uint64_t)timeout_ns);
    (void)ppoll(&event, 1, &timeout, NULL);
}
