// Fork-join thread pool: executes the parts of a task on several threads.
//
// The pool has one owner: the thread that calls thread_pool_run.  It executes parts as well.  The
// pool runs one task at a time.  Idle threads spin for a short time, then sleep.
#pragma once

#include <stddef.h>

#include "common/core/base/error.h"

struct thread_pool;

// Starts `threads - 1` threads (the owner is one more).  `threads` is at least 1.  Fails with
// STATUS_NOMEM, or STATUS_IO when a thread cannot start.
MUST_CHECK enum status thread_pool_new(struct thread_pool **out, unsigned int threads,
                                       struct error *err);

// Joins the threads.  Accepts NULL.
void thread_pool_free(struct thread_pool *pool);

// The number of threads, including the owner.
unsigned int thread_pool_threads(const struct thread_pool *pool);

// Computes part `part` of a task.  `thread` is less than thread_pool_threads(); concurrent calls
// have different ones.
typedef void thread_pool_task(void *context, size_t part, unsigned int thread);

// Runs task(context, part, ...) once for every part 0..parts-1, in any order; returns when all are
// done.  Owner only.
void thread_pool_run(struct thread_pool *pool, thread_pool_task *task, void *context, size_t parts);
