#include "server/collector/threads/reader_thread.h"

#include "common/store/store.h"
#include "common/sys/clock.h"

#define SECOND_NS UINT64_C(1000000000)

enum status reader_thread_open(struct reader_thread *out, const char *path,
                               struct reader_gate *gate, struct error *err)
{
    *out = (struct reader_thread){.gate = gate, .is_open = true};
    (void)pthread_mutex_init(&out->lock, NULL);
    (void)pthread_cond_init(&out->wake, NULL);
    enum status status = store_open(&out->store, path, err);
    if (status == STATUS_OK)
        store_set_live(out->store);
    return status;
}

enum status reader_thread_start(struct reader_thread *reader, const char *name,
                                void *(*body)(void *context), void *context, struct error *err)
{
    return thread_start(&reader->thread, name, body, context, err);
}

bool reader_thread_wait(struct reader_thread *reader, uint64_t until_ns)
{
    const struct timespec until = clock_timespec(until_ns);
    (void)pthread_mutex_lock(&reader->lock);
    while (!reader->must_end &&
           pthread_cond_clockwait(&reader->wake, &reader->lock, CLOCK_MONOTONIC, &until) == 0) {
        // Woken too early.
    }
    const bool must_end = reader->must_end;
    (void)pthread_mutex_unlock(&reader->lock);
    return !must_end;
}

void reader_thread_enter(struct reader_thread *reader, enum reader_kind kind, unsigned seconds)
{
    reader_gate_enter(reader->gate, kind);
    store_set_budget(reader->store, seconds * SECOND_NS);
    store_set_log_limit(reader->store, reader_gate_log_limit(reader->gate, kind));
}

void reader_thread_leave(struct reader_thread *reader, enum reader_kind kind)
{
    reader_gate_leave(reader->gate, kind);
}

void reader_thread_end(struct reader_thread *reader)
{
    if (!reader->is_open)
        return;
    (void)pthread_mutex_lock(&reader->lock);
    reader->must_end = true;
    (void)pthread_cond_signal(&reader->wake);
    (void)pthread_mutex_unlock(&reader->lock);
    if (reader->store)
        store_cancel(reader->store);
    thread_join(&reader->thread);
    store_close(reader->store);
    (void)pthread_cond_destroy(&reader->wake);
    (void)pthread_mutex_destroy(&reader->lock);
    *reader = (struct reader_thread){.store = NULL};
}
