// How much of each copy ran beside kernels, and when that is known.
#include "server/pipeline/copy_overlap_log.h"

#include "tests/support/test.h"

enum { COPY, COMPUTE };

// What comes, in this order, and which copies are known then: beside_ns each.
struct step {
    int side;
    double start_ns, end_ns;
    bool none_comes;
    size_t known;
    double beside_ns[3];
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
        struct copy_overlap_log log;
        struct copy_overlap copy;
        uint64_t chunks = 0, told = 0;
        memset(&log, 0, sizeof log);
        for (size_t j = 0; j < cases[i].count; j++) {
            const struct step *step = &cases[i].steps[j];
            if (step->side == COPY)
                copy_overlap_log_add_copy(&log, chunks++, step->start_ns, step->end_ns);
            else
                copy_overlap_log_add_compute(&log, step->start_ns, step->end_ns);
            size_t known = 0;
            while (copy_overlap_log_pop(&log, step->none_comes, &copy)) {
                assert_true(known < step->known);
                assert_int_equal(copy.chunk, told++);
                assert_true(copy.beside_ns == step->beside_ns[known]);
                known++;
            }
            assert_int_equal(known, step->known);
        }
    }
}

// Nobody asks: the newest stay, and what is counted of them is right.
TEST_CASE(a_bounded_number_is_kept)
{
    struct copy_overlap_log log;
    struct copy_overlap copy;
    memset(&log, 0, sizeof log);
    enum { ALL = 3 * COPY_OVERLAP_LOG_SIZE + 5 };
    for (int i = 0; i < ALL; i++) {
        copy_overlap_log_add_copy(&log, (uint64_t)i, 10.0 * i, 10.0 * i + 8);
        copy_overlap_log_add_compute(&log, 10.0 * i + 3, 10.0 * i + 9);
    }
    for (int i = ALL - COPY_OVERLAP_LOG_SIZE; i < ALL; i++) {
        assert_true(copy_overlap_log_pop(&log, false, &copy));
        assert_int_equal(copy.chunk, i);
        assert_true(copy.beside_ns == 5);
    }
    assert_false(copy_overlap_log_pop(&log, true, &copy));
}

TEST_MAIN(copies_are_told_when_nothing_changes_them, a_bounded_number_is_kept)
