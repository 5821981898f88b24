// Threads of the programs and of the library.  Signals are for the threads that wait for them: a
// thread started here has all of them blocked.
#ifndef INFERSTAT_SYS_THREAD_H
#define INFERSTAT_SYS_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "common/core/base/error.h"

// Zeroed before it is started.
struct thread {
    pthread_t id;
    bool running; // it was started and not joined
};

// Starts a thread that runs `body`.  STATUS_IO: "what: cannot create a thread: why".
MUST_CHECK enum status thread_start(struct thread *thread, const char *what,
                                    void *(*body)(void *context), void *context, struct error *err);

// Waits for the end of the thread, if it is running.
void thread_join(struct thread *thread);

#endif
