// Tables of the worker: which columns a terminal has room for.
#include "server/worker/text_table.h"

#include "tests/support/test.h"

static const struct text_column columns[] = {
    {"name", -6, 0}, {"best", 5, 3}, {"good", 5, 2}, {"least", 5, 1}, {"also", 5, 1}};

// The lines of a table with a row.
static const char *print(int room)
{
    static char text[256];
    static const char *const cells[] = {"a", "1", "2", "3", "4"};
    struct text_table table;
    memset(text, 0, sizeof text);
    FILE *out = fmemopen(text, sizeof text, "w");
    assert_non_null(out);
    text_table_begin(&table, out, columns, COUNT_OF(columns), room);
    text_table_row(&table, cells);
    assert_int_equal(fclose(out), 0);
    return text;
}

TEST_CASE(all_columns_fit)
{
    static const char whole[] = "name    best  good least  also\n"
                                "a          1     2     3     4\n";
    assert_string_equal(print(0), whole); // no terminal
    assert_string_equal(print(30), whole);
    assert_string_equal(print(200), whole);
}

TEST_CASE(the_least_are_left_out)
{
    static const char three[] = "name    best  good  also\n"
                                "a          1     2     4\n";
    assert_string_equal(print(29), three);
    assert_string_equal(print(24), three);
    assert_string_equal(print(23), "name    best  good\na          1     2\n");
    assert_string_equal(print(17), "name    best\na          1\n");
    assert_string_equal(print(11), "name  \na     \n");
    assert_string_equal(print(1), "name  \na     \n");
}

TEST_CASE(a_file_has_room_for_all)
{
    FILE *out = tmpfile();
    assert_non_null(out);
    assert_int_equal(text_table_room(out), 0);
    assert_int_equal(fclose(out), 0);
}

TEST_MAIN(all_columns_fit, the_least_are_left_out, a_file_has_room_for_all)
