#include "tests/support/test.h"

#include "common/core/base/slice_size.h"

enum { AIM = 1000 };

// What a step took decides how much the next one does.
TEST_CASE(test_the_next_step_aims_at_the_time)
{
    static const struct {
        unsigned now;
        uint64_t took_ns;
        unsigned next;
    } cases[] = {
        {100, AIM, 100},       {100, AIM / 2, 100},  {100, AIM / 2 - 1, 200},
        {100, 0, 200},         {100, AIM + 1, 99},   {100, 2 * AIM, 50},
        {100, 3 * AIM, 33},    {100, 4 * AIM, 25},   {100, 1000 * AIM, 25},
        {100, UINT64_MAX, 25}, {20, UINT64_MAX, 10}, {10, 2 * AIM, 10},
        {900, 0, 1000},        {1000, 0, 1000},      {1000, 3 * AIM + 999, 250},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct slice_size size = {cases[i].now, 10, 1000};
        slice_size_adapt(&size, cases[i].took_ns, AIM);
        assert_int_equal(size.now, cases[i].next);
    }
}

// The largest step and the longest times do not overflow.
TEST_CASE(test_no_step_is_too_large)
{
    struct slice_size size = {UINT32_MAX, 1, UINT32_MAX};
    slice_size_adapt(&size, 0, UINT32_MAX);
    assert_int_equal(size.now, UINT32_MAX);
    slice_size_adapt(&size, 2 * (uint64_t)UINT32_MAX, UINT32_MAX);
    assert_int_equal(size.now, UINT32_MAX / 2);
}

TEST_MAIN(test_the_next_step_aims_at_the_time, test_no_step_is_too_large)
