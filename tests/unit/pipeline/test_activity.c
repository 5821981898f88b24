// The comparison of a device's own trace with the pipeline's timeline, on synthetic records.
#include "tests/support/gpu/activity.h"

#include <math.h>

#include "tests/support/test.h"
#ifdef WITH_CUPTI
#include "tests/support/gpu/cupti_trace.h"
#endif

#define COPY    OVERLAP_COPY
#define COMPUTE OVERLAP_COMPUTE

TEST_CASE(sums)
{
    static const struct {
        const char *name;
        struct activity list[4];
        size_t count;
        uint64_t copy, compute, both;
    } cases[] = {
        {"nothing", {{0}}, 0, 0, 0, 0},
        {"one copy", {{COPY, 100, 250}}, 1, 150, 0, 0},
        {"one behind the other", {{COPY, 0, 10}, {COMPUTE, 10, 30}}, 2, 10, 20, 0},
        {"at once", {{COMPUTE, 5, 25}, {COPY, 5, 25}}, 2, 20, 20, 20},
        {"half", {{COPY, 0, 20}, {COMPUTE, 10, 30}}, 2, 20, 20, 10},
        {"one within the other", {{COPY, 0, 100}, {COMPUTE, 40, 60}}, 2, 100, 20, 20},
        {"union of one side", {{COPY, 0, 20}, {COPY, 10, 40}, {COPY, 40, 50}}, 3, 50, 0, 0},
        {"kernels with a gap",
         {{COPY, 0, 100}, {COMPUTE, 10, 20}, {COMPUTE, 30, 40}, {COMPUTE, 35, 38}},
         4,
         100,
         20,
         20},
        {"out of order", {{COMPUTE, 50, 60}, {COPY, 55, 70}, {COPY, 0, 5}}, 3, 20, 10, 5},
        {"no length", {{COPY, 7, 7}, {COMPUTE, 0, 10}}, 2, 0, 10, 0},
        {"an end before its start", {{COPY, 9, 3}, {COMPUTE, 0, 10}}, 2, 0, 10, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct activity_figures figures;
        activity_sum(cases[i].list, cases[i].count, &figures);
        if (figures.busy_ns[COPY] != cases[i].copy || figures.both_ns != cases[i].both ||
            figures.busy_ns[COMPUTE] != cases[i].compute)
            fail_msg(
                "%s: %llu, %llu, %llu", cases[i].name, (unsigned long long)figures.busy_ns[COPY],
                (unsigned long long)figures.busy_ns[COMPUTE], (unsigned long long)figures.both_ns);
    }
}

// Two ways to the same figures: random schedules, as the pipeline queues them.
TEST_CASE(agrees_with_the_timeline)
{
    static struct activity list[512];
    srand(7);
    for (int round = 0; round < 50; round++) {
        static struct overlap overlap;
        struct overlap_figures timeline;
        struct activity_figures trace;
        uint64_t ends[OVERLAP_SIDES] = {1000, 1000};
        memset(&overlap, 0, sizeof overlap);
        const size_t count = (size_t)rand() % 512 + 1;
        for (size_t i = 0; i < count; i++) {
            const enum overlap_side side = ends[COPY] <= ends[COMPUTE] ? COPY : COMPUTE;
            const uint64_t start = ends[side] + (uint64_t)rand() % 50;
            ends[side] = start + (uint64_t)rand() % 100;
            list[i] = (struct activity){side, start, ends[side]};
            overlap_add(&overlap, side, i, (int64_t)start, (int64_t)ends[side]);
        }
        overlap_finish(&overlap, &timeline);
        activity_sum(list, count, &trace);
        assert_int_equal(timeline.unmeasured, 0);
        assert_int_equal(trace.busy_ns[COPY], timeline.busy_ns[COPY]);
        assert_int_equal(trace.busy_ns[COMPUTE], timeline.busy_ns[COMPUTE]);
        assert_int_equal(trace.both_ns, timeline.both_ns);
        assert_true(activity_error(&trace, &timeline) == 0);
    }
}

TEST_CASE(errors)
{
    static const struct {
        struct activity_figures trace;
        struct overlap_figures timeline;
        double error;
    } cases[] = {
        {{{1000, 2000}, 500}, {.busy_ns = {1000, 2000}, .both_ns = 500}, 0},
        {{{1000, 2000}, 500}, {.busy_ns = {1010, 2000}, .both_ns = 500}, 0.01},
        {{{1000, 2000}, 500}, {.busy_ns = {1000, 1900}, .both_ns = 500}, 0.05},
        {{{1000, 2000}, 500}, {.busy_ns = {1000, 2000}, .both_ns = 520}, 0.02},
        {{{4000, 2000}, 500}, {.busy_ns = {4000, 2000}, .both_ns = 300}, 0.1},
        {{{0, 2000}, 0}, {.busy_ns = {0, 2000}}, 0},
        {{{0, 2000}, 0}, {.busy_ns = {1, 2000}}, INFINITY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double error = activity_error(&cases[i].trace, &cases[i].timeline);
        if (error != cases[i].error && !(fabs(error - cases[i].error) < 1e-12))
            fail_msg("case %zu: %g, not %g", i, error, cases[i].error);
    }
}

#ifdef WITH_CUPTI
TEST_CASE(records)
{
    struct activity activity;
    CUpti_ActivityMemset4 fill = {.kind = CUPTI_ACTIVITY_KIND_MEMSET, .start = 5, .end = 9};
    assert_true(cupti_activity((const CUpti_Activity *)(const void *)&fill, &activity));
    assert_int_equal(activity.side, COMPUTE);
    assert_int_equal(activity.start_ns, 5);
    assert_int_equal(activity.end_ns, 9);
#if CUPTI_API_VERSION >= 130000
    CUpti_ActivityKernel10 kernel = {
        .kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, .start = 11, .end = 12};
    assert_true(cupti_activity((const CUpti_Activity *)(const void *)&kernel, &activity));
    assert_int_equal(activity.side, COMPUTE);
    assert_int_equal(activity.start_ns, 11);
    assert_int_equal(activity.end_ns, 12);

    static const struct {
        CUpti_ActivityMemcpyKind kind;
        bool counts;
        enum overlap_side side;
    } copies[] = {
        {CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, true, COPY},
        {CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, true, COMPUTE},
        {CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, false, COPY},
    };
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
        CUpti_ActivityMemcpy6 copy = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY,
                                      .copyKind = (uint8_t)copies[i].kind,
                                      .start = 20,
                                      .end = 27};
        assert_int_equal(cupti_activity((const CUpti_Activity *)(const void *)&copy, &activity),
                         copies[i].counts);
        if (!copies[i].counts)
            continue;
        assert_int_equal(activity.side, copies[i].side);
        assert_int_equal(activity.start_ns, 20);
        assert_int_equal(activity.end_ns, 27);
    }
#endif
    const CUpti_Activity other = {.kind = CUPTI_ACTIVITY_KIND_DRIVER};
    assert_false(cupti_activity(&other, &activity));
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums),
        cmocka_unit_test(agrees_with_the_timeline),
        cmocka_unit_test(errors),
#ifdef WITH_CUPTI
        cmocka_unit_test(records),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
