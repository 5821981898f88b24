#include "common/core/delivery/clock_offset.h"

enum {
    DRIFT_PART = 10000,      // clocks of computers stay within 100 ppm
    SET_BEYOND_NS = 5000000, // two clocks of one host are read this close to each other
};

static const uint64_t settle_ns = UINT64_C(10000000000);
static const int64_t error_max_ns = INT64_C(3600000000000);
static const int64_t time_max_ns = INT64_MAX / 4; // beyond any valid clock

// The maximum drift of the offset since `at_ns`, in either direction.
static int64_t drift_ns(const struct clock_offset *offset, uint64_t now_ns)
{
    const uint64_t elapsed_ns = now_ns > offset->at_ns ? now_ns - offset->at_ns : 0;
    return (int64_t)(elapsed_ns / DRIFT_PART) + 1;
}

// Whether the host's wall clock was set: it advanced differently from the monotonic one.
static bool was_set(const struct clock_offset *offset, int64_t wall_ns, uint64_t now_ns)
{
    int64_t wall_elapsed_ns, apart_ns;
    if (now_ns < offset->at_ns || now_ns - offset->at_ns > INT64_MAX / 2 ||
        __builtin_sub_overflow(wall_ns, offset->wall_ns, &wall_elapsed_ns) ||
        __builtin_sub_overflow(wall_elapsed_ns, (int64_t)(now_ns - offset->at_ns), &apart_ns))
        return true;
    const int64_t allowed_ns = drift_ns(offset, now_ns) + SET_BEYOND_NS;
    return apart_ns > allowed_ns || apart_ns < -allowed_ns;
}

void clock_offset_add_sample(struct clock_offset *offset, int64_t sent_ns, int64_t answered_ns,
                             int64_t received_ns, uint64_t now_ns)
{
    if (sent_ns <= 0 || answered_ns <= 0 || received_ns < sent_ns || received_ns > time_max_ns ||
        answered_ns > time_max_ns)
        return;
    if (offset->wall_ns && was_set(offset, received_ns, now_ns))
        *offset = (struct clock_offset){.settled_ns = now_ns + settle_ns};
    struct clock_offset taken = {.known = now_ns >= offset->settled_ns,
                                 .low_ns = sent_ns - answered_ns,
                                 .high_ns = received_ns - answered_ns,
                                 .at_ns = now_ns,
                                 .wall_ns = received_ns,
                                 .settled_ns = offset->settled_ns};
    if (offset->known) {
        const int64_t drift = drift_ns(offset, now_ns);
        const int64_t low_ns = offset->low_ns - drift, high_ns = offset->high_ns + drift;
        if (low_ns <= taken.high_ns && taken.low_ns <= high_ns) {
            taken.low_ns = low_ns > taken.low_ns ? low_ns : taken.low_ns;
            taken.high_ns = high_ns < taken.high_ns ? high_ns : taken.high_ns;
        }
    }
    *offset = taken;
}

bool clock_offset_estimate(const struct clock_offset *offset, uint64_t now_ns, int64_t *offset_ns,
                           int64_t *error_ns)
{
    if (!offset->known)
        return false;
    const int64_t width_ns = offset->high_ns - offset->low_ns;
    const int64_t half_ns = width_ns / 2 + width_ns % 2;
    *offset_ns = offset->low_ns + width_ns / 2;
    if (half_ns > error_max_ns - drift_ns(offset, now_ns))
        return false;
    *error_ns = half_ns + drift_ns(offset, now_ns);
    return true;
}
