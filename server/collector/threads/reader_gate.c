#include "server/collector/threads/reader_gate.h"

#include <time.h>

#include "common/sys/clock.h"

// A query of the other kinds may take 4 s; the service's thread serves all clients.
static const uint64_t patience_ns[READER_KIND_COUNT] = {
    [READER_SHORT] = UINT64_C(200000000),
    [READER_SCAN] = UINT64_C(5000000000),
    [READER_LONG] = UINT64_C(10000000000),
};

#define LOG_BYTES      (INT64_C(16) << 20)
#define LOG_BYTES_LONG (INT64_C(1) << 30)

enum { LOG_SHARE = 32 }; // of the store's limit, for a READER_LONG

void reader_gate_init(struct reader_gate *gate)
{
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&gate->lock, NULL);
    (void)pthread_cond_init(&gate->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
}

void reader_gate_deinit(struct reader_gate *gate)
{
    (void)pthread_cond_destroy(&gate->changed);
    (void)pthread_mutex_destroy(&gate->lock);
}

static bool must_wait(const struct reader_gate *gate, enum reader_kind kind)
{
    return kind == READER_LONG ? gate->log_is_long : gate->is_closed;
}

void reader_gate_enter(struct reader_gate *gate, enum reader_kind kind)
{
    const uint64_t end_ns = clock_monotonic_ns() + patience_ns[kind];
    const struct timespec end = {.tv_sec = (time_t)(end_ns / 1000000000),
                                 .tv_nsec = (long)(end_ns % 1000000000)};
    (void)pthread_mutex_lock(&gate->lock);
    while (must_wait(gate, kind) &&
           pthread_cond_timedwait(&gate->changed, &gate->lock, &end) == 0) {
        // The gate has changed.
    }
    gate->readers[kind]++;
    (void)pthread_mutex_unlock(&gate->lock);
}

void reader_gate_leave(struct reader_gate *gate, enum reader_kind kind)
{
    (void)pthread_mutex_lock(&gate->lock);
    gate->readers[kind]--;
    (void)pthread_mutex_unlock(&gate->lock);
}

int64_t reader_gate_log_limit(const struct reader_gate *gate, enum reader_kind kind)
{
    if (kind != READER_LONG)
        return LOG_BYTES;
    const int64_t share = gate->store_bytes / LOG_SHARE;
    if (share == 0 || share > LOG_BYTES_LONG)
        return LOG_BYTES_LONG;
    return share < LOG_BYTES ? LOG_BYTES : share;
}

void reader_gate_limit_store(struct reader_gate *gate, int64_t bytes)
{
    gate->store_bytes = bytes;
}

bool reader_gate_close(struct reader_gate *gate)
{
    (void)pthread_mutex_lock(&gate->lock);
    const unsigned *readers = gate->readers;
    gate->log_is_long = true;
    gate->is_closed = readers[READER_LONG] == 0;
    if (!gate->is_closed)
        (void)pthread_cond_broadcast(&gate->changed);
    const bool is_free = gate->is_closed && readers[READER_SHORT] == 0 && readers[READER_SCAN] == 0;
    (void)pthread_mutex_unlock(&gate->lock);
    return is_free;
}

void reader_gate_open(struct reader_gate *gate, bool log_is_long)
{
    (void)pthread_mutex_lock(&gate->lock);
    gate->is_closed = false;
    gate->log_is_long = log_is_long;
    (void)pthread_cond_broadcast(&gate->changed);
    (void)pthread_mutex_unlock(&gate->lock);
}
