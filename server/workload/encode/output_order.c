#include "server/workload/encode/output_order.h"

void output_order_init(struct output_order *order)
{
    *order = (struct output_order){.end = UINT64_MAX};
    (void)pthread_mutex_init(&order->lock, NULL); // neither can fail without attributes
    (void)pthread_cond_init(&order->changed, NULL);
}

void output_order_deinit(struct output_order *order)
{
    (void)pthread_cond_destroy(&order->changed);
    (void)pthread_mutex_destroy(&order->lock);
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
