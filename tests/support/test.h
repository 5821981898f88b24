// What every cmocka test needs, in the order cmocka wants it.
#pragma once

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Declares a test case that has no state: TEST_CASE(test_something) { ... }
#define TEST_CASE(name) static void name(__attribute__((unused)) void **state)

// Declares one that takes what its set-up made: STATE_CASE(test_something, struct rig *rig)
#define STATE_CASE(name, parameter)                                                                \
    static void name##_with(parameter);                                                            \
    static void name(void **state)                                                                 \
    {                                                                                              \
        name##_with(*state);                                                                       \
    }                                                                                              \
    static void name##_with(parameter)

// Declares a set-up or a tear-down that has no state; it returns 0 when it succeeded.
#define TEST_FIXTURE(name) static int name(__attribute__((unused)) void **state)

// Fails with the error's text when a call did not succeed.
#define expect_ok(call, err)                                                                       \
    do {                                                                                           \
        if ((call) != STATUS_OK)                                                                   \
            fail_msg("%s", (err)->text);                                                           \
    } while (0)

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

// The text that a format makes, until this thread has asked for four others.
__attribute__((format(printf, 1, 2))) static inline const char *format_text(const char *format, ...)
{
    static _Thread_local char texts[4][4096];
    static _Thread_local unsigned next;
    char *text = texts[next++ % COUNT_OF(texts)];
    va_list list;
    va_start(list, format);
    const int size = vsnprintf(text, sizeof texts[0], format, list);
    va_end(list);
    assert_in_range(size, 0, sizeof texts[0] - 1);
    return text;
}

// main() that runs the cases named: TEST_MAIN(test_one, test_two).  EACH calls a set-up and a
// tear-down (or NULL) around each case, ONCE around them all.
#define TEST_MAIN(...) TEST_MAIN_OF(TEST_RUN(__VA_ARGS__))
#define TEST_MAIN_EACH(set_up, tear_down, ...)                                                     \
    TEST_MAIN_OF(TEST_RUN_EACH(set_up, tear_down, __VA_ARGS__))
#define TEST_MAIN_ONCE(set_up, tear_down, ...)                                                     \
    TEST_MAIN_OF(TEST_RUN_ONCE(set_up, tear_down, __VA_ARGS__))
#define TEST_MAIN_OF(run)                                                                          \
    int main(void)                                                                                 \
    {                                                                                              \
        return run;                                                                                \
    }

// The same within a main() that does more; the value is the exit status.
#define TEST_RUN(...) TEST_RUN_ALL(NULL, NULL, NULL, NULL, __VA_ARGS__)
#define TEST_RUN_EACH(set_up, tear_down, ...)                                                      \
    TEST_RUN_ALL(set_up, tear_down, NULL, NULL, __VA_ARGS__)
#define TEST_RUN_ONCE(set_up, tear_down, ...)                                                      \
    TEST_RUN_ALL(NULL, NULL, set_up, tear_down, __VA_ARGS__)
#define TEST_RUN_ALL(set_up, tear_down, first, last, ...)                                          \
    test_run((const CMUnitTestFunction[]){__VA_ARGS__},                                            \
             sizeof((const CMUnitTestFunction[]){__VA_ARGS__}) / sizeof(CMUnitTestFunction),       \
             #__VA_ARGS__, set_up, tear_down, first, last)

// Runs `count` cases; `names` has theirs, separated by commas.  INFERSTAT_TEST_PART=K/N runs every
// Nth case, from the Kth (1 is the first).
static inline int test_run(const CMUnitTestFunction *cases, size_t count, const char *names,
                           CMFixtureFunction before, CMFixtureFunction after,
                           CMFixtureFunction first, CMFixtureFunction last)
{
    struct CMUnitTest tests[64] = {{0}}; // cmocka skips those without a name
    char text[4096];
    assert(count <= COUNT_OF(tests) && strlen(names) < sizeof text);
    const char *part = getenv("INFERSTAT_TEST_PART");
    unsigned first_case = 1, step = 1;
    assert(!part || (sscanf(part, "%u/%u", &first_case, &step) == 2 && first_case && step));
    char *rest = strcpy(text, names);
    for (size_t i = 0; i < count; i++) {
        const char *name = strtok_r(rest, ", ", &rest);
        if ((i + 1) % step == first_case % step)
            tests[i] = (struct CMUnitTest){
                .name = name, .test_func = cases[i], .setup_func = before, .teardown_func = after};
    }
    return cmocka_run_group_tests(tests, first, last);
}

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
