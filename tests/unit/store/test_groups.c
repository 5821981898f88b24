// Groups by keys: each found again, in the order in which they came, up to the limit.
#include <math.h>

#include "common/store/rollup/aggregate.h"
#include "tests/support/test.h"

enum { KEYS = 3 };

static unsigned ended;

static void count_end(void *data)
{
    const uint64_t *number = data;
    ended += *number > 0;
}

// Keys that differ in one place only, absent ones among them.
static void keys_of(int64_t keys[KEYS], uint64_t number)
{
    keys[0] = (int64_t)(number % 100) - 50;
    keys[1] = number % 3 == 0 ? GROUP_KEY_NONE : 7;
    keys[2] = (int64_t)(number / 100) << 40;
}

TEST_CASE(test_found_again)
{
    struct groups *groups = NULL;
    struct group *group = NULL;
    int64_t keys[KEYS];
    assert_int_equal(groups_new(&groups, KEYS, sizeof(uint64_t), count_end), STATUS_OK);
    for (uint64_t round = 0; round < 2; round++)
        for (uint64_t n = 0; n < GROUPS_MAX; n++) {
            keys_of(keys, n);
            assert_int_equal(groups_find(groups, keys, &group), STATUS_OK);
            assert_int_equal(*(uint64_t *)group->data, round == 0 ? 0 : n + 1);
            *(uint64_t *)group->data = n + 1;
            assert_memory_equal(group->keys, keys, sizeof keys);
            assert_int_equal(groups_count(groups), round == 0 ? n + 1 : GROUPS_MAX);
        }
    for (uint64_t n = 0; n < GROUPS_MAX; n++)
        assert_int_equal(*(uint64_t *)groups_at(groups, n)->data, n + 1);
    keys_of(keys, GROUPS_MAX);
    assert_int_equal(groups_find(groups, keys, &group), STATUS_FULL);
    assert_int_equal(groups_count(groups), GROUPS_MAX);
    ended = 0;
    groups_free(groups);
    assert_int_equal(ended, GROUPS_MAX);
}

// All records are one group.
TEST_CASE(test_without_keys)
{
    struct groups *groups = NULL;
    const int64_t none[1] = {0};
    struct group *first = NULL, *second = NULL;
    assert_int_equal(groups_new(&groups, 0, 0, NULL), STATUS_OK);
    assert_int_equal(groups_count(groups), 0);
    assert_int_equal(groups_find(groups, none, &first), STATUS_OK);
    assert_int_equal(groups_find(groups, none, &second), STATUS_OK);
    assert_ptr_equal(first, second);
    assert_int_equal(groups_count(groups), 1);
    groups_free(groups);
    groups_free(NULL);
}

// Of 1,505 counts of tokens all but five are 20.
TEST_CASE(test_quantiles_of_integers_are_integers)
{
    for (int reals = 0; reals < 2; reals++) {
        struct aggregate aggregate = {.count = 0};
        assert_int_equal(sketch_new(&aggregate.sketch), STATUS_OK);
        for (int i = 0; i < 1505; i++)
            if (reals)
                aggregate_add_real(&aggregate, i < 1500 ? 20 : 100 + i);
            else
                aggregate_add_int(&aggregate, i < 1500 ? 20 : i % 2 ? 3 : 100 + i);
        const double p50 = aggregate_quantile(&aggregate, 0.5);
        assert_true(reals ? fabs(p50 - 20) < 0.2 : p50 == 20);
        aggregate_deinit(&aggregate);
    }
}

TEST_MAIN(test_found_again, test_without_keys, test_quantiles_of_integers_are_integers)
