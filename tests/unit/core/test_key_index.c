// Keys are numbered in the order in which they first come, and found again; also after a clear.
#include "common/core/base/key_index.h"
#include "tests/support/test.h"

enum { KEYS = 5000 };

static void key_of(int64_t key[2], int64_t number)
{
    key[0] = number % 71 - 35;
    key[1] = (number / 71) << 40;
}

TEST_CASE(test_numbers)
{
    struct key_index index = {.width = 2};
    int64_t key[2] = {0, 0};
    size_t number = 0;
    assert_false(key_index_find(&index, key, &number));
    for (unsigned round = 0; round < 3; round++) {
        for (int64_t i = 0; i < 2 * KEYS; i++) {
            key_of(key, i % KEYS);
            assert_int_equal(key_index_find(&index, key, &number), i >= KEYS);
            assert_int_equal(key_index_add(&index, key, &number), STATUS_OK);
            assert_int_equal(number, i % KEYS);
            assert_memory_equal(&index.keys[2 * number], key, sizeof key);
        }
        assert_int_equal(index.count, KEYS);
        if (round == 0)
            key_index_clear(&index);
        else
            key_index_deinit(&index);
        assert_false(key_index_find(&index, key, &number));
    }
}

TEST_MAIN(test_numbers)
