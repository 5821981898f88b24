#include "common/core/delivery/delivery_dropped.h"

#include "tests/support/test.h"

static enum status add(struct delivery_dropped *dropped, uint32_t stream, uint64_t first,
                       uint64_t last, enum delivery_reason reason, int64_t at_ns)
{
    const struct delivery_range range = {.stream = stream,
                                         .first = first,
                                         .last = last,
                                         .reason = reason,
                                         .since_ns = at_ns,
                                         .until_ns = at_ns};
    return delivery_dropped_add(dropped, &range);
}

static bool same(const struct delivery_range *a, const struct delivery_range *b)
{
    return a->stream == b->stream && a->first == b->first && a->last == b->last &&
           a->reason == b->reason && a->since_ns == b->since_ns && a->until_ns == b->until_ns;
}

// What is left of ranges told in turn.
TEST_CASE(test_adding)
{
    static const struct {
        const char *what;
        struct delivery_range told[4];
        struct delivery_range left[4];
    } cases[] = {
        {"one",
         {{.first = 1, .last = 5, .reason = DELIVERY_SPOOL_FULL}},
         {{.first = 1, .last = 5, .reason = DELIVERY_SPOOL_FULL}}},
        {"neighbours merge, their times too",
         {{.first = 6, .last = 9, .reason = DELIVERY_SPOOL_FULL, .since_ns = 7, .until_ns = 8},
          {.first = 1, .last = 5, .reason = DELIVERY_SPOOL_FULL, .since_ns = 3, .until_ns = 4},
          {.first = 10, .last = 10, .reason = DELIVERY_SPOOL_FULL, .since_ns = 5, .until_ns = 9}},
         {{.first = 1, .last = 10, .reason = DELIVERY_SPOOL_FULL, .since_ns = 3, .until_ns = 9}}},
        {"what lies between joins both",
         {{.first = 1, .last = 2, .reason = DELIVERY_SPOOL_FULL, .since_ns = 1, .until_ns = 1},
          {.first = 4, .last = 5, .reason = DELIVERY_SPOOL_FULL, .since_ns = 3, .until_ns = 3},
          {.first = 3, .last = 3, .reason = DELIVERY_SPOOL_FULL, .since_ns = 2, .until_ns = 2}},
         {{.first = 1, .last = 5, .reason = DELIVERY_SPOOL_FULL, .since_ns = 1, .until_ns = 3}}},
        {"other reasons and streams stay apart",
         {{.first = 1, .last = 2, .reason = DELIVERY_SPOOL_FULL},
          {.first = 3, .last = 5, .reason = DELIVERY_SPOOL_DAMAGED},
          {.stream = 1, .first = 3, .last = 5, .reason = DELIVERY_SPOOL_FULL}},
         {{.first = 1, .last = 2, .reason = DELIVERY_SPOOL_FULL},
          {.first = 3, .last = 5, .reason = DELIVERY_SPOOL_DAMAGED},
          {.stream = 1, .first = 3, .last = 5, .reason = DELIVERY_SPOOL_FULL}}},
        {"the first reason told stays",
         {{.first = 4, .last = 6, .reason = DELIVERY_SPOOL_DAMAGED},
          {.first = 1, .last = 9, .reason = DELIVERY_SPOOL_FULL}},
         {{.first = 1, .last = 3, .reason = DELIVERY_SPOOL_FULL},
          {.first = 4, .last = 6, .reason = DELIVERY_SPOOL_DAMAGED},
          {.first = 7, .last = 9, .reason = DELIVERY_SPOOL_FULL}}},
        {"told twice",
         {{.first = 4, .last = 6, .reason = DELIVERY_SPOOL_FULL},
          {.first = 4, .last = 6, .reason = DELIVERY_SPOOL_FULL}},
         {{.first = 4, .last = 6, .reason = DELIVERY_SPOOL_FULL}}},
        {"sorted by stream",
         {{.stream = 9, .first = 1, .last = 1, .reason = DELIVERY_SPOOL_FULL},
          {.stream = 2, .first = 8, .last = 8, .reason = DELIVERY_SPOOL_FULL},
          {.stream = 2, .first = 3, .last = 3, .reason = DELIVERY_SPOOL_FULL}},
         {{.stream = 2, .first = 3, .last = 3, .reason = DELIVERY_SPOOL_FULL},
          {.stream = 2, .first = 8, .last = 8, .reason = DELIVERY_SPOOL_FULL},
          {.stream = 9, .first = 1, .last = 1, .reason = DELIVERY_SPOOL_FULL}}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct delivery_dropped dropped = {0};
        size_t left = 0;
        for (size_t k = 0; k < COUNT_OF(cases[i].told) && cases[i].told[k].first; k++)
            assert_int_equal(delivery_dropped_add(&dropped, &cases[i].told[k]), STATUS_OK);
        while (left < COUNT_OF(cases[i].left) && cases[i].left[left].first)
            left++;
        if (dropped.count != left)
            fail_msg("%s: %zu ranges are left", cases[i].what, dropped.count);
        for (size_t k = 0; k < left; k++)
            if (!same(&dropped.ranges[k], &cases[i].left[k]))
                fail_msg("%s: range %zu is another one", cases[i].what, k);
        delivery_dropped_deinit(&dropped);
    }
}

TEST_CASE(test_full)
{
    struct delivery_dropped dropped = {0};
    for (uint64_t i = 0; i < DELIVERY_DROPS_MAX; i++)
        assert_int_equal(add(&dropped, 0, 3 * i + 2, 3 * i + 2, DELIVERY_SPOOL_FULL, 1), STATUS_OK);
    assert_int_equal(dropped.count, DELIVERY_DROPS_MAX);
    assert_int_equal(add(&dropped, 1, 1, 1, DELIVERY_SPOOL_FULL, 1), STATUS_FULL);
    assert_int_equal(dropped.count, DELIVERY_DROPS_MAX);
    // What joins another needs no room, and may make some.
    assert_int_equal(add(&dropped, 0, 3, 4, DELIVERY_SPOOL_FULL, 1), STATUS_OK);
    assert_int_equal(dropped.count, DELIVERY_DROPS_MAX - 1);
    assert_int_equal(add(&dropped, 1, 1, 1, DELIVERY_SPOOL_FULL, 1), STATUS_OK);
    delivery_dropped_settle(&dropped, 0, 3 * DELIVERY_DROPS_MAX);
    assert_int_equal(dropped.count, 1);
    delivery_dropped_deinit(&dropped);
}

// Against a plain map of numbers.
TEST_CASE(test_random_ranges)
{
    enum { NUMBERS = 120, STREAMS = 3, STEPS = 3000 };
    bool map[STREAMS][NUMBERS + 2];
    uint64_t random_state = 1;
    for (unsigned life = 0; life < 20; life++) {
        struct delivery_dropped dropped = {0};
        memset(map, 0, sizeof map);
        for (unsigned step = 0; step < STEPS / 20; step++) {
            random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407U;
            const uint64_t chance = random_state >> 33;
            const uint32_t stream = (uint32_t)(chance % STREAMS);
            const uint64_t first = 1 + chance / 8 % NUMBERS;
            const uint64_t reach = chance / 1024 % 12;
            const uint64_t last = first + reach < NUMBERS ? first + reach : NUMBERS;
            if (chance / 16384 % 5 == 0) {
                delivery_dropped_settle(&dropped, stream, first / 4);
                memset(map[stream], 0, first / 4 + 1);
            } else {
                assert_int_equal(add(&dropped, stream, first, last,
                                     chance & 4 ? DELIVERY_SPOOL_FULL : DELIVERY_SPOOL_DAMAGED, 1),
                                 STATUS_OK);
                memset(&map[stream][first], 1, last - first + 1);
            }
            for (uint32_t s = 0; s < STREAMS; s++) {
                uint64_t among = 0;
                for (uint64_t n = NUMBERS; n >= 1; n--) {
                    uint64_t skip = n, next = n;
                    while (map[s][skip])
                        skip++;
                    while (next <= NUMBERS && !map[s][next])
                        next++;
                    among += map[s][n];
                    assert_int_equal(delivery_dropped_skip(&dropped, s, n), skip);
                    assert_int_equal(delivery_dropped_next(&dropped, s, n),
                                     next > NUMBERS ? UINT64_MAX : next);
                    assert_int_equal(delivery_dropped_count(&dropped, s, n, NUMBERS), among);
                }
                size_t count;
                const struct delivery_range *ranges =
                    delivery_dropped_of_stream(&dropped, s, &count);
                for (size_t i = 0; i < count; i++)
                    assert_true(ranges[i].stream == s && ranges[i].first <= ranges[i].last &&
                                (i == 0 || ranges[i - 1].last < ranges[i].first));
            }
        }
        delivery_dropped_deinit(&dropped);
    }
}

TEST_MAIN(test_adding, test_full, test_random_ranges)
