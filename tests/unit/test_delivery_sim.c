// The delivery protocol against the world: the producer's machine, a model of
// the collector with a store that commits, and a network between them, all
// driven from one seed.  Messages are delayed, lost and repeated, connections
// break, the collector crashes before and after a commit, its disk fills up, its
// store is swapped for a fresh one or restored from an older copy, and some
// batches are refused.  Each event is checked as it happens; when the faults
// end, the run has to close with a ledger that balances.
//
// INFERSTAT_SIM_SEED=N replays one seed; INFERSTAT_SIM_SEEDS=N runs that many.
#include "common/core/delivery.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    SEEDS = 600,
    STREAMS = 4,
    NUMBERS = 2000, // records of a stream at most
    QUEUE = 1024,
    FAULTY_STEPS = 2500,
    CLOSING_STEPS = 20000,
    NAMES = 200,
};

static const uint64_t step_ns = 10000000;

// ---- Chance ----------------------------------------------------------------------

static uint64_t random_state;

static uint64_t random_next(void)
{
    random_state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = random_state;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t random_below(uint64_t end)
{
    return random_next() % end;
}

// True `per_mille` times of a thousand.
static bool chance(unsigned per_mille)
{
    return random_below(1000) < per_mille;
}

// ---- The world -------------------------------------------------------------------

enum fate { MISSING, STORED, DROPPED };

// What the collector commits.
struct store {
    unsigned char uuid[16];
    bool run_known;
    bool closed;
    uint32_t names_known;
    uint64_t next[STREAMS];
    uint64_t produced[STREAMS];
    uint8_t fate[STREAMS][NUMBERS + 1];
};

struct packet {
    uint64_t arrives_ns;
    struct delivery_action message; // to the collector
    struct delivery_stream streams[STREAMS];
    size_t stream_count;
    struct delivery_range drops[STREAMS];
    size_t drop_count;
    struct delivery_ack ack; // to the producer
    struct delivery_next next[STREAMS];
};

// First in, first out, for as long as the connection lives.
struct queue {
    struct packet packets[QUEUE];
    size_t first, count;
    uint64_t last_arrives_ns;
};

struct profile { // in a thousand, per message or per step
    unsigned lose, repeat, reset, crash, crash_after_commit, swap, restore, disk_full, refuse,
        stall;
    uint64_t delay_steps;
};

struct world {
    uint64_t seed;
    uint64_t now_ns;
    struct profile profile;

    // Producer's side.
    struct delivery_producer *producer;
    size_t stream_count;
    uint64_t produced[STREAMS];
    uint64_t released[STREAMS];
    uint32_t names;
    uint32_t name_of[STREAMS][NUMBERS + 1]; // highest name the record refers to
    bool closed_told;
    bool contact_known, in_contact;
    uint32_t batch_records;

    // Network.
    bool connected;
    struct queue to_collector, to_producer;

    // Collector's side.
    struct store durable, working, copy;
    bool copy_made;
    bool greeted; // Hello was said since the collector started
    bool disk_full;
    bool touched[STREAMS];
    uint64_t answer_sequence;
    bool answer_due, welcome_due;
    uint32_t credit;
    bool excused[STREAMS][NUMBERS + 1]; // was in a store that is gone
    bool poison[STREAMS][NUMBERS + 1];
    uint64_t swaps;
};

static struct world world;

static void fail_seed(const char *what)
{
    fail_msg("%s at %llu ms (replay: INFERSTAT_SIM_SEED=%llu test_delivery_sim)", what,
             (unsigned long long)(world.now_ns / 1000000), (unsigned long long)world.seed);
}

static void check(bool true_in_every_world, const char *what)
{
    if (!true_in_every_world)
        fail_seed(what);
}

// ---- Network ---------------------------------------------------------------------

static void enqueue(struct queue *queue, const struct packet *packet)
{
    check(queue->count < QUEUE, "the network has room");
    struct packet *place = &queue->packets[(queue->first + queue->count) % QUEUE];
    *place = *packet;
    uint64_t arrives_ns =
        world.now_ns + (1 + random_below(world.profile.delay_steps + 1)) * step_ns;
    if (arrives_ns < queue->last_arrives_ns)
        arrives_ns = queue->last_arrives_ns;
    place->arrives_ns = arrives_ns;
    queue->last_arrives_ns = arrives_ns;
    queue->count++;
}

static void transmit(struct queue *queue, const struct packet *packet)
{
    if (!world.connected || chance(world.profile.lose))
        return;
    enqueue(queue, packet);
    while (chance(world.profile.repeat) && queue->count < QUEUE)
        enqueue(queue, packet);
}

static bool arrived(struct queue *queue, struct packet *packet)
{
    if (queue->count == 0 || queue->packets[queue->first].arrives_ns > world.now_ns)
        return false;
    *packet = queue->packets[queue->first];
    queue->first = (queue->first + 1) % QUEUE;
    queue->count--;
    return true;
}

static void disconnect(void)
{
    world.connected = false;
    world.to_collector.count = 0;
    world.to_producer.count = 0;
}

// ---- Collector -------------------------------------------------------------------

static void new_store(struct store *store)
{
    memset(store, 0, sizeof *store);
    for (size_t i = 0; i < sizeof store->uuid; i++)
        store->uuid[i] = (unsigned char)random_next();
    for (size_t i = 0; i < STREAMS; i++)
        store->next[i] = 1;
}

static void answer(bool hello_wanted, uint64_t sequence, bool all_streams)
{
    struct packet packet = {.ack = {.sequence = sequence,
                                    .names_known = world.durable.names_known,
                                    .credit = world.credit,
                                    .hello_wanted = hello_wanted,
                                    .closed = world.durable.closed && !hello_wanted}};
    memcpy(packet.ack.store, world.durable.uuid, sizeof packet.ack.store);
    for (uint32_t i = 0; i < STREAMS && !hello_wanted; i++)
        if (world.touched[i] || (all_streams && world.durable.next[i] > 1))
            packet.next[packet.ack.next_count++] =
                (struct delivery_next){.stream = i, .next = world.durable.next[i]};
    transmit(&world.to_producer, &packet);
}

static void forget_answers(void)
{
    memset(world.touched, 0, sizeof world.touched);
    world.answer_due = false;
    world.welcome_due = false;
}

// The collector ends and starts again: what it had not committed is gone, and it
// knows no run but from its store.
static void restart(void)
{
    disconnect();
    world.working = world.durable;
    world.greeted = false;
    world.answer_sequence = 0;
    forget_answers();
}

// Every number below `next` is accounted for, nothing above.
static void check_store(const struct store *store)
{
    for (size_t i = 0; i < STREAMS; i++)
        for (uint64_t number = 1; number <= NUMBERS; number++)
            check((store->fate[i][number] != MISSING) == (number < store->next[i]),
                  "a store's ranges cover exactly what is below next");
}

static void commit(void)
{
    if (world.disk_full) { // a passing failure: no answer to what it held
        world.working = world.durable;
        forget_answers();
        return;
    }
    world.durable = world.working;
    if (chance(world.profile.crash_after_commit)) {
        restart();
        return;
    }
    if (world.welcome_due)
        answer(false, 0, true);
    if (world.answer_due)
        answer(false, world.answer_sequence, false);
    forget_answers();
}

static void set_fate(uint32_t stream, uint64_t first, uint64_t last, enum fate fate)
{
    for (uint64_t number = first; number <= last; number++) {
        check(world.working.fate[stream][number] == MISSING, "no number is taken twice");
        world.working.fate[stream][number] = (uint8_t)fate;
    }
    world.working.next[stream] = last + 1;
    world.working.closed = false;
}

static void take_drops(const struct packet *packet)
{
    for (size_t i = 0; i < packet->drop_count; i++) {
        struct delivery_range range = packet->drops[i];
        check(range.last <= world.released[range.stream], "only what is gone is given up");
        check(range.reason == DELIVERY_ACKNOWLEDGED_ELSEWHERE && world.swaps > 0,
              "nothing is given up without a reason");
        world.touched[range.stream] = true;
        if (delivery_offer_drop(world.working.next[range.stream], &range))
            set_fate(range.stream, range.first, range.last, DROPPED);
    }
}

static void take_names(const struct delivery_action *message)
{
    if (message->names_last < message->names_first)
        return;
    check(message->names_first <= world.working.names_known + 1, "names come without holes");
    if (message->names_last > world.working.names_known)
        world.working.names_known = message->names_last;
}

static void take_records(const struct delivery_action *message)
{
    uint32_t stream = message->stream;
    uint64_t take_first, duplicates;
    bool poisoned = false;
    for (uint64_t number = message->first; number <= message->last; number++) {
        poisoned |= world.poison[stream][number];
        check(world.name_of[stream][number] <= world.working.names_known,
              "a record's names are known");
    }
    world.touched[stream] = true;
    if (delivery_offer(world.working.next[stream], message->first, message->last, &take_first,
                       &duplicates) != DELIVERY_TAKE)
        return;
    check(take_first >= message->first && duplicates == take_first - message->first,
          "what is taken was sent");
    set_fate(stream, take_first, message->last, poisoned ? DROPPED : STORED);
}

static void take_streams(const struct packet *packet)
{
    for (size_t i = 0; i < packet->stream_count; i++) {
        uint64_t *produced = &world.working.produced[packet->streams[i].stream];
        if (packet->streams[i].produced > *produced)
            *produced = packet->streams[i].produced;
    }
}

static void collector_receive(const struct packet *packet)
{
    const struct delivery_action *message = &packet->message;
    if (message->kind == DELIVERY_SEND_HELLO) {
        world.greeted = true;
        world.working.run_known = true;
        take_streams(packet);
        world.welcome_due = true;
        return;
    }
    if (!world.greeted || !world.working.run_known) {
        answer(true, message->sequence, false);
        return;
    }
    take_names(message);
    take_drops(packet);
    take_streams(packet);
    if (message->kind == DELIVERY_SEND_BATCH)
        take_records(message);
    if (message->kind == DELIVERY_SEND_GOODBYE &&
        delivery_complete(world.working.next, world.working.produced, STREAMS))
        world.working.closed = true;
    world.answer_due = true;
    if (message->sequence > world.answer_sequence)
        world.answer_sequence = message->sequence;
}

// What a store held is excused from then on: another one does not have it.
static void excuse(const struct store *store)
{
    for (size_t i = 0; i < STREAMS; i++)
        for (uint64_t number = 1; number < store->next[i]; number++)
            world.excused[i][number] = true;
    world.swaps++;
}

static void collector_faults(void)
{
    const struct profile *profile = &world.profile;
    if (chance(5)) {
        world.copy = world.durable;
        world.copy_made = true;
    }
    bool swap = chance(profile->swap);
    bool restore = world.copy_made && chance(profile->restore);
    if (swap || restore) {
        excuse(&world.durable);
        if (swap)
            new_store(&world.durable);
        else
            world.durable = world.copy;
    }
    if (swap || restore || chance(profile->crash))
        restart();
    if (chance(profile->disk_full))
        world.disk_full = !world.disk_full;
    if (chance(20))
        world.credit = (uint32_t)random_below(4 * world.batch_records);
}

static void collector_step(void)
{
    struct packet packet;
    while (arrived(&world.to_collector, &packet)) {
        collector_receive(&packet);
        if (chance(300))
            commit();
    }
    if (chance(500))
        commit();
}

// ---- Producer --------------------------------------------------------------------

static void produce(void)
{
    if (chance(100) && world.names < NAMES)
        world.names += (uint32_t)(1 + random_below(3));
    for (size_t i = 0; i < world.stream_count; i++) {
        uint64_t burst = chance(40) ? random_below(2 * world.batch_records) : 0;
        for (; burst > 0 && world.produced[i] < NUMBERS; burst--) {
            uint64_t number = ++world.produced[i];
            world.name_of[i][number] = (uint32_t)random_below(world.names + 1);
            world.poison[i][number] = chance(world.profile.refuse);
        }
        if (world.produced[i] == 0)
            continue;
        struct delivery_stream state = {.stream = (uint32_t)i, .produced = world.produced[i]};
        assert_int_equal(delivery_producer_stream(world.producer, &state, 0), STATUS_OK);
    }
    delivery_producer_names(world.producer, world.names);
}

static void pack(struct packet *packet, const struct delivery_action *action)
{
    memset(packet, 0, sizeof *packet);
    packet->message = *action;
    const struct delivery_stream *streams =
        delivery_producer_streams(world.producer, &packet->stream_count);
    if (packet->stream_count)
        memcpy(packet->streams, streams, packet->stream_count * sizeof *streams);
    const struct delivery_range *drops =
        delivery_producer_drops(world.producer, &packet->drop_count);
    check(packet->drop_count <= STREAMS, "a dropped range a stream at most");
    if (packet->drop_count)
        memcpy(packet->drops, drops, packet->drop_count * sizeof *drops);
    if (action->kind == DELIVERY_SEND_HELLO)
        packet->drop_count = 0;
}

static void check_batch(const struct delivery_action *action)
{
    check(action->first > world.released[action->stream], "what is sent is still held");
    check(action->first <= action->last && action->last <= world.produced[action->stream],
          "what is sent was produced");
    check(action->last - action->first < world.batch_records, "a batch is not too large");
}

static void producer_free(const struct delivery_action *action)
{
    uint64_t *released = &world.released[action->stream];
    check(action->first == *released + 1 && action->last >= action->first,
          "records are freed in order");
    for (uint64_t number = action->first; number <= action->last; number++)
        check(world.durable.fate[action->stream][number] != MISSING ||
                  world.excused[action->stream][number],
              "what is freed is in the store");
    *released = action->last;
}

static void producer_notice(const struct delivery_action *action)
{
    bool contact = action->kind == DELIVERY_CONTACT;
    check(!world.contact_known || world.in_contact != contact, "a notice tells of a change");
    world.contact_known = true;
    world.in_contact = contact;
}

static void producer_act(const struct delivery_action *action)
{
    check(!world.closed_told, "nothing follows the end");
    struct packet packet;
    switch (action->kind) {
    case DELIVERY_SEND_BATCH:
        check_batch(action);
        break;
    case DELIVERY_FREE:
        producer_free(action);
        return;
    case DELIVERY_LOST_CONTACT:
    case DELIVERY_CONTACT:
        producer_notice(action);
        return;
    case DELIVERY_CLOSED:
        check(world.durable.closed || world.swaps > 0, "the end is committed");
        world.closed_told = true;
        return;
    case DELIVERY_SEND_HELLO:
    case DELIVERY_SEND_HEARTBEAT:
    case DELIVERY_SEND_GOODBYE:
        break;
    case DELIVERY_SPOOL:
        fail_seed("spools where there is no spool");
        return;
    }
    pack(&packet, action);
    if (!world.connected || chance(world.profile.stall) || world.to_collector.count > QUEUE / 2)
        delivery_producer_unsent(world.producer, action, world.now_ns);
    else
        transmit(&world.to_collector, &packet);
}

static void producer_step(void)
{
    struct packet packet;
    while (arrived(&world.to_producer, &packet)) {
        packet.ack.next = packet.next;
        enum status status = delivery_producer_ack(world.producer, &packet.ack, world.now_ns, 1);
        // Repeats, losses and stores restored behind its back make acknowledgements
        // that look impossible; in a quiet world there are none.
        check(status == STATUS_OK || world.profile.repeat || world.profile.lose || world.swaps,
              "acknowledgements are believed");
    }
    struct delivery_action action;
    unsigned actions = 0;
    while (delivery_producer_next(world.producer, world.now_ns, &action)) {
        check(++actions < 2000, "the machine comes to rest");
        producer_act(&action);
    }
}

// ---- One life --------------------------------------------------------------------

static struct profile draw_profile(void)
{
    struct profile profile = {.delay_steps = random_below(4) ? random_below(6) : random_below(150)};
    unsigned *faults[] = {&profile.lose,
                          &profile.repeat,
                          &profile.reset,
                          &profile.crash,
                          &profile.crash_after_commit,
                          &profile.swap,
                          &profile.restore,
                          &profile.disk_full,
                          &profile.refuse,
                          &profile.stall};
    static const unsigned most[] = {100, 100, 20, 20, 50, 4, 4, 10, 3, 100};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        *faults[i] = random_below(3) ? 0 : (unsigned)random_below(most[i] + 1);
    return profile;
}

static void begin(uint64_t seed)
{
    memset(&world, 0, sizeof world);
    world.seed = seed;
    world.now_ns = step_ns;
    random_state = seed * UINT64_C(0xd1342543de82ef95);
    world.profile = draw_profile();
    world.stream_count = 1 + random_below(STREAMS);
    world.batch_records = (uint32_t)(1 + random_below(40));
    world.credit = 2 * world.batch_records;
    new_store(&world.durable);
    world.working = world.durable;
    struct delivery_config config = {.batch_records = world.batch_records,
                                     .resend_after_ns = 100 * step_ns,
                                     .resend_max_ns = 800 * step_ns,
                                     .heartbeat_ns = 50 * step_ns};
    assert_int_equal(delivery_producer_new(&world.producer, &config), STATUS_OK);
}

static void step(bool faulty)
{
    world.now_ns += step_ns;
    if (faulty) {
        collector_faults();
        if (chance(world.profile.reset))
            disconnect();
        produce();
    }
    if (!world.connected && chance(faulty ? 50 : 500)) {
        world.connected = true;
        if (chance(500)) // the driver may notice, and need not
            delivery_producer_reconnect(world.producer);
    }
    collector_step();
    producer_step();
}

static void check_ledger(void)
{
    size_t drops;
    (void)delivery_producer_drops(world.producer, &drops);
    check(drops == 0, "no dropped range is left to tell");
    check_store(&world.durable);
    for (size_t i = 0; i < world.stream_count; i++) {
        check(world.durable.produced[i] == world.produced[i], "the store knows what was produced");
        check(world.durable.next[i] == world.produced[i] + 1, "the ranges cover 1..produced");
        check(world.released[i] == world.produced[i], "everything was freed");
        for (uint64_t number = 1; number <= world.produced[i]; number++)
            check(world.durable.fate[i][number] == STORED || world.profile.refuse || world.swaps,
                  "everything is stored that nothing happened to");
    }
}

static void live(uint64_t seed)
{
    begin(seed);
    for (unsigned i = 0; i < FAULTY_STEPS; i++)
        step(true);
    check_store(&world.durable);
    struct profile quiet = {.delay_steps = 2};
    quiet.refuse = world.profile.refuse;
    world.profile = quiet;
    world.disk_full = false;
    world.credit = 2 * world.batch_records;
    produce();
    delivery_producer_close(world.producer);
    for (unsigned i = 0; i < CLOSING_STEPS && !world.closed_told; i++)
        step(false);
    check(world.closed_told, "the run closes when the faults end");
    check_ledger();
    delivery_producer_free(world.producer);
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void test_lives(void **state)
{
    (void)state;
    uint64_t first = number_from("INFERSTAT_SIM_SEED", 0);
    uint64_t count = getenv("INFERSTAT_SIM_SEED") ? 1 : number_from("INFERSTAT_SIM_SEEDS", SEEDS);
    for (uint64_t seed = first; seed < first + count; seed++)
        live(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
