// Builds and sends the messages of a publisher: Hello, batches, heartbeats and Goodbye.
#include "common/monitor/delivery/publisher_parts.h"

#include <stdlib.h>
#include <string.h>

#include "common/core/base/array.h"
#include "common/sys/clock.h"

static struct wire_bytes text_bytes(const char *text)
{
    return (struct wire_bytes){.size = strlen(text), .bytes = text};
}

static enum status send_message(struct publisher *publisher, const struct message *message)
{
    unsigned char *bytes;
    size_t size;
    struct error err;
    enum status status = codec_encode(&bytes, &size, message, &err);
    if (status != STATUS_OK) {
        log_sink_write(&publisher->settings.log, INFERSTAT_LOG_ERROR, "%s", err.text);
        return status;
    }
    struct wire_socket *socket = uplink_socket(publisher->uplink);
    status = socket ? wire_send(socket, bytes, size) : STATUS_FULL;
    free(bytes);
    return status;
}

static enum status send_hello(struct publisher *publisher)
{
    struct runfile *file = publisher->settings.file;
    const struct runfile_run *run = runfile_run(file);
    const struct process_host *host = &run->host;
    struct message message = {.kind = MESSAGE_HELLO};
    struct message_hello *hello = &message.hello;
    char driver[PROCESS_TEXT_SIZE] = "";
    struct process_settings settings = {.allocator = ""};
    if (!publisher->settings.replay) { // a dead run may have had others
        process_driver_read(driver, NULL);
        process_settings_read(&settings, NULL);
    }
    *hello = (struct message_hello){
        .protocol = MESSAGE_PROTOCOL,
        .host = text_bytes(host->host),
        .worker_version = text_bytes(run->program),
        .os = text_bytes(host->os),
        .kernel = text_bytes(host->kernel),
        .cpu = text_bytes(host->cpu),
        .cpu_governor = text_bytes(host->cpu_governor),
        .container = text_bytes(host->container),
        .driver = text_bytes(driver),
        .cuda = text_bytes(*driver && publisher->settings.cuda ? publisher->settings.cuda : ""),
        .huge_pages = text_bytes(settings.huge_pages),
        .allocator = text_bytes(settings.allocator),
        .build_flags = text_bytes(settings.build_flags),
        .pid = run->pid,
        .started_ns = run->started_ns,
        .cpu_count = host->cpu_count,
        .host_memory_bytes = host->memory_bytes,
        .device_count = atomic_load_explicit(&runfile_state(file)->devices, memory_order_relaxed),
        .replay = publisher->settings.replay,
    };
    memcpy(hello->run, run->uuid, sizeof hello->run);
    hello->streams = delivery_producer_streams(publisher->producer, &hello->stream_count);
    return send_message(publisher, &message);
}

static size_t fill_drops(struct publisher *publisher)
{
    size_t count;
    const struct delivery_range *ranges = delivery_producer_drops(publisher->producer, &count);
    for (size_t i = 0; i < count && i < DELIVERY_DROPS_MAX; i++)
        publisher->drops[i] = (struct wire_drop){.range = ranges[i]};
    return count < DELIVERY_DROPS_MAX ? count : DELIVERY_DROPS_MAX;
}

static enum status fill_names(struct publisher *publisher, struct message_batch *batch,
                              const struct delivery_action *action)
{
    // The collector may know more names of a dead run than its files still contain.
    const uint32_t there = names_count(runfile_names(publisher->settings.file));
    const uint32_t last = action->names_last < there ? action->names_last : there;
    if (last < action->names_first)
        return STATUS_OK;
    const size_t count = (size_t)last - action->names_first + 1;
    if (!ARRAY_RESERVE(&publisher->names, &publisher->names_room, count))
        return STATUS_NOMEM;
    for (size_t i = 0; i < count; i++) {
        const uint32_t name = action->names_first + (uint32_t)i;
        struct wire_bytes *bytes = &publisher->names[i];
        bytes->bytes = names_text(runfile_names(publisher->settings.file), name, &bytes->size);
    }
    batch->names_first = action->names_first;
    batch->names = publisher->names;
    batch->name_count = count;
    return STATUS_OK;
}

const struct record *publisher_record(const struct publisher *publisher, uint32_t stream,
                                      uint64_t number)
{
    struct ring *ring = runfile_stream(publisher->settings.file, stream).ring;
    struct spool *spool = publisher->settings.spool;
    if (number > ring_released(ring))
        return ring_at(ring, number);
    return spool ? spool_at(spool, stream, number) : NULL;
}

// Builds tables from the records of the action.  STATUS_NO_DATA: some are lost.
static enum status fill_tables(struct publisher *publisher, struct message_batch *batch,
                               const struct delivery_action *action)
{
    table_builder_reset(publisher->builder);
    for (uint64_t number = action->first; number <= action->last; number++) {
        const struct record *record = publisher_record(publisher, action->stream, number);
        if (!record)
            return STATUS_NO_DATA;
        const enum status status = table_builder_add(publisher->builder, number, record);
        if (status != STATUS_OK)
            return status;
    }
    batch->tables = table_builder_tables(publisher->builder, &batch->table_count);
    if (!batch->tables)
        return STATUS_NOMEM;
    batch->stream = action->stream;
    batch->first = action->first;
    batch->last = action->last;
    return STATUS_OK;
}

// Reduces the stream states to that of one stream, if present.
static void keep_one_stream(struct message_batch *batch, uint32_t stream)
{
    for (size_t i = 0; i < batch->stream_count; i++) {
        if (batch->streams[i].stream != stream)
            continue;
        batch->streams += i;
        batch->stream_count = 1;
        return;
    }
}

// A batch of records, or a heartbeat when the action names none.
static enum status send_batch(struct publisher *publisher, const struct delivery_action *action)
{
    struct message message = {.kind = MESSAGE_BATCH};
    struct message_batch *batch = &message.batch;
    *batch = (struct message_batch){.sequence = action->sequence, .sent_ns = clock_wall_ns()};
    memcpy(batch->run, runfile_run(publisher->settings.file)->uuid, sizeof batch->run);

    enum status status = fill_names(publisher, batch, action);
    if (status == STATUS_OK && action->kind == DELIVERY_SEND_BATCH)
        status = fill_tables(publisher, batch, action);
    if (status != STATUS_OK)
        return status;
    batch->activity = text_bytes(publisher->activity);
    batch->drop_count = fill_drops(publisher);
    batch->drops = publisher->drops;
    batch->streams = delivery_producer_streams(publisher->producer, &batch->stream_count);
    const uint64_t now = clock_monotonic_ns();
    // The offset of this process's clock does not apply to a dead run.
    if (!publisher->settings.replay)
        (void)clock_offset_estimate(&publisher->clock, now, &batch->clock_offset_ns,
                                    &batch->clock_error_ns);
    const bool whole = action->kind == DELIVERY_SEND_HEARTBEAT ||
                       now - publisher->states_sent_ns >= PUBLISHER_HEARTBEAT_NS;
    if (!whole)
        keep_one_stream(batch, action->stream);
    status = send_message(publisher, &message);
    if (status == STATUS_OK && whole)
        publisher->states_sent_ns = now;
    return status;
}

// The end time of the run; of a killed run, the last time it was known to be alive.
static int64_t ended_at(const struct publisher *publisher, bool *killed)
{
    struct runfile_state *state = runfile_state(publisher->settings.file);
    const int64_t ended = atomic_load_explicit(&state->ended_ns, memory_order_relaxed);
    *killed = ended <= 0;
    if (ended > 0)
        return ended;
    const int64_t alive = atomic_load_explicit(&state->alive_ns, memory_order_relaxed);
    const int64_t started = runfile_run(publisher->settings.file)->started_ns;
    if (alive > 0)
        return alive;
    return started > 0 ? started : 1;
}

// Converts a monotonic time of the dead run to wall clock; 0 if the values from its file are
// invalid.
static int64_t wall_at(uint64_t monotonic_ns, int64_t offset_ns)
{
    const uint64_t sum = monotonic_ns + (uint64_t)offset_ns;
    return sum <= INT64_MAX ? (int64_t)sum : 0;
}

// The last activities of a killed run's threads, as its run file has them.
struct death {
    size_t count;
    struct wire_activity activities[DELIVERY_STREAMS_MAX];
    char texts[DELIVERY_STREAMS_MAX][PUBLISHER_ACTIVITY_SIZE];
};

static void read_death(struct death *death, struct runfile *file)
{
    const int64_t offset =
        atomic_load_explicit(&runfile_state(file)->wall_offset_ns, memory_order_relaxed);
    for (uint32_t i = 0; i < runfile_stream_count(file); i++) {
        char *text = death->texts[death->count];
        if (!*runfile_activity_text(text, PUBLISHER_ACTIVITY_SIZE, file, i))
            continue;
        const uint64_t since = atomic_load_explicit(
            &runfile_stream(file, i).header->activity_since_ns, memory_order_relaxed);
        death->activities[death->count++] = (struct wire_activity){
            .stream = i, .text = text_bytes(text), .since_ns = wall_at(since, offset)};
    }
}

static enum status send_goodbye(struct publisher *publisher, const struct delivery_action *action)
{
    struct runfile *file = publisher->settings.file;
    struct message message = {.kind = MESSAGE_GOODBYE};
    struct message_goodbye *goodbye = &message.goodbye;
    struct death *death = NULL;
    *goodbye = (struct message_goodbye){.sequence = action->sequence};
    goodbye->ended_ns = ended_at(publisher, &goodbye->killed);
    memcpy(goodbye->run, runfile_run(file)->uuid, sizeof goodbye->run);
    goodbye->streams = delivery_producer_streams(publisher->producer, &goodbye->stream_count);
    goodbye->drop_count = fill_drops(publisher);
    goodbye->drops = publisher->drops;
    if (goodbye->killed) {
        death = calloc(1, sizeof *death);
        if (!death)
            return STATUS_NOMEM;
        read_death(death, file);
        goodbye->activities = death->activities;
        goodbye->activity_count = death->count;
    }
    const enum status status = send_message(publisher, &message);
    free(death);
    return status;
}

enum status publisher_send(struct publisher *publisher, const struct delivery_action *action)
{
    switch (action->kind) {
    case DELIVERY_SEND_HELLO:
        return send_hello(publisher);
    case DELIVERY_SEND_BATCH:
    case DELIVERY_SEND_HEARTBEAT:
        return send_batch(publisher, action);
    case DELIVERY_SEND_GOODBYE:
        return send_goodbye(publisher, action);
    case DELIVERY_SPOOL:
    case DELIVERY_FREE:
    case DELIVERY_LOST_CONTACT:
    case DELIVERY_CONTACT:
    case DELIVERY_CLOSED:
        break;
    }
    return STATUS_INVALID;
}
