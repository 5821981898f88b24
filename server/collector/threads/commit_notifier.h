// Notifies the live thread of commits: an eventfd and the highest committed id of each
// kind.  The writer never waits for the reader; posts between two reads coalesce.
#ifndef INFERSTAT_COLLECTOR_THREADS_COMMIT_NOTIFIER_H
#define INFERSTAT_COLLECTOR_THREADS_COMMIT_NOTIFIER_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/record/record.h"

struct commit_notifier;

struct commit_notifier_ids {
    int64_t last[RECORD_KIND_COUNT]; // of RECORD_KIND_RUN: the run's number
};

MUST_CHECK enum status commit_notifier_new(struct commit_notifier **out, struct error *err);
void commit_notifier_free(struct commit_notifier *commit_notifier);

void commit_notifier_post(struct commit_notifier *commit_notifier,
                          const struct commit_notifier_ids *ids); // writer

void commit_notifier_wake(
    struct commit_notifier *commit_notifier); // any thread: makes the descriptor readable

// A descriptor that is readable after a post or a wake; commit_notifier_read resets it.
int commit_notifier_fd(const struct commit_notifier *commit_notifier);
void commit_notifier_read(struct commit_notifier *commit_notifier,
                          struct commit_notifier_ids *ids); // live thread

#endif
