// The worker's option tables and its JSON object.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/json.h"
#include "server/worker/options.h"
#include "tests/support/test.h"

static struct {
    bool flag;
    const char *text;
    int64_t number;
    double real;
} first;

static struct {
    const char *other;
} second;

static const struct option_line first_lines[] = {
    {"--flag", NULL, OPTION_FLAG, offsetof(__typeof__(first), flag), 0, 0, "a flag"},
    {"--text", "TEXT", OPTION_TEXT, offsetof(__typeof__(first), text), 0, 0, "a text"},
    {"--number", "N", OPTION_INTEGER, offsetof(__typeof__(first), number), -5, 10, "a number"},
    {"--real", "R", OPTION_REAL, offsetof(__typeof__(first), real), 0.5, 2, "a real number"},
};

static const struct option_line second_lines[] = {
    {"--other-with-a-long-name", "SOMETHING", OPTION_TEXT, offsetof(__typeof__(second), other), 0,
     0, "of another table"},
};

static const struct option_table tables[] = {
    {first_lines, COUNT_OF(first_lines), &first},
    {second_lines, COUNT_OF(second_lines), &second},
};

static bool ended;

static enum status parse(int count, const char *const *words, int *at, struct error *err)
{
    // Texts stay borrowed from the arguments after the call.
    static char copies[16][64];
    char *arguments[16];
    memset(&first, 0, sizeof first);
    memset(&second, 0, sizeof second);
    for (int i = 0; i < count; i++) {
        (void)snprintf(copies[i], sizeof copies[i], "%s", words[i]);
        arguments[i] = copies[i];
    }
    *at = 0;
    ended = false;
    return options_parse(arguments, count, at, tables, 2, &ended, err);
}

#define PARSE(at, err, ...)                                                                        \
    parse((int)COUNT_OF(((const char *const[]){__VA_ARGS__})), (const char *const[]){__VA_ARGS__}, \
          at, err)

static void values(void **state)
{
    (void)state;
    int at;
    struct error err = {0};
    assert_int_equal(PARSE(&at, &err, "--flag", "--text", "a b", "--number=-5", "--real", "1.5",
                           "--other-with-a-long-name=x=y", "word", "--flag"),
                     STATUS_OK);
    assert_int_equal(at, 7); // "word"
    assert_true(first.flag);
    assert_string_equal(first.text, "a b");
    assert_int_equal(first.number, -5);
    assert_true(first.real == 1.5);
    assert_string_equal(second.other, "x=y");

    assert_int_equal(PARSE(&at, &err, "--text", "--flag", "-"), STATUS_OK);
    assert_string_equal(first.text, "--flag"); // a value is whatever follows
    assert_false(first.flag);
    assert_int_equal(at, 2); // "-" is a word
    assert_int_equal(PARSE(&at, &err, "--text=", "--", "--flag"), STATUS_OK);
    assert_string_equal(first.text, "");
    assert_int_equal(at, 2); // behind "--"
    assert_false(first.flag);
    assert_true(ended);
    // For good: what follows a word is a word, too.
    char words[][8] = {"-odd", "--flag"};
    char *const left[] = {words[0], words[1]};
    for (at = 0; at < 2; at++) {
        int before = at;
        assert_int_equal(options_parse(left, 2, &at, tables, 2, &ended, &err), STATUS_OK);
        assert_int_equal(at, before);
    }
    assert_false(first.flag);
    assert_int_equal(PARSE(&at, &err, "--flag", "word"), STATUS_OK);
    assert_false(ended);
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *words[2];
        const char *says;
    } cases[] = {
        {{"--flagg"}, "unknown option '--flagg' (did you mean --flag?)"},
        {{"--zzzzzzzzzz"}, "unknown option '--zzzzzzzzzz' (see --help)"},
        {{"-f"}, "unknown option '-f'"},
        {{"--fl"}, "unknown option '--fl'"},
        {{"--flag=1"}, "--flag: takes no value"},
        {{"--text"}, "--text: a value is missing (TEXT)"},
        {{"--number", "11"}, "--number"},
        {{"--number", "-6"}, "--number"},
        {{"--number", "1x"}, "--number"},
        {{"--number", ""}, "--number"},
        {{"--real", "0.4"}, "--real"},
        {{"--real", "nan"}, "--real"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int at;
        struct error err = {0};
        enum status status = parse(cases[i].words[1] ? 2 : 1, cases[i].words, &at, &err);
        if (status != STATUS_INVALID || !strstr(err.text, cases[i].says))
            fail_msg("case %zu: status %d, '%s'", i, (int)status, err.text);
    }
}

static void help_lists_every_option(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    options_help(out, &tables[0]);
    options_help(out, &tables[1]);
    (void)fclose(out);
    assert_non_null(strstr(text, "  --flag                    a flag\n"));
    assert_non_null(strstr(text, "  --number N                a number\n"));
    assert_non_null(strstr(text, "  --other-with-a-long-name SOMETHING\n"
                                 "                            of another table\n"));
    free(text);
}

static void json_object(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct json json;
    json_begin(&json, out);
    json_uint(&json, "a", UINT64_MAX);
    json_real(&json, "b", 0.1);
    json_real(&json, "c", (double)NAN);
    json_real(&json, "d", -(double)INFINITY);
    json_text(&json, "e", "\"\\\n\x01\u00e9\xff\xc3");
    json_text(&json, "f", NULL);
    json_end(&json);
    (void)fclose(out);
    assert_string_equal(text, "{\"a\": 18446744073709551615, \"b\": 0.10000000000000001, "
                              "\"c\": null, \"d\": null, "
                              "\"e\": \"\\\"\\\\\\n\\u0001\u00e9\\ufffd\\ufffd\", "
                              "\"f\": null}\n");
    free(text);
    out = open_memstream(&text, &size);
    json_begin(&json, out);
    json_end(&json);
    (void)fclose(out);
    assert_string_equal(text, "{}\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),
        cmocka_unit_test(refusals),
        cmocka_unit_test(help_lists_every_option),
        cmocka_unit_test(json_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
