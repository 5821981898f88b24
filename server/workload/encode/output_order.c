#include "server/workload/encode/output_order.h"

#include <pthread.h>
#include <stdlib.h>

struct output_order {
    pthread_mutex_t lock; // guards all members below
    pthread_cond_t changed;
    uint64_t next, end;
};

enum status output_order_new(struct output_order **out, struct error *err)
{
    struct output_order *order = calloc(1, sizeof *order);
    if (!order)
        return error_no_memory(err, "encode");
    (void)pthread_mutex_init(&order->lock, NULL); // neither can fail without attributes
    (void)pthread_cond_init(&order->changed, NULL);
    order->end = UINT64_MAX;
    *out = order;
    return STATUS_OK;
}

void output_order_free(struct output_order *order)
{
    if (!order)
        return;
    (void)pthread_cond_destroy(&order->changed);
    (void)pthread_mutex_destroy(&order->lock);
    free(order);
}

bool output_order_wait(struct output_order *order, uint64_t batch)
{
    (void)pthread_mutex_lock(&order->lock);
    while (order->next < batch && batch < order->end)
        (void)pthread_cond_wait(&order->changed, &order->lock);
    bool reached = batch < order->end;
    (void)pthread_mutex_unlock(&order->lock);
    return reached;
}

void output_order_advance(struct output_order *order)
{
    (void)pthread_mutex_lock(&order->lock);
    order->next++;
    (void)pthread_cond_broadcast(&order->changed);
    (void)pthread_mutex_unlock(&order->lock);
}

void output_order_end(struct output_order *order, uint64_t batch)
{
    (void)pthread_mutex_lock(&order->lock);
    if (batch < order->end)
        order->end = batch;
    (void)pthread_cond_broadcast(&order->changed);
    (void)pthread_mutex_unlock(&order->lock);
}

bool output_order_reaches(struct output_order *order, uint64_t batch)
{
    (void)pthread_mutex_lock(&order->lock);
    bool reached = batch < order->end;
    (void)pthread_mutex_unlock(&order->lock);
    return reached;
}
