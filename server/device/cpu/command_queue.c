#include "server/device/cpu/command_queue.h"

#include <semaphore.h>
#include <stdlib.h>

enum { BLOCK = 32, BLOCKS = 4, COMMANDS = BLOCK * BLOCKS };

struct command_queue {
    struct command commands[COMMANDS];
    // A post releases what was added, a wait acquires it.  Posts acquire nothing, so the
    // adder learns nothing of the taker.
    sem_t added;
    // Blocks the adder may enter: the only thing that comes back.
    sem_t room;
    size_t next_in;  // the adder's
    size_t next_out; // the taker's
};

enum status command_queue_new(struct command_queue **out, struct error *err)
{
    struct command_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return error_no_memory(err, "stream");
    (void)sem_init(&queue->added, 0, 0);
    (void)sem_init(&queue->room, 0, BLOCKS);
    *out = queue;
    return STATUS_OK;
}

void command_queue_free(struct command_queue *queue)
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

void command_queue_push(struct command_queue *queue, const struct command *command)
{
    if (queue->next_in % BLOCK == 0)
        wait_for(&queue->room);
    queue->commands[queue->next_in % COMMANDS] = *command;
    queue->next_in++;
    (void)sem_post(&queue->added);
}

void command_queue_pop(struct command_queue *queue, struct command *out)
{
    wait_for(&queue->added);
    *out = queue->commands[queue->next_out % COMMANDS];
    queue->next_out++;
    if (queue->next_out % BLOCK == 0)
        (void)sem_post(&queue->room);
}
