#include "server/collector/threads/commit_notifier.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct commit_notifier {
    pthread_mutex_t lock;
    int event;
    struct commit_notifier_ids ids;
};

enum status commit_notifier_new(struct commit_notifier **out, struct error *err)
{
    struct commit_notifier *commit_notifier = calloc(1, sizeof *commit_notifier);
    if (!commit_notifier)
        return error_no_memory(err, "live feed");
    (void)pthread_mutex_init(&commit_notifier->lock, NULL);
    commit_notifier->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (commit_notifier->event < 0) {
        enum status status = error_set(err, STATUS_IO, "eventfd: %s", strerror(errno));
        commit_notifier_free(commit_notifier);
        return status;
    }
    *out = commit_notifier;
    return STATUS_OK;
}

void commit_notifier_free(struct commit_notifier *commit_notifier)
{
    if (!commit_notifier)
        return;
    if (commit_notifier->event >= 0)
        (void)close(commit_notifier->event);
    (void)pthread_mutex_destroy(&commit_notifier->lock);
    free(commit_notifier);
}

void commit_notifier_post(struct commit_notifier *commit_notifier,
                          const struct commit_notifier_ids *ids)
{
    (void)pthread_mutex_lock(&commit_notifier->lock);
    commit_notifier->ids = *ids;
    (void)pthread_mutex_unlock(&commit_notifier->lock);
    (void)eventfd_write(commit_notifier->event, 1);
}

void commit_notifier_wake(struct commit_notifier *commit_notifier)
{
    (void)eventfd_write(commit_notifier->event, 1);
}

int commit_notifier_fd(const struct commit_notifier *commit_notifier)
{
    return commit_notifier->event;
}

void commit_notifier_read(struct commit_notifier *commit_notifier, struct commit_notifier_ids *ids)
{
    eventfd_t ignored;
    (void)eventfd_read(commit_notifier->event, &ignored);
    (void)pthread_mutex_lock(&commit_notifier->lock);
    *ids = commit_notifier->ids;
    (void)pthread_mutex_unlock(&commit_notifier->lock);
}
