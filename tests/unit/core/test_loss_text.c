#include "tests/support/test.h"

#include "common/core/query/result.h"

static struct result *row_of(const char *const *keys, const int64_t *counts, size_t count)
{
    struct result *result;
    assert_int_equal(result_new(&result), STATUS_OK);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(result_add_column(result, keys[i], UNIT_COUNT), STATUS_OK);
    assert_int_equal(result_add_row(result), STATUS_OK);
    for (size_t i = 0; i < count; i++)
        if (counts[i] != INT64_MIN) // stays null
            result_set_int(result, (unsigned)i, counts[i]);
    return result;
}

TEST_CASE(test_words)
{
    static const char *const keys[] = {"dropped", "dropped_a", "dropped_b_c", "lost",
                                       "dropped_\x1b"};
    static const struct {
        int64_t counts[5];
        const char *text;
    } cases[] = {
        {{9, 0, 0, 9, 0}, ""},
        {{9, 1, 0, 9, 0}, "1 a"},
        {{9, 1, 2, 9, 0}, "2 b_c, 1 a"},
        {{9, 2, 2, 9, INT64_MIN}, "2 a, 2 b_c"},
        {{9, -4, INT64_MIN, 9, 3}, "3 \\x1B"},
        {{9, 5, INT64_MAX, 9, 7}, "9223372036854775807 b_c, 7 \\x1B, 5 a"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[LOSS_TEXT_SIZE];
        struct result *result = row_of(keys, cases[i].counts, COUNT_OF(keys));
        assert_string_equal(result_loss_text(text, result, 0), cases[i].text);
        assert_string_equal(result_loss_text(text, result, 1), ""); // no such row
        result_free(result);
    }
}

// More reasons than there is room for: whole words, as far as they go.
TEST_CASE(test_many)
{
    enum { MANY = 40 };
    static char names[MANY][64];
    const char *keys[MANY];
    int64_t counts[MANY];
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof names[i], "dropped_a_reason_with_quite_a_long_name_%02d",
                       i);
        keys[i] = names[i];
        counts[i] = INT64_MAX - i;
    }
    struct result *result = row_of(keys, counts, MANY);
    char text[LOSS_TEXT_SIZE];
    const size_t size = strlen(result_loss_text(text, result, 0));
    assert_true(size > 100 && size < LOSS_TEXT_SIZE);
    assert_true(strncmp(text, "9223372036854775807 a_reason_with_quite_a_long_name_00, ", 56) == 0);
    result_free(result);
}

TEST_MAIN(test_words, test_many)
