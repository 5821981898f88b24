// Deduplication of offered records and ranges, and the names of drop reasons.
#include "common/core/delivery/delivery.h"

#include <assert.h>

static const char *const reason_texts[DELIVERY_REASON_COUNT] = {
#define DELIVERY_REASON_TEXT(name, text) [DELIVERY_##name] = text,
    DELIVERY_REASONS(DELIVERY_REASON_TEXT)
#undef DELIVERY_REASON_TEXT
};

const char *delivery_reason_text(enum delivery_reason reason)
{
    assert(reason < DELIVERY_REASON_COUNT);
    return reason_texts[reason];
}

enum delivery_verdict delivery_offer(uint64_t next, uint64_t first, uint64_t last,
                                     uint64_t *take_first, uint64_t *duplicates)
{
    assert(first >= 1 && first <= last);
    *take_first = next;
    *duplicates = 0;
    if (first > next)
        return DELIVERY_GAP;
    if (last < next) {
        *duplicates = last - first + 1;
        return DELIVERY_KNOWN;
    }
    *duplicates = next - first;
    return DELIVERY_TAKE;
}

bool delivery_offer_drop(uint64_t next, struct delivery_range *range)
{
    if (range->last < next || range->first > next)
        return false;
    range->first = next;
    return true;
}
