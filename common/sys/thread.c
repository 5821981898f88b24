#include "common/sys/thread.h"

#include <signal.h>
#include <string.h>

enum status thread_start(struct thread *thread, const char *what, void *(*body)(void *context),
                         void *context, struct error *err)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int fault = pthread_create(&thread->id, NULL, body, context);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    thread->running = fault == 0;
    return fault == 0
               ? STATUS_OK
               : error_set(err, STATUS_IO, "%s: cannot create a thread: %s", what, strerror(fault));
}

void thread_join(struct thread *thread)
{
    if (thread->running)
        (void)pthread_join(thread->id, NULL);
    thread->running = false;
}
