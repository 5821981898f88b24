#include "server/collector/threads/service.h"

#include <signal.h>
#include <string.h>

// Blocks all signals in the new thread: the main thread handles them.
static int create_thread(struct service *service, void *(*body)(void *context), void *context)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int fault = pthread_create(&service->thread, NULL, body, context);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return fault;
}

enum status service_start(struct service *service, void *(*body)(void *context), void *context,
                          struct error *err)
{
    (void)pthread_mutex_init(&service->lock, NULL);
    (void)pthread_cond_init(&service->changed, NULL);
    const int fault = create_thread(service, body, context);
    if (fault != 0)
        return error_set(err, STATUS_IO, "cannot start a thread: %s", strerror(fault));
    service->running = true;
    (void)pthread_mutex_lock(&service->lock);
    while (!service->reported)
        (void)pthread_cond_wait(&service->changed, &service->lock);
    const enum status status = service->status;
    (void)pthread_mutex_unlock(&service->lock);
    if (status == STATUS_OK)
        return STATUS_OK;
    service_join(service);
    return error_set(err, status, "%s", service->error.text);
}

void service_report(struct service *service, enum status status, const struct error *error)
{
    (void)pthread_mutex_lock(&service->lock);
    service->reported = true;
    service->status = status;
    if (error)
        service->error = *error;
    (void)pthread_cond_signal(&service->changed);
    (void)pthread_mutex_unlock(&service->lock);
}

void service_set_heartbeat(struct service *service, uint64_t now_ns)
{
    atomic_store_explicit(&service->beat_ns, now_ns, memory_order_relaxed);
}

uint64_t service_heartbeat_ns(struct service *service)
{
    return atomic_load_explicit(&service->beat_ns, memory_order_relaxed);
}

void service_join(struct service *service)
{
    if (!service->running)
        return;
    (void)pthread_join(service->thread, NULL);
    service->running = false;
    (void)pthread_cond_destroy(&service->changed);
    (void)pthread_mutex_destroy(&service->lock);
}
