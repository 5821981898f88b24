#include "server/collector/threads/reject_counters.h"

#include <stdatomic.h>
#include <stdlib.h>

struct reject_counters {
    // Plain counters that publish nothing: relaxed.
    atomic_uint_fast64_t counted[REFUSAL_COUNT];
    uint64_t saving[REFUSAL_COUNT]; // in the current transaction; writer thread
};

static const char *const keys[REFUSAL_COUNT] = {
#define REFUSAL_KEY(name, key) [REFUSAL_##name] = key,
    REFUSALS(REFUSAL_KEY)
#undef REFUSAL_KEY
};

enum status reject_counters_new(struct reject_counters **out, struct error *err)
{
    struct reject_counters *reject_counters = calloc(1, sizeof *reject_counters);
    if (!reject_counters)
        return error_no_memory(err, "refusals");
    *out = reject_counters;
    return STATUS_OK;
}

void reject_counters_free(struct reject_counters *reject_counters)
{
    free(reject_counters);
}

const char *refusal_key(enum refusal reason)
{
    return keys[reason];
}

void reject_counters_count(struct reject_counters *reject_counters, enum refusal reason,
                           uint64_t count)
{
    if (reject_counters && count)
        (void)atomic_fetch_add_explicit(&reject_counters->counted[reason], count,
                                        memory_order_relaxed);
}

bool reject_counters_are_unsaved(struct reject_counters *reject_counters)
{
    for (unsigned i = 0; reject_counters && i < REFUSAL_COUNT; i++)
        if (atomic_load_explicit(&reject_counters->counted[i], memory_order_relaxed) != 0)
            return true;
    return false;
}

const uint64_t *reject_counters_save(struct reject_counters *reject_counters)
{
    for (unsigned i = 0; i < REFUSAL_COUNT; i++)
        reject_counters->saving[i] +=
            atomic_exchange_explicit(&reject_counters->counted[i], 0, memory_order_relaxed);
    return reject_counters->saving;
}

void reject_counters_saved(struct reject_counters *reject_counters, bool committed)
{
    for (unsigned i = 0; reject_counters && i < REFUSAL_COUNT; i++) {
        if (!committed)
            reject_counters_count(reject_counters, (enum refusal)i, reject_counters->saving[i]);
        reject_counters->saving[i] = 0;
    }
}
