#include "common/core/delivery/clock_offset.h"
#include "tests/support/test.h"

static const int64_t second = INT64_C(1000000000);

TEST_CASE(test_nothing_is_known)
{
    const struct clock_offset offset = {0};
    int64_t offset_ns, error_ns;
    assert_false(clock_offset_estimate(&offset, 1, &offset_ns, &error_ns));
}

// Answers in turn, and what is known after the last.
TEST_CASE(test_answers)
{
    static const struct {
        const char *what;
        struct {
            int64_t sent_ns, answered_ns, received_ns;
            uint64_t now_ns;
        } answers[3];
        bool known;
        int64_t offset_ns, error_ns; // at the time of the last
    } cases[] = {
        {"one answer", {{1000, 500, 1100, 1}}, true, 550, 51},
        {"the collector is ahead", {{1000, 5000, 1100, 1}}, true, -3950, 51},
        {"an answer at once", {{1000, 1000, 1000, 1}}, true, 0, 1},
        {"a second one narrows it down",
         {{1000, 500, 1100, 1}, {2000, 1410, 2020, 1000}},
         true,
         595,
         7}, // [500, 600] widened by 1, and [590, 610]
        {"an old one does not widen it",
         {{2000, 1500, 2100, 1000}, {1000, 600, 3000, 1900}},
         true,
         550,
         52},
        {"one that fits nothing begins anew",
         {{1000, 500, 1100, 1}, {2000, 9000, 2010, 1000}},
         true,
         -6995,
         6},
        {"never asked", {{0, 500, 1100, 1}}, false, 0, 0},
        {"answered before it was asked", {{1000, 500, 999, 1}}, false, 0, 0},
        {"no time", {{1000, -5, 1100, 1}}, false, 0, 0},
        {"no possible year", {{1, INT64_MAX, 2, 1}}, false, 0, 0},
        {"no possible year here", {{1, 1, INT64_MAX, 1}}, false, 0, 0},
        {"an hour under way", {{1, 1, INT64_C(8000000000000), 1}}, false, 0, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct clock_offset offset = {0};
        uint64_t now_ns = 0;
        for (size_t k = 0; k < COUNT_OF(cases[i].answers) && cases[i].answers[k].now_ns; k++) {
            now_ns = cases[i].answers[k].now_ns;
            clock_offset_add_sample(&offset, cases[i].answers[k].sent_ns,
                                    cases[i].answers[k].answered_ns,
                                    cases[i].answers[k].received_ns, now_ns);
        }
        int64_t offset_ns = 0, error_ns = 0;
        const bool known = clock_offset_estimate(&offset, now_ns, &offset_ns, &error_ns);
        if (known != cases[i].known ||
            (known && (offset_ns != cases[i].offset_ns || error_ns != cases[i].error_ns)))
            fail_msg("%s: %d, %lld, %lld", cases[i].what, known, (long long)offset_ns,
                     (long long)error_ns);
    }
}

TEST_CASE(test_certainty_fades)
{
    struct clock_offset offset = {0};
    clock_offset_add_sample(&offset, 1000, 500, 1100, 1);
    int64_t offset_ns, error_ns;
    assert_true(clock_offset_estimate(&offset, 1 + 10 * (uint64_t)second, &offset_ns, &error_ns));
    assert_int_equal(offset_ns, 550);
    assert_int_equal(error_ns, 50 + 1000000 + 1); // 100 ppm
    assert_true(clock_offset_estimate(&offset, 0, &offset_ns, &error_ns));
    assert_false(clock_offset_estimate(&offset, UINT64_MAX, &offset_ns, &error_ns));
}

// The host's clock is set by a step that the widths of the answers would hide.
TEST_CASE(test_a_clock_that_is_set)
{
    struct clock_offset offset = {0};
    int64_t offset_ns, error_ns;
    const int64_t wide = 100000000, step = 60000000, year = 1000 * second;
    clock_offset_add_sample(&offset, year, year + wide, year + wide, (uint64_t)second);
    assert_true(clock_offset_estimate(&offset, (uint64_t)second, &offset_ns, &error_ns));
    assert_int_equal(offset_ns, -wide / 2);
    // A second later by all clocks but the host's, which was put ahead: an answer that
    // may be one to a question from before says nothing, and neither do those that
    // follow it soon.
    for (int64_t seconds = 1; seconds <= 12; seconds++) {
        const int64_t then = year + seconds * second;
        const uint64_t now = (uint64_t)(1 + seconds) * (uint64_t)second;
        clock_offset_add_sample(&offset, then + step, then + wide, then + step + wide, now);
        assert_int_equal(clock_offset_estimate(&offset, now, &offset_ns, &error_ns), seconds > 10);
    }
    assert_int_equal(offset_ns, step - wide / 2);
    assert_int_equal(error_ns, wide / 2 + 1);
}

// True clocks, drifting apart, and delays by chance: the bound always holds.
TEST_CASE(test_the_bound_holds)
{
    uint64_t chance = 7;
    for (unsigned life = 0; life < 50; life++) {
        struct clock_offset offset = {0};
        const int64_t ahead = ((int64_t)life - 25) * 40 * second;
        const int64_t ppm = (int64_t)life % 7 * 30 - 90;
        uint64_t now = 100000 * (uint64_t)second;
        for (unsigned step = 0; step < 200; step++) {
            chance = chance * UINT64_C(6364136223846793005) + 1442695040888963407U;
            const uint64_t there = chance >> 40, back = chance >> 20 & 0xffffff;
            // The collector's clock is right, the host's runs away from it by ppm.
            const uint64_t answered = now + there, received = answered + back;
            const int64_t sent_wall = (int64_t)now + ahead + (int64_t)now * ppm / 1000000;
            const int64_t received_wall =
                (int64_t)received + ahead + (int64_t)received * ppm / 1000000;
            clock_offset_add_sample(&offset, sent_wall, (int64_t)answered, received_wall, received);
            int64_t offset_ns, error_ns;
            now = received + (chance >> 10) % (uint64_t)(10 * second);
            assert_true(clock_offset_estimate(&offset, now, &offset_ns, &error_ns));
            const int64_t truth = ahead + (int64_t)now * ppm / 1000000;
            assert_true(truth >= offset_ns - error_ns && truth <= offset_ns + error_ns);
        }
    }
}

TEST_MAIN(test_nothing_is_known, test_answers, test_certainty_fades, test_a_clock_that_is_set,
          test_the_bound_holds)
