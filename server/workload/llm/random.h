// Reproducible pseudo-random number generator: xoshiro256**, seeded with splitmix64 (Blackman and
// Vigna, arXiv:1805.01407).  Used by the token sampler and the generator of synthetic models.
#pragma once

#include <stdint.h>

struct random {
    uint64_t state[4];
};

static inline uint64_t random_rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static inline void random_seed(struct random *random, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        seed += UINT64_C(0x9e3779b97f4a7c15);
        uint64_t z = seed;
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        random->state[i] = z ^ z >> 31;
    }
}

static inline uint64_t random_next(struct random *random)
{
    uint64_t *s = random->state;
    uint64_t result = random_rotate(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = random_rotate(s[3], 45);
    return result;
}

// Returns a number uniformly distributed over 0 <= x < 1.
static inline double random_unit(struct random *random)
{
    return (double)(random_next(random) >> 11) * 0x1p-53;
}
