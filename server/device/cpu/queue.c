#include "server/device/cpu/queue.h"

#include <semaphore.h>
#include <stdlib.h>

enum { BLOCK = 32, BLOCKS = 4, COMMANDS = BLOCK * BLOCKS };

struct queue {
    struct command commands[COMMANDS];
    // A post releases what was added, a wait acquires it.  Posts acquire nothing, so the
    // adder learns nothing of the taker.
    sem_t added;
    // Blocks the adder may enter: the only thing that comes back.
    sem_t room;
    size_t next_in;  // the adder's
    size_t next_out; // the taker's
};

enum status queue_new(struct queue **out, struct error *err)
{
    struct queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return error_no_memory(err, "stream");
    (void)sem_init(&queue->added, 0, 0);
    (void)sem_init(&queue->room, 0, BLOCKS);
    *out = queue;
    return STATUS_OK;
}

void queue_free(struct queue *queue)
{
    if (!queue)
        return;
    (void)sem_destroy(&queue->added);
    (void)sem_destroy(&queue->room);
    free(queue);
}

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0) // a signal came between
        continue;
}

void queue_add(struct queue *queue, const struct command *command)
{
    if (queue->next_in % BLOCK == 0)
        wait_for(&queue->room);
    queue->commands[queue->next_in % COMMANDS] = *command;
    queue->next_in++;
    (void)sem_post(&queue->added);
}

void queue_take(struct queue *queue, struct command *out)
{
    wait_for(&queue->added);
    *out = queue->commands[queue->next_out % COMMANDS];
    queue->next_out++;
    if (queue->next_out % BLOCK == 0)
        (void)sem_post(&queue->room);
}
