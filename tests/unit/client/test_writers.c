#include "tests/support/test.h"

#include <math.h>

#include "client/cli/output/rows.h"
#include "client/cli/output/progress.h"
#include "client/cli/output/table.h"
#include "common/core/base/glyph.h"

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
    assert_int_equal(rows_end(&rows, STATUS_OK, NULL), STATUS_OK);
    assert_int_equal(rows.count, 2);
    expect_written(&written,
                   "{\"rows\": [\n"
                   "{\"name\": \"a\\\"b\", \"count\": 9223372036854775807, \"speed\": 45.23},\n"
                   "{\"name\": null, \"count\": -9223372036854775808, \"speed\": null}\n"
                   "]}\n");

    rows = (struct rows){.out = open_written(&written), .format = FORMAT_JSON};
    rows_write(&rows, result, 0, 0);
    assert_int_equal(rows_end(&rows, STATUS_OK, NULL), STATUS_OK);
    expect_written(&written, "{\"rows\": []}\n");

    rows = (struct rows){.out = open_written(&written), .format = FORMAT_JSONL, .kind = "load"};
    rows_write(&rows, result, 1, 2);
    assert_int_equal(rows_end(&rows, STATUS_OK, NULL), STATUS_OK);
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
    assert_int_equal(rows_end(&rows, STATUS_OK, NULL), STATUS_OK);
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
        int width;
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
        assert_int_equal(glyph_text_width(cases[i].text), cases[i].width);
    assert_int_equal(glyph_cut("\xe6\x97\xa5\xe6\x9c\xac", 3), 3); // never half a character
    assert_int_equal(glyph_cut("\xe6\x97\xa5\xe6\x9c\xac", 1), 0);
    assert_int_equal(glyph_cut("e\xcc\x81z", 1), 3);
}

static const struct column three[] = {
    {"name", "name", COLUMN_LEFT(0)},
    {"count", "count", COLUMN_RIGHT(0)},
    {"note", "note", COLUMN_LEFT(0)},
};

// A table of these columns of one row: a name, a count, and texts.
static struct table *new_table(const struct column *columns, unsigned count)
{
    struct result *result;
    static const char *const texts[] = {"a-rather-long-name", "", "short", "7"};
    struct table *table = table_new(&(struct columns){columns, count, NULL});
    assert_non_null(table);
    assert_int_equal(result_new(&result), STATUS_OK);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(result_add_column(result, columns[i].key, UNIT_NONE), STATUS_OK);
    assert_int_equal(result_add_row(result), STATUS_OK);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(result_set_text(result, i, texts[i], strlen(texts[i])), STATUS_OK);
    result_set_int(result, 1, 12345);
    table_add_row(table, result, 0);
    result_free(result);
    return table;
}

static void expect_table(const struct table *table, unsigned width, const char *expected)
{
    struct written written;
    assert_int_equal(table_print(table, open_written(&written), width, false, NULL), STATUS_OK);
    expect_written(&written, expected);
}

TEST_CASE(test_fields)
{
    struct result *result = new_result();
    struct written written;
    struct error err;
    add_row(result, "a", 7, 0.5);
    add_row(result, "b", 8, 1.5);
    struct rows rows = {
        .out = open_written(&written), .format = FORMAT_CSV, .fields = "speed,name"};
    rows_write(&rows, result, 0, 2);
    rows = (struct rows){.out = rows.out, .format = FORMAT_JSON, .fields = "count"};
    rows_write(&rows, result, 1, 2);
    assert_int_equal(rows_end(&rows, STATUS_OK, &err), STATUS_OK);
    rows = (struct rows){.out = rows.out, .format = FORMAT_TEXT, .fields = "count,nothing"};
    rows_write(&rows, result, 0, 2);
    assert_int_equal(rows_end(&rows, STATUS_OK, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "\"nothing\""));
    expect_written(&written, "speed,name\n"
                             "0.5,a\n"
                             "1.5,b\n"
                             "{\"rows\": [\n"
                             "{\"count\": 8}\n"
                             "]}\n");
    result_free(result);
}

TEST_CASE(test_colours)
{
    static const struct column states[] = {{"name", "name", COLUMN_LEFT(0)},
                                           {"count", "lost", COLUMN_RIGHT(0)}};
    struct result *result = new_result();
    struct table *table = table_new(&(struct columns){states, 2, NULL});
    struct written written;
    add_row(result, "down", 7, 0.5);
    table_add_row(table, result, 0);
    table_add_below(table, "    error: why");
    add_row(result, "downtown", 0, 1.5);
    table_add_row(table, result, 1);
    assert_int_equal(table_print(table, open_written(&written), 0, true, NULL), STATUS_OK);
    expect_written(&written, "name      lost\n\033[31mdown\033[0m         \033[33m7\033[0m\n"
                             "\033[31m    error: why\n\033[0mdowntown     0\n");
    table_free(table);
    result_free(result);
}

TEST_CASE(test_table_aligns)
{
    struct result *result = new_result();
    struct table *table = table_new(&(struct columns){three, 3, NULL});
    add_row(result, "\xe6\x97\xa5\xe6\x9c\xac", 7, NAN);
    table_add_row(table, result, 0); // it has no note
    table_add_below(table, "  below the first");
    add_row(result, "\x1b[31mred\n", 12, NAN);
    table_add_row(table, result, 1);
    expect_table(table, 0,
                 "name             count  note\n"
                 "\xe6\x97\xa5\xe6\x9c\xac                 7  -\n"
                 "  below the first\n"
                 "\\x1B[31mred\\x0A     12  -\n");
    table_free(table);
    result_free(result);
}

// Without columns of its own a table has all of the first result.
TEST_CASE(test_table_of_a_result)
{
    struct result *result = new_result();
    struct written written;
    add_row(result, "a", 7, NAN);
    struct rows rows = {.out = open_written(&written)};
    rows_write(&rows, result, 0, 1);
    result_free(result);
    rows_add_below(&rows, "  below");
    assert_int_equal(rows_end(&rows, STATUS_OK, NULL), STATUS_OK);
    expect_written(&written, "name  count  speed\na         7  -\n  below\n");

    rows =
        (struct rows){.out = open_written(&written), .columns = &(struct columns){three, 3, NULL}};
    assert_int_equal(rows_end(&rows, STATUS_OK, NULL), STATUS_OK);
    assert_int_equal(rows_end(&rows, STATUS_IO, NULL), STATUS_IO);
    expect_written(&written, "");
}

TEST_CASE(test_table_narrows)
{
    struct table *table = new_table(three, 3);
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
                 "(1 more column: widen the terminal, or use --wide)\n");
    expect_table(table, 3,
                 "name\n"
                 "a-rathe...\n"
                 "(2 more columns: widen the terminal, or use --wide)\n");
    table_free(table);
}

TEST_CASE(test_table_leaves_minor_columns_out)
{
    static const struct column four[] = {
        {"name", "name", COLUMN_LEFT(0)},
        {"count", "count", COLUMN_RIGHT(1)},
        {"more", "more", COLUMN_RIGHT(2)},
        {"last", "last", COLUMN_RIGHT(0)},
    };
    struct table *table = new_table(four, 4);
    expect_table(table, 38,
                 "name                count   more  last\n"
                 "a-rather-long-name  12345  short     7\n");
    expect_table(table, 37,
                 "name                count  last\n"
                 "a-rather-long-name  12345     7\n"
                 "(1 more column: widen the terminal, or use --wide)\n");
    // All minor ones go before a name is cut.
    expect_table(table, 23,
                 "name               last\n"
                 "a-rather-long-...     7\n"
                 "(2 more columns: widen the terminal, or use --wide)\n");
    table_free(table);
}

// A text that others would go for is a line below its row, unless all is well there.
TEST_CASE(test_table_puts_texts_below)
{
    static const struct column below[] = {
        {"count", "count", COLUMN_RIGHT(0)},
        {"name", "why", COLUMN_LEFT(0), .is_below = true},
    };
    struct table *table = new_table(below, 2);
    expect_table(table, 30, "             count  why\na-rather-long-name  12345\n");
    expect_table(table, 20, "             count\na-rather-long-name\n    why: 12345\n");
    table_add_below(table, "    two words  and more of them");
    expect_table(table, 20,
                 "             count\na-rather-long-name\n    why: 12345\n"
                 "    two words  and\n      more of them\n");
    table_free(table);
}

TEST_CASE(test_progress)
{
    char text[PROGRESS_TEXT_SIZE];
    const struct progress audit = {
        .what = "audit", .things = "runs", .unit = UNIT_COUNT, .total = 4800};
    const struct progress copy = {.what = "backup", .things = "", .unit = UNIT_BYTES};
    assert_string_equal(progress_text(text, &audit, 1200, UINT64_C(2000000000)),
                        "audit: 1,200 of 4,800 runs, 25.0 %, 600/s, 6.0s left");
    assert_string_equal(progress_text(text, &audit, 0, UINT64_C(2000000000)),
                        "audit: 0 of 4,800 runs, 0.0 %, 2.0s");
    assert_string_equal(progress_text(text, &audit, 4900, UINT64_C(1000000000)),
                        "audit: 4,900 runs, 4,900/s");
    assert_string_equal(progress_text(text, &copy, 3 << 20, UINT64_C(2000000000)),
                        "backup: 3.0 MB, 1.5 MB/s");
}

// What is to be copied is not cut: columns go instead.
TEST_CASE(test_table_keeps_names_whole)
{
    static const struct column whole[] = {
        {"name", "name", COLUMN_LEFT(0), .is_whole = true},
        {"count", "count", COLUMN_RIGHT(0)},
    };
    struct table *table = new_table(whole, 2);
    expect_table(table, 20,
                 "name\n"
                 "a-rather-long-name\n"
                 "(1 more column: widen the terminal, or use --wide)\n");
    table_free(table);
    table_free(NULL);
}

TEST_MAIN(test_json_rows, test_csv, test_width, test_fields, test_colours, test_table_aligns,
          test_table_narrows, test_table_leaves_minor_columns_out, test_table_of_a_result,
          test_table_keeps_names_whole, test_table_puts_texts_below, test_progress)
