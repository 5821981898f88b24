#include "server/workload/encode/turns.h"

#include <pthread.h>
#include <stdlib.h>

struct turns {
    pthread_mutex_t lock; // of all below
    pthread_cond_t changed;
    uint64_t next, end;
};

enum status turns_new(struct turns **out, struct error *err)
{
    struct turns *turns = calloc(1, sizeof *turns);
    if (!turns)
        return error_no_memory(err, "encode");
    (void)pthread_mutex_init(&turns->lock, NULL); // neither can fail without attributes
    (void)pthread_cond_init(&turns->changed, NULL);
    turns->end = UINT64_MAX;
    *out = turns;
    return STATUS_OK;
}

void turns_free(struct turns *turns)
{
    if (!turns)
        return;
    (void)pthread_cond_destroy(&turns->changed);
    (void)pthread_mutex_destroy(&turns->lock);
    free(turns);
}

bool turns_wait(struct turns *turns, uint64_t batch)
{
    (void)pthread_mutex_lock(&turns->lock);
    while (turns->next < batch && batch < turns->end)
        (void)pthread_cond_wait(&turns->changed, &turns->lock);
    bool reached = batch < turns->end;
    (void)pthread_mutex_unlock(&turns->lock);
    return reached;
}

void turns_pass(struct turns *turns)
{
    (void)pthread_mutex_lock(&turns->lock);
    turns->next++;
    (void)pthread_cond_broadcast(&turns->changed);
    (void)pthread_mutex_unlock(&turns->lock);
}

void turns_end(struct turns *turns, uint64_t batch)
{
    (void)pthread_mutex_lock(&turns->lock);
    if (batch < turns->end)
        turns->end = batch;
    (void)pthread_cond_broadcast(&turns->changed);
    (void)pthread_mutex_unlock(&turns->lock);
}

bool turns_reach(struct turns *turns, uint64_t batch)
{
    (void)pthread_mutex_lock(&turns->lock);
    bool reached = batch < turns->end;
    (void)pthread_mutex_unlock(&turns->lock);
    return reached;
}
