#include "server/collector/threads/reject_counters.h"

static const char *const keys[REFUSAL_COUNT] = {
#define REFUSAL_KEY(name, key) [REFUSAL_##name] = key,
    REFUSALS(REFUSAL_KEY)
#undef REFUSAL_KEY
};

const char *refusal_key(enum refusal reason)
{
    return keys[reason];
}

void reject_counters_count(struct reject_counters *reject_counters, enum refusal reason,
                           uint64_t count)
{
    if (count == 0)
        return;
    (void)atomic_fetch_add_explicit(&reject_counters->unsaved[reason], count, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&reject_counters->total[reason], count, memory_order_relaxed);
}

bool reject_counters_are_unsaved(struct reject_counters *reject_counters)
{
    for (unsigned i = 0; i < REFUSAL_COUNT; i++)
        if (atomic_load_explicit(&reject_counters->unsaved[i], memory_order_relaxed) != 0)
            return true;
    return false;
}

void reject_counters_read(struct reject_counters *reject_counters, uint64_t counts[REFUSAL_COUNT])
{
    for (unsigned i = 0; i < REFUSAL_COUNT; i++)
        counts[i] = atomic_load_explicit(&reject_counters->unsaved[i], memory_order_relaxed);
}

void reject_counters_saved(struct reject_counters *reject_counters,
                           const uint64_t counts[REFUSAL_COUNT])
{
    for (unsigned i = 0; i < REFUSAL_COUNT; i++)
        (void)atomic_fetch_sub_explicit(&reject_counters->unsaved[i], counts[i],
                                        memory_order_relaxed);
}
