// How much of the thread rollups take: in a second of turns, each of which works for a
// millisecond where it may.
#include "server/collector/rollup_pace.h"
#include "tests/support/test.h"

#define MS UINT64_C(1000000)

struct load {
    unsigned rows_per_ms;
    bool is_busy;
    unsigned least, most; // milliseconds of the last second that it works
};

static unsigned work_for(const struct load *load, unsigned turns, uint64_t *now_ns,
                         struct rollup_pace *pace)
{
    unsigned worked = 0;
    for (unsigned turn = 0; turn < turns; turn++, *now_ns += MS) {
        rollup_pace_tell(pace, load->is_busy);
        if (load->rows_per_ms > 0)
            rollup_pace_hear(pace, load->rows_per_ms, *now_ns);
        if (!rollup_pace_allows(pace, *now_ns))
            continue;
        rollup_pace_worked(pace, *now_ns, *now_ns + MS);
        worked++;
    }
    return worked;
}

static void load_says_how_much(void **state)
{
    static const struct load loads[] = {
        {0, false, 1000, 1000}, // alone
        {400, true, 40, 50},    // much
        {400, false, 40, 50},   // much, and the inbox is empty now and then
        {1, false, 450, 550},   // little
        {1, true, 40, 50},      // little, but more waits already
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(loads); i++) {
        struct rollup_pace pace = {0};
        uint64_t now_ns = 3600000 * MS;
        (void)work_for(&loads[i], 1000, &now_ns, &pace);
        assert_in_range(work_for(&loads[i], 1000, &now_ns, &pace), loads[i].least, loads[i].most);
    }
}

static void silence_ends_a_rest(void **state)
{
    struct rollup_pace pace = {0};
    const uint64_t now_ns = 3600000 * MS;
    (void)state;
    rollup_pace_hear(&pace, 1000, now_ns);
    assert_false(rollup_pace_is_quiet(&pace, now_ns));
    rollup_pace_worked(&pace, now_ns, now_ns + 1000 * MS);
    assert_false(rollup_pace_allows(&pace, now_ns + 499 * MS));
    assert_true(rollup_pace_allows(&pace, now_ns + 500 * MS));
    rollup_pace_tell(&pace, true);
    assert_false(rollup_pace_is_quiet(&pace, now_ns + 500 * MS));
    assert_false(rollup_pace_allows(&pace, now_ns + 500 * MS));
    assert_true(rollup_pace_allows(&pace, now_ns + 21000 * MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(load_says_how_much),
        cmocka_unit_test(silence_ends_a_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
