#include "server/collector/refusals.h"

#include <stdatomic.h>
#include <stdlib.h>

struct refusals {
    // Counters only, nothing is published by them: relaxed.
    atomic_uint_fast64_t counted[REFUSAL_COUNT];
    uint64_t saving[REFUSAL_COUNT]; // in the transaction that is open; writer
};

static const char *const keys[REFUSAL_COUNT] = {
#define REFUSAL_KEY(name, key) [REFUSAL_##name] = key,
    REFUSALS(REFUSAL_KEY)
#undef REFUSAL_KEY
};

enum status refusals_new(struct refusals **out, struct error *err)
{
    struct refusals *refusals = calloc(1, sizeof *refusals);
    if (!refusals)
        return error_set(err, STATUS_NOMEM, "refusals: out of memory");
    *out = refusals;
    return STATUS_OK;
}

void refusals_free(struct refusals *refusals)
{
    free(refusals);
}

const char *refusal_key(enum refusal reason)
{
    return keys[reason];
}

void refusals_count(struct refusals *refusals, enum refusal reason, uint64_t count)
{
    if (refusals && count)
        (void)atomic_fetch_add_explicit(&refusals->counted[reason], count, memory_order_relaxed);
}

bool refusals_are_waiting(struct refusals *refusals)
{
    for (unsigned i = 0; refusals && i < REFUSAL_COUNT; i++)
        if (atomic_load_explicit(&refusals->counted[i], memory_order_relaxed) != 0)
            return true;
    return false;
}

const uint64_t *refusals_save(struct refusals *refusals)
{
    for (unsigned i = 0; i < REFUSAL_COUNT; i++)
        refusals->saving[i] +=
            atomic_exchange_explicit(&refusals->counted[i], 0, memory_order_relaxed);
    return refusals->saving;
}

void refusals_saved(struct refusals *refusals, bool committed)
{
    for (unsigned i = 0; refusals && i < REFUSAL_COUNT; i++) {
        if (!committed)
            refusals_count(refusals, (enum refusal)i, refusals->saving[i]);
        refusals->saving[i] = 0;
    }
}
