#include "tests/support/fake_collector.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/sys/clock.h"
#include "common/wire/codec.h"
#include "common/wire/listener/listener.h"

enum { CREDIT = 20000, NAMES_ROOM = 65536 };

struct fake_collector {
    pthread_t thread;
    char endpoint[FAKE_TEXT_SIZE + 16];
    struct listener *listener;
    _Atomic bool stopping, listening;

    pthread_mutex_t lock; // guards what follows
    bool mute, forgetful, baffled;
    uint32_t protocol;
    int64_t ahead_ns;
    bool claims;
    uint32_t claimed_stream;
    uint64_t claimed_last;
    bool refuse;
    uint32_t refuse_stream;
    uint64_t refuse_number;
    unsigned char store[16];
    unsigned char run[MESSAGE_RUN_SIZE];
    struct fake_state state;
    bool known[FAKE_STREAMS_MAX];
    uint64_t next[FAKE_STREAMS_MAX];
    uint64_t unnumbered[FAKE_STREAMS_MAX];
    char **names;
    struct fake_row *rows;
    size_t row_count, row_room;
};

static void die(const char *what)
{
    (void)fprintf(stderr, "fake collector: %s\n", what);
    abort();
}

static void fault(struct fake_collector *collector, const char *text)
{
    if (collector->state.faults++ == 0)
        (void)snprintf(collector->state.fault, sizeof collector->state.fault, "%.200s", text);
}

static void copy_bytes(char out[FAKE_TEXT_SIZE], const struct wire_bytes *from)
{
    const size_t size = from->size < FAKE_TEXT_SIZE - 1 ? from->size : FAKE_TEXT_SIZE - 1;
    if (size)
        memcpy(out, from->bytes, size);
    out[size] = '\0';
}

static void forget_run(struct fake_collector *collector)
{
    for (uint32_t i = 0; i < NAMES_ROOM; i++) {
        free(collector->names[i]);
        collector->names[i] = NULL;
    }
    memset(collector->known, 0, sizeof collector->known);
    memset(collector->unnumbered, 0, sizeof collector->unnumbered);
    for (uint32_t i = 0; i < FAKE_STREAMS_MAX; i++)
        collector->next[i] = 1;
    collector->row_count = 0;
    collector->state.names = 0;
    collector->state.records = 0;
    collector->state.closed = false;
    memset(collector->state.dropped, 0, sizeof collector->state.dropped);
    collector->state.killed = false;
    collector->state.deaths[0] = '\0';
}

static void take_value(struct fake_collector *collector, struct fake_value *value,
                       const struct wire_column *column, enum column_type type, size_t row)
{
    if (type == COLUMN_REAL) {
        value->r = column->reals[row];
    } else if (type == COLUMN_NAME) {
        const uint32_t name = column->names[row];
        const char *text = name < NAMES_ROOM ? collector->names[name] : NULL;
        if (!text)
            fault(collector, "a record refers to a name that was never sent");
        value->i = name;
        (void)snprintf(value->text, sizeof value->text, "%s", text ? text : "");
        value->size = strlen(value->text);
    } else if (type == COLUMN_TEXT || type == COLUMN_BLOB) {
        value->size = column->texts[row].size;
        copy_bytes(value->text, &column->texts[row]);
    } else {
        value->i = column->ints[row];
    }
}

static struct fake_row *add_row(struct fake_collector *collector)
{
    if (collector->row_count == collector->row_room) {
        collector->row_room = collector->row_room ? collector->row_room * 2 : 64;
        collector->rows = realloc(collector->rows, collector->row_room * sizeof *collector->rows);
        if (!collector->rows)
            die("out of memory");
    }
    struct fake_row *row = &collector->rows[collector->row_count++];
    memset(row, 0, sizeof *row);
    return row;
}

static void take_row(struct fake_collector *collector, const struct message_batch *batch,
                     const struct wire_table *table, size_t index)
{
    if (table->numbers[index] < collector->next[batch->stream]) {
        collector->state.duplicates++;
        return;
    }
    collector->state.records++;
    if (collector->forgetful)
        return;
    struct fake_row *row = add_row(collector);
    row->kind = table->kind;
    row->stream = batch->stream;
    row->number = table->numbers[index];
    row->started_ns = table->started_ns[index];
    const struct record_kind_info *info = record_kind_info(table->kind);
    for (size_t i = 0; i < table->column_count; i++) {
        const struct wire_column *column = &table->columns[i];
        if (column->present && !(column->present[index / 8] >> index % 8 & 1))
            continue;
        row->present |= UINT64_C(1) << column->index;
        take_value(collector, &row->values[column->index], column,
                   info->columns[column->index].type, index);
    }
}

// ---- Messages ---------------------------------------------------------------------

static void take_streams(struct fake_collector *collector, const struct delivery_stream *streams,
                         size_t count)
{
    collector->state.unnumbered = 0;
    for (size_t i = 0; i < count; i++) {
        if (streams[i].stream < FAKE_STREAMS_MAX)
            collector->unnumbered[streams[i].stream] = streams[i].unnumbered;
        if (streams[i].stream == 0)
            collector->state.no_room = streams[i].no_room;
    }
    for (uint32_t i = 0; i < FAKE_STREAMS_MAX; i++)
        collector->state.unnumbered += collector->unnumbered[i];
}

static void take_drops(struct fake_collector *collector, const struct wire_drop *drops,
                       size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct delivery_range range = drops[i].range;
        uint64_t *next = &collector->next[range.stream];
        collector->known[range.stream] = true;
        if (range.last < *next || range.first > *next)
            continue;
        collector->state.dropped[range.reason] += range.last - *next + 1;
        *next = range.last + 1;
    }
}

static void take_names(struct fake_collector *collector, const struct message_batch *batch)
{
    if (batch->name_count && batch->names_first > collector->state.names + 1)
        fault(collector, "names with a hole before them");
    for (size_t i = 0; i < batch->name_count; i++) {
        const uint32_t name = batch->names_first + (uint32_t)i;
        if (name >= NAMES_ROOM || collector->names[name])
            continue;
        char text[FAKE_TEXT_SIZE];
        copy_bytes(text, &batch->names[i]);
        collector->names[name] = strdup(text);
        if (name > collector->state.names)
            collector->state.names = name;
    }
}

// Returns whether the batch is refused.
static bool take_records(struct fake_collector *collector, const struct message_batch *batch)
{
    uint64_t *next = &collector->next[batch->stream];
    collector->known[batch->stream] = true;
    if (batch->first > *next)
        return false;
    const bool refused = collector->refuse && batch->stream == collector->refuse_stream &&
                         collector->refuse_number >= batch->first &&
                         collector->refuse_number <= batch->last;
    if (refused)
        collector->refuse = false;
    else if (batch->last < *next)
        collector->state.duplicates += batch->last - batch->first + 1;
    else
        for (size_t i = 0; i < batch->table_count; i++)
            for (size_t row = 0; row < batch->tables[i].count; row++)
                take_row(collector, batch, &batch->tables[i], row);
    if (batch->last + 1 > *next)
        *next = batch->last + 1;
    return refused;
}

struct answer {
    struct message message;
    struct delivery_next next[FAKE_STREAMS_MAX];
    struct wire_refused refused;
};

static void begin_answer(struct fake_collector *collector, struct answer *answer, uint64_t sequence)
{
    struct message_ack *ack = &answer->message.ack;
    answer->message = (struct message){.kind = MESSAGE_ACK};
    *ack = (struct message_ack){.protocol = collector->protocol,
                                .sent_ns = clock_wall_ns() + collector->ahead_ns};
    memcpy(ack->run, collector->run, sizeof ack->run);
    memcpy(ack->delivery.store, collector->store, sizeof collector->store);
    ack->delivery.sequence = sequence;
    ack->delivery.credit = CREDIT;
    ack->delivery.names_known = collector->state.names;
    size_t count = 0;
    for (uint32_t i = 0; i < FAKE_STREAMS_MAX; i++)
        if (collector->known[i])
            answer->next[count++] = (struct delivery_next){.stream = i, .next = collector->next[i]};
    ack->delivery.next = answer->next;
    ack->delivery.next_count = count;
}

static void take_hello(struct fake_collector *collector, const struct message_hello *hello,
                       struct answer *answer)
{
    collector->state.hellos++;
    if (collector->baffled) {
        static const char text[] = "Hello: not understood";
        begin_answer(collector, answer, 0);
        memset(answer->message.ack.run, 0, sizeof answer->message.ack.run);
        answer->message.ack.error = (struct wire_bytes){.size = sizeof text - 1, .bytes = text};
        return;
    }
    if (memcmp(collector->run, hello->run, sizeof collector->run) != 0)
        forget_run(collector);
    memcpy(collector->run, hello->run, sizeof collector->run);
    if (collector->claims &&
        collector->next[collector->claimed_stream] <= collector->claimed_last) {
        collector->known[collector->claimed_stream] = true;
        collector->next[collector->claimed_stream] = collector->claimed_last + 1;
    }
    collector->state.replay = hello->replay;
    collector->state.device_count = hello->device_count;
    copy_bytes(collector->state.host, &hello->host);
    copy_bytes(collector->state.program, &hello->worker_version);
    take_streams(collector, hello->streams, hello->stream_count);
    begin_answer(collector, answer, 0);
}

// It speaks with one run at a time.
static void want_hello(struct fake_collector *collector, const unsigned char run[MESSAGE_RUN_SIZE],
                       uint64_t sequence, struct answer *answer)
{
    begin_answer(collector, answer, sequence);
    memcpy(answer->message.ack.run, run, MESSAGE_RUN_SIZE);
    answer->message.ack.delivery.hello_wanted = true;
    answer->message.ack.delivery.next_count = 0;
}

static void take_batch(struct fake_collector *collector, const struct message_batch *batch,
                       struct answer *answer)
{
    if (batch->fault)
        fault(collector, batch->fault);
    if (memcmp(collector->run, batch->run, sizeof collector->run) != 0) {
        want_hello(collector, batch->run, batch->sequence, answer);
        return;
    }
    if (batch->clock_error_ns > 0) {
        collector->state.clock_offset_ns = batch->clock_offset_ns;
        collector->state.clock_error_ns = batch->clock_error_ns;
    }
    if (batch->activity.size)
        copy_bytes(collector->state.activity, &batch->activity);
    take_streams(collector, batch->streams, batch->stream_count);
    take_drops(collector, batch->drops, batch->drop_count);
    take_names(collector, batch);
    bool refused = false;
    if (batch->first) {
        collector->state.batches++;
        collector->state.whole_batches += batch->stream_count > 1;
        refused = take_records(collector, batch);
    } else {
        collector->state.heartbeats++;
    }
    begin_answer(collector, answer, batch->sequence);
    answer->message.ack.echo_sent_ns = batch->sent_ns;
    if (!refused)
        return;
    answer->refused = (struct wire_refused){.stream = batch->stream,
                                            .first = batch->first,
                                            .last = batch->last,
                                            .reason = {.size = 10, .bytes = "not liked."}};
    answer->message.ack.refused = &answer->refused;
    answer->message.ack.refused_count = 1;
}

static void take_deaths(struct fake_state *state, const struct message_goodbye *goodbye)
{
    state->deaths[0] = '\0';
    for (size_t i = 0; i < goodbye->activity_count; i++) {
        const struct wire_activity *activity = &goodbye->activities[i];
        const size_t used = strlen(state->deaths);
        (void)snprintf(state->deaths + used, sizeof state->deaths - used, "%s%" PRIu32 ": %.*s",
                       used ? "; " : "", activity->stream, (int)activity->text.size,
                       activity->text.bytes);
    }
}

static void take_goodbye(struct fake_collector *collector, const struct message_goodbye *goodbye,
                         struct answer *answer)
{
    if (memcmp(collector->run, goodbye->run, sizeof collector->run) != 0) {
        want_hello(collector, goodbye->run, goodbye->sequence, answer);
        return;
    }
    collector->state.goodbyes++;
    if (goodbye->ended_ns <= 0)
        fault(collector, "a goodbye without a time");
    collector->state.ended_ns = goodbye->ended_ns;
    collector->state.killed = goodbye->killed;
    take_deaths(&collector->state, goodbye);
    take_streams(collector, goodbye->streams, goodbye->stream_count);
    take_drops(collector, goodbye->drops, goodbye->drop_count);
    bool complete = true;
    for (size_t i = 0; i < goodbye->stream_count; i++)
        complete =
            complete && collector->next[goodbye->streams[i].stream] > goodbye->streams[i].produced;
    collector->state.closed = complete;
    begin_answer(collector, answer, goodbye->sequence);
    answer->message.ack.delivery.closed = complete;
}

static bool take_message(struct fake_collector *collector, const struct message *message,
                         struct answer *answer)
{
    switch ((int)message->kind) {
    case MESSAGE_HELLO:
        take_hello(collector, &message->hello, answer);
        return true;
    case MESSAGE_BATCH:
        take_batch(collector, &message->batch, answer);
        return true;
    case MESSAGE_GOODBYE:
        take_goodbye(collector, &message->goodbye, answer);
        return true;
    default:
        fault(collector, "a message that is not a producer's");
        return false;
    }
}

static void take_frame(struct fake_collector *collector, struct port *socket,
                       const struct wire_frame *frame)
{
    struct message message;
    struct error err;
    struct answer *answer = calloc(1, sizeof *answer);
    if (!answer)
        die("out of memory");
    (void)pthread_mutex_lock(&collector->lock);
    bool answering = false;
    if (collector->mute) {
        // As if it had never come.
    } else if (codec_decode(&message, frame->bytes, frame->size, &err) != STATUS_OK) {
        fault(collector, err.text);
    } else {
        answering = take_message(collector, &message, answer);
        message_free(&message);
    }
    (void)pthread_mutex_unlock(&collector->lock);
    unsigned char *bytes;
    size_t size;
    if (answering && codec_encode(&bytes, &size, &answer->message, &err) == STATUS_OK) {
        (void)!port_send(socket, &frame->route, bytes, size);
        free(bytes);
    }
    free(answer);
}

static void *run(void *context)
{
    struct fake_collector *collector = context;
    struct port *socket;
    struct error err;
    const struct wire_listen listen = {.owner_only = true};
    if (port_open(&socket, collector->listener, collector->endpoint, &listen, &err) != STATUS_OK)
        die(err.text);
    atomic_store(&collector->listening, true);
    while (!atomic_load(&collector->stopping)) {
        uint32_t ready;
        port_wait(&socket, 1, -1, 5000000, &ready);
        struct wire_frame frame;
        while (port_receive(socket, &frame) == STATUS_OK) {
            take_frame(collector, socket, &frame);
            port_release(&frame);
        }
    }
    port_close(socket);
    return NULL;
}

// ---- For the test ---------------------------------------------------------------

struct fake_collector *fake_collector_open(const char *folder)
{
    struct fake_collector *collector = calloc(1, sizeof *collector);
    struct error err;
    if (!collector || !(collector->names = calloc(NAMES_ROOM, sizeof *collector->names)))
        die("out of memory");
    (void)snprintf(collector->endpoint, sizeof collector->endpoint, "ipc://%s/ingest", folder);
    (void)pthread_mutex_init(&collector->lock, NULL);
    memset(collector->store, 0x5a, sizeof collector->store);
    collector->protocol = MESSAGE_PROTOCOL;
    forget_run(collector);
    if (listener_new(&collector->listener, &err) != STATUS_OK)
        die(err.text);
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&collector->thread, NULL, run, collector) != 0)
        die("no thread");
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    while (!atomic_load(&collector->listening))
        (void)usleep(1000);
    return collector;
}

void fake_collector_close(struct fake_collector *collector)
{
    if (!collector)
        return;
    atomic_store(&collector->stopping, true);
    (void)pthread_join(collector->thread, NULL);
    listener_free(collector->listener);
    forget_run(collector);
    free(collector->names);
    free(collector->rows);
    (void)pthread_mutex_destroy(&collector->lock);
    free(collector);
}

#define FAKE_SETTER(name, type, member)                                                            \
    void name(struct fake_collector *collector, type member)                                       \
    {                                                                                              \
        (void)pthread_mutex_lock(&collector->lock);                                                \
        collector->member = member;                                                                \
        (void)pthread_mutex_unlock(&collector->lock);                                              \
    }

FAKE_SETTER(fake_collector_set_mute, bool, mute)
FAKE_SETTER(fake_collector_set_baffled, bool, baffled)
FAKE_SETTER(fake_collector_set_forgetful, bool, forgetful)
FAKE_SETTER(fake_collector_set_protocol, uint32_t, protocol)
FAKE_SETTER(fake_collector_set_clock, int64_t, ahead_ns)

void fake_collector_refuse(struct fake_collector *collector, uint32_t stream, uint64_t number)
{
    (void)pthread_mutex_lock(&collector->lock);
    collector->refuse = true;
    collector->refuse_stream = stream;
    collector->refuse_number = number;
    (void)pthread_mutex_unlock(&collector->lock);
}

void fake_collector_claim(struct fake_collector *collector, uint32_t stream, uint64_t last)
{
    (void)pthread_mutex_lock(&collector->lock);
    collector->claims = true;
    collector->claimed_stream = stream;
    collector->claimed_last = last;
    (void)pthread_mutex_unlock(&collector->lock);
}

void fake_collector_swap_store(struct fake_collector *collector)
{
    (void)pthread_mutex_lock(&collector->lock);
    forget_run(collector);
    memset(collector->run, 0, sizeof collector->run);
    collector->store[0]++;
    (void)pthread_mutex_unlock(&collector->lock);
}

void fake_collector_state(struct fake_collector *collector, struct fake_state *state)
{
    (void)pthread_mutex_lock(&collector->lock);
    *state = collector->state;
    (void)pthread_mutex_unlock(&collector->lock);
}

bool fake_collector_wait(struct fake_collector *collector, uint64_t count)
{
    const uint64_t deadline = clock_monotonic_ns() + UINT64_C(10000000000);
    struct fake_state state;
    do {
        fake_collector_state(collector, &state);
        if (state.records >= count)
            return true;
        (void)usleep(2000);
    } while (clock_monotonic_ns() < deadline);
    return false;
}

unsigned fake_collector_count(struct fake_collector *collector, enum record_kind kind)
{
    unsigned count = 0;
    (void)pthread_mutex_lock(&collector->lock);
    for (size_t i = 0; i < collector->row_count; i++)
        count += collector->rows[i].kind == kind;
    (void)pthread_mutex_unlock(&collector->lock);
    return count;
}

bool fake_collector_row(struct fake_collector *collector, enum record_kind kind, unsigned index,
                        struct fake_row *row)
{
    bool found = false;
    (void)pthread_mutex_lock(&collector->lock);
    for (size_t i = 0; i < collector->row_count && !found; i++) {
        if (collector->rows[i].kind != kind || index-- > 0)
            continue;
        *row = collector->rows[i];
        found = true;
    }
    (void)pthread_mutex_unlock(&collector->lock);
    return found;
}
