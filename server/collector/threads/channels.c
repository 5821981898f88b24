#include "server/collector/threads/channels.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/core/query/result.h"
#include "common/store/sqlite/database.h"
#include "common/sys/clock.h"
#include "common/sys/process.h"
#include "server/collector/threads/job.h"

enum status channels_new(struct channels **out, struct error *err)
{
    struct channels *channels = calloc(1, sizeof *channels);
    if (!channels)
        return error_no_memory(err, "collector");
    channels->started_at_ns = clock_monotonic_ns();
    (void)pthread_mutex_init(&channels->lock, NULL);
    peer_credit_init(&channels->credit);
    reader_gate_init(&channels->gate);
    channels->commit_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    enum status status = STATUS_OK;
    if (channels->commit_fd < 0)
        status = error_set(err, STATUS_IO, "eventfd: %s", strerror(errno));
    channels->stop = job_new(JOB_STOP);
    if (status == STATUS_OK && !channels->stop)
        status = error_no_memory(err, "collector");
    if (status == STATUS_OK)
        status = queue_new(&channels->inbox, CHANNELS_INBOX_JOBS, CHANNELS_INBOX_BYTES, err);
    if (status == STATUS_OK)
        status = queue_new(&channels->acks, CHANNELS_ANSWERS, CHANNELS_ACKS_BYTES, err);
    if (status == STATUS_OK)
        status = queue_new(&channels->replies, CHANNELS_ANSWERS, CHANNELS_REPLIES_BYTES, err);
    if (status != STATUS_OK) {
        channels_free(channels);
        return status;
    }
    *out = channels;
    return STATUS_OK;
}

void channels_free(struct channels *channels)
{
    if (!channels)
        return;
    job_free(channels->stop);
    queue_free(channels->inbox, job_free);
    queue_free(channels->acks, answer_free);
    queue_free(channels->replies, answer_free);
    if (channels->commit_fd >= 0)
        (void)close(channels->commit_fd);
    reader_gate_deinit(&channels->gate);
    (void)pthread_mutex_destroy(&channels->lock);
    free(channels);
}

void channels_post_commit(struct channels *channels, const struct commit_ids *ids)
{
    (void)pthread_mutex_lock(&channels->lock);
    channels->committed = *ids;
    (void)pthread_mutex_unlock(&channels->lock);
    channels_wake_live(channels);
}

void channels_wake_live(struct channels *channels)
{
    (void)eventfd_write(channels->commit_fd, 1);
}

void channels_read_commit(struct channels *channels, struct commit_ids *ids)
{
    eventfd_t ignored;
    (void)eventfd_read(channels->commit_fd, &ignored);
    (void)pthread_mutex_lock(&channels->lock);
    *ids = channels->committed;
    (void)pthread_mutex_unlock(&channels->lock);
}

void channels_set_write_error(struct channels *channels, const char *why)
{
    (void)pthread_mutex_lock(&channels->lock);
    (void)snprintf(channels->write_error, sizeof channels->write_error, "%s", why);
    (void)pthread_mutex_unlock(&channels->lock);
}

size_t channels_read_write_error(struct channels *channels, char why[ERROR_TEXT_SIZE])
{
    (void)pthread_mutex_lock(&channels->lock);
    const size_t size = strlen(channels->write_error);
    memcpy(why, channels->write_error, size + 1);
    (void)pthread_mutex_unlock(&channels->lock);
    return size;
}

static void set_metric(struct result *answer, const char *key, uint64_t value)
{
    result_set_int(answer, (unsigned)result_find(answer, key), (int64_t)value);
}

void channels_add_to_ping(struct channels *channels, struct listener *listener, const char *path,
                          struct result *answer)
{
    const struct commit_times *times = &channels->commit_times;
    size_t messages, bytes;
    const uint64_t commits = atomic_load_explicit(&times->count, memory_order_relaxed);
    queue_load(channels->inbox, &messages, &bytes);
    set_metric(answer, "uptime_ns", clock_monotonic_ns() - channels->started_at_ns);
    const int64_t log_bytes = database_beside_bytes(path, "-wal");
    set_metric(answer, "log_bytes", log_bytes > 0 ? (uint64_t)log_bytes : 0);
    set_metric(answer, "disk_free_bytes", (uint64_t)database_free_bytes(path));
    set_metric(answer, "memory_bytes", (uint64_t)process_memory_bytes());
    set_metric(answer, "queue_messages", messages);
    set_metric(answer, "queue_bytes", bytes);
    set_metric(answer, "unsent_bytes", listener_unsent_bytes(listener));
    set_metric(answer, "commits", commits);
    if (commits == 0)
        return;
    set_metric(answer, "commit_p50_ns", atomic_load_explicit(&times->p50_ns, memory_order_relaxed));
    set_metric(answer, "commit_p99_ns", atomic_load_explicit(&times->p99_ns, memory_order_relaxed));
}
