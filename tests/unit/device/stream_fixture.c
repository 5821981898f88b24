#include "tests/unit/device/stream_fixture.h"

#include <semaphore.h>
#include <stdlib.h>

struct gate {
    sem_t arrived;
    sem_t opened;
};

struct gate *gate_new(void)
{
    struct gate *gate = calloc(1, sizeof *gate);
    assert_non_null(gate);
    assert_int_equal(sem_init(&gate->arrived, 0, 0), 0);
    assert_int_equal(sem_init(&gate->opened, 0, 0), 0);
    return gate;
}

void gate_free(struct gate *gate)
{
    (void)sem_destroy(&gate->arrived);
    (void)sem_destroy(&gate->opened);
    free(gate);
}

static void pass(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        continue;
}

static enum status stand_at_gate(const void *arguments, struct thread_pool *pool, struct error *err)
{
    (void)pool;
    (void)err;
    struct gate *gate = *(struct gate *const *)arguments;
    (void)sem_post(&gate->arrived);
    pass(&gate->opened);
    (void)sem_post(&gate->opened); // it stays open
    return STATUS_OK;
}

void gate_hold(struct gate *gate, struct device_stream *stream)
{
    struct error err = {0};
    assert_ok(cpu_launch(stream, "gate", stand_at_gate, &gate, sizeof(struct gate *), &err), &err);
}

void gate_open(struct gate *gate)
{
    (void)sem_post(&gate->opened);
}

void gate_arrived(struct gate *gate)
{
    pass(&gate->arrived);
}

void assert_ok(enum status status, const struct error *err)
{
    if (status != STATUS_OK)
        fail_msg("%s: %s", status_text(status), err->text);
}

struct device *stream_device(const struct device_options *options)
{
    static const struct device_options cpu = {.spec = "cpu", .threads = 2};
    struct device *device = NULL;
    struct error err = {0};
    assert_ok(device_open(&device, options ? options : &cpu, &err), &err);
    return device;
}

struct device_stream *stream_named(struct device *device, const char *name)
{
    struct device_stream *stream = NULL;
    struct error err = {0};
    assert_ok(device_stream_new(device, &stream, name, &err), &err);
    return stream;
}

struct device_event *event_of_kind(struct device *device, enum device_event_kind kind)
{
    struct device_event *event = NULL;
    struct error err = {0};
    assert_ok(device_event_new(device, &event, kind, &err), &err);
    return event;
}

bool event_is_done(struct device_event *event)
{
    bool done = false;
    struct error err = {0};
    assert_ok(device_event_query(event, &done, &err), &err);
    return done;
}

static enum status break_off(const void *arguments, struct thread_pool *pool, struct error *err)
{
    (void)arguments;
    (void)pool;
    return error_set(err, STATUS_INVALID, "the words");
}

enum status queue_failure(struct device_stream *stream, struct error *err)
{
    return cpu_launch(stream, "fail", break_off, "", 0, err);
}
