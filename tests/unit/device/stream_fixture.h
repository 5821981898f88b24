// What tests over streams share: a device, checked calls, and gates that hold a stream
// until the test lets it go on, so that nothing depends on speed.
#pragma once

#include "server/device/cpu/cpu_stream.h"
#include "server/device/stream.h"
#include "tests/support/test.h"

struct gate;

struct gate *gate_new(void);
void gate_free(struct gate *gate);
void gate_hold(struct gate *gate, struct device_stream *stream); // queues the wait
void gate_open(struct gate *gate);                               // for good
void gate_arrived(struct gate *gate); // returns when a stream stands at it

struct device *stream_device(const struct device_options *options); // NULL: the CPU's defaults
struct device_stream *stream_named(struct device *device, const char *name);
struct device_event *event_of_kind(struct device *device, enum device_event_kind kind);
void assert_ok(enum status status, const struct error *err);
bool event_is_done(struct device_event *event);

// Queues a kernel that fails with "the words".
MUST_CHECK enum status queue_failure(struct device_stream *stream, struct error *err);
