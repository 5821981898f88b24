// Quantisation and pruning of weights.
#include <float.h>
#include <math.h>

#include "server/workload/zoo/quantise.h"
#include "tests/support/test.h"

enum { COUNT = 300 };

static float values[COUNT], scratch[COUNT], rounded[COUNT];
static int8_t integers[COUNT];

// Values around `middle`, with a few that are far from the others.
static void fill(uint64_t seed, double middle)
{
    for (size_t i = 0; i < COUNT; i++) {
        const double unit = (double)(test_random(&seed) >> 11) * 0x1p-52 - 1.0;
        values[i] = (float)(middle + unit * (i % 50 == 7 ? 3.0 : 0.5));
    }
}

static double squared_error(const struct zoo_quantiser *how, struct zoo_grid *grid)
{
    double sum = 0.0;
    *grid = zoo_grid_of(how, values, COUNT, scratch);
    zoo_round_to_grid(grid, rounded, values, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        sum += pow((double)values[i] - (double)rounded[i], 2.0);
    return sum;
}

static int integer_at(size_t i)
{
    return integers[i];
}

// No integer of the grid is nearer to a value than the one chosen.
static void check_nearest(const struct zoo_grid *grid)
{
    zoo_quantise(grid, integers, values, COUNT);
    zoo_round_to_grid(grid, rounded, values, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        const int q = integer_at(i);
        assert_in_range(q - grid->least, 0, grid->most - grid->least);
        assert_true(rounded[i] == grid->scale * (float)(q - grid->zero));
        const double error = fabs((double)values[i] - (double)rounded[i]);
        for (int other = grid->least; other <= grid->most; other++)
            assert_true(fabs((double)values[i] - (double)grid->scale * (other - grid->zero)) >=
                        error - 2e-5 * (double)grid->scale);
    }
}

TEST_CASE(integers_are_the_nearest)
{
    static const enum zoo_clip clips[] = {ZOO_CLIP_MINMAX, ZOO_CLIP_PERCENTILE, ZOO_CLIP_MSE};
    for (size_t i = 0; i < 2 * 3 * 8; i++) {
        const struct zoo_quantiser how = {.bits = 2 + (unsigned int)(i % 8) % 7,
                                          .affine = i / 8 % 2,
                                          .clip = clips[i / 16],
                                          .percentile = 99.0};
        fill(i + 1, i % 3 == 0 ? 0.0 : i % 3 == 1 ? 2.0 : -1.0);
        const struct zoo_grid grid = zoo_grid_of(&how, values, COUNT, scratch);
        assert_int_equal(grid.most - grid.least, (1 << how.bits) - (how.affine ? 1 : 2));
        assert_true(how.affine || grid.zero == 0);
        assert_in_range(grid.zero - grid.least, 0, grid.most - grid.least);
        check_nearest(&grid);
    }
}

// Scales come from the data: all values lie inside, and are at most half a step away.
TEST_CASE(minmax_covers_all_values)
{
    for (unsigned int bits = 2; bits <= 8; bits++) {
        for (int affine = 0; affine < 2; affine++) {
            const struct zoo_quantiser how = {.bits = bits, .affine = affine};
            struct zoo_grid grid;
            fill(bits, affine ? 1.0 : 0.0);
            double largest = 0.0;
            (void)squared_error(&how, &grid);
            for (size_t i = 0; i < COUNT; i++) {
                largest = fmax(largest, fabs((double)values[i]));
                // The zero of an affine grid is rounded, which moves the ends by half a step.
                assert_true(fabs((double)(values[i] - rounded[i])) <=
                            (affine ? 1.001 : 0.501) * (double)grid.scale);
            }
            if (!affine)
                assert_true(fabs((double)grid.scale * grid.most - largest) < 1e-6 * largest);
        }
    }
}

TEST_CASE(least_squares_are_never_worse)
{
    size_t better = 0;
    for (size_t i = 0; i < 60; i++) {
        struct zoo_grid grid;
        struct zoo_quantiser how = {.bits = i % 2 ? 4 : 8, .affine = i / 2 % 2};
        fill(i + 100, i % 5 == 0 ? 1.5 : 0.0);
        const double all = squared_error(&how, &grid);
        how.clip = ZOO_CLIP_MSE;
        const double least = squared_error(&how, &grid);
        assert_true(least <= all);
        better += least < 0.95 * all;
    }
    assert_true(better > 10); // of 4 bits: clipping pays
}

TEST_CASE(percentiles_leave_values_outside)
{
    struct zoo_quantiser how = {.bits = 8, .clip = ZOO_CLIP_PERCENTILE, .percentile = 90.0};
    for (size_t i = 0; i < 100; i++)
        values[i] = (float)(i + 1) * (i % 2 ? 1.0F : -1.0F); // magnitudes 1..100
    struct zoo_grid grid = zoo_grid_of(&how, values, 100, scratch);
    assert_true(fabs((double)grid.scale * 127.0 - 90.0) < 1e-4);
    how.affine = true; // 5 at either end
    for (size_t i = 0; i < 100; i++)
        values[i] = (float)i - 50.0F;
    grid = zoo_grid_of(&how, values, 100, scratch);
    assert_true(fabs((double)grid.scale * 255.0 - (44.0 + 46.0)) < 1e-4);
    how.percentile = 100.0;
    grid = zoo_grid_of(&how, values, 100, scratch);
    assert_true(fabs((double)grid.scale * 255.0 - 99.0) < 1e-4);
}

// Zero is exact, and nothing overflows.
TEST_CASE(extreme_values)
{
    static const float extremes[][2] = {{0.0F, 0.0F},       {0.0F, 1e-45F}, {FLT_MAX, -FLT_MAX},
                                        {5.0F, 7.0F},       {-7.0F, -5.0F}, {FLT_MIN, 0.0F},
                                        {1e30F, 1.0000001F}};
    for (size_t i = 0; i < COUNT_OF(extremes); i++) {
        for (int way = 0; way < 6; way++) {
            const struct zoo_quantiser how = {
                .bits = 8, .affine = way % 2, .clip = (enum zoo_clip)(way / 2), .percentile = 99.9};
            const struct zoo_grid grid = zoo_grid_of(&how, extremes[i], 2, scratch);
            const float zero = 0.0F;
            int8_t q;
            assert_true(isfinite(grid.scale) && grid.scale > 0.0F);
            zoo_quantise(&grid, &q, &zero, 1);
            assert_int_equal(q, grid.zero);
            zoo_quantise(&grid, integers, extremes[i], 2);
            zoo_round_to_grid(&grid, rounded, extremes[i], 2);
            assert_true(isfinite(rounded[0]) && isfinite(rounded[1]));
        }
    }
}

TEST_CASE(prunes_the_smallest)
{
    static const double shares[] = {0.0, 0.001, 0.25, 0.5, 0.999};
    for (size_t s = 0; s < COUNT_OF(shares); s++) {
        fill(s + 9, 0.0);
        for (size_t i = 0; i < COUNT; i += 3)
            values[i] = 0.25F; // many equal ones
        float before[COUNT], largest_zero = 0.0F, smallest_kept = FLT_MAX;
        memcpy(before, values, sizeof before);
        zoo_prune(values, COUNT, shares[s], scratch);
        size_t zeros = 0;
        for (size_t i = 0; i < COUNT; i++) {
            zeros += values[i] == 0.0F;
            if (values[i] == 0.0F)
                largest_zero = fmaxf(largest_zero, fabsf(before[i]));
            else
                smallest_kept = fminf(smallest_kept, fabsf(before[i]));
            assert_true(values[i] == 0.0F || values[i] == before[i]);
        }
        assert_int_equal(zeros, (size_t)(shares[s] * COUNT));
        assert_true(largest_zero <= smallest_kept);
        assert_int_equal(zoo_sparse_bytes(values, COUNT),
                         (COUNT + 7) / 8 + (COUNT - zeros) * sizeof(float));
    }
}

int main(void)
{
    return TEST_RUN(integers_are_the_nearest, minmax_covers_all_values,
                    least_squares_are_never_worse, percentiles_leave_values_outside, extreme_values,
                    prunes_the_smallest);
}
