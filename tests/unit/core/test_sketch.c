#include "tests/support/test.h"

#include <math.h>

#include "common/core/stats/sketch.h"

static const double relative_error = 1.0 / 128;

static struct sketch *make_sketch(void)
{
    struct sketch *sketch = NULL;
    assert_int_equal(sketch_new(&sketch), STATUS_OK);
    return sketch;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void check_against_sorted(const struct sketch *sketch, double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    const double quantiles[] = {0, 0.01, 0.5, 0.9, 0.95, 0.99, 0.999, 1};
    for (size_t i = 0; i < COUNT_OF(quantiles); i++) {
        const double exact = values[sketch_rank(quantiles[i], count)];
        double got = NAN;
        assert_true(sketch_quantile(sketch, quantiles[i], &got));
        assert_true(fabs(got - exact) <= relative_error * fabs(exact));
    }
}

// Distributions that are hard on fixed buckets: heavy tails, two far humps, one
// value, negative values, zeros, whole nanoseconds from 1 up.
static double draw(unsigned shape, uint64_t *seed)
{
    const double uniform = (double)(test_random(seed) >> 11) * 0x1p-53;
    switch (shape) {
    case 0:
        return 1e6 * (1 + uniform);
    case 1:
        return 1e3 / pow(1 - uniform, 2);
    case 2:
        return test_random(seed) % 100 == 0 ? 3e9 + 1e6 * uniform : 5e3 + 10 * uniform;
    case 3:
        return 42;
    case 4:
        return (uniform - 0.5) * 1e9;
    case 5:
        return test_random(seed) % 2 ? 0 : 1e-6 * uniform;
    case 6:
        return (double)(1 + test_random(seed) % 200);
    default:
        return exp(60 * (uniform - 0.5));
    }
}

TEST_CASE(test_quantiles)
{
    enum { VALUES = 20000 };
    double *values = malloc(VALUES * sizeof *values);
    assert_non_null(values);
    for (unsigned shape = 0; shape < 8; shape++) {
        uint64_t seed = 1 + shape;
        struct sketch *sketch = make_sketch();
        for (size_t i = 0; i < VALUES; i++) {
            values[i] = draw(shape, &seed);
            sketch_add(sketch, values[i], 1);
        }
        assert_int_equal(sketch_count(sketch), VALUES);
        check_against_sorted(sketch, values, VALUES);
        sketch_free(sketch);
    }
    free(values);
}

TEST_CASE(test_rank)
{
    static const struct {
        double q;
        uint64_t count, rank;
    } cases[] = {
        {0, 1, 0},      {1, 1, 0},       {0.5, 2, 0},     {0.99, 2, 1},   {0.5, 3, 1},
        {0.99, 99, 98}, {0.99, 100, 98}, {0.99, 101, 99}, {0.07, 100, 6}, {0.9, 10, 8},
        {0.95, 20, 18}, {1, 1000, 999},  {0, 1000, 0},    {0.999, 5, 4},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(sketch_rank(cases[i].q, cases[i].count), cases[i].rank);
}

TEST_CASE(test_edges)
{
    struct sketch *sketch = make_sketch();
    double value = 1;
    assert_false(sketch_quantile(sketch, 0.5, &value));
    sketch_add(sketch, NAN, 1);
    sketch_add(sketch, 1, 0);
    assert_int_equal(sketch_count(sketch), 0);

    sketch_add(sketch, INFINITY, 1);
    sketch_add(sketch, -INFINITY, 1);
    sketch_add(sketch, 1e-300, 1);
    assert_true(sketch_quantile(sketch, 0, &value) && value < -1e18);
    assert_true(sketch_quantile(sketch, 0.5, &value) && value == 0);
    assert_true(sketch_quantile(sketch, 1, &value) && value > 1e18);
    assert_false(sketch_quantile(sketch, -0.1, &value));
    assert_false(sketch_quantile(sketch, 1.1, &value));
    assert_false(sketch_quantile(sketch, NAN, &value));

    sketch_reset(sketch);
    assert_false(sketch_quantile(sketch, 0.5, &value));
    sketch_free(sketch);
}

// The hot path's bucket of nanoseconds is the general one.
TEST_CASE(test_snap)
{
    static const struct {
        double value, snapped;
    } cases[] = {{20.12, 20},      {1.004, 1}, {99.7, 99},         {127.99, 127},
                 {128.99, 128.99}, {1e6, 1e6}, {-20.12, -20},      {0, 0},
                 {1.5, 1.5},       {0.3, 0.3}, {0x1p-70, 0x1p-70}, {0x1p80, 0x1p80}};
    for (unsigned i = 0; i < COUNT_OF(cases); i++)
        if (sketch_snap(cases[i].value) != cases[i].snapped)
            fail_msg("%g becomes %g", cases[i].value, sketch_snap(cases[i].value));
    assert_true(isnan(sketch_snap(NAN)));
    for (int i = 1; i < 128; i++) // what stands for a bucket of one integer
        assert_true(sketch_snap(sketch_bucket_value(sketch_bucket(i))) == i);
}

TEST_CASE(test_ns_bucket)
{
    uint64_t seed = 3;
    for (int i = 0; i < 100000; i++) {
        const uint64_t ns = 1 + (test_random(&seed) >> (20 + test_random(&seed) % 40));
        assert_int_equal(SKETCH_NS_OFFSET + sketch_ns_bucket(ns), sketch_bucket((double)ns));
    }
    assert_int_equal(sketch_ns_bucket(0), 0);
    assert_int_equal(sketch_ns_bucket(1), 0);
    assert_int_equal(sketch_ns_bucket(UINT64_C(1) << 62), SKETCH_NS_BUCKETS - 1);
}

TEST_CASE(test_merge)
{
    struct sketch *all = make_sketch(), *one = make_sketch(), *two = make_sketch();
    uint64_t seed = 9;
    for (int i = 0; i < 5000; i++) {
        const double value = draw(4, &seed);
        sketch_add(all, value, 1);
        sketch_add(i % 3 ? one : two, value, 1);
    }
    sketch_merge(one, two);
    assert_int_equal(sketch_count(one), sketch_count(all));
    for (double q = 0; q <= 1; q += 0.125) {
        double a = 0, b = 1;
        assert_true(sketch_quantile(all, q, &a) && sketch_quantile(one, q, &b));
        assert_true(a == b);
    }
    sketch_free(all);
    sketch_free(one);
    sketch_free(two);
}

// Encoded in parts of any size and put together again, nothing is lost.
TEST_CASE(test_encode)
{
    const size_t sizes[] = {8, 16, 40, 200, 4096, 100000};
    for (unsigned shape = 0; shape < 8; shape++) {
        struct sketch *sketch = make_sketch();
        uint64_t seed = 20 + shape;
        for (uint64_t i = 0; i < 3000; i++)
            sketch_add(sketch, shape == 4 ? fabs(draw(shape, &seed)) : draw(shape, &seed), 1 + i);
        for (size_t s = 0; s < COUNT_OF(sizes); s++) {
            struct sketch *back = make_sketch();
            unsigned char *bytes = malloc(sizes[s]);
            assert_non_null(bytes);
            uint32_t next = 0;
            while (next < SKETCH_BUCKETS) {
                const size_t used = sketch_encode(sketch, bytes, sizes[s], &next);
                if (used == 0)
                    break;
                assert_true(used <= sizes[s]);
                assert_int_equal(sketch_decode(back, bytes, used), STATUS_OK);
            }
            // Only a room too small for the head and one bucket may refuse.
            if (next == SKETCH_BUCKETS) {
                assert_int_equal(sketch_count(back), sketch_count(sketch));
                for (double q = 0; q <= 1; q += 0.0625) {
                    double a = 0, b = 1;
                    assert_true(sketch_quantile(sketch, q, &a) && sketch_quantile(back, q, &b));
                    assert_true(a == b);
                }
            } else {
                assert_true(sizes[s] < 40);
            }
            free(bytes);
            sketch_free(back);
        }
        sketch_free(sketch);
    }
}

TEST_CASE(test_encode_negative)
{
    struct sketch *sketch = make_sketch(), *back = make_sketch();
    sketch_add(sketch, -5, 2);
    sketch_add(sketch, 0, 3);
    sketch_add(sketch, 7, 4);
    unsigned char bytes[64];
    uint32_t next = 0;
    const size_t used = sketch_encode(sketch, bytes, sizeof bytes, &next);
    assert_true(used > 0 && next == SKETCH_BUCKETS);
    assert_int_equal(sketch_decode(back, bytes, used), STATUS_OK);
    double value = 0;
    assert_int_equal(sketch_count(back), 9);
    assert_true(sketch_quantile(back, 0, &value) && fabs(value + 5) < 0.05);
    assert_true(sketch_quantile(back, 0.4, &value) && value == 0);
    assert_true(sketch_quantile(back, 1, &value) && fabs(value - 7) < 0.06);
    // Every cut and every wrong byte is found, or decodes to some other sketch;
    // what is refused changes nothing.
    for (size_t cut = 0; cut < used; cut++)
        assert_int_equal(sketch_decode(back, bytes, cut), STATUS_CORRUPT);
    assert_int_equal(sketch_count(back), 9);
    sketch_free(sketch);
    sketch_free(back);
}

TEST_CASE(test_decode_refuses)
{
    static const struct {
        const char *what;
        unsigned char bytes[32];
        size_t size;
    } wrong[] = {
        {"another version", {2, 0, 0, 0}, 4},
        {"more behind the end", {1, 0, 0, 0, 0}, 5},
        {"more pairs than buckets", {1, 0, 0xff, 0xff, 0x7f, 0}, 6},
        {"a bucket beyond the last", {1, 0, 1, 0x80, 0x40, 1, 0}, 7},
        {"a count of zero", {1, 0, 1, 5, 0, 0}, 6},
        {"a bucket twice", {1, 0, 2, 5, 1, 0, 1, 0}, 8},
        {"a count of zero behind others", {1, 0, 3, 5, 1, 1, 1, 1, 0, 0}, 10},
        {"a count of zero in two bytes", {1, 0, 3, 5, 1, 1, 1, 1, 0x80, 0, 0}, 11},
        {"a bucket twice behind others", {1, 0, 3, 5, 1, 1, 1, 0, 1, 0}, 10},
        {"fewer pairs than there should be", {1, 0, 4, 5, 1, 1, 1, 1, 1}, 9},
        {"a number without end",
         {1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0},
         12},
        {"counts that overflow",
         {1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1, 5, 1, 0},
         15},
    };
    struct sketch *sketch = make_sketch();
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        if (sketch_decode(sketch, wrong[i].bytes, wrong[i].size) != STATUS_CORRUPT)
            fail_msg("took %s", wrong[i].what);
        assert_int_equal(sketch_count(sketch), 0);
        if (sketch_decode_once(sketch, wrong[i].bytes, wrong[i].size) != STATUS_CORRUPT)
            fail_msg("took at once %s", wrong[i].what);
        sketch_reset(sketch);
    }
    sketch_free(sketch);
}

static void check_same(const struct sketch *a, const struct sketch *b)
{
    enum { ROOM = 400000 };
    unsigned char *bytes = malloc(2 * (size_t)ROOM);
    assert_non_null(bytes);
    const size_t size = sketch_encode_whole(a, bytes, ROOM);
    assert_true(size > 0);
    assert_int_equal(sketch_encode_whole(b, bytes + ROOM, ROOM), size);
    assert_memory_equal(bytes, bytes + ROOM, size);
    assert_int_equal(sketch_count(a), sketch_count(b));
    free(bytes);
}

// Adds a sketch of some shape: near and far buckets, counts of one byte and of several.
static void add_many(struct sketch *sketch, unsigned shape, uint64_t *seed)
{
    const unsigned values = 1 + (unsigned)(test_random(seed) % 600);
    const uint64_t most = UINT64_C(1) << test_random(seed) % 30;
    for (unsigned i = 0; i < values; i++)
        sketch_add(sketch, draw(shape, seed), 1 + test_random(seed) % most);
}

static size_t below(size_t size, uint64_t *seed)
{
    return (size_t)((test_random(seed) >> 32) * size >> 32);
}

// In one walk or in two, an encoding adds the same to what is there, and is refused alike
// where bytes of it are wrong or missing.
TEST_CASE(test_decode_once)
{
    enum { ROUNDS = 4000, ROOM = 65536 };
    static unsigned char bytes[ROOM];
    uint64_t seed = 7;
    unsigned refused = 0;
    struct sketch *from = make_sketch(), *once = make_sketch(), *twice = make_sketch();
    for (unsigned round = 0; round < ROUNDS; round++) {
        sketch_reset(from);
        add_many(from, round % 8, &seed);
        size_t size = sketch_encode_whole(from, bytes, ROOM);
        assert_true(size > 0);
        const bool is_wrong = round % 2;
        if (is_wrong && test_random(&seed) % 4 == 0)
            size = below(size, &seed);
        else if (is_wrong)
            bytes[below(size, &seed)] ^= (unsigned char)(1 + test_random(&seed) % 255);
        const enum status status = sketch_decode(twice, bytes, size);
        assert_int_equal(sketch_decode_once(once, bytes, size), status);
        assert_true(is_wrong || status == STATUS_OK);
        refused += status != STATUS_OK;
        if (status == STATUS_OK)
            check_same(once, twice);
        if (status != STATUS_OK || round % 64 == 0) {
            sketch_reset(once);
            sketch_reset(twice);
        }
    }
    assert_true(refused > ROUNDS / 20);
    sketch_free(from);
    sketch_free(once);
    sketch_free(twice);
}

// Sketches that share memory stop there: no quantile rather than a wrong one.
TEST_CASE(test_a_budget)
{
    struct sketch_budget budget = {.left = 2 * 256 * sizeof(uint64_t)};
    struct sketch *one = NULL, *two = NULL;
    double value = 0;
    assert_int_equal(sketch_new_within(&one, &budget), STATUS_OK);
    assert_int_equal(sketch_new_within(&two, &budget), STATUS_OK);
    sketch_add(one, 1000, 5); // a page each
    sketch_add(two, 1e9, 5);
    sketch_add(two, 1.01e9, 5);
    assert_false(budget.spent);
    assert_int_equal(budget.left, 0);
    assert_true(sketch_quantile(one, 0.5, &value) && sketch_quantile(two, 0.5, &value));
    sketch_add(one, -1000, 1);
    assert_true(budget.spent);
    assert_false(sketch_quantile(one, 0.5, &value));
    assert_true(sketch_quantile(two, 0.5, &value));
    unsigned char bytes[64];
    uint32_t next = 0;
    assert_int_equal(sketch_encode(one, bytes, sizeof bytes, &next), 0);
    assert_int_equal(sketch_reserve_ns(one), STATUS_NOMEM);
    sketch_reset(one);
    sketch_add(one, 1000, 5);
    assert_true(sketch_quantile(one, 0.5, &value));
    sketch_free(one);
    sketch_free(two);
    assert_int_equal(sketch_new(&one), STATUS_OK);
    assert_int_equal(sketch_reserve_ns(one), STATUS_OK);
    sketch_free(one);
}

// Adding values together is adding them one by one.
TEST_CASE(test_add_values)
{
    static const double odd[] = {0, -1, -0x1p-64, 0x1p-65, 0x1p-64, (double)NAN, 0x1p70, -0x1p70};
    uint64_t seed = 78;
    for (unsigned round = 0; round < 60; round++) {
        double values[400];
        struct sketch *one_by_one = make_sketch(), *at_once = make_sketch();
        for (unsigned times = 0; times < 2; times++) {
            const size_t count = test_random(&seed) % COUNT_OF(values);
            for (size_t i = 0; i < count; i++) {
                const uint64_t random = test_random(&seed);
                values[i] = random % 8 ? ldexp(1 + (double)(random % 97) / 100, (int)(random % 60))
                                       : odd[random / 8 % COUNT_OF(odd)];
                sketch_add(one_by_one, values[i], 1);
            }
            sketch_add_values(at_once, values, count);
        }
        unsigned char bytes[2][65536];
        const size_t size = sketch_encode_whole(one_by_one, bytes[0], sizeof bytes[0]);
        assert_true(size > 0);
        assert_int_equal(sketch_encode_whole(at_once, bytes[1], sizeof bytes[1]), size);
        assert_memory_equal(bytes[0], bytes[1], size);
        assert_int_equal(sketch_count(at_once), sketch_count(one_by_one));
        sketch_free(one_by_one);
        sketch_free(at_once);
    }
}

TEST_MAIN(test_quantiles, test_edges, test_rank, test_snap, test_ns_bucket, test_merge,
          test_add_values, test_encode, test_encode_negative, test_decode_refuses, test_decode_once,
          test_a_budget)
