#include "common/monitor/delivery/publisher.h"

#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "common/monitor/delivery/publisher_parts.h"
#include "common/sys/clock.h"

enum {
    BATCH_RECORDS = 1024,
    REFUSALS_LOGGED_MAX = 20, // per run; the collector's ledger has all
    BUSY_PART = 8,            // busy: a ring gets 1/8 of its capacity between two polls
};

static const uint64_t poll_ns = UINT64_C(25000000); // between two polls of the rings
static const uint64_t busy_poll_ns = UINT64_C(2000000);

static const struct delivery_config delivery_settings = {
    .batch_records = BATCH_RECORDS,
    .resend_after_ns = UINT64_C(1000000000),
    .resend_max_ns = UINT64_C(2000000000),
    .heartbeat_ns = PUBLISHER_HEARTBEAT_NS,
};

// With a spool: records that still fit the rings are spooled too once the collector has
// been unreachable for `spool_after_ns`, and at this interval from then on; a failed
// append is retried after `spool_retry_ns`.
static const uint64_t spool_after_ns = UINT64_C(2000000000);
static const uint64_t spool_retry_ns = UINT64_C(1000000000);

// ---- Opening and closing --------------------------------------------------------

static enum status make_producer(struct publisher *publisher)
{
    const struct publisher_settings *settings = &publisher->settings;
    struct delivery_config config = delivery_settings;
    config.replay = settings->replay;
    // The records of a dead run stay where they are: they are in files already.
    if (settings->spool && !settings->replay) {
        config.spool_after_ns = spool_after_ns;
        config.spool_retry_ns = spool_retry_ns;
        config.ring_records = ring_capacity(runfile_stream(settings->file, 0).ring);
    }
    enum status status = delivery_producer_new(&publisher->producer, &config);
    if (status == STATUS_OK)
        status = table_builder_new(&publisher->builder);
    return status;
}

enum status publisher_open(struct publisher **out, const struct publisher_settings *settings,
                           struct error *err)
{
    struct publisher *publisher = calloc(1, sizeof *publisher);
    if (!publisher)
        return error_no_memory(err, "publisher");
    publisher->settings = *settings;

    enum status status = make_producer(publisher);
    if (status != STATUS_OK)
        (void)error_set(err, status, "publisher: %s", status_text(status));
    if (status == STATUS_OK)
        status = uplink_open(&publisher->uplink, settings->address, settings->trust,
                             &publisher->settings.log, err);
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
    uplink_close(publisher->uplink);
    table_builder_free(publisher->builder);
    delivery_producer_free(publisher->producer);
    free(publisher->names);
    free(publisher);
}

// Most acknowledgements can wait for the next poll of the rings.  The one that answers the
// states of all streams is received immediately: its round trip bounds the error of the
// clock offset.
static bool answers_are_urgent(const struct publisher *publisher)
{
    return !publisher->state.has_contact || publisher->busy || publisher->ending ||
           publisher->settings.replay || publisher->answered_ns < publisher->states_sent_ns;
}

void publisher_wait(struct publisher *publisher, int wake_fd, int64_t timeout_ns)
{
    if (answers_are_urgent(publisher)) {
        struct wire_socket *socket = uplink_socket(publisher->uplink);
        uint32_t ready;
        wire_wait(&socket, 1, wake_fd, timeout_ns, &ready);
        return;
    }
    struct pollfd wake = {.fd = wake_fd, .events = POLLIN};
    const struct timespec timeout = clock_timespec((uint64_t)timeout_ns);
    (void)ppoll(&wake, 1, &timeout, NULL);
}

// ---- Where records lie ----------------------------------------------------------------

// A spool_visit.
static bool report_loss(void *context, const struct delivery_range *range)
{
    struct publisher *publisher = context;
    const char *path = spool_path(publisher->settings.spool);
    if (delivery_producer_lost(publisher->producer, range) != STATUS_OK)
        return false; // no room or memory: reported later
    if (range->reason == DELIVERY_SPOOL_FULL && !publisher->spool_full_told) {
        publisher->spool_full_told = true;
        log_sink_write(&publisher->settings.log, INFERSTAT_LOG_WARNING,
                       "the spool %s is full: its oldest records are dropped and counted", path);
    } else if (range->reason == DELIVERY_SPOOL_DAMAGED && !publisher->spool_damage_told) {
        publisher->spool_damage_told = true;
        log_sink_write(&publisher->settings.log, INFERSTAT_LOG_WARNING,
                       "the spool %s is damaged: records %" PRIu64 " to %" PRIu64
                       " of stream %" PRIu32 ", and perhaps others, cannot be read back",
                       path, range->first, range->last, range->stream);
    }
    return true;
}

// Reports the losses of the spool to the state machine if there are new ones.
static void report_losses(struct publisher *publisher)
{
    struct spool *spool = publisher->settings.spool;
    if (!spool || spool_losses(spool) == publisher->losses_reported)
        return;
    const uint64_t losses = spool_losses(spool);
    if (spool_each_lost(spool, report_loss, publisher))
        publisher->losses_reported = losses;
}

// Handles a batch that could not be read: the spool reports damaged records; those that it
// does not hold were acknowledged and released before their process died.
static void drop_unreadable(struct publisher *publisher, const struct delivery_action *action)
{
    const struct spool *spool = publisher->settings.spool;
    report_losses(publisher);
    uint64_t first = action->first;
    while (first <= action->last && publisher_record(publisher, action->stream, first))
        first++;
    const uint64_t held = spool ? spool_next_held(spool, action->stream, first) : UINT64_MAX;
    if (first > action->last || held == first)
        return; // it can be read now, or another time
    const int64_t wall = clock_wall_ns();
    const struct delivery_range range = {
        .stream = action->stream,
        .first = first,
        .last = held < UINT64_MAX
                    ? held - 1
                    : ring_released(runfile_stream(publisher->settings.file, action->stream).ring),
        .reason = DELIVERY_ACKNOWLEDGED_ELSEWHERE,
        .since_ns = wall,
        .until_ns = wall,
    };
    // Without room it comes again with the next attempt.
    (void)!delivery_producer_lost(publisher->producer, &range);
}

static const struct record *get_record(const void *context, uint64_t number)
{
    struct ring *const *ring = context;
    return ring_at(*ring, number);
}

// Copies records of a ring to the spool and releases them.
static void spool_records(struct publisher *publisher, const struct delivery_action *action)
{
    struct runfile *file = publisher->settings.file;
    struct spool *spool = publisher->settings.spool;
    struct ring *ring = runfile_stream(file, action->stream).ring;
    struct error err = {.status = STATUS_OK};
    // From now on a replay after a crash must look for the spool.
    atomic_store_explicit(&runfile_state(file)->spooled, 1, memory_order_relaxed);
    const bool done = spool_append(spool, action->stream, action->first, action->last, get_record,
                                   &ring, &err) == STATUS_OK;
    delivery_producer_spooled(publisher->producer, action, done, clock_monotonic_ns());
    if (done)
        ring_release(ring, action->last);
    else if (!publisher->spool_failed)
        log_sink_write(&publisher->settings.log, INFERSTAT_LOG_WARNING,
                       "%s: records stay in %s, as many as fit", err.text, runfile_path(file));
    publisher->spool_failed = !done;
    report_losses(publisher);
}

static void free_records(struct publisher *publisher, const struct delivery_action *action)
{
    ring_release(runfile_stream(publisher->settings.file, action->stream).ring, action->last);
    if (publisher->settings.spool)
        spool_release(publisher->settings.spool, action->stream, action->last);
}

// ---- Input of the state machine -------------------------------------------------------

// The state of a stream.  Drops of threads without a ring are added to stream 0.
static struct delivery_stream stream_state(const struct publisher *publisher, uint32_t stream)
{
    struct runfile *file = publisher->settings.file;
    const struct ring *ring = runfile_stream(file, stream).ring;
    uint64_t no_room = 0;
    if (stream == 0)
        no_room = atomic_load_explicit(&runfile_state(file)->streamless, memory_order_relaxed);
    no_room = no_room < MESSAGE_NUMBER_MAX ? no_room : MESSAGE_NUMBER_MAX;
    const uint64_t lost = ring_dropped(ring) + no_room;
    return (struct delivery_stream){.stream = stream,
                                    .produced = ring_produced(ring),
                                    .unnumbered =
                                        lost < MESSAGE_NUMBER_MAX ? lost : MESSAGE_NUMBER_MAX,
                                    .no_room = no_room};
}

// Adds a stream of a dead run to the state machine: how far it was released, as far as known,
// which records only its spool holds (those in the ring are read from there), and which ones
// orphans_tidy has dropped.
static enum status add_dead_stream(struct publisher *publisher, const struct delivery_stream *state)
{
    const struct publisher_settings *settings = &publisher->settings;
    const struct runfile_stream stream = runfile_stream(settings->file, state->stream);
    const uint64_t in_spool = ring_released(stream.ring);
    uint64_t released = in_spool;
    if (settings->spool) {
        const struct spool_position position = spool_position(settings->spool, state->stream);
        if (position.spooled > 0 && position.released < in_spool)
            released = position.released;
    }
    const uint64_t given_up = atomic_load_explicit(&stream.header->given_up, memory_order_relaxed);
    const bool is_given_up = given_up > 0 && given_up <= in_spool;
    if (is_given_up && given_up - 1 < released)
        released = given_up - 1;
    const enum status status = delivery_producer_stream(publisher->producer, state, released);
    if (status != STATUS_OK)
        return status;
    delivery_producer_spool_holds(publisher->producer, state->stream, in_spool);
    const int64_t alive =
        atomic_load_explicit(&runfile_state(settings->file)->alive_ns, memory_order_relaxed);
    const struct delivery_range range = {.stream = state->stream,
                                         .first = given_up,
                                         .last = in_spool,
                                         .reason = DELIVERY_SPOOL_FULL,
                                         .since_ns = alive,
                                         .until_ns = alive};
    if (is_given_up) // without memory they are dropped for another reason: drop_unreadable
        (void)!delivery_producer_lost(publisher->producer, &range);
    return STATUS_OK;
}

// Whether a thread has recorded so much since the last poll that its ring may soon be
// full.  For a dead run the state machine may know streams from the collector that the
// file lacks.
static bool is_busy(const struct publisher *publisher)
{
    size_t told;
    const struct delivery_stream *states = delivery_producer_streams(publisher->producer, &told);
    const uint32_t count = runfile_stream_count(publisher->settings.file);
    for (uint32_t i = 0; i < told && i < count; i++) {
        const struct ring *ring = runfile_stream(publisher->settings.file, i).ring;
        if (ring_produced(ring) - states[i].produced >= ring_capacity(ring) / BUSY_PART)
            return true;
    }
    return false;
}

static uint64_t poll_pause(const struct publisher *publisher)
{
    return publisher->busy || publisher->ending || publisher->settings.replay ? busy_poll_ns
                                                                              : poll_ns;
}

// The number of records of their present sizes that fit the ring: some take two slots.
static uint32_t ring_fits(const struct ring *ring)
{
    const uint64_t records = ring_produced(ring) - ring_released(ring);
    const uint64_t slots = ring_used_slots(ring);
    return slots > records ? (uint32_t)(ring_capacity(ring) * records / slots)
                           : ring_capacity(ring);
}

// Polls the rings: passes new records to the state machine, then the names, so that the names
// of all these records are included.
static void poll_rings(struct publisher *publisher)
{
    const struct publisher_settings *settings = &publisher->settings;
    const uint32_t count = runfile_stream_count(settings->file);
    size_t told;
    (void)delivery_producer_streams(publisher->producer, &told);
    publisher->busy = !settings->replay && is_busy(publisher);
    publisher->poll_at_ns = clock_monotonic_ns() + poll_pause(publisher);
    for (uint32_t i = 0; i < count; i++) {
        const struct ring *ring = runfile_stream(settings->file, i).ring;
        const struct delivery_stream state = stream_state(publisher, i);
        // Fails only when out of memory: the rest follows, in order, at the next poll.
        const enum status status =
            settings->replay && i >= told
                ? add_dead_stream(publisher, &state)
                : delivery_producer_stream(publisher->producer, &state, ring_released(ring));
        if (status != STATUS_OK)
            break;
        delivery_producer_ring_fits(publisher->producer, i, ring_fits(ring));
    }
    delivery_producer_names(publisher->producer, names_count(runfile_names(settings->file)));
    report_losses(publisher);
}

// ---- Messages of the collector --------------------------------------------------

static void note_error(struct publisher *publisher, const struct wire_bytes *error)
{
    const size_t room = sizeof publisher->error - 1;
    const size_t size = error->size < room ? error->size : room;
    if (size == 0 ||
        (strlen(publisher->error) == size && memcmp(publisher->error, error->bytes, size) == 0))
        return;
    memcpy(publisher->error, error->bytes, size);
    publisher->error[size] = '\0';
    publisher->state.refused = true;
    log_sink_write(&publisher->settings.log, INFERSTAT_LOG_ERROR,
                   "the collector refuses this run: %s", publisher->error);
}

static void note_refused(struct publisher *publisher, const struct wire_refused *refused)
{
    if (publisher->refusals_logged++ >= REFUSALS_LOGGED_MAX)
        return;
    log_sink_write(&publisher->settings.log, INFERSTAT_LOG_ERROR,
                   "the collector refused records %" PRIu64 " to %" PRIu64 " of stream %" PRIu32
                   ": %.*s",
                   refused->first, refused->last, refused->stream, (int)refused->reason.size,
                   refused->reason.size ? refused->reason.bytes : "");
}

// Releases all records of a run of which the collector takes nothing more.
static void discard_all(struct publisher *publisher)
{
    const struct publisher_settings *settings = &publisher->settings;
    for (uint32_t i = 0; i < runfile_stream_count(settings->file); i++) {
        struct ring *ring = runfile_stream(settings->file, i).ring;
        const uint64_t produced = ring_produced(ring);
        ring_release(ring, produced);
        if (settings->spool)
            spool_release(settings->spool, i, produced);
    }
    publisher->poll_at_ns = clock_monotonic_ns() + poll_ns;
    publisher->state.finished = publisher->ending;
}

static void note_forgotten(struct publisher *publisher)
{
    if (!publisher->state.forgotten && !publisher->settings.replay)
        log_sink_write(&publisher->settings.log, INFERSTAT_LOG_ERROR,
                       "the collector has removed this run (inferstat forget): its records are "
                       "discarded from now on (start the process again to report)");
    publisher->state.forgotten = true;
}

static void on_ack(struct publisher *publisher, const struct message_ack *ack)
{
    static const unsigned char no_run[MESSAGE_RUN_SIZE];
    const struct runfile_run *run = runfile_run(publisher->settings.file);
    // A collector that could not decode the message does not know its run.
    if (memcmp(ack->run, no_run, sizeof no_run) == 0)
        note_error(publisher, &ack->error);
    if (memcmp(ack->run, run->uuid, sizeof run->uuid) != 0)
        return;
    if (ack->forgotten && ack->error.size > 0) {
        note_forgotten(publisher);
        return;
    }
    note_error(publisher, &ack->error);
    for (size_t i = 0; i < ack->refused_count; i++)
        note_refused(publisher, &ack->refused[i]);
    if (ack->error.size > 0)
        return;
    const uint64_t now = clock_monotonic_ns();
    const int64_t wall = clock_wall_ns();
    struct delivery_ack delivery = ack->delivery;
    delivery.protocol = ack->protocol;
    if (delivery_producer_ack(publisher->producer, &delivery, now, wall) == STATUS_OK) {
        publisher->answered_ns = now;
        clock_offset_add_sample(&publisher->clock, ack->echo_sent_ns, ack->sent_ns, wall, now);
    } else if (!publisher->unsound_logged) {
        publisher->unsound_logged = true;
        log_sink_write(&publisher->settings.log, INFERSTAT_LOG_WARNING,
                       "the collector acknowledged what was never sent: ignored");
    }
}

static void receive_all(struct publisher *publisher)
{
    struct wire_socket *socket = uplink_socket(publisher->uplink);
    struct wire_bytes frame;
    while (socket && wire_receive(socket, &frame) == STATUS_OK) {
        struct message message;
        if (codec_decode(&message, frame.bytes, frame.size, NULL) == STATUS_OK) {
            uplink_heard(publisher->uplink, clock_monotonic_ns());
            if (message.kind == MESSAGE_ACK)
                on_ack(publisher, &message.ack);
            message_free(&message);
        } else {
            wire_count_garbage(socket); // too much of it closes the connection
        }
    }
}

// ---- Steps ------------------------------------------------------------------------

static void note_contact(struct publisher *publisher, bool lost)
{
    const struct publisher_settings *settings = &publisher->settings;
    char address[ADDRESS_TEXT_SIZE];
    (void)address_text(address, settings->address);
    publisher->state.has_contact = !lost;
    if (lost)
        log_sink_write(&publisher->settings.log, INFERSTAT_LOG_WARNING,
                       "the collector at %s does not answer%s: records are kept in %s%s%s until it "
                       "does, as many as fit",
                       address, uplink_trouble(publisher->uplink), runfile_path(settings->file),
                       settings->spool ? " and in " : "",
                       settings->spool ? spool_path(settings->spool) : "");
    else
        log_sink_write(&publisher->settings.log, INFERSTAT_LOG_INFO,
                       publisher->had_contact ? "the collector at %s answers again"
                                              : "the collector at %s answers",
                       address);
    publisher->had_contact = publisher->had_contact || !lost;
}

static void act(struct publisher *publisher, const struct delivery_action *action)
{
    switch (action->kind) {
    case DELIVERY_SEND_HELLO:
    case DELIVERY_SEND_BATCH:
    case DELIVERY_SEND_HEARTBEAT:
    case DELIVERY_SEND_GOODBYE: {
        const enum status status = publisher_send(publisher, action);
        if (status == STATUS_OK)
            return;
        delivery_producer_unsent(publisher->producer, action, clock_monotonic_ns());
        if (status == STATUS_NO_DATA)
            drop_unreadable(publisher, action);
        return;
    }
    case DELIVERY_SPOOL:
        spool_records(publisher, action);
        return;
    case DELIVERY_FREE:
        free_records(publisher, action);
        return;
    case DELIVERY_LOST_CONTACT:
    case DELIVERY_CONTACT:
        note_contact(publisher, action->kind == DELIVERY_LOST_CONTACT);
        return;
    case DELIVERY_CLOSED:
        publisher->state.finished = true;
        return;
    }
}

// Stores the time in the run file; a replay uses it as the end of a killed run.
static void note_alive(const struct publisher *publisher)
{
    struct runfile_state *state = runfile_state(publisher->settings.file);
    const int64_t wall = clock_wall_ns();
    atomic_store_explicit(&state->alive_ns, wall, memory_order_relaxed);
    atomic_store_explicit(&state->wall_offset_ns, wall - (int64_t)clock_monotonic_ns(),
                          memory_order_relaxed);
}

// Describes the activity of the thread that changed last and is not idle.
static void describe_activity(struct publisher *publisher)
{
    static const char idle[] = "idle"; // an empty text would mean: unchanged
    const struct runfile *file = publisher->settings.file;
    uint64_t latest = 0;
    memcpy(publisher->activity, idle, sizeof idle);
    for (uint32_t i = 0; i < runfile_stream_count(file); i++) {
        const struct runfile_stream_header *header = runfile_stream(file, i).header;
        const uint64_t since =
            atomic_load_explicit(&header->activity_since_ns, memory_order_relaxed);
        char text[PUBLISHER_ACTIVITY_SIZE];
        if (since < latest || !*runfile_activity_text(text, sizeof text, file, i))
            continue;
        latest = since;
        memcpy(publisher->activity, text, sizeof text);
    }
}

static void act_on_all(struct publisher *publisher)
{
    struct delivery_action action;
    while (!publisher->state.finished &&
           delivery_producer_next(publisher->producer, clock_monotonic_ns(), &action))
        act(publisher, &action);
    atomic_store_explicit(&publisher->acknowledged,
                          delivery_producer_acknowledged(publisher->producer),
                          memory_order_relaxed);
}

static void step(struct publisher *publisher)
{
    if (uplink_renew(publisher->uplink, clock_monotonic_ns()))
        delivery_producer_reconnect(publisher->producer);
    // An acknowledgement does not trigger a poll: otherwise the few records since would form
    // a batch whose acknowledgement triggers the next poll.
    if (poll_pause(publisher) < poll_ns || clock_monotonic_ns() >= publisher->poll_at_ns) {
        poll_rings(publisher);
        if (!publisher->settings.replay) {
            note_alive(publisher);
            describe_activity(publisher);
        }
    }
    act_on_all(publisher);
}

const struct publisher_state *publisher_step(struct publisher *publisher)
{
    receive_all(publisher);
    if (publisher->state.forgotten)
        discard_all(publisher);
    else
        step(publisher);
    const uint64_t now = clock_monotonic_ns();
    publisher->state.pause_ns = publisher->poll_at_ns > now ? publisher->poll_at_ns - now : 0;
    return &publisher->state;
}

void publisher_finish(struct publisher *publisher)
{
    publisher->ending = true;
    delivery_producer_close(publisher->producer);
}

uint64_t publisher_spool_all(struct publisher *publisher)
{
    if (publisher->state.forgotten) {
        discard_all(publisher);
        return 0;
    }
    poll_rings(publisher);
    if (publisher->settings.spool) {
        delivery_producer_spool_all(publisher->producer);
        act_on_all(publisher);
    }
    return runfile_counts(publisher->settings.file).unreleased;
}

const char *publisher_trouble(const struct publisher *publisher)
{
    if (*publisher->error)
        return publisher->error;
    const char *trouble = uplink_trouble(publisher->uplink);
    return *trouble ? trouble + 2 : trouble; // after the colon
}

uint64_t publisher_acknowledged(const struct publisher *publisher)
{
    return atomic_load_explicit(&publisher->acknowledged, memory_order_relaxed);
}
