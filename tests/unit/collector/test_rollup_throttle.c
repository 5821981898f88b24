// How much of the thread rollups take: in a second of turns, each of which works for a
// millisecond where it may.
#include "server/collector/rollup/rollup_throttle.h"
#include "tests/support/test.h"

#define MS UINT64_C(1000000)

struct load {
    unsigned rows_per_ms;
    bool is_busy;
    uint64_t lag_rows;
    unsigned least, most; // milliseconds of the last second that it works
};

static unsigned job_for(const struct load *load, unsigned turns, uint64_t *now_ns,
                        struct rollup_throttle *pace)
{
    unsigned worked = 0;
    for (unsigned turn = 0; turn < turns; turn++, *now_ns += MS) {
        pace->busy = load->is_busy;
        pace->lag_rows = load->lag_rows;
        if (load->rows_per_ms > 0)
            rollup_throttle_hear(pace, load->rows_per_ms, *now_ns);
        if (!rollup_throttle_allows(pace, *now_ns))
            continue;
        rollup_throttle_worked(pace, *now_ns, *now_ns + MS);
        worked++;
    }
    return worked;
}

TEST_CASE(load_says_how_much)
{
    static const struct load loads[] = {
        {0, false, 0, 1000, 1000},              // alone
        {400, true, 0, 40, 50},                 // much
        {400, false, 0, 40, 50},                // much, and the inbox is empty now and then
        {400, true, 32768, 65, 80},             // much, and half as behind as may be
        {400, true, 131072, 190, 205},          // much, and memory is nearly full
        {400, true, 262144, 135, 150},          // and is full
        {400, true, 65536, 135, 150},           // much, and behind
        {400, false, UINT64_MAX / 2, 135, 150}, // and as far behind as can be
        {1, false, 0, 450, 550},                // little
        {1, true, 0, 40, 50},                   // little, but more waits already
    };
    for (size_t i = 0; i < COUNT_OF(loads); i++) {
        struct rollup_throttle pace = {0};
        uint64_t now_ns = 3600000 * MS;
        (void)job_for(&loads[i], 5000, &now_ns, &pace); // what may be saved up is used
        assert_in_range(job_for(&loads[i], 1000, &now_ns, &pace), loads[i].least, loads[i].most);
    }
}

TEST_CASE(silence_ends_a_rest)
{
    struct rollup_throttle pace = {0};
    const uint64_t now_ns = 3600000 * MS;
    rollup_throttle_hear(&pace, 1000, now_ns);
    assert_false(rollup_throttle_is_quiet(&pace, now_ns));
    rollup_throttle_worked(&pace, now_ns, now_ns + 3000 * MS); // more than is saved up
    assert_false(rollup_throttle_allows(&pace, now_ns + 499 * MS));
    assert_true(rollup_throttle_allows(&pace, now_ns + 500 * MS));
    pace.busy = true;
    assert_false(rollup_throttle_is_quiet(&pace, now_ns + 500 * MS));
    assert_false(rollup_throttle_allows(&pace, now_ns + 500 * MS));
    assert_true(rollup_throttle_allows(&pace, now_ns + 63000 * MS));
}

// A minute of catching up alone, which asks for no rest, and then much comes again.
TEST_CASE(silence_is_not_paid_for)
{
    static const struct load silence = {0, false, 1000000, 60000, 60000};
    struct rollup_throttle pace = {0};
    uint64_t now_ns = 3600000 * MS;
    assert_int_equal(job_for(&silence, 60000, &now_ns, &pace), 60000);
    const struct load much = {400, true, 16384, 50, 80};
    assert_in_range(job_for(&much, 1000, &now_ns, &pace), much.least, much.most);
}

// A writer that always has records to store and folds where it may: a step as a group ends,
// and another one after it.
struct writer_life {
    double fold_ns, store_ns; // a record
    bool keeps_up;            // folding is cheap enough for that
};

// Rollups lack few records at any time of ten minutes where they can keep up, and take what
// folding takes, 167 of 1000 at most here; where they cannot they take no more than a seventh.
TEST_CASE(lag_is_bounded)
{
    enum { GROUP_ROWS = 32768, LAG_ROWS_MOST = 262144, STEP_MS = 10 };
    static const struct writer_life lives[] = {
        {100, 3000, true}, {300, 3000, true}, {600, 3000, true}, {3000, 3000, false}};
    const uint64_t life_ns = 600000 * MS, first_ns = 3600000 * MS;
    for (size_t i = 0; i < COUNT_OF(lives); i++) {
        const struct writer_life *life = &lives[i];
        struct rollup_throttle pace = {0};
        double lag = 0, most = 0;
        uint64_t now_ns = first_ns, worked_ns = 0;
        while (now_ns < first_ns + life_ns) {
            now_ns += (uint64_t)(GROUP_ROWS * life->store_ns);
            lag += GROUP_ROWS;
            most = lag > most ? lag : most;
            rollup_throttle_hear(&pace, GROUP_ROWS, now_ns);
            pace.busy = true;
            for (unsigned step = 0; step < 2 && rollup_throttle_allows(&pace, now_ns); step++) {
                const double all_ns = lag * life->fold_ns, step_ns = (double)(STEP_MS * MS);
                const uint64_t took_ns = (uint64_t)(all_ns < step_ns ? all_ns : step_ns);
                lag -= (double)took_ns / life->fold_ns;
                pace.lag_rows = lag > 0 ? (uint64_t)lag : 0;
                rollup_throttle_worked(&pace, now_ns, now_ns + took_ns);
                now_ns += took_ns;
                worked_ns += took_ns;
            }
        }
        assert_int_equal(most <= LAG_ROWS_MOST, life->keeps_up);
        assert_in_range(worked_ns * 1000 / life_ns, 1, life->keeps_up ? 170 : 150);
    }
}

TEST_MAIN(load_says_how_much, silence_ends_a_rest, silence_is_not_paid_for, lag_is_bounded)
