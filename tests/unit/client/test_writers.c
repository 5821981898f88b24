#include "tests/support/test.h"

#include <locale.h>
#include <math.h>

#include "client/cli/output/csv.h"
#include "client/cli/output/rows.h"
#include "client/cli/output/table.h"
#include "client/cli/output/width.h"

// What was written to a stream in memory.
struct written {
    char *text;
    size_t size;
    FILE *out;
};

static FILE *open_written(struct written *written)
{
    written->out = open_memstream(&written->text, &written->size);
    assert_non_null(written->out);
    return written->out;
}

static void expect_written(struct written *written, const char *expected)
{
    assert_int_equal(fclose(written->out), 0);
    assert_string_equal(written->text, expected);
    free(written->text);
}

static struct result *new_result(void)
{
    struct result *result;
    assert_int_equal(result_new(&result), STATUS_OK);
    assert_int_equal(result_add_column(result, "name", UNIT_NONE), STATUS_OK);
    assert_int_equal(result_add_column(result, "count", UNIT_COUNT), STATUS_OK);
    assert_int_equal(result_add_column(result, "speed", UNIT_TOKENS_PER_SECOND), STATUS_OK);
    return result;
}

static void add_row(struct result *result, const char *name, int64_t count, double speed)
{
    assert_int_equal(result_add_row(result), STATUS_OK);
    if (name)
        assert_int_equal(result_set_text(result, 0, name, strlen(name)), STATUS_OK);
    result_set_int(result, 1, count);
    result_set_real(result, 2, speed); // NaN becomes null
}

TEST_CASE(test_json_rows)
{
    struct result *result = new_result();
    add_row(result, "a\"b", INT64_MAX, 45.23);
    add_row(result, NULL, INT64_MIN, NAN);

    struct written written;
    struct rows rows = {.out = open_written(&written), .format = FORMAT_JSON};
    rows_write(&rows, result, 0, 1);
    rows_write(&rows, result, 1, 2);
    rows_end(&rows);
    assert_int_equal(rows.count, 2);
    expect_written(&written,
                   "{\"rows\": [\n"
                   "{\"name\": \"a\\\"b\", \"count\": 9223372036854775807, \"speed\": 45.23},\n"
                   "{\"name\": null, \"count\": -9223372036854775808, \"speed\": null}\n"
                   "]}\n");

    rows = (struct rows){.out = open_written(&written), .format = FORMAT_JSON};
    rows_write(&rows, result, 0, 0);
    rows_end(&rows);
    expect_written(&written, "{\"rows\": []}\n");

    rows = (struct rows){.out = open_written(&written), .format = FORMAT_JSONL, .kind = "load"};
    rows_write(&rows, result, 1, 2);
    rows_end(&rows);
    expect_written(&written, "{\"kind\": \"load\", \"name\": null, "
                             "\"count\": -9223372036854775808, \"speed\": null}\n");
    result_free(result);
}

TEST_CASE(test_csv)
{
    struct result *result = new_result();
    add_row(result, "plain", 1, 0.5);
    add_row(result, "a,b", 2, 1e300);
    add_row(result, "say \"hi\"", 3, NAN);
    add_row(result, "two\nlines\r", 4, 2);
    add_row(result, "", 5, 0);
    add_row(result, NULL, -6, -0.25);
    add_row(result, "gr\xc3\xbcn", 7, 1);
    add_row(result, "cr\ralone", 8, 1);

    struct written written;
    struct rows rows = {.out = open_written(&written), .format = FORMAT_CSV};
    rows_write(&rows, result, 0, 3);
    rows_write(&rows, result, 3, result_row_count(result)); // one header for all pages
    rows_end(&rows);
    expect_written(&written, "name,count,speed\n"
                             "plain,1,0.5\n"
                             "\"a,b\",2,1e+300\n"
                             "\"say \"\"hi\"\"\",3,\n"
                             "\"two\nlines\r\",4,2\n"
                             "\"\",5,0\n"
                             ",-6,-0.25\n"
                             "gr\xc3\xbcn,7,1\n"
                             "\"cr\ralone\",8,1\n");
    result_free(result);
}

TEST_CASE(test_width)
{
    static const struct {
        const char *text;
        unsigned width;
    } cases[] = {
        {"", 0},
        {"abc", 3},
        {"gr\xc3\xbcn", 4},
        {"e\xcc\x81", 1},                // a combining accent
        {"\xe6\x97\xa5\xe6\x9c\xac", 4}, // wide characters
        {"\xf0\x9f\x9a\x80", 2},
        {"\xff\xfe", 2}, // malformed: a column a byte
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(width_of(cases[i].text), cases[i].width);
    assert_int_equal(width_cut("\xe6\x97\xa5\xe6\x9c\xac", 3), 3); // never half a character
    assert_int_equal(width_cut("\xe6\x97\xa5\xe6\x9c\xac", 1), 0);
    assert_int_equal(width_cut("e\xcc\x81z", 1), 3);
}

static const struct table_column three[] = {
    {"name", TABLE_LEFT, true, 0},
    {"count", TABLE_RIGHT, false, 0},
    {"note", TABLE_LEFT, true, 0},
};

static struct table *new_table(void)
{
    struct table *table;
    assert_int_equal(table_new(&table, three, 3), STATUS_OK);
    return table;
}

static void expect_table(const struct table *table, unsigned width, const char *expected)
{
    struct written written;
    assert_int_equal(table_print(table, open_written(&written), width, NULL), STATUS_OK);
    expect_written(&written, expected);
}

TEST_CASE(test_table_aligns)
{
    struct table *table = new_table();
    table_add(table, "\xe6\x97\xa5\xe6\x9c\xac");
    table_add_value(table, (struct value){.type = VALUE_INT, .i = 7}, UNIT_COUNT);
    table_add_value(table, (struct value){.type = VALUE_NULL}, UNIT_NONE);
    table_add_below(table, "  below the first");
    table_add(table, "\x1b[31mred");
    table_add_value(table, (struct value){.type = VALUE_REAL, .r = NAN}, UNIT_DURATION);
    table_add_value(table, (struct value){.type = VALUE_TEXT, .text = {"x\ny", 3}}, UNIT_NONE);
    expect_table(table, 0,
                 "name         count  note\n"
                 "\xe6\x97\xa5\xe6\x9c\xac             7  -\n"
                 "  below the first\n"
                 "\\x1B[31mred      -  x\\x0Ay\n");
    table_free(table);
}

TEST_CASE(test_table_narrows)
{
    struct table *table = new_table();
    table_add(table, "a-rather-long-name");
    table_add(table, "12345");
    table_add(table, "short");
    expect_table(table, 32,
                 "name                count  note\n"
                 "a-rather-long-name  12345  short\n");
    expect_table(table, 28,
                 "name            count  note\n"
                 "a-rather-lo...  12345  short\n");
    // Below the least width of a name whole columns go.
    expect_table(table, 20,
                 "name           count\n"
                 "a-rather-l...  12345\n"
                 "(1 more column: widen the terminal, or use --json)\n");
    expect_table(table, 3,
                 "name\n"
                 "a-rathe...\n"
                 "(2 more columns: widen the terminal, or use --json)\n");
    table_free(table);
}

TEST_CASE(test_table_leaves_minor_columns_out)
{
    static const struct table_column four[] = {
        {"name", TABLE_LEFT, true, 0},
        {"count", TABLE_RIGHT, false, 1},
        {"more", TABLE_RIGHT, false, 2},
        {"last", TABLE_RIGHT, false, 0},
    };
    struct table *table;
    assert_int_equal(table_new(&table, four, 4), STATUS_OK);
    table_add(table, "a-rather-long-name");
    table_add(table, "12345");
    table_add(table, "6");
    table_add(table, "7");
    expect_table(table, 37,
                 "name                count  more  last\n"
                 "a-rather-long-name  12345     6     7\n");
    expect_table(table, 36,
                 "name                count  last\n"
                 "a-rather-long-name  12345     7\n"
                 "(1 more column: widen the terminal, or use --json)\n");
    // All minor ones go before a name is cut.
    expect_table(table, 23,
                 "name               last\n"
                 "a-rather-long-...     7\n"
                 "(2 more columns: widen the terminal, or use --json)\n");
    table_free(table);
}

TEST_CASE(test_table_without_rows)
{
    struct table *table = new_table();
    table_add_below(table, "below nothing");
    expect_table(table, 0, "name  count  note\n");
    table_free(table);
    table_free(NULL);
}

int main(void)
{
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        return 77;
    return TEST_RUN(test_json_rows, test_csv, test_width, test_table_aligns, test_table_narrows,
                    test_table_leaves_minor_columns_out, test_table_without_rows);
}
