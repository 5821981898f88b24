// A bounded queue of commands from one thread that adds to one that takes.
//
// Adding orders what the adder did before what the taker does with it.  The other way
// round nothing is ordered, but that room is handed back a quarter of the queue at a
// time: whether work is done, the queue does not tell.
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
    const char *name; // of the call, a literal
    // NULL: the last one.
    enum status (*run)(struct cpu_stream *stream, void *arguments, struct error *err);
    bool always; // also on a stream that has failed
    alignas(max_align_t) unsigned char arguments[COMMAND_ARGUMENTS_MAX];
};

struct command_queue;

MUST_CHECK enum status command_queue_new(struct command_queue **out, struct error *err);
void command_queue_free(struct command_queue *queue); // accepts NULL

// Adds a copy; waits where there is no room.  One thread at a time.
void command_queue_push(struct command_queue *queue, const struct command *command);

// Takes the oldest; waits where there is none.  One thread.
void command_queue_pop(struct command_queue *queue, struct command *out);

#endif
