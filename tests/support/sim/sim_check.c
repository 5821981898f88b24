// What has to be true, after every step, by counting everything anew.
#include "tests/support/sim/sim.h"

// The numbers of a stream that the host could still send.
static struct sim_set held_by_host(const struct sim *sim, uint32_t stream)
{
    const struct sim_run *run = &sim->run;
    struct sim_set held = {0};
    if (run->has_rings && run->ring_released[stream] < run->produced[stream])
        sim_set_add(&held, run->ring_released[stream] + 1, run->produced[stream]);
    if (run->has_spool)
        sim_spool_held(sim, stream, &held);
    return held;
}

static void check_lane(struct sim *sim, const struct sim_lane *lane)
{
    struct sim_set covered = lane->rows;
    sim_check(sim, !sim_set_meets(&lane->rows, &lane->cleared), "what was cleared is gone");
    sim_set_unite(&covered, &lane->cleared);
    sim_check(sim, !sim_set_meets(&covered, &lane->dropped),
              "no number is both stored and dropped");
    sim_check(sim,
              sim_set_count(&lane->rows) + sim_set_count(&lane->cleared) == (unsigned)lane->stored,
              "the ledger says how many rows there are");
    sim_set_unite(&covered, &lane->dropped);
    sim_check(sim, lane->next - 1 <= SIM_NUMBERS && sim_set_is_up_to(&covered, lane->next - 1),
              "what is stored and dropped covers everything below next");
    sim_check(sim, lane->next - 1 <= lane->produced || !lane->known,
              "no more is stored than was produced");
}

bool sim_leaves_something(const struct sim *sim)
{
    const struct sim_run *run = &sim->run;
    return !run->removed && (run->has_rings || run->spool.count > 0 || run->spool.lost_count > 0);
}

bool sim_is_over(const struct sim *sim)
{
    const enum record_run_end end = sim->collector.durable.end;
    return end == RECORD_RUN_END_CLOSED || end == RECORD_RUN_END_KILLED;
}

static void check_store(struct sim *sim)
{
    const struct sim_store *store = &sim->collector.durable;
    const bool over = sim_is_over(sim);
    for (size_t i = 0; i < SIM_STREAMS; i++) {
        const struct sim_lane *lane = &store->lanes[i];
        check_lane(sim, lane);
        sim_check(sim, !over || lane->next > lane->produced, "what is over is complete");
        sim_check(sim, sim->collector.promised[i] < lane->next,
                  "what was acknowledged is in the store");
    }
}

// Every record is in the store, or with the host, or something happened to it.
static void check_nothing_is_missing(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->run.stream_count; i++) {
        const struct sim_lane *lane = &sim->collector.durable.lanes[i];
        struct sim_set somewhere = held_by_host(sim, i);
        sim_set_unite(&somewhere, &lane->rows);
        sim_set_unite(&somewhere, &lane->cleared);
        sim_set_unite(&somewhere, &lane->dropped);
        sim_set_unite(&somewhere, &sim->excused[i]);
        sim_set_unite(&somewhere, &sim->evicted[i]);
        sim_set_unite(&somewhere, &sim->damaged[i]);
        sim_set_unite(&somewhere, &sim->perished[i]);
        sim_check(sim, sim_set_covers(&somewhere, 1, sim->run.produced[i]), "no record is missing");
    }
}

static void check_bounds(struct sim *sim)
{
    const struct sim_run *run = &sim->run;
    uint64_t records = 0;
    for (size_t i = 0; i < run->spool.count; i++)
        records += run->spool.entries[i].last - run->spool.entries[i].first + 1;
    sim_check(sim, records == run->spool.records && records <= run->spool.records_max,
              "the spool is bounded");
    for (uint32_t i = 0; i < run->stream_count && run->has_rings; i++)
        sim_check(sim, run->produced[i] - run->ring_released[i] <= run->ring_records,
                  "the ring is bounded");
}

// What the process gives up is gone.
static void check_drops(struct sim *sim)
{
    if (!sim->process.alive)
        return;
    size_t count;
    const struct delivery_range *drops = delivery_producer_drops(sim->process.producer, &count);
    for (size_t i = 0; i < count; i++) {
        if (drops[i].reason == DELIVERY_ACKNOWLEDGED_ELSEWHERE)
            continue;
        const uint32_t stream = drops[i].stream;
        struct sim_set gone = sim->evicted[stream];
        sim_set_unite(&gone, &sim->damaged[stream]);
        if (sim->run.has_rings && sim->run.ring_released[stream] < sim->run.produced[stream])
            sim_set_remove(&gone, sim->run.ring_released[stream] + 1, sim->run.produced[stream]);
        sim_check(sim, sim_set_covers(&gone, drops[i].first, drops[i].last),
                  "nothing is given up that could be sent");
    }
}

// The clock's error is never larger than what is said of it, while the collector's
// clock is not set, nor the host's with an answer under way for too long.
static void check_clock(struct sim *sim)
{
    int64_t offset_ns, error_ns;
    if (!sim->process.alive || sim->collector_clock_set || sim->process.clock_spoiled ||
        !clock_offset_estimate(&sim->process.offset, sim->now_ns, &offset_ns, &error_ns) ||
        sim->host_clock_set_ns > sim->process.offset.at_ns)
        return;
    const int64_t truth = sim->host_ahead_ns - sim->collector_ahead_ns;
    sim_check(sim, truth >= offset_ns - error_ns && truth <= offset_ns + error_ns,
              "the clock is as far off as is said");
}

void sim_check_all(struct sim *sim)
{
    check_store(sim);
    check_nothing_is_missing(sim);
    check_bounds(sim);
    check_drops(sim);
    check_clock(sim);
}

void sim_check_end(struct sim *sim)
{
    const struct sim_store *store = &sim->collector.durable;
    const bool host_was_down = sim->run.host_was_down;
    // Of a run whose host leaves nothing of it nobody says anything.
    if (host_was_down && !sim->run.removed && !sim_leaves_something(sim))
        return;
    sim_check(sim, sim->run.removed, "the run comes to its end when the faults end");
    // What a host takes with it, version 1 waits for.
    if (sim->ended_elsewhere || (host_was_down && sim->collector.protocol == 1))
        return;
    sim_check(sim, sim_is_over(sim), "the end of the run is committed");
    for (uint32_t i = 0; i < sim->run.stream_count; i++) {
        const struct sim_lane *lane = &store->lanes[i];
        sim_check(sim, lane->next == lane->produced + 1, "the ranges cover 1..produced");
        if (host_was_down)
            continue; // with what nobody else knows
        sim_check(sim, lane->produced == sim->produced_at_end[i],
                  "the store knows what was produced");
        sim_check(sim, lane->unnumbered == sim->run.unnumbered[i],
                  "the store knows what had no room");
    }
}
