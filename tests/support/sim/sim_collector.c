// The collector with its store, as server/collector/writer/writer_batch.c drives the
// machine: a transaction at a time, acknowledged after its commit.
#include <string.h>

#include "tests/support/sim/sim.h"

// A store that has nothing of the run.
static void empty(struct sim_store *store)
{
    memset(&store->run_known, 0, sizeof *store - offsetof(struct sim_store, run_known));
    for (size_t i = 0; i < SIM_STREAMS; i++)
        store->lanes[i].next = 1;
}

static void new_store(struct sim *sim, struct sim_store *store)
{
    for (size_t i = 0; i < sizeof store->uuid; i++)
        store->uuid[i] = (unsigned char)sim_below(sim, 256);
    empty(store);
}

void sim_collector_init(struct sim *sim)
{
    struct sim_collector *collector = &sim->collector;
    new_store(sim, &collector->durable);
    collector->working = collector->durable;
    collector->protocol = sim_strikes(sim, SIM_FAULT_upgrade) ? 1 : DELIVERY_PROTOCOL;
    collector->credit = 2 * sim->batch_records;
}

void sim_collector_deinit(struct sim *sim)
{
    delivery_run_deinit(&sim->collector.run);
}

// The machine as what is committed makes it.
static void load(struct sim *sim, bool greeted, bool replayed)
{
    struct sim_collector *collector = &sim->collector;
    struct delivery_run *run = &collector->run;
    collector->working = collector->durable;
    delivery_run_deinit(run);
    for (uint32_t i = 0; i < SIM_STREAMS; i++) {
        const struct sim_lane *lane = &collector->durable.lanes[i];
        if (!lane->known)
            continue;
        const struct delivery_lane restored = {.stream = i,
                                               .next = lane->next,
                                               .produced = lane->produced,
                                               .unnumbered = lane->unnumbered};
        sim_check(sim, delivery_run_restore(run, &restored) == STATUS_OK, "a run is read back");
    }
    run->end = collector->durable.end;
    run->ended_ns = collector->durable.ended_ns;
    run->names_known = collector->durable.names;
    run->duplicates = collector->durable.duplicates;
    run->greeted = greeted;
    run->replayed = replayed;
    if (!greeted)
        collector->connection = 0;
}

void sim_collector_forget(struct sim *sim)
{
    struct sim_collector *collector = &sim->collector;
    empty(&collector->durable);
    collector->copy = collector->durable;
    collector->ack_count = 0;
    memset(collector->promised, 0, sizeof collector->promised);
    load(sim, false, false);
}

// What the machine knows goes into the transaction.
static void flush(struct sim *sim)
{
    struct sim_collector *collector = &sim->collector;
    const struct delivery_run *run = &collector->run;
    struct sim_store *store = &collector->working;
    for (size_t i = 0; i < run->lane_count; i++) {
        struct sim_lane *lane = &store->lanes[run->lanes[i].stream];
        lane->known = true;
        lane->next = run->lanes[i].next;
        lane->produced = run->lanes[i].produced;
        lane->unnumbered = run->lanes[i].unnumbered;
    }
    store->end = run->end;
    store->ended_ns = run->ended_ns;
    store->names = run->names_known;
    store->duplicates = run->duplicates;
}

static void send_ack(struct sim *sim, const struct sim_ack *ack)
{
    struct sim_collector *collector = &sim->collector;
    struct sim_packet *packet = sim_packet(sim);
    packet->ack = (struct delivery_ack){.sequence = ack->is_hello ? 0 : ack->sequence,
                                        .credit = collector->credit,
                                        .hello_wanted = ack->hello_wanted};
    memcpy(packet->ack.store, collector->durable.uuid, sizeof packet->ack.store);
    packet->answered_ns = (int64_t)sim->now_ns + sim->collector_ahead_ns;
    packet->echo_ns = ack->echo_ns;
    packet->ahead_ns = ack->ahead_ns;
    packet->error = ack->error;
    if (!ack->error && !ack->hello_wanted) {
        delivery_run_answer(&collector->run, ack->is_hello, &packet->ack, packet->next);
        if (sim->plant == SIM_PLANT_ACKNOWLEDGE_ONE_MORE && packet->ack.next_count)
            packet->next[0].next++;
        for (size_t i = 0; i < packet->ack.next_count; i++) {
            uint64_t *promised = &collector->promised[packet->next[i].stream];
            if (packet->next[i].next - 1 > *promised)
                *promised = packet->next[i].next - 1;
        }
    }
    packet->ack.protocol = collector->protocol;
    sim_trace(sim, "collector: acknowledges %llu%s%s%s, %u:%llu...",
              (unsigned long long)packet->ack.sequence, ack->is_hello ? " (hello)" : "",
              ack->hello_wanted ? " (hello wanted)" : "", ack->error ? " (error)" : "",
              packet->next[0].stream, (unsigned long long)packet->next[0].next);
    sim_send(sim, packet, ack->connection, false);
}

static void send_acks(struct sim *sim)
{
    struct sim_collector *collector = &sim->collector;
    for (size_t i = 0; i < collector->ack_count; i++)
        send_ack(sim, &collector->acks[i]);
    collector->ack_count = 0;
    delivery_run_answered(&collector->run);
}

static struct sim_ack *ack_for(struct sim *sim, const struct sim_packet *packet, bool alone)
{
    struct sim_collector *collector = &sim->collector;
    const size_t count = collector->ack_count;
    struct sim_ack *ack = count ? &collector->acks[count - 1] : NULL;
    if (!ack || alone || ack->is_hello || ack->error || ack->connection != packet->connection) {
        ack = &collector->acks[collector->ack_count++];
        *ack = (struct sim_ack){.connection = packet->connection};
    }
    if (packet->message.sequence > ack->sequence)
        ack->sequence = packet->message.sequence;
    ack->echo_ns = packet->sent_ns;
    ack->ahead_ns = packet->ahead_ns;
    return ack;
}

// ---- A message -----------------------------------------------------------------------------

static void store_records(struct sim *sim, const struct sim_packet *packet,
                          const struct delivery_step *step, struct sim_lane *lane)
{
    const uint32_t stream = packet->message.stream;
    for (uint64_t number = step->first; number <= step->last; number++) {
        sim_check(sim, sim->run.name_of[stream][number] <= sim->collector.run.names_known,
                  "a record's names are known before it");
        sim_check(sim,
                  packet->contents[number - packet->message.first] == sim_content(stream, number),
                  "a record's number is its own for ever");
        sim_check(sim, !sim_set_has(&lane->rows, number) && !sim_set_has(&lane->cleared, number),
                  "nothing is stored twice");
        sim_check(sim, !sim_set_has(&lane->dropped, number), "what was dropped is not stored");
    }
    sim_set_add(&lane->rows, step->first, step->last);
    sim->outcomes[SIM_OUTCOME_stored] += step->last - step->first + 1;
    lane->stored += (int64_t)(step->last - step->first + 1);
}

// Everything dropped has a cause that the reason names.
static bool has_cause(const struct sim *sim, uint32_t stream, uint64_t number,
                      enum delivery_reason reason)
{
    const bool damaged = sim_set_has(&sim->damaged[stream], number);
    const bool told_in_old_words =
        damaged && (sim->collector.protocol == 1 || sim->faults[SIM_FAULT_upgrade]);
    if (sim_set_has(&sim->excused[stream], number))
        return true;
    switch (reason) {
    case DELIVERY_SPOOL_FULL:
        return sim_set_has(&sim->evicted[stream], number) || told_in_old_words;
    case DELIVERY_SPOOL_DAMAGED:
        return damaged;
    case DELIVERY_HOST_LOST:
        return sim_set_has(&sim->perished[stream], number);
    case DELIVERY_UNSPECIFIED:
        return told_in_old_words;
    case DELIVERY_REFUSED:
    case DELIVERY_ACKNOWLEDGED_ELSEWHERE:
    case DELIVERY_RING_FULL:
    case DELIVERY_NO_ROOM:
    case DELIVERY_REASON_COUNT:
        break;
    }
    return false;
}

static void drop_records(struct sim *sim, uint32_t stream, uint64_t first, uint64_t last,
                         enum delivery_reason reason)
{
    struct sim_lane *lane = &sim->collector.working.lanes[stream];
    sim_trace(sim, "collector: %u:%llu-%llu are dropped (%s)", stream, (unsigned long long)first,
              (unsigned long long)last, delivery_reason_text(reason));
    sim_check(sim, last <= SIM_NUMBERS, "what is dropped was produced");
    for (uint64_t number = first; number <= last; number++) {
        sim_check(sim, !sim_set_has(&lane->rows, number) && !sim_set_has(&lane->cleared, number),
                  "no drop is claimed over a stored record");
        sim_check(sim, !sim_set_has(&lane->dropped, number), "nothing is dropped twice");
        sim_check(sim, reason == DELIVERY_REFUSED || has_cause(sim, stream, number, reason),
                  "nothing is dropped without a cause");
    }
    sim_set_add(&lane->dropped, first, last);
    static const enum sim_outcome outcomes[DELIVERY_REASON_COUNT] = {
        [DELIVERY_UNSPECIFIED] = SIM_OUTCOME_spool_damaged, // in the words of version 1
        [DELIVERY_SPOOL_FULL] = SIM_OUTCOME_spool_full,
        [DELIVERY_SPOOL_DAMAGED] = SIM_OUTCOME_spool_damaged,
        [DELIVERY_ACKNOWLEDGED_ELSEWHERE] = SIM_OUTCOME_acknowledged_elsewhere,
        [DELIVERY_REFUSED] = SIM_OUTCOME_refused,
        [DELIVERY_HOST_LOST] = SIM_OUTCOME_host_lost,
    };
    sim->outcomes[outcomes[reason]] += last - first + 1;
}

static void store_or_refuse(struct sim *sim, const struct sim_packet *packet,
                            const struct delivery_step *step)
{
    const uint32_t stream = packet->message.stream;
    struct sim_set batch = {0};
    sim_set_add(&batch, packet->message.first, packet->message.last);
    struct sim_lane *lane = &sim->collector.working.lanes[stream];
    if (sim_set_meets(&batch, &sim->run.poison[stream])) {
        sim->happened[SIM_FAULT_refuse]++;
        drop_records(sim, stream, step->first, step->last, DELIVERY_REFUSED);
        return;
    }
    if (sim->plant == SIM_PLANT_DUPLICATES_STORED && step->first > packet->message.first) {
        struct delivery_step all = *step;
        all.first = packet->message.first;
        store_records(sim, packet, &all, lane);
        return;
    }
    store_records(sim, packet, step, lane);
}

static void drop_step(struct sim *sim, const struct sim_packet *packet,
                      const struct delivery_step *step)
{
    const struct delivery_range *told = &packet->drops[step->index];
    uint64_t first = step->first;
    if (sim->plant == SIM_PLANT_DROP_UNCLIPPED)
        first = told->first;
    enum delivery_reason reason = told->reason;
    if (sim->collector.protocol == 1 && reason > DELIVERY_RING_FULL)
        reason = DELIVERY_UNSPECIFIED; // version 1 had no others
    drop_records(sim, told->stream, first, step->last, reason);
}

static void take_steps(struct sim *sim, const struct sim_packet *packet,
                       const struct delivery_message *head)
{
    struct sim_collector *collector = &sim->collector;
    struct delivery_run *run = &collector->run;
    struct delivery_acceptance taking;
    struct delivery_step step;
    const int64_t duplicates = run->duplicates;
    sim_check(sim, delivery_accept(&taking, run, head) == STATUS_OK, "a message is taken");
    while (delivery_accept_next(&taking, &step)) {
        const uint32_t stream =
            step.kind == DELIVERY_STEP_NAMES ? 0 : run->lanes[step.place].stream;
        switch (step.kind) {
        case DELIVERY_STEP_NAMES:
            sim_check(sim, step.first == (uint64_t)run->names_known + 1, "names have no holes");
            run->names_known = (uint32_t)step.last;
            break;
        case DELIVERY_STEP_DROP:
            drop_step(sim, packet, &step);
            break;
        case DELIVERY_STEP_LOST:
            drop_records(sim, stream, step.first, step.last, DELIVERY_HOST_LOST);
            break;
        case DELIVERY_STEP_STORE:
            store_or_refuse(sim, packet, &step);
            break;
        }
    }
    sim->outcomes[SIM_OUTCOME_duplicates] += (uint64_t)(run->duplicates - duplicates);
    if (sim->plant == SIM_PLANT_DROP_WINS)
        for (size_t i = 0; i < head->drop_count; i++)
            if (head->drops[i].last <
                run->lanes[delivery_run_find(run, head->drops[i].stream)].next)
                drop_records(sim, head->drops[i].stream, head->drops[i].first, head->drops[i].last,
                             head->drops[i].reason);
}

static void plant_early_end(struct sim *sim)
{
    struct delivery_run *run = &sim->collector.run;
    bool complete = run->goodbye_ns != 0;
    for (size_t i = 0; i < run->lane_count; i++)
        complete = complete && run->lanes[i].next >= run->lanes[i].produced;
    if (complete && !delivery_run_is_over(run))
        run->end = RECORD_RUN_END_CLOSED;
}

// A process that is gone may have sent what arrives only now.
static enum delivery_sender sender_of(const struct sim *sim, const struct sim_packet *packet)
{
    const uint32_t first = sim->process.first_connection, known = sim->collector.connection;
    const bool is_honest = packet->lie == SIM_LIE_NONE || packet->lie == SIM_LIE_CLAIM ||
                           sim->plant == SIM_PLANT_STRANGERS_HEARD;
    if (!is_honest)
        return packet->lie == SIM_LIE_SECOND ? DELIVERY_SENDER_SECOND : DELIVERY_SENDER_STRANGER;
    if (!sim->collector.working.run_known || known == packet->connection ||
        sim->plant == SIM_PLANT_UNGREETED)
        return DELIVERY_SENDER_KNOWN;
    const bool same_process = (known >= first) == (packet->connection >= first);
    const bool is_closed = known == 0 || known != sim->process.connection;
    const bool may_move = same_process || (is_closed && packet->replay);
    return known == 0 || may_move ? DELIVERY_SENDER_NEW : DELIVERY_SENDER_SECOND;
}

static struct delivery_message describe(struct sim *sim, const struct sim_packet *packet)
{
    const struct delivery_action *message = &packet->message;
    const bool newer = sim->collector.protocol > 1;
    struct delivery_message head = {.kind = DELIVERY_BATCH,
                                    .protocol = packet->protocol,
                                    .replay = packet->replay && newer,
                                    .sender = sender_of(sim, packet),
                                    .streams = packet->streams,
                                    .stream_count = packet->stream_count,
                                    .drops = packet->drops,
                                    .drop_count = packet->drop_count,
                                    .ended_ns = 1,
                                    .killed = packet->killed && newer};
    if (message->kind == DELIVERY_SEND_HELLO)
        head.kind = DELIVERY_HELLO;
    else if (message->kind == DELIVERY_SEND_GOODBYE)
        head.kind = DELIVERY_GOODBYE;
    else if (message->names_last >= message->names_first) {
        head.names_first = message->names_first;
        head.name_count = message->names_last - message->names_first + 1;
    }
    if (message->kind == DELIVERY_SEND_BATCH) {
        head.stream = message->stream;
        head.first = message->first;
        head.last = message->last;
    }
    if (sim->plant == SIM_PLANT_CLAIMS_BELIEVED)
        head.life_ns = INT64_MAX;
    return head;
}

static bool lacks_names(const struct sim *sim, const struct delivery_run *run,
                        const struct sim_packet *packet, const struct delivery_message *head)
{
    const uint64_t known = delivery_run_names_after(run, head);
    bool lacks = false;
    for (uint64_t number = head->first; number <= head->last && head->first && !packet->lie;
         number++)
        lacks |= sim->run.name_of[head->stream][number] > known;
    return lacks;
}

static void take(struct sim *sim, const struct sim_packet *packet)
{
    struct sim_collector *collector = &sim->collector;
    struct delivery_message head = describe(sim, packet);
    struct delivery_run *run = collector->working.run_known ? &collector->run : NULL;
    head.names_missing = run && lacks_names(sim, run, packet, &head);
    if (sim->plant == SIM_PLANT_UNGREETED && run)
        run->greeted = true;
    const enum delivery_hearing hearing = delivery_hear(run, &head);
    const bool is_hello = head.kind == DELIVERY_HELLO;
    const bool error = hearing != DELIVERY_HEARD && hearing != DELIVERY_HELLO_WANTED;
    if (hearing == DELIVERY_BUSY)
        return;
    sim_check(sim, !error || packet->lie, "the run is understood");
    struct sim_ack *ack = ack_for(sim, packet, is_hello || error);
    ack->is_hello = is_hello;
    ack->hello_wanted = hearing == DELIVERY_HELLO_WANTED;
    ack->error = error;
    if (hearing != DELIVERY_HEARD)
        return;
    collector->working.run_known = true;
    if (is_hello)
        collector->connection = packet->connection;
    take_steps(sim, packet, &head);
    if (sim->plant == SIM_PLANT_COMPLETE_WITHOUT_LAST)
        plant_early_end(sim);
    flush(sim);
}

// The collector ends and starts again: what it had not committed is gone, and it
// knows no run but from its store.
static void restart(struct sim *sim)
{
    struct sim_collector *collector = &sim->collector;
    sim_trace(sim, "collector: starts again");
    sim_disconnect(sim);
    collector->ack_count = 0;
    load(sim, false, false);
    if (sim_strikes(sim, SIM_FAULT_upgrade))
        collector->protocol = collector->protocol == 1 ? DELIVERY_PROTOCOL : 1;
}

// A passing failure: no answer to what it held, which its producers send again.
static void roll_back(struct sim *sim)
{
    struct sim_collector *collector = &sim->collector;
    sim_trace(sim, "collector: rolls back");
    if (sim->plant == SIM_PLANT_ACKNOWLEDGE_ROLLED_BACK) {
        send_acks(sim);
        return;
    }
    collector->ack_count = 0;
    load(sim, collector->run.greeted, collector->run.replayed);
}

static void commit(struct sim *sim)
{
    struct sim_collector *collector = &sim->collector;
    if (sim->plant == SIM_PLANT_ACKNOWLEDGE_EARLY)
        send_acks(sim);
    if (sim_strikes(sim, SIM_FAULT_crash_before_commit)) {
        restart(sim);
        return;
    }
    if (collector->disk_full) {
        roll_back(sim);
        return;
    }
    collector->durable = collector->working;
    if (sim_strikes(sim, SIM_FAULT_crash_after_commit)) {
        restart(sim);
        return;
    }
    send_acks(sim);
}

void sim_collector_step(struct sim *sim)
{
    struct sim_collector *collector = &sim->collector;
    struct sim_packet packet;
    bool taken = false;
    while (sim_arrived(sim, true, &packet)) {
        take(sim, &packet);
        taken = true;
        if (collector->ack_count == SIM_ACKS || sim_chance(sim, 300)) {
            commit(sim);
            taken = false;
        }
    }
    if (taken || collector->ack_count)
        commit(sim);
}

// What a store held is excused from then on: another one does not have it.
static void excuse(struct sim *sim)
{
    const struct sim_store *store = &sim->collector.durable;
    for (size_t i = 0; i < SIM_STREAMS; i++)
        if (store->lanes[i].next > 1)
            sim_set_add(&sim->excused[i], 1, store->lanes[i].next - 1);
    memset(sim->collector.promised, 0, sizeof sim->collector.promised);
}

static void clear(struct sim *sim)
{
    sim_trace(sim, "collector: its rows are cleared");
    for (size_t i = 0; i < SIM_STREAMS; i++) {
        struct sim_lane *lane = &sim->collector.durable.lanes[i];
        sim_set_unite(&lane->cleared, &lane->rows);
        lane->rows = (struct sim_set){0};
    }
    // Between two transactions.
    sim->collector.working = sim->collector.durable;
}

void sim_collector_faults(struct sim *sim)
{
    struct sim_collector *collector = &sim->collector;
    if (sim_chance(sim, 5)) {
        collector->copy = collector->durable;
        collector->copy_made = true;
    }
    // When all is over nobody would send anything again.
    const bool swap = !sim->run.removed && sim_strikes(sim, SIM_FAULT_swap);
    const bool restore =
        !sim->run.removed && collector->copy_made && sim_strikes(sim, SIM_FAULT_restore);
    if (swap || restore) {
        sim_trace(sim, "collector: %s", swap ? "a new store" : "an older copy");
        excuse(sim);
        collector->changed_ns = sim->now_ns;
        if (swap)
            new_store(sim, &collector->durable);
        else
            collector->durable = collector->copy;
    }
    if (swap || restore || sim_strikes(sim, SIM_FAULT_crash))
        restart(sim);
    if (sim_strikes(sim, SIM_FAULT_clear))
        clear(sim);
    if (sim_strikes(sim, SIM_FAULT_evict) && delivery_run_is_over(&collector->run))
        load(sim, false, false);
    if (sim_strikes(sim, SIM_FAULT_disk_full))
        collector->disk_full = !collector->disk_full;
    if (sim_chance(sim, 5))
        delivery_run_silence(&collector->run, 0);
    if (sim_chance(sim, 20))
        collector->credit = (uint32_t)sim_below(sim, 4 * sim->batch_records);
}

void sim_collector_mend(struct sim *sim)
{
    sim->collector.disk_full = false;
    sim->collector.credit = 2 * sim->batch_records;
}
