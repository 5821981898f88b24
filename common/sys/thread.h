// Thread wrapper (pthreads): starts and joins a thread of a program or of the library.  The started
// thread has all signals blocked, so that only the threads of the application handle signals.
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "common/core/base/error.h"

// Must be zeroed before thread_start.
struct thread {
    pthread_t id;
    bool running; // started and not joined yet
};

// Starts a thread that calls `body` with `context`.  Returns STATUS_IO if it cannot be created;
// `what` is the prefix of the message.
MUST_CHECK enum status thread_start(struct thread *thread, const char *what,
                                    void *(*body)(void *context), void *context, struct error *err);

// Waits for the end of the thread; does nothing if it was not started.
void thread_join(struct thread *thread);
