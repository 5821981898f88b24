// A set of a stream's numbers, for the simulator: counting and comparing all of a
// stream is a few machine words.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    SIM_NUMBERS = 1023, // of a stream at most
    SIM_WORDS = (SIM_NUMBERS + 64) / 64,
};

struct sim_set {
    uint64_t words[SIM_WORDS]; // bit n % 64 of word n / 64: number n
};

// The bits of first..last that lie in `word`.
static inline uint64_t sim_mask(unsigned word, uint64_t first, uint64_t last)
{
    const uint64_t begin = (uint64_t)word * 64, end = begin + 63;
    if (first > end || last < begin)
        return 0;
    uint64_t mask = UINT64_MAX;
    if (first > begin)
        mask &= UINT64_MAX << (first - begin);
    if (last < end)
        mask &= UINT64_MAX >> (end - last);
    return mask;
}

static inline void sim_set_add(struct sim_set *set, uint64_t first, uint64_t last)
{
    for (unsigned i = (unsigned)(first / 64); i <= last / 64 && i < SIM_WORDS; i++)
        set->words[i] |= sim_mask(i, first, last);
}

static inline void sim_set_remove(struct sim_set *set, uint64_t first, uint64_t last)
{
    for (unsigned i = (unsigned)(first / 64); i <= last / 64 && i < SIM_WORDS; i++)
        set->words[i] &= ~sim_mask(i, first, last);
}

static inline bool sim_set_has(const struct sim_set *set, uint64_t number)
{
    return set->words[number / 64] >> number % 64 & 1;
}

static inline void sim_set_unite(struct sim_set *set, const struct sim_set *other)
{
    for (unsigned i = 0; i < SIM_WORDS; i++)
        set->words[i] |= other->words[i];
}

static inline void sim_set_subtract(struct sim_set *set, const struct sim_set *other)
{
    for (unsigned i = 0; i < SIM_WORDS; i++)
        set->words[i] &= ~other->words[i];
}

static inline bool sim_set_meets(const struct sim_set *a, const struct sim_set *b)
{
    uint64_t both = 0;
    for (unsigned i = 0; i < SIM_WORDS; i++)
        both |= a->words[i] & b->words[i];
    return both != 0;
}

// Whether first..last are all in it.
static inline bool sim_set_covers(const struct sim_set *set, uint64_t first, uint64_t last)
{
    uint64_t missing = 0;
    for (unsigned i = (unsigned)(first / 64); first <= last && i <= last / 64; i++)
        missing |= sim_mask(i, first, last) & ~set->words[i];
    return missing == 0;
}

// Whether it is 1..last, no more and no less.
static inline bool sim_set_is_up_to(const struct sim_set *set, uint64_t last)
{
    uint64_t wrong = 0;
    for (unsigned i = 0; i < SIM_WORDS; i++)
        wrong |= set->words[i] ^ (last ? sim_mask(i, 1, last) : 0);
    return wrong == 0;
}

static inline unsigned sim_set_count(const struct sim_set *set)
{
    unsigned count = 0;
    for (unsigned i = 0; i < SIM_WORDS; i++)
        count += (unsigned)__builtin_popcountll(set->words[i]);
    return count;
}
