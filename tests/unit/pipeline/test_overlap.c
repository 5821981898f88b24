// Intervals of copies and compute, and what is known of them together.
#include "server/pipeline/overlap.h"

#include "tests/support/test.h"

struct piece {
    int side;
    int64_t start, end;
};

static struct overlap overlap;

static struct overlap_figures sum_up(const struct piece *pieces, size_t count)
{
    struct overlap_figures figures;
    memset(&overlap, 0, sizeof overlap);
    for (size_t i = 0; i < count; i++)
        overlap_add(&overlap, (enum overlap_side)pieces[i].side, i, pieces[i].start, pieces[i].end);
    overlap_finish(&overlap, &figures);
    return figures;
}

enum { COPY = OVERLAP_COPY, COMPUTE = OVERLAP_COMPUTE };

TEST_CASE(schedules_with_known_figures)
{
    static const struct {
        const char *what;
        struct piece pieces[6];
        size_t count;
        double ratio; // negative: null
        struct {
            uint64_t copy, compute, both, exposed, idle, span;
        };
    } cases[] = {
        {"none", {{COPY, 0, 0}}, 0, -1, {0, 0, 0, 0, 0, 0}},
        {"only copies", {{COPY, 5, 15}, {COPY, 20, 25}}, 2, -1, {15, 0, 0, 15, 5, 20}},
        {"only compute", {{COMPUTE, 5, 15}}, 1, -1, {0, 10, 0, 0, 0, 10}},
        // Two of equal length, one behind the other: that is no overlap.
        {"serial", {{COPY, 0, 10}, {COMPUTE, 10, 20}}, 2, 0.0, {10, 10, 0, 10, 0, 20}},
        {"serial, chunk after chunk",
         {{COPY, 0, 10}, {COMPUTE, 10, 20}, {COPY, 20, 30}, {COMPUTE, 30, 40}},
         4,
         0.0,
         {20, 20, 0, 20, 0, 40}},
        {"perfect", {{COPY, 0, 10}, {COMPUTE, 0, 10}}, 2, 1.0, {10, 10, 10, 0, 0, 10}},
        {"copy inside compute",
         {{COMPUTE, 0, 100}, {COPY, 40, 60}},
         2,
         1.0,
         {20, 100, 20, 0, 0, 100}},
        {"half", {{COPY, 0, 10}, {COMPUTE, 5, 15}}, 2, 0.5, {10, 10, 5, 5, 0, 15}},
        {"touching pieces",
         {{COPY, 0, 5}, {COPY, 5, 10}, {COMPUTE, 0, 2}, {COMPUTE, 2, 10}},
         4,
         1.0,
         {10, 10, 10, 0, 0, 10}},
        {"copies that overlap each other count once",
         {{COPY, 0, 10}, {COPY, 5, 12}, {COPY, 6, 7}, {COMPUTE, 9, 10}},
         4,
         1.0,
         {12, 1, 1, 11, 0, 12}},
        {"sides out of order",
         {{COMPUTE, 25, 35}, {COPY, 0, 10}, {COPY, 20, 30}},
         3,
         0.5,
         {20, 10, 5, 15, 10, 35}},
        {"negative times", {{COPY, -20, -10}, {COMPUTE, -15, 5}}, 2, 0.5, {10, 20, 5, 5, 0, 25}},
        {"of no length", {{COPY, 3, 3}, {COMPUTE, 5, 9}}, 2, -1, {0, 4, 0, 0, 2, 6}},
        {"the widest",
         {{COPY, INT64_MIN, INT64_MAX}, {COMPUTE, 0, 8}},
         2,
         1.0,
         {UINT64_MAX, 8, 8, UINT64_MAX - 8, 0, UINT64_MAX}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        print_message("%s\n", cases[i].what);
        const struct overlap_figures got = sum_up(cases[i].pieces, cases[i].count);
        double ratio = -1;
        assert_int_equal(overlap_ratio(&got, &ratio), cases[i].ratio >= 0);
        assert_true(ratio == cases[i].ratio);
        assert_int_equal(got.busy_ns[COPY], cases[i].copy);
        assert_int_equal(got.busy_ns[COMPUTE], cases[i].compute);
        assert_int_equal(got.both_ns, cases[i].both);
        assert_int_equal(got.exposed_copy_ns, cases[i].exposed);
        assert_int_equal(got.idle_ns, cases[i].idle);
        assert_int_equal(got.span_ns, cases[i].span);
        assert_int_equal(got.unmeasured, 0);
    }
}

// Busy or not, moment by moment.
enum { MOMENTS = 4000 };

struct moments {
    bool busy[OVERLAP_SIDES][MOMENTS];
    int64_t first, last;
};

static void sweep(const struct moments *moments, struct overlap_figures *out)
{
    memset(out, 0, sizeof *out);
    for (int64_t at = moments->first; at < moments->last; at++) {
        const bool copy = moments->busy[COPY][at];
        const bool compute = moments->busy[COMPUTE][at];
        out->busy_ns[COPY] += copy;
        out->busy_ns[COMPUTE] += compute;
        out->both_ns += copy && compute;
        out->exposed_copy_ns += copy && !compute;
        out->idle_ns += !copy && !compute;
        out->span_ns++;
    }
}

static void mark(struct moments *moments, enum overlap_side side, int64_t start, int64_t end)
{
    for (int64_t at = start; at < end; at++)
        moments->busy[side][at] = true;
    if (start < moments->first)
        moments->first = start;
    if (end > moments->last)
        moments->last = end;
}

// Random pieces, each side's in order and touching or not, the sides up to 1,000 apart.
static void random_schedule(uint64_t seed)
{
    uint64_t random = seed * 2654435761U + 1;
    struct moments moments = {.first = MOMENTS};
    struct overlap_figures want, got;
    int64_t ends[OVERLAP_SIDES] = {0};
    const int64_t apart = (int64_t)(test_random(&random) % 1000);
    const int64_t longest = 1 + (int64_t)(test_random(&random) % 60);
    memset(&overlap, 0, sizeof overlap);
    for (uint64_t i = 0; ends[COPY] + 40 + longest < MOMENTS; i++) {
        const bool is_copy =
            ends[COMPUTE] + 40 + longest >= MOMENTS ||
            ends[COPY] <= ends[COMPUTE] - apart * (int64_t)(test_random(&random) % 2);
        const enum overlap_side side = is_copy ? OVERLAP_COPY : OVERLAP_COMPUTE;
        const int64_t start = ends[side] + (int64_t)(test_random(&random) % 40);
        ends[side] = start + (int64_t)(test_random(&random) % (uint64_t)longest);
        mark(&moments, side, start, ends[side]);
        overlap_add(&overlap, side, i, start, ends[side]);
    }
    sweep(&moments, &want);
    overlap_finish(&overlap, &got);
    assert_memory_equal(&got, &want, sizeof got);
}

TEST_CASE(random_schedules_are_what_a_sweep_finds)
{
    for (uint64_t seed = 1; seed <= 400; seed++)
        random_schedule(seed);
}

// What cannot be compared with all that it may overlap is counted, and so is no interval.
TEST_CASE(what_comes_too_late_is_counted)
{
    struct overlap_figures figures;
    memset(&overlap, 0, sizeof overlap);
    for (int64_t i = 0; i <= OVERLAP_KEPT; i++)
        overlap_add(&overlap, OVERLAP_COPY, 0, 10 * i, 10 * i + 5);
    overlap_add(&overlap, OVERLAP_COMPUTE, 0, 9, 100); // the first copy is forgotten
    overlap_add(&overlap, OVERLAP_COMPUTE, 0, 10, 25);
    overlap_add(&overlap, OVERLAP_COMPUTE, 0, 28, 27);
    overlap_finish(&overlap, &figures);
    assert_int_equal(figures.unmeasured, 2);
    assert_int_equal(figures.busy_ns[COPY], 5 * (OVERLAP_KEPT + 1));
    assert_int_equal(figures.busy_ns[COMPUTE], 15);
    assert_int_equal(figures.both_ns, 10);
    assert_int_equal(figures.span_ns, 10 * OVERLAP_KEPT + 5);
}

// However many come, all are summed up, and the newest copies can still be asked for.
TEST_CASE(memory_is_bounded)
{
    struct overlap_figures figures;
    struct overlap_interval copy;
    enum { PIECES = 100000 };
    memset(&overlap, 0, sizeof overlap);
    for (int64_t i = 0; i < PIECES; i++) {
        overlap_add(&overlap, OVERLAP_COPY, (uint64_t)i, 10 * i, 10 * i + 4);
        overlap_add(&overlap, OVERLAP_COMPUTE, (uint64_t)i, 10 * i + 2, 10 * i + 6);
    }
    overlap_finish(&overlap, &figures);
    assert_int_equal(figures.busy_ns[COPY], 4 * PIECES);
    assert_int_equal(figures.busy_ns[COMPUTE], 4 * PIECES);
    assert_int_equal(figures.both_ns, 2 * PIECES);
    assert_int_equal(figures.idle_ns, 4 * (PIECES - 1));
    assert_int_equal(figures.unmeasured, 0);
    for (int i = PIECES - OVERLAP_KEPT; i < PIECES; i++) {
        assert_true(overlap_pop_copy(&overlap, false, &copy));
        assert_int_equal(copy.number, i);
        assert_int_equal(copy.both_ns, 2);
    }
    assert_false(overlap_pop_copy(&overlap, true, &copy));
}

// What comes, in this order, and which copies are final then: both_ns each.
struct step {
    int side;
    int64_t start, end;
    bool none_comes;
    size_t known;
    uint64_t both[3];
};

TEST_CASE(copies_are_told_when_nothing_changes_them)
{
    static const struct {
        const char *what;
        struct step steps[5];
        size_t count;
    } cases[] = {
        {"serial",
         {{COPY, 0, 10, true, 1, {0}},
          {COMPUTE, 10, 20, false, 0, {0}},
          {COPY, 20, 30, true, 1, {0}}},
         3},
        {"perfect", {{COMPUTE, 0, 10, false, 0, {0}}, {COPY, 0, 10, false, 1, {10}}}, 2},
        {"half", {{COPY, 0, 10, false, 0, {0}}, {COMPUTE, 5, 15, false, 1, {5}}}, 2},
        {"a kernel over two copies",
         {{COPY, 0, 10, false, 0, {0}},
          {COPY, 12, 20, false, 0, {0}},
          {COMPUTE, 8, 30, false, 2, {2, 8}}},
         3},
        {"two kernels over a copy, one harvested before it",
         {{COMPUTE, 0, 6, false, 0, {0}},
          {COPY, 4, 20, false, 0, {0}},
          {COMPUTE, 8, 10, false, 0, {0}},
          {COMPUTE, 15, 25, false, 1, {2 + 2 + 5}}},
         4},
        {"nothing more comes", {{COPY, 0, 10, false, 0, {0}}, {COMPUTE, 2, 4, true, 1, {2}}}, 2},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        print_message("%s\n", cases[i].what);
        struct overlap_interval copy;
        uint64_t copies = 0, told = 0;
        memset(&overlap, 0, sizeof overlap);
        for (size_t j = 0; j < cases[i].count; j++) {
            const struct step *step = &cases[i].steps[j];
            overlap_add(&overlap, (enum overlap_side)step->side, copies, step->start, step->end);
            copies += step->side == COPY;
            size_t known = 0;
            while (overlap_pop_copy(&overlap, step->none_comes, &copy)) {
                assert_true(known < step->known);
                assert_int_equal(copy.number, told++);
                assert_int_equal(copy.both_ns, step->both[known]);
                known++;
            }
            assert_int_equal(known, step->known);
        }
    }
}

TEST_MAIN(schedules_with_known_figures, random_schedules_are_what_a_sweep_finds,
          what_comes_too_late_is_counted, memory_is_bounded,
          copies_are_told_when_nothing_changes_them)
