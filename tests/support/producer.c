#include "tests/support/producer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/sys/clock.h"

enum { NAMES_MAX = 40, PATIENCE_MS = 10000 };

static void die(const char *what, const struct error *err)
{
    fprintf(stderr, "producer: %s: %s\n", what, err ? err->text : "failed");
    exit(1);
}

void producer_open_in(struct producer *producer, struct wire_context *context, const char *endpoint,
                      const struct wire_pass *pass, unsigned run)
{
    struct error err = {0};
    *producer = (struct producer){.context = context, .borrows_context = true, .names_told = 2};
    for (unsigned i = 0; i < sizeof producer->run; i++)
        producer->run[i] = (unsigned char)(run * 31 + i * 7 + 1);
    memcpy(producer->run, &run, sizeof run);
    if (wire_connect(&producer->socket, producer->context, endpoint, ADDRESS_QUERY, pass, NULL,
                     &err) != STATUS_OK ||
        table_builder_new(&producer->builder) != STATUS_OK)
        die(endpoint, &err);
}

void producer_open(struct producer *producer, const char *endpoint, unsigned run)
{
    struct error err = {0};
    struct wire_context *context = NULL;
    if (wire_context_new(&context, &err) != STATUS_OK)
        die(endpoint, &err);
    producer_open_in(producer, context, endpoint, NULL, run);
    producer->borrows_context = false;
}

void producer_close(struct producer *producer)
{
    table_builder_free(producer->builder);
    wire_close(producer->socket);
    if (!producer->borrows_context)
        wire_context_free(producer->context);
    *producer = (struct producer){0};
}

void producer_send(struct producer *producer, const void *bytes, size_t size)
{
    const uint64_t deadline = clock_monotonic_ns() + PATIENCE_MS * UINT64_C(1000000);
    enum status status = STATUS_FULL;
    while ((status = wire_send(producer->socket, bytes, size)) == STATUS_FULL) {
        if (clock_monotonic_ns() > deadline)
            die("send", NULL);
        clock_sleep_until_ns(clock_monotonic_ns() + 200000);
    }
    if (status != STATUS_OK)
        die("send", NULL);
}

void producer_message(struct producer *producer, const struct message *message)
{
    struct error err = {0};
    unsigned char *bytes = NULL;
    size_t size = 0;
    if (codec_encode(&bytes, &size, message, &err) != STATUS_OK)
        die("encode", &err);
    producer_send(producer, bytes, size);
    free(bytes);
}

static struct wire_bytes text(const char *bytes)
{
    return (struct wire_bytes){strlen(bytes), bytes};
}

void producer_hello(struct producer *producer, const struct delivery_stream *streams, size_t count)
{
    char host[32];
    unsigned run;
    memcpy(&run, producer->run, sizeof run);
    (void)snprintf(host, sizeof host, "host-%u", run);
    struct message message = {.kind = MESSAGE_HELLO};
    message.hello = (struct message_hello){.protocol = MESSAGE_PROTOCOL,
                                           .host = text(host),
                                           .worker_version = text("test"),
                                           .os = text("os"),
                                           .kernel = text("kernel"),
                                           .cpu = text("cpu"),
                                           .pid = 4711,
                                           .started_ns = clock_wall_ns(),
                                           .cpu_count = 2,
                                           .host_memory_bytes = 1 << 30,
                                           .device_count = 1,
                                           .streams = streams,
                                           .stream_count = count};
    memcpy(message.hello.run, producer->run, sizeof producer->run);
    producer_message(producer, &message);
}

unsigned char *producer_encode(struct producer *producer, uint32_t stream, uint64_t first,
                               const struct record *records, size_t count, size_t *size)
{
    char names[NAMES_MAX][32];
    struct wire_bytes name_texts[NAMES_MAX];
    struct message message = {.kind = MESSAGE_BATCH};
    message.batch = (struct message_batch){.sequence = ++producer->sequence,
                                           .sent_ns = clock_wall_ns(),
                                           .stream = stream,
                                           .first = count ? first : 0,
                                           .last = count ? first + count - 1 : 0,
                                           .names_first = producer->names_known + 1,
                                           .names = name_texts};
    memcpy(message.batch.run, producer->run, sizeof producer->run);
    for (uint32_t i = producer->names_known; i < producer->names_told; i++) {
        (void)snprintf(names[i], sizeof names[i], "name-%u", i + 1);
        name_texts[message.batch.name_count++] = text(names[i]);
    }
    table_builder_reset(producer->builder);
    for (size_t i = 0; i < count; i++)
        if (table_builder_add(producer->builder, first + i, &records[i]) != STATUS_OK)
            die("records", NULL);
    message.batch.tables = table_builder_tables(producer->builder, &message.batch.table_count);
    struct error err = {0};
    unsigned char *bytes = NULL;
    if (codec_encode(&bytes, size, &message, &err) != STATUS_OK)
        die("encode", &err);
    return bytes;
}

void producer_batch(struct producer *producer, uint32_t stream, uint64_t first,
                    const struct record *records, size_t count)
{
    size_t size = 0;
    unsigned char *bytes = producer_encode(producer, stream, first, records, count, &size);
    producer_send(producer, bytes, size);
    free(bytes);
}

void producer_goodbye(struct producer *producer, const struct delivery_stream *streams,
                      size_t count)
{
    struct message message = {.kind = MESSAGE_GOODBYE};
    message.goodbye = (struct message_goodbye){.sequence = ++producer->sequence,
                                               .ended_ns = clock_wall_ns(),
                                               .streams = streams,
                                               .stream_count = count};
    memcpy(message.goodbye.run, producer->run, sizeof producer->run);
    producer_message(producer, &message);
}

static void take_ack(struct producer *producer, const struct message_ack *ack)
{
    const struct delivery_ack *delivery = &ack->delivery;
    memcpy(producer->store, delivery->store, sizeof producer->store);
    producer->acknowledged = delivery->sequence;
    for (size_t i = 0; i < delivery->next_count; i++)
        if (delivery->next[i].stream < 8)
            producer->next[delivery->next[i].stream] = delivery->next[i].next;
    producer->names_known = delivery->names_known;
    producer->credit = delivery->credit;
    producer->hello_wanted = delivery->hello_wanted;
    producer->closed = delivery->closed;
    producer->refused = ack->refused_count;
    if (ack->refused_count)
        (void)snprintf(producer->refused_reason, sizeof producer->refused_reason, "%.*s",
                       (int)ack->refused[0].reason.size, ack->refused[0].reason.bytes);
    (void)snprintf(producer->error, sizeof producer->error, "%.*s", (int)ack->error.size,
                   ack->error.size ? ack->error.bytes : "");
}

bool producer_await(struct producer *producer, int timeout_ms)
{
    const uint64_t deadline = clock_monotonic_ns() + (uint64_t)timeout_ms * UINT64_C(1000000);
    struct wire_bytes frame;
    while (wire_receive(producer->socket, &frame) != STATUS_OK) {
        const uint64_t now = clock_monotonic_ns();
        if (now >= deadline)
            return false;
        uint32_t ready = 0;
        wire_wait(&producer->socket, 1, -1, (int64_t)(deadline - now), &ready);
    }
    struct message message;
    struct error err = {0};
    if (codec_decode(&message, frame.bytes, frame.size, &err) != STATUS_OK)
        die("ack", &err);
    if (message.kind == MESSAGE_ACK)
        take_ack(producer, &message.ack);
    message_free(&message);
    return true;
}

bool producer_await_next(struct producer *producer, uint32_t stream, uint64_t next)
{
    while (producer->next[stream] != next)
        if (!producer_await(producer, PATIENCE_MS))
            return false;
    return true;
}

void producer_inference(struct record *record, uint64_t i)
{
    const int64_t tokens = (int64_t)(16 + i * 37 % 240);
    const int64_t prefill = (int64_t)(900000 + i * 7919 % 4000000);
    const int64_t decode = tokens * (int64_t)(2000000 + i * 104729 % 500000);
    const int64_t queue = (int64_t)(i * 31 % 5000);
    record_init(record, RECORD_KIND_INFERENCE, INT64_C(1790000000000000000) + (int64_t)i * 1000003);
    record_set_name(record, INFERENCE_MODEL, 1);
    record_set_name(record, INFERENCE_DEVICE, 2);
    record_set_int(record, INFERENCE_REQUEST, (int64_t)i);
    record_set_int(record, INFERENCE_FINISH, i % 7 ? RECORD_FINISH_LENGTH : RECORD_FINISH_STOP);
    record_set_int(record, INFERENCE_PROMPT_TOKENS, (int64_t)(5 + i % 500));
    record_set_int(record, INFERENCE_CACHED_PROMPT_TOKENS, 0);
    record_set_int(record, INFERENCE_GENERATED_TOKENS, tokens);
    record_set_int(record, INFERENCE_QUEUE_NS, queue);
    record_set_int(record, INFERENCE_PREFILL_NS, prefill);
    record_set_int(record, INFERENCE_TTFT_NS, queue + prefill);
    record_set_int(record, INFERENCE_DECODE_NS, decode);
    record_set_int(record, INFERENCE_E2E_NS, queue + prefill + decode);
    record_set_int(record, INFERENCE_ITL_MAX_NS, decode / tokens * 3);
    record_set_int(record, INFERENCE_ITL_P99_NS, decode / tokens * 2);
    record_set_int(record, INFERENCE_HOST_MEMORY, INT64_C(600000000) + (int64_t)(i % 4096) * 4096);
    if (i % 4)
        record_set_int(record, INFERENCE_DEVICE_MEMORY, INT64_C(24000000000));
    record_set_int(record, INFERENCE_CONCURRENT, (int64_t)(1 + i % 8));
}
