// Rollups kept in memory: found as they were put, the oldest going first, within bounds.
#include <string.h>

#include "common/store/shelf.h"
#include "tests/support/test.h"

#define MINUTE_NS INT64_C(60000000000)

enum { CELLS = 3, COUNTS = 40 };

static struct shelf_key key_of(int64_t number)
{
    const int64_t first_ns = number / 7 * MINUTE_NS;
    return (struct shelf_key){.metric = 1536 + (int)(number % 3),
                              .grouping = (enum rollup_grouping)(number % ROLLUP_GROUPING_COUNT),
                              .level = (enum rollup_level)(number / 3 % ROLLUP_LEVEL_COUNT),
                              .first_ns = first_ns,
                              .last_ns = first_ns + (number % 7 * MINUTE_NS)};
}

// What tells the buckets of a test, and the sums of some, apart: a cell more or less, and other
// counts.
static void put(struct shelf *shelf, int64_t number, uint64_t state)
{
    const struct shelf_key key = key_of(number);
    uint32_t counts[COUNTS];
    struct shelf_cell cells[CELLS];
    for (unsigned i = 0; i < COUNTS; i++)
        counts[i] = (uint32_t)number * 1000 + i;
    memset(cells, 0, sizeof cells);
    for (unsigned i = 0; i < CELLS; i++)
        cells[i] = (struct shelf_cell){.series = number + i,
                                       .packed = {.positive = i, .negative = COUNTS / 2 - i},
                                       .counts = counts + i};
    const struct shelf_bucket bucket = {
        .state = state, .count = (size_t)number % (CELLS + 1), .cells = cells};
    shelf_put(shelf, &key, &bucket);
}

static void expect(struct shelf *shelf, int64_t number, uint64_t state)
{
    const struct shelf_key key = key_of(number);
    const struct shelf_bucket *bucket = shelf_find(shelf, &key);
    assert_non_null(bucket);
    assert_int_equal(bucket->state, state);
    assert_false(bucket->is_asked);
    assert_int_equal(bucket->count, (size_t)number % (CELLS + 1));
    for (size_t i = 0; i < bucket->count; i++) {
        assert_int_equal(bucket->cells[i].series, number + (int64_t)i);
        for (unsigned c = 0; c < COUNTS / 2; c++)
            assert_int_equal(bucket->cells[i].counts[c], number * 1000 + (int64_t)(i + c));
    }
}

static bool is_there(struct shelf *shelf, int64_t number)
{
    const struct shelf_key key = key_of(number);
    return shelf_find(shelf, &key) != NULL;
}

static void test_found_as_put(void **state)
{
    (void)state;
    struct shelf *shelf = NULL;
    assert_int_equal(shelf_new(&shelf, 1 << 20), STATUS_OK);
    for (int64_t n = 0; n < 300; n++)
        put(shelf, n, 1);
    for (int64_t n = 0; n < 300; n += 2)
        put(shelf, n, 2); // in the place of the first
    for (int64_t n = 0; n < 300; n++)
        expect(shelf, n, n % 2 ? 1 : 2);
    assert_false(is_there(shelf, 300 * 7));
    const struct shelf_key key = key_of(5);
    shelf_drop(shelf, &key);
    shelf_drop(shelf, &key);
    assert_false(is_there(shelf, 5));
    for (int64_t n = 0; n < 300; n++) {
        const struct shelf_key each = key_of(n);
        shelf_drop(shelf, &each);
    }
    assert_int_equal(shelf_bytes(shelf), 0);
    shelf_free(shelf);
}

// Which of two was put first can be told, and a sum may be one that was only asked for.
static void test_in_their_order(void **state)
{
    (void)state;
    struct shelf *shelf = NULL;
    uint64_t made = 0;
    assert_int_equal(shelf_new(&shelf, 1 << 20), STATUS_OK);
    for (int64_t n = 0; n < 100; n++) {
        put(shelf, n % 40, 1);
        const struct shelf_key key = key_of(n % 40);
        assert_true(shelf_find(shelf, &key)->made > made);
        made = shelf_find(shelf, &key)->made;
    }
    const struct shelf_key key = {.first_ns = INT64_MIN, .last_ns = INT64_MAX}; // all there is
    shelf_put(shelf, &key, &(struct shelf_bucket){.is_asked = true});
    assert_true(shelf_find(shelf, &key)->is_asked);
    assert_true(shelf_find(shelf, &key)->made > made);
    shelf_free(shelf);
}

// What was used last stays, whatever came before it.
static void test_within_bounds(void **state)
{
    (void)state;
    enum { MOST = 16 * 1024 };
    struct shelf *shelf = NULL;
    assert_int_equal(shelf_new(&shelf, MOST), STATUS_OK);
    unsigned there = 0;
    for (int64_t n = 0; n < 1000; n++) {
        put(shelf, n, 7);
        assert_true(shelf_bytes(shelf) <= MOST);
        expect(shelf, n, 7);
        expect(shelf, 0, 7);
    }
    for (int64_t n = 0; n < 1000; n++)
        there += is_there(shelf, n);
    assert_in_range(there, 8, 200);
    for (int64_t n = 1000 - (int64_t)there + 1; n < 1000; n++)
        assert_true(is_there(shelf, n));
    shelf_free(shelf);
}

static void test_too_large(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 100, 400};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct shelf *shelf = NULL;
        assert_int_equal(shelf_new(&shelf, sizes[i]), STATUS_OK);
        put(shelf, 3, 1);
        assert_false(is_there(shelf, 3));
        assert_int_equal(shelf_bytes(shelf), 0);
        shelf_free(shelf);
    }
    shelf_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found_as_put),
        cmocka_unit_test(test_in_their_order),
        cmocka_unit_test(test_within_bounds),
        cmocka_unit_test(test_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
