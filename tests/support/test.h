// What every cmocka test needs, in the order cmocka wants it.
#ifndef INFERSTAT_TESTS_SUPPORT_TEST_H
#define INFERSTAT_TESTS_SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

// Declares a test case that has no state: TEST_CASE(test_something) { ... }
#define TEST_CASE(name) static void name(__attribute__((unused)) void **state)

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

// A small deterministic generator for random properties: xorshift64*, Vigna 2016.
static inline uint64_t test_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

// The rounds of a random test: INFERSTAT_TEST_VOLUME (default 1) times those given.
static inline unsigned test_volume(unsigned rounds)
{
    const char *text = getenv("INFERSTAT_TEST_VOLUME");
    const unsigned long volume = text ? strtoul(text, NULL, 10) : 1;
    return volume >= 1 && volume <= 10000 ? rounds * (unsigned)volume : rounds;
}

#endif
