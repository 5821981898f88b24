#include "server/collector/threads/reader_gate.h"

#include "common/sys/clock.h"

// Longest waits.  One thread serves all clients of the query service, so a READER_SHORT waits until
// SHORT_NS after free_at_ns, which is renewed after AGAIN_NS at the earliest.  A query of the other
// kinds may take 4 s.
#define SHORT_NS UINT64_C(200000000)
#define AGAIN_NS UINT64_C(400000000)
#define SCAN_NS  UINT64_C(5000000000)
#define LONG_NS  UINT64_C(10000000000)

#define LOG_BYTES      (INT64_C(12) << 20)
#define LOG_BYTES_LONG (INT64_C(1) << 30)

enum { LOG_SHARE = 32 }; // of the store's limit; not for a READER_SHORT

void reader_gate_init(struct reader_gate *gate)
{
    (void)pthread_mutex_init(&gate->lock, NULL);
    (void)pthread_cond_init(&gate->changed, NULL);
}

void reader_gate_deinit(struct reader_gate *gate)
{
    (void)pthread_cond_destroy(&gate->changed);
    (void)pthread_mutex_destroy(&gate->lock);
}

// While a scan is under way the log cannot be reset: then waiting is of no use.
static bool must_wait(const struct reader_gate *gate, enum reader_kind kind)
{
    if (gate->has_ended)
        return false;
    if (kind == READER_LONG)
        return gate->log_is_long;
    return gate->is_closed && (kind == READER_SCAN || gate->readers[READER_SCAN] == 0);
}

void reader_gate_enter(struct reader_gate *gate, enum reader_kind kind)
{
    (void)pthread_mutex_lock(&gate->lock);
    const uint64_t now_ns = clock_monotonic_ns();
    const uint64_t end_ns = kind == READER_LONG    ? now_ns + LONG_NS
                            : kind == READER_SCAN  ? now_ns + SCAN_NS
                            : gate->free_at_ns > 0 ? gate->free_at_ns + SHORT_NS
                                                   : now_ns + SHORT_NS;
    const struct timespec end = clock_timespec(end_ns);
    while (must_wait(gate, kind) &&
           pthread_cond_clockwait(&gate->changed, &gate->lock, CLOCK_MONOTONIC, &end) == 0) {
        // The gate has changed.
    }
    gate->readers[kind]++;
    (void)pthread_mutex_unlock(&gate->lock);
}

static bool has_readers(const struct reader_gate *gate)
{
    return gate->readers[READER_SHORT] + gate->readers[READER_SCAN] + gate->readers[READER_LONG] >
           0;
}

void reader_gate_leave(struct reader_gate *gate, enum reader_kind kind)
{
    (void)pthread_mutex_lock(&gate->lock);
    const uint64_t now_ns = clock_monotonic_ns();
    gate->readers[kind]--;
    if (gate->is_closed && !has_readers(gate) && now_ns - gate->free_at_ns >= AGAIN_NS)
        gate->free_at_ns = now_ns;
    (void)pthread_mutex_unlock(&gate->lock);
}

int64_t reader_gate_log_limit(const struct reader_gate *gate, enum reader_kind kind)
{
    if (kind == READER_SHORT)
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
    const bool is_free = !has_readers(gate);
    gate->log_is_long = true;
    if (!gate->is_closed)
        gate->free_at_ns = is_free ? clock_monotonic_ns() : 0;
    gate->is_closed = gate->readers[READER_LONG] == 0;
    if (!gate->is_closed)
        (void)pthread_cond_broadcast(&gate->changed);
    (void)pthread_mutex_unlock(&gate->lock);
    return is_free;
}

void reader_gate_end(struct reader_gate *gate)
{
    (void)pthread_mutex_lock(&gate->lock);
    gate->has_ended = true;
    (void)pthread_cond_broadcast(&gate->changed);
    (void)pthread_mutex_unlock(&gate->lock);
}

void reader_gate_open(struct reader_gate *gate, bool log_is_long)
{
    (void)pthread_mutex_lock(&gate->lock);
    gate->is_closed = false;
    gate->log_is_long = log_is_long;
    (void)pthread_cond_broadcast(&gate->changed);
    (void)pthread_mutex_unlock(&gate->lock);
}
