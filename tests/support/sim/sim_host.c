// The host: a run with its rings, and the process that publishes or replays it, as
// the publisher drives the machine.  The process can end between any two things.
#include <string.h>

#include "tests/support/sim/sim.h"

uint16_t sim_content(uint32_t stream, uint64_t number)
{
    return (uint16_t)(stream << 12 | number);
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

// ---- Beginning and end -------------------------------------------------------------------

static void ring_release(struct sim_run *run, uint32_t stream, uint64_t last)
{
    last = min_u64(last, run->produced[stream]);
    run->ring_released[stream] = max_u64(run->ring_released[stream], last);
}

static void give_up(struct sim *sim, const struct delivery_range *range)
{
    sim_check(sim, delivery_producer_lost(sim->process.producer, range) == STATUS_OK,
              "a loss is taken");
    sim_set_remove(&sim->process.flying[range->stream], range->first, range->last);
}

static void tell_losses(struct sim *sim)
{
    struct delivery_range range;
    while (sim->run.has_spool && sim_spool_next_lost(sim, &range))
        if (sim->plant != SIM_PLANT_EVICTION_UNTOLD)
            give_up(sim, &range);
}

// A stream of a dead run.  What lies in the spool and in the ring too is taken from
// the ring: a process may have ended between writing one and releasing the other.
static void adopt_stream(struct sim *sim, uint32_t stream)
{
    struct sim_run *run = &sim->run;
    const struct sim_spool *spool = &run->spool;
    if (!run->has_rings)
        run->ring_released[stream] = run->produced[stream] = spool->spooled[stream];
    uint64_t released = run->ring_released[stream];
    if (spool->spooled[stream] > 0)
        released = min_u64(released, spool->released[stream]);
    if (sim->plant == SIM_PLANT_RING_FORGOTTEN)
        run->produced[stream] = run->ring_released[stream];
    const struct delivery_stream state = {
        .stream = stream, .produced = run->produced[stream], .unnumbered = run->unnumbered[stream]};
    if (run->produced[stream] == 0)
        return;
    sim_check(sim, delivery_producer_stream(sim->process.producer, &state, released) == STATUS_OK,
              "a stream is taken over");
    delivery_producer_spool_holds(sim->process.producer, stream, run->ring_released[stream]);
}

// In another order, as if the files of the spool were not sorted.
static void plant_order(struct sim *sim)
{
    struct sim_spool *spool = &sim->run.spool;
    for (size_t i = 0; i + 1 < spool->count; i++) {
        struct sim_entry *a = &spool->entries[i], *b = &spool->entries[i + 1];
        if (a->stream != b->stream || a->last - a->first != b->last - b->first)
            continue;
        uint16_t contents[SIM_BATCH];
        memcpy(contents, a->contents, sizeof contents);
        memcpy(a->contents, b->contents, sizeof contents);
        memcpy(b->contents, contents, sizeof contents);
    }
}

static void adopt(struct sim *sim)
{
    if (sim->run.has_spool)
        sim_spool_attach(sim);
    if (sim->plant == SIM_PLANT_REPLAY_ORDER)
        plant_order(sim);
    for (uint32_t i = 0; i < SIM_STREAMS; i++)
        adopt_stream(sim, i);
    if (!sim->run.has_rings)
        sim->run.names = sim->run.spool.names;
    delivery_producer_names(sim->process.producer, sim->run.names);
    tell_losses(sim);
    delivery_producer_close(sim->process.producer);
    sim->process.closing = true;
}

void sim_process_start(struct sim *sim, bool replays)
{
    struct sim_process *process = &sim->process;
    sim_trace(sim, "process: starts%s", replays ? " to replay" : "");
    sim->outcomes[SIM_OUTCOME_replays] += replays;
    *process = (struct sim_process){.alive = true, .replays = replays};
    process->first_connection = sim->network.connections + 1;
    process->old_version = !replays && !sim->run.has_spool && sim->faults[SIM_FAULT_upgrade] % 2;
    const struct delivery_config config = {
        .batch_records = sim->batch_records,
        .resend_after_ns = 25 * SIM_STEP_NS,
        .resend_max_ns = 100 * SIM_STEP_NS,
        .heartbeat_ns = 12 * SIM_STEP_NS,
        .replay = replays,
        .spool_after_ns = sim->run.has_spool && !replays ? 30 * SIM_STEP_NS : 0,
        .spool_retry_ns = 10 * SIM_STEP_NS,
        .ring_records = sim->run.ring_records};
    sim_check(sim, delivery_producer_new(&process->producer, &config) == STATUS_OK,
              "a machine is made");
    if (replays)
        adopt(sim);
}

void sim_process_end(struct sim *sim)
{
    if (!sim->process.alive)
        return;
    sim_trace(sim, "process: ends");
    sim->process.alive = false;
    sim_disconnect(sim);
    delivery_producer_free(sim->process.producer);
    sim->process.producer = NULL;
}

void sim_host_goes_down(struct sim *sim)
{
    struct sim_run *run = &sim->run;
    sim_trace(sim, "the host goes down");
    sim_process_end(sim);
    if (!run->has_rings)
        return;
    run->has_rings = false;
    run->host_was_down = true;
    for (uint32_t i = 0; i < SIM_STREAMS; i++) {
        struct sim_set held = {0};
        if (run->has_spool)
            sim_spool_held(sim, i, &held);
        if (run->produced[i])
            sim_set_add(&sim->perished[i], 1, run->produced[i]);
        sim_set_subtract(&sim->perished[i], &held);
    }
}

void sim_process_close(struct sim *sim)
{
    if (sim->process.closing)
        return;
    sim_trace(sim, "process: closes");
    sim->process.closing = true;
    sim->run.ended = true;
    delivery_producer_close(sim->process.producer);
}

// ---- Records -------------------------------------------------------------------------------

static void produce_one(struct sim *sim, uint32_t stream)
{
    struct sim_run *run = &sim->run;
    if (run->produced[stream] - run->ring_released[stream] == run->ring_records) {
        run->unnumbered[stream]++;
        sim->outcomes[SIM_OUTCOME_ring_full]++;
        return;
    }
    if (run->produced[stream] == SIM_NUMBERS)
        return;
    const uint64_t number = ++run->produced[stream];
    run->ring[stream][number % run->ring_records] = sim_content(stream, number);
    run->name_of[stream][number] = (uint8_t)sim_below(sim, run->names + 1);
    if (sim_chance(sim, sim->faults[SIM_FAULT_refuse]))
        sim_set_add(&run->poison[stream], number, number);
}

static void tell_news(struct sim *sim)
{
    const struct sim_run *run = &sim->run;
    for (uint32_t i = 0; i < run->stream_count; i++) {
        const struct delivery_stream state = {
            .stream = i, .produced = run->produced[i], .unnumbered = run->unnumbered[i]};
        sim_check(sim,
                  delivery_producer_stream(sim->process.producer, &state, run->ring_released[i]) ==
                      STATUS_OK,
                  "news are taken");
    }
    delivery_producer_names(sim->process.producer, run->names);
}

// What the engine does, whatever becomes of it.
void sim_produce(struct sim *sim)
{
    struct sim_run *run = &sim->run;
    if (!sim->process.alive || sim->process.replays || sim->process.closing)
        return;
    if (sim_chance(sim, 100) && run->names < SIM_NAMES)
        run->names += (uint32_t)(1 + sim_below(sim, 3));
    for (uint32_t i = 0; i < run->stream_count; i++)
        for (uint64_t burst = sim_chance(sim, 40) ? sim_below(sim, 40) : 0; burst > 0; burst--)
            produce_one(sim, i);
}

// What is read of the record; -1 where it cannot be.
static int read_record(struct sim *sim, uint32_t stream, uint64_t number)
{
    const struct sim_run *run = &sim->run;
    if (number > run->ring_released[stream])
        return run->ring[stream][number % run->ring_records];
    return run->has_spool ? sim_spool_at(sim, stream, number) : -1;
}

static unsigned count_flying(const struct sim_process *process)
{
    unsigned count = 0;
    for (size_t i = 0; i < SIM_STREAMS; i++)
        count += sim_set_count(&process->flying[i]);
    return count;
}

static void note_sent(struct sim *sim, const struct delivery_action *action)
{
    struct sim_process *process = &sim->process;
    if (action->kind == DELIVERY_SEND_HELLO)
        memset(process->flying, 0, sizeof process->flying);
    if (action->kind != DELIVERY_SEND_BATCH)
        return;
    sim_set_add(&process->flying[action->stream], action->first, action->last);
    process->last_sequence[action->stream] = action->sequence;
    sim_check(sim, count_flying(process) <= process->credit, "no more is under way than may be");
}

// What was answered is under way no longer, stored or lost.
static void note_answered(struct sim_process *process, const struct delivery_ack *ack)
{
    process->credit = ack->credit;
    for (size_t i = 0; i < ack->next_count; i++) {
        const struct delivery_next *next = &ack->next[i];
        if (next->next > 1)
            sim_set_remove(&process->flying[next->stream], 1, next->next - 1);
        if (ack->sequence >= process->last_sequence[next->stream])
            process->flying[next->stream] = (struct sim_set){0};
    }
}

// ---- Sending --------------------------------------------------------------------------------

static void fill(struct sim *sim, struct sim_packet *packet, const struct delivery_action *action)
{
    const struct sim_process *process = &sim->process;
    packet->message = *action;
    packet->replay = process->replays;
    packet->killed = process->replays && !sim->run.ended;
    packet->protocol = process->old_version ? 1 : DELIVERY_PROTOCOL;
    packet->sent_ns = (int64_t)sim->now_ns + sim->host_ahead_ns;
    packet->ahead_ns = sim->host_ahead_ns;
    size_t count;
    const struct delivery_stream *streams = delivery_producer_streams(process->producer, &count);
    sim_check(sim, count <= SIM_STREAMS, "no stream comes from nowhere");
    packet->stream_count = count;
    if (count)
        memcpy(packet->streams, streams, count * sizeof *streams);
    const struct delivery_range *drops = delivery_producer_drops(process->producer, &count);
    sim_check(sim, count <= DELIVERY_DROPS_MAX, "dropped ranges are bounded");
    packet->drop_count = action->kind == DELIVERY_SEND_HELLO ? 0 : min_u64(count, SIM_DROPS);
    if (packet->drop_count)
        memcpy(packet->drops, drops, packet->drop_count * sizeof *drops);
}

// What cannot be read and is not told as lost was acknowledged, and freed, before
// its process ended.
static void give_up_hole(struct sim *sim, uint32_t stream, uint64_t first, uint64_t last)
{
    tell_losses(sim);
    struct delivery_range hole = {
        .stream = stream, .first = first, .last = first, .reason = DELIVERY_ACKNOWLEDGED_ELSEWHERE};
    while (hole.last < last && read_record(sim, stream, hole.last + 1) < 0)
        hole.last++;
    tell_losses(sim);
    sim_trace(sim, "process: %u:%llu-%llu are not there", stream, (unsigned long long)first,
              (unsigned long long)hole.last);
    give_up(sim, &hole);
}

static bool fill_records(struct sim *sim, struct sim_packet *packet,
                         const struct delivery_action *action)
{
    for (uint64_t number = action->first; number <= action->last; number++) {
        const int content = read_record(sim, action->stream, number);
        if (content < 0) {
            give_up_hole(sim, action->stream, number, action->last);
            return false;
        }
        packet->contents[number - action->first] = (uint16_t)content;
    }
    return true;
}

// A machine that has greeted none but collectors of version 1 speaks their language.
static void check_reasons(struct sim *sim, const struct sim_packet *packet)
{
    const struct sim_process *process = &sim->process;
    for (size_t i = 0; i < packet->drop_count; i++)
        sim_check(sim,
                  process->heard_newer || !process->heard_older ||
                      packet->drops[i].reason != DELIVERY_SPOOL_DAMAGED,
                  "reasons are those of the collector's version");
}

static void check_batch(struct sim *sim, const struct delivery_action *action)
{
    const uint64_t records = action->last - action->first + 1;
    sim_check(sim,
              action->first <= action->last && action->stream < SIM_STREAMS &&
                  action->last <= sim->run.produced[action->stream],
              "what is sent was produced");
    sim_check(sim, records <= sim->batch_records, "a batch is not too large");
}

static void plant_held_drop(struct sim *sim, struct sim_packet *packet)
{
    if (sim->plant != SIM_PLANT_DROP_HELD || packet->message.kind != DELIVERY_SEND_BATCH ||
        !sim_chance(sim, 50))
        return;
    packet->drops[0] = (struct delivery_range){.stream = packet->message.stream,
                                               .first = packet->message.first,
                                               .last = packet->message.last,
                                               .reason = DELIVERY_SPOOL_FULL};
    packet->drop_count = 1;
}

// False: the batch is not to be sent.
static bool plant_no_go_back(struct sim *sim, const struct delivery_action *action)
{
    uint64_t *sent_to = &sim->process.sent_to[action->stream];
    const bool again = action->last <= *sent_to;
    *sent_to = max_u64(*sent_to, action->last);
    return sim->plant != SIM_PLANT_NO_GO_BACK || !again;
}

static void send(struct sim *sim, const struct delivery_action *action)
{
    struct sim_process *process = &sim->process;
    struct sim_packet *packet = sim_packet(sim);
    fill(sim, packet, action);
    bool sound = true;
    if (action->kind == DELIVERY_SEND_BATCH) {
        check_batch(sim, action);
        sound = fill_records(sim, packet, action);
    }
    if (!sound || process->connection == 0 || sim->network.sent_count > SIM_PACKETS / 2 ||
        sim_strikes(sim, SIM_FAULT_stall)) {
        sim_trace(sim, "process: cannot send %d %u:%llu-%llu%s", (int)action->kind, action->stream,
                  (unsigned long long)action->first, (unsigned long long)action->last,
                  sound ? "" : ", which it cannot read");
        delivery_producer_unsent(process->producer, action, sim->now_ns);
        return;
    }
    note_sent(sim, action);
    check_reasons(sim, packet);
    plant_held_drop(sim, packet);
    sim_trace(sim, "process: sends %d #%llu %u:%llu-%llu, %zu dropped", (int)action->kind,
              (unsigned long long)action->sequence, action->stream,
              (unsigned long long)action->first, (unsigned long long)action->last,
              packet->drop_count);
    if (action->kind == DELIVERY_SEND_BATCH && !plant_no_go_back(sim, action))
        return;
    sim_send(sim, packet, process->connection, true);
    if (sim->plant == SIM_PLANT_FORGET_SENT && action->kind == DELIVERY_SEND_BATCH)
        ring_release(&sim->run, action->stream, action->last);
}

// A Goodbye of an impatient one: the collector has to know better.
static void send_eagerly(struct sim *sim)
{
    if (!sim->process.closing || sim->process.connection == 0 ||
        !sim_strikes(sim, SIM_FAULT_eager) || sim->network.sent_count > SIM_PACKETS / 2)
        return;
    struct sim_packet *packet = sim_packet(sim);
    fill(sim, packet, &(struct delivery_action){.kind = DELIVERY_SEND_GOODBYE});
    sim_send(sim, packet, sim->process.connection, true);
}

// ---- Acting ---------------------------------------------------------------------------------

// Whether the process ends here, in the midst of it all.
static bool ends_here(struct sim *sim)
{
    if (sim_strikes(sim, SIM_FAULT_strike))
        sim_process_end(sim);
    return !sim->process.alive;
}

static void spool(struct sim *sim, const struct delivery_action *action)
{
    struct delivery_producer *producer = sim->process.producer;
    sim_check(sim, sim->run.has_spool && action->first > sim->run.ring_released[action->stream],
              "what is spooled is in the ring");
    if (sim->plant == SIM_PLANT_SPOOLED_UNWRITTEN) {
        delivery_producer_spooled(producer, action, true, sim->now_ns);
        ring_release(&sim->run, action->stream, action->last);
    }
    if (sim->plant == SIM_PLANT_RELEASED_UNSPOOLED)
        ring_release(&sim->run, action->stream, action->last);
    if (ends_here(sim))
        return;
    const bool done = sim_spool_append(sim, action);
    sim_trace(sim, "process: spools %u:%llu-%llu%s", action->stream,
              (unsigned long long)action->first, (unsigned long long)action->last,
              done ? "" : " in vain");
    sim->outcomes[SIM_OUTCOME_spooled] += done ? action->last - action->first + 1 : 0;
    if (!sim->process.alive || ends_here(sim))
        return;
    delivery_producer_spooled(producer, action, done, sim->now_ns);
    tell_losses(sim);
    if (ends_here(sim) || !done)
        return;
    ring_release(&sim->run, action->stream, action->last);
}

static void free_records(struct sim *sim, const struct delivery_action *action)
{
    sim_trace(sim, "process: frees %u:%llu-%llu", action->stream, (unsigned long long)action->first,
              (unsigned long long)action->last);
    sim_check(sim, action->last <= sim->run.produced[action->stream], "what is freed was produced");
    ring_release(&sim->run, action->stream, action->last);
    if (ends_here(sim) || !sim->run.has_spool)
        return;
    sim_spool_release(sim, action->stream, action->last);
}

static void notice(struct sim *sim, bool contact)
{
    struct sim_process *process = &sim->process;
    sim_check(sim, !process->contact_known || process->in_contact != contact,
              "a notice tells of a change");
    process->contact_known = true;
    process->in_contact = contact;
}

// All is said and committed: nothing is left behind.
static void finish(struct sim *sim)
{
    sim_trace(sim, "process: is done");
    // The Ack may be of a store that was replaced while it was on its way.
    sim->ended_elsewhere = !sim_is_over(sim) && sim->collector.changed_ns &&
                           sim->now_ns - sim->collector.changed_ns < 200 * SIM_STEP_NS;
    sim->outcomes[sim->collector.durable.end == RECORD_RUN_END_KILLED ? SIM_OUTCOME_killed
                                                                      : SIM_OUTCOME_closed]++;
    sim->run.removed = true;
    sim->run.has_rings = false;
    sim->run.spool = (struct sim_spool){0};
    sim_process_end(sim);
}

static void act(struct sim *sim, const struct delivery_action *action)
{
    switch (action->kind) {
    case DELIVERY_SPOOL:
        spool(sim, action);
        break;
    case DELIVERY_FREE:
        free_records(sim, action);
        break;
    case DELIVERY_LOST_CONTACT:
    case DELIVERY_CONTACT:
        notice(sim, action->kind == DELIVERY_CONTACT);
        break;
    case DELIVERY_CLOSED:
        finish(sim);
        break;
    case DELIVERY_SEND_HELLO:
    case DELIVERY_SEND_BATCH:
    case DELIVERY_SEND_HEARTBEAT:
    case DELIVERY_SEND_GOODBYE:
        send(sim, action);
        break;
    }
}

// Where the first store acknowledged more, the plant believes it still.
static void plant_ignored_store(struct sim *sim, struct sim_packet *packet)
{
    struct sim_process *process = &sim->process;
    if (sim->plant != SIM_PLANT_STORE_IGNORED)
        return;
    for (size_t i = 0; i < packet->ack.next_count; i++) {
        uint64_t *believed = &process->believed[packet->next[i].stream];
        packet->next[i].next = *believed = max_u64(*believed, packet->next[i].next);
    }
}

static void hear(struct sim *sim, struct sim_packet *packet)
{
    struct sim_process *process = &sim->process;
    const int64_t received_ns = (int64_t)sim->now_ns + sim->host_ahead_ns;
    if (packet->error)
        return;
    clock_offset_add_sample(&process->offset, packet->echo_ns, packet->answered_ns, received_ns,
                            sim->now_ns);
    if (packet->ahead_ns != sim->host_ahead_ns && process->offset.known &&
        process->offset.at_ns == sim->now_ns)
        process->clock_spoiled = true;
    plant_ignored_store(sim, packet);
    packet->ack.next = packet->next;
    const enum status status =
        delivery_producer_ack(process->producer, &packet->ack, sim->now_ns, received_ns);
    if (status == STATUS_OK && !packet->ack.hello_wanted)
        note_answered(process, &packet->ack);
    process->heard_older |=
        packet->ack.protocol == 1 && packet->ack.sequence == 0 && !packet->ack.hello_wanted;
    process->heard_newer |= packet->ack.protocol != 1;
    sim_trace(sim, "process: hears %llu, %s", (unsigned long long)packet->ack.sequence,
              status_text(status));
    if (sim->plant == SIM_PLANT_GOODBYE_EARLY && process->closing && packet->ack.sequence > 0)
        finish(sim);
}

// The deadline is over: what is left goes to the spool, as well as it can.
static void leave_in_time(struct sim *sim)
{
    struct sim_process *process = &sim->process;
    if (process->leave_at_ns == 0 || sim->now_ns < process->leave_at_ns)
        return;
    if (!process->leaving) {
        process->leaving = true;
        delivery_producer_spool_all(process->producer);
        process->leave_at_ns = sim->now_ns + 5 * SIM_STEP_NS;
        return;
    }
    sim_process_end(sim);
}

void sim_process_step(struct sim *sim)
{
    struct sim_process *process = &sim->process;
    struct sim_packet packet;
    while (process->alive && sim_arrived(sim, false, &packet))
        hear(sim, &packet);
    if (process->alive && !process->replays)
        tell_news(sim);
    struct delivery_action action;
    unsigned actions = 0;
    while (process->alive && delivery_producer_next(process->producer, sim->now_ns, &action)) {
        sim_check(sim, ++actions < 2000, "the machine comes to rest");
        act(sim, &action);
        if (process->alive)
            (void)ends_here(sim);
    }
    if (process->alive)
        send_eagerly(sim);
    if (process->alive)
        leave_in_time(sim);
}
