#include <stdlib.h>
#include <string.h>

#include "tests/support/sim/sim.h"

void sim_spool_init(struct sim *sim, uint64_t records_max, uint32_t segment_max)
{
    struct sim_spool *spool = &sim->run.spool;
    sim->run.has_spool = true;
    spool->records_max = records_max;
    spool->segment_max = segment_max;
}

static void remove_entry(struct sim_spool *spool, size_t at)
{
    spool->count--;
    memmove(&spool->entries[at], &spool->entries[at + 1],
            (spool->count - at) * sizeof spool->entries[0]);
    spool->cursor = 0;
}

static void add_lost(struct sim *sim, struct delivery_range *ranges, size_t *count,
                     const struct delivery_range *range)
{
    for (size_t i = 0; i < *count; i++) {
        if (ranges[i].stream == range->stream && ranges[i].reason == range->reason &&
            ranges[i].last + 1 == range->first) {
            ranges[i].last = range->last;
            return;
        }
    }
    sim_check(sim, *count < SIM_LOST, "the spool's losses have room");
    ranges[(*count)++] = *range;
}

static void lose(struct sim *sim, const struct sim_entry *entry, enum delivery_reason reason)
{
    struct sim_spool *spool = &sim->run.spool;
    struct delivery_range range = {.stream = entry->stream,
                                   .first = entry->first,
                                   .last = entry->last,
                                   .reason = reason,
                                   .since_ns = 1,
                                   .until_ns = 2};
    if (range.first <= spool->released[entry->stream])
        range.first = spool->released[entry->stream] + 1;
    if (range.first > range.last)
        return;
    sim_trace(sim, "spool: %u:%llu-%llu are lost (%s)", range.stream,
              (unsigned long long)range.first, (unsigned long long)range.last,
              delivery_reason_text(reason));
    add_lost(sim, spool->lost, &spool->lost_count, &range);
    add_lost(sim, spool->untold, &spool->untold_count, &range);
}

// Losses of records that are acknowledged concern nobody any longer.
static void settle_lost(struct sim_spool *spool)
{
    size_t kept = 0;
    for (size_t i = 0; i < spool->lost_count; i++)
        if (spool->lost[i].last > spool->released[spool->lost[i].stream])
            spool->lost[kept++] = spool->lost[i];
    spool->lost_count = kept;
}

bool sim_spool_next_lost(struct sim *sim, struct delivery_range *range)
{
    struct sim_spool *spool = &sim->run.spool;
    if (spool->untold_count == 0)
        return false;
    *range = spool->untold[--spool->untold_count];
    return true;
}

static void evict(struct sim *sim)
{
    struct sim_spool *spool = &sim->run.spool;
    const uint32_t oldest = spool->entries[0].segment;
    while (spool->count && spool->entries[0].segment == oldest) {
        const struct sim_entry *entry = &spool->entries[0];
        if (entry->last > spool->released[entry->stream])
            sim_set_add(&sim->evicted[entry->stream], entry->first, entry->last);
        lose(sim, entry, entry->damaged ? DELIVERY_SPOOL_DAMAGED : DELIVERY_SPOOL_FULL);
        spool->records -= entry->last - entry->first + 1;
        remove_entry(spool, 0);
    }
}

static void write_entry(struct sim *sim, const struct delivery_action *action, bool torn)
{
    struct sim_run *run = &sim->run;
    struct sim_spool *spool = &run->spool;
    const uint64_t records = action->last - action->first + 1;
    if (spool->segment_records + records > spool->segment_max) {
        spool->segment++;
        spool->segment_records = 0;
    }
    spool->segment_records += (uint32_t)records;
    spool->records += records;
    struct sim_entry *entry = &spool->entries[spool->count++];
    *entry = (struct sim_entry){.stream = action->stream,
                                .first = action->first,
                                .last = action->last,
                                .segment = spool->segment,
                                .torn = torn};
    for (uint64_t number = action->first; number <= action->last; number++)
        entry->contents[number - action->first] =
            run->ring[action->stream][number % run->ring_records];
}

// Cuts off what was not written whole.
static void cut(struct sim_spool *spool)
{
    if (spool->count == 0 || !spool->entries[spool->count - 1].torn)
        return;
    const struct sim_entry *entry = &spool->entries[--spool->count];
    spool->records -= entry->last - entry->first + 1;
}

bool sim_spool_append(struct sim *sim, const struct delivery_action *action)
{
    struct sim_spool *spool = &sim->run.spool;
    const uint64_t records = action->last - action->first + 1;
    sim_check(sim, records <= SIM_BATCH && action->first > spool->spooled[action->stream],
              "appends rise");
    if (spool->disk_full)
        return false;
    while (spool->count &&
           (spool->records + records > spool->records_max || spool->count == SIM_ENTRIES))
        evict(sim);
    if (sim_strikes(sim, SIM_FAULT_spool_fail)) {
        write_entry(sim, action, true);
        // The process may end before it has cut it off again.
        if (sim_strikes(sim, SIM_FAULT_strike))
            sim_process_end(sim);
        else
            cut(spool);
        return false;
    }
    write_entry(sim, action, false);
    spool->spooled[action->stream] = action->last;
    spool->names = sim->run.names;
    return true;
}

void sim_spool_release(struct sim *sim, uint32_t stream, uint64_t last)
{
    struct sim_spool *spool = &sim->run.spool;
    if (last <= spool->released[stream])
        return;
    spool->released[stream] = last;
    settle_lost(spool);
    // Segments go as a whole.
    for (size_t begin = 0; begin < spool->count;) {
        const uint32_t segment = spool->entries[begin].segment;
        size_t end = begin;
        bool wanted = false;
        for (; end < spool->count && spool->entries[end].segment == segment; end++)
            wanted |= spool->entries[end].last > spool->released[spool->entries[end].stream];
        if (wanted) {
            begin = end;
            continue;
        }
        for (; end > begin; end--) {
            spool->records -= spool->entries[begin].last - spool->entries[begin].first + 1;
            remove_entry(spool, begin);
        }
    }
}

int sim_spool_at(struct sim *sim, uint32_t stream, uint64_t number)
{
    struct sim_spool *spool = &sim->run.spool;
    for (size_t i = 0; i < spool->count; i++) {
        const size_t at = (spool->cursor + i) % spool->count;
        const struct sim_entry *entry = &spool->entries[at];
        if (entry->stream != stream || number < entry->first || number > entry->last)
            continue;
        if (entry->damaged) {
            lose(sim, entry, DELIVERY_SPOOL_DAMAGED);
            spool->records -= entry->last - entry->first + 1;
            remove_entry(spool, at);
            return -1;
        }
        spool->cursor = at;
        return entry->contents[number - entry->first];
    }
    return -1;
}

void sim_spool_held(const struct sim *sim, uint32_t stream, struct sim_set *held)
{
    const struct sim_spool *spool = &sim->run.spool;
    for (size_t i = 0; i < spool->count; i++) {
        const struct sim_entry *entry = &spool->entries[i];
        if (entry->stream == stream && !entry->torn && !entry->damaged)
            sim_set_add(held, entry->first, entry->last);
    }
}

void sim_spool_damage(struct sim *sim)
{
    struct sim_spool *spool = &sim->run.spool;
    if (spool->count == 0)
        return;
    struct sim_entry *entry = &spool->entries[sim_below(sim, spool->count)];
    if (entry->torn)
        return;
    entry->damaged = true;
    sim_set_add(&sim->damaged[entry->stream], entry->first, entry->last);
    sim_trace(sim, "spool: %u:%llu-%llu are damaged", entry->stream,
              (unsigned long long)entry->first, (unsigned long long)entry->last);
}

// Of what was released a crash may let less be known: as much as shows in what is
// there.  Everything behind it is held, or told as lost.
static void forget_released(const struct sim_spool *spool, uint32_t stream, uint64_t *released)
{
    struct sim_set known = {0};
    for (size_t i = 0; i < spool->count; i++)
        if (spool->entries[i].stream == stream)
            sim_set_add(&known, spool->entries[i].first, spool->entries[i].last);
    for (size_t i = 0; i < spool->lost_count; i++)
        if (spool->lost[i].stream == stream)
            sim_set_add(&known, spool->lost[i].first, spool->lost[i].last);
    *released = spool->spooled[stream];
    while (*released > 0 && sim_set_has(&known, *released))
        --*released;
}

void sim_spool_attach(struct sim *sim)
{
    struct sim_spool *spool = &sim->run.spool;
    cut(spool);
    for (uint32_t stream = 0; stream < SIM_STREAMS; stream++)
        forget_released(spool, stream, &spool->released[stream]);
    for (size_t i = spool->count; i-- > 0;) {
        if (!spool->entries[i].damaged)
            continue;
        const struct sim_entry entry = spool->entries[i];
        spool->records -= entry.last - entry.first + 1;
        remove_entry(spool, i);
        lose(sim, &entry, DELIVERY_SPOOL_DAMAGED);
    }
    memcpy(spool->untold, spool->lost, sizeof spool->lost);
    spool->untold_count = spool->lost_count;
    spool->segment++;
    spool->segment_records = 0;
}
