// Ordered output of concurrent pipelines: makes the pipelines of several devices, among which
// batches are assigned round-robin, write to one file in order of batches.  Any thread.
//
// A pipeline that stops early reports its first unfinished batch.  The other pipelines finish the
// batches before it and no others, so that the result of a failed run does not depend on timing.
#ifndef INFERSTAT_SERVER_WORKLOAD_ENCODE_OUTPUT_ORDER_H
#define INFERSTAT_SERVER_WORKLOAD_ENCODE_OUTPUT_ORDER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct output_order {
    pthread_mutex_t lock; // guards all members below
    pthread_cond_t changed;
    uint64_t next, end;
};

void output_order_init(struct output_order *order);
void output_order_deinit(struct output_order *order);

// Waits until all earlier batches have been written.  Returns false when the run ends before
// `batch`.
bool output_order_wait(struct output_order *order, uint64_t batch);

// Marks the next batch as written.
void output_order_advance(struct output_order *order);

// Makes the run end before `batch`, unless it already ends earlier.
void output_order_end(struct output_order *order, uint64_t batch);

// False when the run ends before `batch`.
bool output_order_reaches(struct output_order *order, uint64_t batch);

#endif
