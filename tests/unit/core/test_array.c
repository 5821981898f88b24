#include "tests/support/test.h"

#include "common/core/base/array.h"

TEST_CASE(test_items_keep_their_values_while_the_array_grows)
{
    uint64_t *items = NULL;
    size_t capacity = 0;
    unsigned grown = 0;
    for (size_t i = 0; i < 100000; i++) {
        const size_t before = capacity;
        assert_true(ARRAY_RESERVE(&items, &capacity, i + 1));
        assert_true(capacity > i);
        grown += capacity != before;
        items[i] = i;
    }
    for (size_t i = 0; i < 100000; i++)
        assert_int_equal(items[i], i);
    assert_true(grown < 20); // doubles
    free(items);
}

TEST_CASE(test_many_items_at_once_fit)
{
    char *bytes = NULL;
    size_t capacity = 0;
    assert_true(ARRAY_RESERVE(&bytes, &capacity, 0));
    assert_null(bytes);
    assert_true(ARRAY_RESERVE(&bytes, &capacity, 1));
    assert_true(ARRAY_RESERVE(&bytes, &capacity, 100001));
    assert_true(capacity >= 100001);
    bytes[100000] = 1;
    free(bytes);
}

TEST_CASE(test_a_failure_changes_nothing)
{
    static const size_t wanted[] = {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / sizeof(uint64_t) + 1,
                                    PTRDIFF_MAX / sizeof(uint64_t) + 1};
    uint64_t *items = NULL;
    size_t capacity = 0;
    assert_true(ARRAY_RESERVE(&items, &capacity, 1));
    items[0] = 7;
    uint64_t *const before = items;
    const size_t held = capacity;
    for (size_t i = 0; i < COUNT_OF(wanted); i++) {
        assert_false(ARRAY_RESERVE(&items, &capacity, wanted[i]));
        assert_ptr_equal(items, before);
        assert_int_equal(capacity, held);
        assert_int_equal(items[0], 7);
    }
    free(items);
}

TEST_MAIN(test_items_keep_their_values_while_the_array_grows, test_many_items_at_once_fit,
          test_a_failure_changes_nothing)
