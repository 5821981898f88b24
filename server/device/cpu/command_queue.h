// Bounded SPSC queue of commands (single producer, single consumer): the thread that uses a CPU
// stream pushes, the stream's thread pops and executes.
//
// Memory order: a push happens before the pop of its command.  The consumer frees space a quarter
// of the queue at a time.  Free space does not tell the producer that a command was executed.
#ifndef INFERSTAT_SERVER_DEVICE_CPU_COMMAND_QUEUE_H
#define INFERSTAT_SERVER_DEVICE_CPU_COMMAND_QUEUE_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"

enum { COMMAND_ARGUMENTS_MAX = 256 };

struct cpu_stream;

struct command {
    const char *name; // of the queued call, a literal
    // NULL: the consumer's thread ends.
    enum status (*run)(struct cpu_stream *stream, void *arguments, struct error *err);
    bool always; // executed even on a failed stream
    alignas(max_align_t) unsigned char arguments[COMMAND_ARGUMENTS_MAX];
};

struct command_queue;

MUST_CHECK enum status command_queue_new(struct command_queue **out, struct error *err);
void command_queue_free(struct command_queue *queue); // accepts NULL

// Appends a copy; waits while the queue is full.  Producer.
void command_queue_push(struct command_queue *queue, const struct command *command);

// Removes the oldest command; waits while the queue is empty.  Consumer.
void command_queue_pop(struct command_queue *queue, struct command *out);

#endif
