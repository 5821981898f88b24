#include "common/monitor/publisher.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/sys/clock.h"
#include "common/wire/codec.h"
#include "common/wire/socket.h"

enum {
    BATCH_RECORDS = 1024,
    ACTIVITY_SIZE = 320,
    REFUSALS_LOGGED_MAX = 20, // of one run: the rest is in the collector's ledger
};

static const struct delivery_config delivery_settings = {
    .batch_records = BATCH_RECORDS,
    .resend_after_ns = UINT64_C(1000000000),
    .resend_max_ns = UINT64_C(2000000000),
    .heartbeat_ns = UINT64_C(500000000),
};

struct publisher {
    struct inferstat_monitor *monitor;
    struct wire_context *context;
    struct wire_socket *socket;
    char endpoint[ADDRESS_TEXT_SIZE];
    struct delivery_producer *producer;
    struct table_builder *builder;
    struct wire_bytes *names; // of the message being built
    size_t names_room;
    struct wire_drop drops[DELIVERY_DROPS_MAX];
    char activity[ACTIVITY_SIZE]; // as of this step
    uint64_t states_sent_ns;      // when the states of all streams last went out
    char error[256];              // what the collector last had against us
    unsigned refusals_logged;
    bool had_contact;
    bool unsound_logged;
    bool finished;
    _Atomic uint64_t acknowledged;
};

enum status publisher_open(struct publisher **out, struct inferstat_monitor *monitor,
                           const struct address *address, struct error *err)
{
    struct publisher *publisher = calloc(1, sizeof *publisher);
    if (!publisher)
        return error_set(err, STATUS_NOMEM, "publisher: out of memory");
    publisher->monitor = monitor;

    enum status status = delivery_producer_new(&publisher->producer, &delivery_settings);
    if (status == STATUS_OK)
        status = table_builder_new(&publisher->builder);
    if (status != STATUS_OK)
        (void)error_set(err, status, "publisher: %s", status_text(status));
    if (status == STATUS_OK)
        status = wire_context_new(&publisher->context, err);
    if (status == STATUS_OK)
        status = wire_connect(&publisher->socket, publisher->context,
                              address_endpoint(publisher->endpoint, address, ADDRESS_INGEST), NULL, err);
    if (status != STATUS_OK) {
        publisher_close(publisher);
        return status;
    }
    *out = publisher;
    return STATUS_OK;
}

void publisher_close(struct publisher *publisher)
{
    if (!publisher)
        return;
    wire_close(publisher->socket);
    wire_context_free(publisher->context);
    table_builder_free(publisher->builder);
    delivery_producer_free(publisher->producer);
    free(publisher->names);
    free(publisher);
}

void publisher_wait(struct publisher *publisher, int wake_fd, int64_t timeout_ns)
{
    uint32_t ready;
    wire_wait(&publisher->socket, 1, wake_fd, timeout_ns, &ready);
}

// ---- What the collector says --------------------------------------------------

static void note_error(struct publisher *publisher, const struct wire_bytes *error)
{
    const size_t room = sizeof publisher->error - 1;
    const size_t size = error->size < room ? error->size : room;
    if (size == 0 ||
        (strlen(publisher->error) == size && memcmp(publisher->error, error->bytes, size) == 0))
        return;
    memcpy(publisher->error, error->bytes, size);
    publisher->error[size] = '\0';
    monitor_log(publisher->monitor, INFERSTAT_LOG_ERROR, "the collector refuses this run: %s",
                publisher->error);
}

static void note_refused(struct publisher *publisher, const struct wire_refused *refused)
{
    if (publisher->refusals_logged++ >= REFUSALS_LOGGED_MAX)
        return;
    monitor_log(publisher->monitor, INFERSTAT_LOG_ERROR,
                "the collector refused records %" PRIu64 " to %" PRIu64 " of stream %" PRIu32
                ": %.*s",
                refused->first, refused->last, refused->stream, (int)refused->reason.size,
                refused->reason.size ? refused->reason.bytes : "");
}

// Keeps who acknowledged with the run, for whoever reads the file after us.
static void note_store(struct publisher *publisher, const unsigned char store[16])
{
    struct runfile_state *state = runfile_state(publisher->monitor->file);
    uint64_t words[2];
    memcpy(words, store, sizeof words);
    for (unsigned i = 0; i < 2; i++)
        atomic_store_explicit(&state->store[i], words[i], memory_order_relaxed);
}

static void take_ack(struct publisher *publisher, const struct message_ack *ack)
{
    static const unsigned char nobody[MESSAGE_RUN_SIZE];
    const struct runfile_run *run = runfile_run(publisher->monitor->file);
    // A collector that could not read our message does not know whose it was.
    if (memcmp(ack->run, nobody, sizeof nobody) == 0)
        note_error(publisher, &ack->error);
    if (memcmp(ack->run, run->uuid, sizeof run->uuid) != 0)
        return;
    note_error(publisher, &ack->error);
    for (size_t i = 0; i < ack->refused_count; i++)
        note_refused(publisher, &ack->refused[i]);
    if (ack->error.size > 0)
        return;
    const enum status status = delivery_producer_ack(publisher->producer, &ack->delivery,
                                                     clock_monotonic_ns(), clock_wall_ns());
    if (status == STATUS_OK)
        note_store(publisher, ack->delivery.store);
    else if (!publisher->unsound_logged) {
        publisher->unsound_logged = true;
        monitor_log(publisher->monitor, INFERSTAT_LOG_WARNING,
                    "the collector acknowledged what was never sent: ignored");
    }
}

static void receive_all(struct publisher *publisher)
{
    for (;;) {
        struct wire_frame frame;
        const enum status status = wire_receive(publisher->socket, &frame);
        if (status == STATUS_INVALID)
            continue;
        if (status != STATUS_OK)
            return;
        struct message message;
        if (codec_decode(&message, frame.bytes, frame.size, NULL) == STATUS_OK) {
            if (message.kind == MESSAGE_ACK)
                take_ack(publisher, &message.ack);
            message_free(&message);
        }
        wire_frame_release(&frame);
    }
}

// ---- What there is to say -----------------------------------------------------

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
        monitor_log(publisher->monitor, INFERSTAT_LOG_ERROR, "%s", err.text);
        return status;
    }
    status = wire_send(publisher->socket, NULL, bytes, size);
    free(bytes);
    return status;
}

static enum status send_hello(struct publisher *publisher)
{
    struct inferstat_monitor *monitor = publisher->monitor;
    const struct runfile_run *run = runfile_run(monitor->file);
    const struct process_host *host = &run->host;
    struct message message = {.kind = MESSAGE_HELLO};
    struct message_hello *hello = &message.hello;
    *hello = (struct message_hello){
        .protocol = MESSAGE_PROTOCOL,
        .host = text_bytes(host->host),
        .worker_version = text_bytes(run->program),
        .os = text_bytes(host->os),
        .kernel = text_bytes(host->kernel),
        .cpu = text_bytes(host->cpu),
        .cpu_governor = text_bytes(host->cpu_governor),
        .container = text_bytes(host->container),
        .pid = run->pid,
        .started_ns = run->started_ns,
        .cpu_count = host->cpu_count,
        .host_memory_bytes = host->memory_bytes,
        .device_count =
            atomic_load_explicit(&runfile_state(monitor->file)->devices, memory_order_relaxed),
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
    if (action->names_last < action->names_first)
        return STATUS_OK;
    const size_t count = (size_t)action->names_last - action->names_first + 1;
    if (count > publisher->names_room) {
        struct wire_bytes *names = realloc(publisher->names, count * sizeof *names);
        if (!names)
            return STATUS_NOMEM;
        publisher->names = names;
        publisher->names_room = count;
    }
    for (size_t i = 0; i < count; i++) {
        const uint32_t name = action->names_first + (uint32_t)i;
        struct wire_bytes *bytes = &publisher->names[i];
        bytes->bytes = names_text(publisher->monitor->names, name, &bytes->size);
    }
    batch->names_first = action->names_first;
    batch->names = publisher->names;
    batch->name_count = count;
    return STATUS_OK;
}

// The records of the action as tables, read where they lie.
static enum status fill_tables(struct publisher *publisher, struct message_batch *batch,
                               const struct delivery_action *action)
{
    const struct ring *ring = runfile_stream(publisher->monitor->file, action->stream).ring;
    table_builder_reset(publisher->builder);
    for (uint64_t number = action->first; number <= action->last; number++) {
        const enum status status =
            table_builder_add(publisher->builder, number, ring_at(ring, number));
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

// What the thread that changed last is doing, of those that do something.
static void describe_activity(struct publisher *publisher)
{
    static const char idle[] = "idle"; // nothing at all would mean: as before
    const struct runfile *file = publisher->monitor->file;
    uint64_t latest = 0;
    memcpy(publisher->activity, idle, sizeof idle);
    for (uint32_t i = 0; i < runfile_stream_count(file); i++) {
        const struct runfile_stream_header *header = runfile_stream(file, i).header;
        const uint64_t since =
            atomic_load_explicit(&header->activity_since_ns, memory_order_relaxed);
        char text[ACTIVITY_SIZE];
        if (since < latest || !*runfile_activity_text(text, sizeof text, file, i))
            continue;
        latest = since;
        memcpy(publisher->activity, text, sizeof text);
    }
}

// Leaves of the states that of one stream, where it is among them.
static void tell_one_stream(struct message_batch *batch, uint32_t stream)
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
    memcpy(batch->run, runfile_run(publisher->monitor->file)->uuid, sizeof batch->run);

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
    const bool whole = action->kind == DELIVERY_SEND_HEARTBEAT ||
                       now - publisher->states_sent_ns >= delivery_settings.heartbeat_ns;
    if (!whole)
        tell_one_stream(batch, action->stream);
    status = send_message(publisher, &message);
    if (status == STATUS_OK && whole)
        publisher->states_sent_ns = now;
    return status;
}

static enum status send_goodbye(struct publisher *publisher, const struct delivery_action *action)
{
    struct inferstat_monitor *monitor = publisher->monitor;
    struct message message = {.kind = MESSAGE_GOODBYE};
    struct message_goodbye *goodbye = &message.goodbye;
    *goodbye = (struct message_goodbye){
        .sequence = action->sequence,
        .ended_ns =
            atomic_load_explicit(&runfile_state(monitor->file)->ended_ns, memory_order_relaxed),
    };
    memcpy(goodbye->run, runfile_run(monitor->file)->uuid, sizeof goodbye->run);
    goodbye->streams = delivery_producer_streams(publisher->producer, &goodbye->stream_count);
    goodbye->drop_count = fill_drops(publisher);
    goodbye->drops = publisher->drops;
    return send_message(publisher, &message);
}

// ---- Steps ------------------------------------------------------------------------

// Whether there is a socket that this user may not write to.
static bool is_denied(const struct publisher *publisher)
{
    static const char scheme[] = "ipc://";
    const size_t size = sizeof scheme - 1;
    return strncmp(publisher->endpoint, scheme, size) == 0 &&
           faccessat(AT_FDCWD, publisher->endpoint + size, W_OK, AT_EACCESS) != 0 &&
           errno == EACCES;
}

static void note_contact(struct publisher *publisher, bool lost)
{
    const char *address = runfile_run(publisher->monitor->file)->collector;
    if (lost)
        monitor_log(publisher->monitor, INFERSTAT_LOG_WARNING,
                    "the collector at %s does not answer%s: records are kept in %s until it does, "
                    "as many as fit",
                    address,
                    is_denied(publisher) ? ": permission denied (its user or group may send to it)"
                                         : "",
                    runfile_path(publisher->monitor->file));
    else
        monitor_log(publisher->monitor, INFERSTAT_LOG_INFO,
                    publisher->had_contact ? "the collector at %s answers again"
                                           : "the collector at %s answers",
                    address);
    publisher->had_contact = publisher->had_contact || !lost;
}

static void act(struct publisher *publisher, const struct delivery_action *action)
{
    enum status status = STATUS_OK;
    switch (action->kind) {
    case DELIVERY_SEND_HELLO:
        status = send_hello(publisher);
        break;
    case DELIVERY_SEND_BATCH:
    case DELIVERY_SEND_HEARTBEAT:
        status = send_batch(publisher, action);
        break;
    case DELIVERY_SEND_GOODBYE:
        status = send_goodbye(publisher, action);
        break;
    case DELIVERY_SPOOL: // none is asked for yet
        break;
    case DELIVERY_FREE:
        ring_release(runfile_stream(publisher->monitor->file, action->stream).ring, action->last);
        break;
    case DELIVERY_LOST_CONTACT:
    case DELIVERY_CONTACT:
        note_contact(publisher, action->kind == DELIVERY_LOST_CONTACT);
        break;
    case DELIVERY_CLOSED:
        publisher->finished = true;
        break;
    }
    if (status != STATUS_OK)
        delivery_producer_unsent(publisher->producer, action, clock_monotonic_ns());
}

// Streams first and then names, so that the names of every record told are there.
static void tell_news(struct publisher *publisher)
{
    struct inferstat_monitor *monitor = publisher->monitor;
    const uint32_t count = runfile_stream_count(monitor->file);
    for (uint32_t i = 0; i < count; i++) {
        const struct ring *ring = runfile_stream(monitor->file, i).ring;
        struct delivery_stream state = {
            .stream = i, .produced = ring_produced(ring), .unnumbered = ring_dropped(ring)};
        // Threads without a stream have their losses counted with the first one.
        if (i == 0)
            state.unnumbered += atomic_load_explicit(&runfile_state(monitor->file)->streamless,
                                                     memory_order_relaxed);
        // There are never more than DELIVERY_STREAMS_MAX; out of memory, what was not
        // told now is told with the next step, and in order.
        if (delivery_producer_stream(publisher->producer, &state, ring_released(ring)) != STATUS_OK)
            break;
    }
    delivery_producer_names(publisher->producer, names_count(monitor->names));
}

void publisher_step(struct publisher *publisher)
{
    receive_all(publisher);
    tell_news(publisher);
    describe_activity(publisher);
    struct delivery_action action;
    while (!publisher->finished &&
           delivery_producer_next(publisher->producer, clock_monotonic_ns(), &action))
        act(publisher, &action);
    atomic_store_explicit(&publisher->acknowledged,
                          delivery_producer_acknowledged(publisher->producer),
                          memory_order_relaxed);
}

void publisher_finish(struct publisher *publisher)
{
    delivery_producer_close(publisher->producer);
}

bool publisher_is_finished(const struct publisher *publisher)
{
    return publisher->finished;
}

uint64_t publisher_acknowledged(const struct publisher *publisher)
{
    return atomic_load_explicit(&publisher->acknowledged, memory_order_relaxed);
}
