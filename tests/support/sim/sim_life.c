#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/sim/sim.h"

enum { CLOSING_STEPS = 6000 };

static const struct {
    const char *name;
    unsigned most;
} faults[] = {
#define FAULT_ROW(name, most) {#name, most},
    SIM_FAULTS(FAULT_ROW)
#undef FAULT_ROW
};

static const char *const outcomes[] = {
#define OUTCOME_NAME(name) #name,
    SIM_OUTCOMES(OUTCOME_NAME)
#undef OUTCOME_NAME
};

static const char *const plants[] = {
#define PLANT_TEXT(name, text) text,
    SIM_PLANTS(PLANT_TEXT)
#undef PLANT_TEXT
};

const char *sim_fault_name(enum sim_fault fault)
{
    return faults[fault].name;
}

const char *sim_outcome_name(enum sim_outcome outcome)
{
    return outcomes[outcome];
}

const char *sim_plant_text(enum sim_plant plant)
{
    return plants[plant];
}

// splitmix64.
static uint64_t next_random(struct sim *sim)
{
    sim->random += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = sim->random;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t sim_below(struct sim *sim, uint64_t end)
{
    return (next_random(sim) >> 32) * end >> 32;
}

bool sim_chance(struct sim *sim, unsigned per_mille)
{
    return per_mille > 0 && sim_below(sim, 1000) < per_mille;
}

bool sim_strikes(struct sim *sim, enum sim_fault fault)
{
    const bool strikes = !sim->quiet && sim_chance(sim, sim->faults[fault]);
    sim->happened[fault] += strikes;
    return strikes;
}

void sim_check(struct sim *sim, bool truth, const char *what)
{
    if (truth)
        return;
    (void)snprintf(sim->failure, sizeof sim->failure, "not true after %llu steps: %s",
                   (unsigned long long)sim->steps, what);
    sim_trace(sim, "%s", sim->failure);
    longjmp(sim->failed, 1);
}

void sim_trace(struct sim *sim, const char *format, ...)
{
    if (sim->steps < sim->trace_from)
        return;
    va_list arguments;
    va_start(arguments, format);
    (void)fprintf(stderr, "%7llu ms  ", (unsigned long long)(sim->now_ns / 1000000));
    (void)vfprintf(stderr, format, arguments);
    (void)fputc('\n', stderr);
    va_end(arguments);
}

static void draw_faults(struct sim *sim)
{
    for (size_t i = 0; i < SIM_FAULT_COUNT; i++)
        if (sim_below(sim, 3) == 0)
            sim->faults[i] = (unsigned)sim_below(sim, faults[i].most + 1);
    sim->delay_steps = sim_below(sim, 4) ? sim_below(sim, 4) : sim_below(sim, 40);
}

// A run that nobody has heard of, in a world that may have seen others.
static void begin_run(struct sim *sim)
{
    struct sim_run *run = &sim->run;
    memset(run, 0, sizeof *run);
    memset(sim->excused, 0, sizeof sim->excused);
    memset(sim->evicted, 0, sizeof sim->evicted);
    memset(sim->damaged, 0, sizeof sim->damaged);
    memset(sim->perished, 0, sizeof sim->perished);
    memset(sim->produced_at_end, 0, sizeof sim->produced_at_end);
    sim->ended_elsewhere = false;
    sim->outcomes[SIM_OUTCOME_runs]++;
    run->stream_count = 1 + sim_below(sim, SIM_STREAMS);
    run->has_rings = true;
    run->ring_records = (uint32_t)(4 + sim_below(sim, SIM_RING - 3));
    if (sim_below(sim, 3))
        sim_spool_init(sim, 50 + sim_below(sim, SIM_SPOOL - 49),
                       (uint32_t)(40 + sim_below(sim, 60)));
    sim_network_init(sim);
    sim_collector_forget(sim);
    sim_process_start(sim, false);
}

static void begin(struct sim *sim, uint64_t seed)
{
    sim->seed = seed;
    sim->random = seed * UINT64_C(0xd1342543de82ef95);
    sim->now_ns = UINT64_C(1000000) * SIM_STEP_NS;
    draw_faults(sim);
    sim->batch_records = (uint32_t)(1 + sim_below(sim, SIM_BATCH));
    sim_collector_init(sim);
    begin_run(sim);
}

static void set_clock(struct sim *sim, int64_t *ahead_ns)
{
    *ahead_ns = ((int64_t)sim_below(sim, 2000000) - 1000000) * 1000000;
}

static void strike_host(struct sim *sim)
{
    if (sim_strikes(sim, SIM_FAULT_kill))
        sim_process_end(sim);
    if (sim_strikes(sim, SIM_FAULT_host_down))
        sim_host_goes_down(sim);
    if (sim->process.alive && !sim->process.closing && sim_strikes(sim, SIM_FAULT_leave)) {
        sim_process_close(sim);
        sim->process.leave_at_ns = sim->now_ns + (1 + sim_below(sim, 60)) * SIM_STEP_NS;
    }
    if (sim_strikes(sim, SIM_FAULT_spool_full))
        sim->run.spool.disk_full = !sim->run.spool.disk_full;
    if (sim->run.has_spool && sim_strikes(sim, SIM_FAULT_damage))
        sim_spool_damage(sim);
}

static void strike_clocks(struct sim *sim)
{
    if (sim_strikes(sim, SIM_FAULT_host_clock)) {
        set_clock(sim, &sim->host_ahead_ns);
        sim->host_clock_set_ns = sim->now_ns;
    }
    if (sim_strikes(sim, SIM_FAULT_collector_clock)) {
        set_clock(sim, &sim->collector_ahead_ns);
        sim->collector_clock_set = true;
    }
    if (sim_strikes(sim, SIM_FAULT_sleep))
        sim->now_ns += sim_below(sim, 500) * SIM_STEP_NS;
}

// Somebody speaks of the run who is not its owner, or its owner says what cannot be.
static void lie(struct sim *sim)
{
    if (!sim_strikes(sim, SIM_FAULT_liar) || sim->process.connection == 0 ||
        sim->network.sent_count > SIM_PACKETS / 2)
        return;
    static const enum delivery_action_kind kinds[] = {DELIVERY_SEND_HELLO, DELIVERY_SEND_BATCH,
                                                      DELIVERY_SEND_GOODBYE};
    struct sim_packet *packet = sim_packet(sim);
    packet->lie = (enum sim_lie)(1 + sim_below(sim, SIM_LIE_COUNT - 1));
    packet->protocol = DELIVERY_PROTOCOL;
    packet->message = (struct delivery_action){
        .kind = kinds[sim_below(sim, 3)], .first = 1 + sim_below(sim, 50), .names_first = 1};
    packet->message.last = packet->message.first + sim_below(sim, SIM_BATCH);
    packet->streams[0].produced = sim_below(sim, 100);
    packet->stream_count = 1;
    if (packet->lie == SIM_LIE_CLAIM) {
        packet->message.first = packet->message.last = 0;
        packet->message.names_first = 0;
        packet->replay = sim->process.replays;
        packet->streams[0].produced = sim_below(sim, 2) ? 1000000000 : 0;
        packet->streams[0].unnumbered = packet->streams[0].produced ? 0 : 1000000000;
        packet->drops[0] = (struct delivery_range){.first = 1, .last = 1000000000};
        packet->drop_count = sim_below(sim, 2);
    }
    sim_send(sim, packet, sim->process.connection, true);
}

static void move_network(struct sim *sim)
{
    struct sim_network *network = &sim->network;
    if (sim_strikes(sim, SIM_FAULT_partition)) {
        sim_disconnect(sim);
        network->parted_until_ns = sim->now_ns + sim_below(sim, 200) * SIM_STEP_NS;
    }
    if (sim_strikes(sim, SIM_FAULT_reset))
        sim_disconnect(sim);
    if (!sim->process.alive || sim->process.connection || sim->now_ns < network->parted_until_ns ||
        !sim_chance(sim, sim->quiet ? 500 : 100))
        return;
    sim_connect(sim);
    if (sim_chance(sim, 500)) // its driver may notice, and need not
        delivery_producer_reconnect(sim->process.producer);
}

// The world goes on when a run is over.
static void go_on(struct sim *sim)
{
    if (sim->quiet || !sim->run.removed || !sim_chance(sim, 50))
        return;
    sim_check_end(sim);
    begin_run(sim);
}

static void step(struct sim *sim)
{
    sim->steps++;
    sim->now_ns += SIM_STEP_NS;
    if (!sim->quiet) {
        sim_collector_faults(sim);
        strike_host(sim);
        strike_clocks(sim);
        lie(sim);
        sim_produce(sim);
    }
    if (!sim->process.alive && sim_leaves_something(sim) && sim_chance(sim, sim->quiet ? 300 : 20))
        sim_process_start(sim, true);
    go_on(sim);
    move_network(sim);
    sim_collector_step(sim);
    sim_process_step(sim);
    for (uint32_t i = 0; i < SIM_STREAMS; i++)
        if (sim->run.produced[i] > sim->produced_at_end[i])
            sim->produced_at_end[i] = sim->run.produced[i];
    sim_check_all(sim);
}

static void live(struct sim *sim, uint64_t steps)
{
    for (uint64_t i = 0; i < steps; i++)
        step(sim);
    sim_trace(sim, "the faults end");
    sim->quiet = true;
    sim->network.parted_until_ns = 0;
    sim->run.spool.disk_full = false;
    sim_collector_mend(sim);
    if (sim->delay_steps > 3)
        sim->delay_steps = 3;
    if (sim->process.alive)
        sim_process_close(sim);
    for (unsigned i = 0; i < CLOSING_STEPS && (sim->process.alive || sim_leaves_something(sim));
         i++)
        step(sim);
    sim_check_end(sim);
}

bool sim_live(struct sim *sim, uint64_t seed, enum sim_plant plant, uint64_t steps,
              uint64_t trace_from)
{
    memset(sim, 0, sizeof *sim);
    sim->plant = plant;
    sim->trace_from = trace_from;
    volatile bool good = false;
    if (setjmp(sim->failed) == 0) {
        begin(sim, seed);
        live(sim, steps);
        good = true;
    }
    delivery_producer_free(sim->process.producer);
    sim_collector_deinit(sim);
    return good;
}
