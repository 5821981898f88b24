// Ticket lock with an early end: makes several threads write their batches to one file in the order
// of batch numbers.  Used by the pipelines of several devices, to which batches are assigned
// round-robin.  For each batch a pipeline calls output_order_wait, writes the batch, and calls
// output_order_advance.  Any thread may call the functions.
//
// A pipeline that stops early ends the run at its first unfinished batch.  The other pipelines
// finish all batches before that one and no later ones, so that the output of a failed run does not
// depend on timing.
#ifndef INFERSTAT_SERVER_WORKLOAD_ENCODE_OUTPUT_ORDER_H
#define INFERSTAT_SERVER_WORKLOAD_ENCODE_OUTPUT_ORDER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct output_order {
    pthread_mutex_t lock; // guards all members below
    pthread_cond_t changed;
    uint64_t next; // batch to be written next
    uint64_t end;  // the run ends before this batch; UINT64_MAX: no early end
};

void output_order_init(struct output_order *order);
void output_order_deinit(struct output_order *order);

// Waits until all batches before `batch` have been written.  Returns false if the run ends before
// `batch`.
bool output_order_wait(struct output_order *order, uint64_t batch);

// Marks the next batch as written.
void output_order_advance(struct output_order *order);

// Makes the run end before `batch`, unless it ends earlier already.
void output_order_end(struct output_order *order, uint64_t batch);

// True unless the run ends before `batch`.
bool output_order_reaches(struct output_order *order, uint64_t batch);

#endif
