#include "tests/support/test.h"

#include <math.h>

#include "common/core/query/result.h"

TEST_CASE(test_cells)
{
    struct result *result = NULL;
    assert_int_equal(result_new(&result), STATUS_OK);
    assert_int_equal(result_add_column(result, "model", UNIT_NONE), STATUS_OK);
    assert_int_equal(result_add_column(result, "ttft_ns", UNIT_DURATION), STATUS_OK);
    assert_int_equal(result_add_column(result, "ratio", UNIT_RATIO), STATUS_OK);
    assert_int_equal(result_add_row(result), STATUS_OK);
    assert_int_equal(result_set_text(result, 0, "a\0b", 3), STATUS_OK);
    result_set_int(result, 1, INT64_MIN);
    result_set_real(result, 2, 0.5);
    assert_int_equal(result_add_row(result), STATUS_OK);
    result_set_real(result, 1, NAN);
    result_set_real(result, 2, -INFINITY);

    assert_int_equal(result_row_count(result), 2);
    assert_int_equal(result_column_count(result), 3);
    assert_string_equal(result_column(result, 1)->key, "ttft_ns");
    assert_int_equal(result_find(result, "ratio"), 2);
    assert_int_equal(result_find(result, "none"), -1);
    struct value cell = result_cell(result, 0, 0);
    assert_int_equal(cell.type, VALUE_TEXT);
    assert_int_equal(cell.text.size, 3);
    assert_memory_equal(cell.text.bytes, "a\0b", 3);
    assert_int_equal(result_cell(result, 0, 1).i, INT64_MIN);
    assert_int_equal(result_cell(result, 1, 0).type, VALUE_NULL);
    assert_int_equal(result_cell(result, 1, 1).type, VALUE_NULL);
    assert_int_equal(result_cell(result, 1, 2).type, VALUE_NULL);
    assert_int_equal(result_cell(result, 2, 0).type, VALUE_NULL);
    assert_int_equal(result_cell(result, 0, (unsigned)-1).type, VALUE_NULL);

    assert_true(result_number(result, 0, "ratio", -1) == 0.5);
    assert_true(result_number(result, 1, "ratio", -1) == -1);
    assert_true(result_number(result, 0, "none", -1) == -1);
    assert_true(result_number(result, 0, "model", -1) == -1);
    assert_int_equal(result_integer(result, 0, "ttft_ns", 0), INT64_MIN);
    assert_int_equal(result_integer(result, 0, "model", 9), 9);
    result_free(result);
    result_free(NULL);
}

// Texts stay where they are while many more are added.
TEST_CASE(test_texts_stay)
{
    struct result *result = NULL;
    assert_int_equal(result_new(&result), STATUS_OK);
    assert_int_equal(result_add_column(result, "text", UNIT_NONE), STATUS_OK);
    enum { ROWS = 5000 };
    for (unsigned i = 0; i < ROWS; i++) {
        char text[64];
        const int size = snprintf(text, sizeof text, "text number %u", i);
        assert_int_equal(result_add_row(result), STATUS_OK);
        assert_int_equal(result_set_text(result, 0, text, (size_t)size), STATUS_OK);
    }
    char *large = calloc(1, 100000);
    assert_non_null(large);
    assert_int_equal(result_add_row(result), STATUS_OK);
    assert_int_equal(result_set_text(result, 0, large, 100000), STATUS_OK);
    free(large);
    for (unsigned i = 0; i < ROWS; i++) {
        char text[64];
        const int size = snprintf(text, sizeof text, "text number %u", i);
        const struct value cell = result_cell(result, i, 0);
        assert_int_equal(cell.text.size, size);
        assert_memory_equal(cell.text.bytes, text, (size_t)size);
    }
    result_set_next_cursor(result, 77);
    assert_int_equal(result_next_cursor(result), 77);
    result_free(result);
}

TEST_CASE(test_long_key)
{
    struct result *result = NULL;
    assert_int_equal(result_new(&result), STATUS_OK);
    char key[200];
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    assert_int_equal(result_add_column(result, key, UNIT_NONE), STATUS_OK);
    assert_int_equal(strlen(result_column(result, 0)->key), 63);
    result_free(result);
}

TEST_MAIN(test_cells, test_texts_stay, test_long_key)
