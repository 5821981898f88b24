#include "common/wire/arena.h"

#include "tests/support/test.h"

TEST_CASE(test_pieces)
{
    struct arena *arena = NULL;
    assert_int_equal(arena_new(&arena, 1, 16 * 1024 * 1024), STATUS_OK);
    static const size_t sizes[] = {0, 1, 7, 8, 9, 1000, 1024, 1025, 100000, 3000000};
    unsigned char *pieces[1000];
    for (size_t i = 0; i < 1000; i++) {
        size_t size = sizes[i % (i < 20 ? 10 : 7)];
        pieces[i] = arena_alloc(arena, size);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % 8, 0);
        assert_int_equal(arena_piece_size(pieces[i]), size);
        memset(pieces[i], (int)(i % 251), size);
    }
    for (size_t i = 0; i < 1000; i++) // none overlaps another
        for (size_t j = 0; j < arena_piece_size(pieces[i]); j += 97)
            assert_int_equal(pieces[i][j], i % 251);
    assert_false(arena_failed(arena));
    arena_free(arena);
    arena_free(NULL);
}

TEST_CASE(test_arrays)
{
    struct arena *arena = NULL;
    assert_int_equal(arena_new(&arena, 4096, 100000), STATUS_OK);
    size_t count = 0;
    assert_null(arena_array(arena, &count, 8));
    assert_false(arena_failed(arena)); // nothing was wanted
    count = 10;
    memset(arena_alloc(arena, 800), 0xff, 800);
    arena_reset(arena);
    const uint64_t *numbers = arena_array(arena, &count, sizeof *numbers);
    assert_non_null(numbers);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(numbers[i], 0);
    count = SIZE_MAX / 8 + 2; // the product overflows
    assert_null(arena_array(arena, &count, 8));
    assert_int_equal(count, 0);
    assert_true(arena_failed(arena));
    assert_true(arena_over_limit(arena));
    arena_free(arena);
}

TEST_CASE(test_limit)
{
    static const size_t pieces[] = {1, 100, 5000};
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        struct arena *arena = NULL;
        assert_int_equal(arena_new(&arena, 1024, 64000), STATUS_OK);
        for (int round = 0; round < 3; round++) {
            size_t taken = 0;
            while (arena_alloc(arena, pieces[i]))
                taken += pieces[i];
            assert_true(taken <= 64000);
            assert_true(taken > 0);
            assert_true(arena_failed(arena) && arena_over_limit(arena));
            arena_reset(arena);
            assert_false(arena_failed(arena) || arena_over_limit(arena));
        }
        assert_null(arena_alloc(arena, 64001));
        assert_null(arena_alloc(arena, SIZE_MAX));
        assert_true(arena_failed(arena));
        arena_free(arena);
    }
}

TEST_MAIN(test_pieces, test_arrays, test_limit)
