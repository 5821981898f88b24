// A producer of the wire protocol, a step at a time: for tests of the collector
// that want to send exactly this.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/delivery/delivery.h"
#include "common/core/record/record.h"
#include "common/wire/codec.h"
#include "common/wire/socket.h"

struct producer {
    struct wire_context *context;
    bool borrows_context;
    struct wire_socket *socket;
    struct table_builder *builder;
    unsigned char run[16];
    uint64_t sequence;
    uint32_t names_told; // batches carry "name-1".. up to here until names_known covers them
    // The last Ack.
    unsigned char store[16];
    uint64_t acknowledged;
    uint64_t next[8]; // by stream
    uint32_t names_known, credit;
    bool hello_wanted, closed;
    size_t refused;
    char refused_reason[160];
    char error[160];
};

// Connects to an ingest endpoint; ends the program where it cannot.  The run's
// identity is made from `run`.
void producer_open(struct producer *producer, const char *endpoint, unsigned run);
void producer_close(struct producer *producer);

// The same in a context that several producers share, and that the caller frees
// after all of them; `pass` as wire_connect takes it.
void producer_open_in(struct producer *producer, struct wire_context *context, const char *endpoint,
                      const struct wire_pass *pass, unsigned run);

// A Hello from the host "host-N".  Not waited for.
void producer_hello(struct producer *producer, const struct delivery_stream *streams, size_t count);

// A batch of `count` records, numbers from `first`.
void producer_batch(struct producer *producer, uint32_t stream, uint64_t first,
                    const struct record *records, size_t count);

// The same as bytes, which the caller frees.
unsigned char *producer_encode(struct producer *producer, uint32_t stream, uint64_t first,
                               const struct record *records, size_t count, size_t *size);

// Any message, and any bytes.
void producer_message(struct producer *producer, const struct message *message);
void producer_send(struct producer *producer, const void *bytes, size_t size);

void producer_goodbye(struct producer *producer, const struct delivery_stream *streams,
                      size_t count);

// Waits for one Ack and takes it in; false when none came in time.
bool producer_await(struct producer *producer, int timeout_ms);

// Awaits Acks until the stream's next is `next`; false when it does not get there.
bool producer_await_next(struct producer *producer, uint32_t stream, uint64_t next);

// An inference of model name-1 on device name-2, its figures made from `i`.
void producer_inference(struct record *record, uint64_t i);
