// Options from tables: reading a command line, values, refusals, help.
#include <limits.h>

#include "common/sys/option_table.h"
#include "tests/support/test.h"

struct first {
    bool flag, quiet;
    const char *text;
    char path[PATH_MAX];
    int64_t number, period_ns;
    uint32_t count, set;
    double real;
    int choice, bars;
    struct option_numbers numbers;
};

static struct first first;

static struct {
    const char *other;
} second;

static const char *color(unsigned i)
{
    static const char *const words[] = {"red", "green", "blue"};
    return i < COUNT_OF(words) ? words[i] : NULL;
}

static enum status parse_even(void *member, const char *value, const char *what, struct error *err)
{
    struct first *target = member;
    target->number = (int64_t)strlen(value);
    return target->number % 2 == 0 ? STATUS_OK : error_set(err, STATUS_INVALID, "%s: odd", what);
}

#define OPTION_TARGET struct first

static const struct option first_rows[] = {
    {"flag", NULL, "a flag", .letter = 'f', FLAG_AT(flag)},
    {"quiet", NULL, "another", .letter = 'q', FLAG_AT(quiet)},
    {"seen", NULL, "is given", OPTION_IS_GIVEN},
    {"text", "TEXT", "a text", .letter = 't', TEXT_AT(text)},
    {"path", "FILE", "a path", PATH_AT(path)},
    {"number", "N", "a number", INTEGER_AT(number, -5, 10)},
    {"count", "N", "a count", UINT32_AT(count, 0, UINT32_MAX)},
    {"real", "R", "a real number", REAL_AT(real, 0.5, 2)},
    {"period", "TIME", "a period", PERIOD_AT(period_ns)},
    {"choice", "COLOR", "a color", CHOICE_AT(choice, color)},
    {"bars", "one|two|three", "words of the help", CHOICE_AT(bars, NULL)},
    {"set", "LIST", "colors", SET_AT(set, color)},
    {"numbers", "N,...", "numbers", NUMBERS_AT(numbers, 1, 99)},
    {"even", "WORD", NULL, .type = OPTION_CUSTOM, .parse = parse_even},
};

#undef OPTION_TARGET
#define OPTION_TARGET __typeof__(second)

static const struct option second_rows[] = {
    {"other-with-a-long-name", "SOMETHING",
     "of another table, with a meaning that does not fit one line of the help", TEXT_AT(other)},
};

static bool given[COUNT_OF(first_rows)];

static const struct option_table tables[] = {
    {.options = first_rows, .count = COUNT_OF(first_rows), .target = &first, .given = given},
    {.options = second_rows, .count = COUNT_OF(second_rows), .target = &second},
};

// Reads words up to the first that is no option, which `*word` is.
static enum status parse(const char *const *words, size_t count, const char **word,
                         struct error *err)
{
    static char copies[16][64]; // texts stay borrowed after the call
    char *arguments[16];
    memset(&first, 0, sizeof first);
    memset(&second, 0, sizeof second);
    memset(given, 0, sizeof given);
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(copies[i], sizeof copies[i], "%s", words[i]);
        arguments[i] = copies[i];
    }
    struct option_reader reader = {.program = "program",
                                   .words = arguments,
                                   .count = (int)count,
                                   .tables = tables,
                                   .table_count = COUNT_OF(tables)};
    enum status status = STATUS_OK;
    for (*word = NULL; status == STATUS_OK && !*word && reader.at < (int)count;)
        status = option_reader_next(&reader, word, err);
    return status;
}

#define PARSE(word, err, ...)                                                                      \
    parse((const char *const[]){__VA_ARGS__}, COUNT_OF(((const char *const[]){__VA_ARGS__})),      \
          word, err)

TEST_CASE(values)
{
    const char *word;
    struct error err = {0};
    assert_int_equal(PARSE(&word, &err, "--flag", "--text", "a b", "--number=-5", "--real", "1.5",
                           "--other-with-a-long-name=x=y", "word", "--quiet"),
                     STATUS_OK);
    assert_string_equal(word, "word");
    assert_true(first.flag);
    assert_false(first.quiet);
    assert_string_equal(first.text, "a b");
    assert_int_equal(first.number, -5);
    assert_true(first.real == 1.5);
    assert_string_equal(second.other, "x=y");
    assert_true(given[0]);
    assert_false(given[1]);

    assert_int_equal(PARSE(&word, &err, "--seen", "--path", "/a", "--count=4294967295", "--period",
                           "250ms", "--choice", "blue", "--bars", "three", "--set", "green,blue",
                           "--even", "four"),
                     STATUS_OK);
    assert_null(word);
    assert_true(given[2]);
    assert_string_equal(first.path, "/a");
    assert_true(first.count == UINT32_MAX);
    assert_int_equal(first.period_ns, 250000000);
    assert_int_equal(first.choice, 2);
    assert_int_equal(first.bars, 2);
    assert_int_equal(first.set, 6);
    assert_int_equal(first.number, 4);
}

// A list goes on where the option is given again.
TEST_CASE(lists)
{
    static const struct {
        const char *value, *says;
    } refused[] = {{"", "--numbers"},
                   {"5,", "--numbers"},
                   {"5,,6", "--numbers"},
                   {"0", "--numbers: 0 is outside 1 to 99"},
                   {"5,100", "--numbers: 100 is outside"},
                   {"5x", "--numbers"},
                   {"7", "--numbers: 7 is there twice"},
                   {"8,9,8", "--numbers: 8 is there twice"},
                   {"10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,"
                    "35,36,37,38,39,40",
                    "--numbers: more than 32 numbers"}};
    const char *word;
    struct error err = {0};
    assert_int_equal(
        PARSE(&word, &err, "--numbers", "7,3", "--set=blue", "--numbers=99", "--set", "red,blue"),
        STATUS_OK);
    assert_int_equal(first.set, 5);
    assert_int_equal(first.numbers.count, 3);
    assert_int_equal(first.numbers.values[0], 7);
    assert_int_equal(first.numbers.values[1], 3);
    assert_int_equal(first.numbers.values[2], 99);
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        const struct option *option = option_find(&tables[0], "numbers");
        first.numbers = (struct option_numbers){.values = {7, 3}, .count = 2};
        assert_int_equal(option_set(option, &first, refused[i].value, &err), STATUS_INVALID);
        if (!strstr(err.text, refused[i].says))
            fail_msg("'%s': %s", refused[i].value, err.text);
    }
}

TEST_CASE(words_and_letters)
{
    const char *word;
    struct error err = {0};
    assert_int_equal(PARSE(&word, &err, "--text", "--flag", "-"), STATUS_OK);
    assert_string_equal(first.text, "--flag"); // a value is whatever follows
    assert_false(first.flag);
    assert_string_equal(word, "-");
    assert_int_equal(PARSE(&word, &err, "--text=", "--", "--flag"), STATUS_OK);
    assert_string_equal(first.text, "");
    assert_string_equal(word, "--flag");
    assert_false(first.flag);
    assert_int_equal(PARSE(&word, &err, "-qf", "-tx"), STATUS_OK);
    assert_true(first.flag && first.quiet);
    assert_string_equal(first.text, "x");
    assert_int_equal(PARSE(&word, &err, "-qt", "-f"), STATUS_OK);
    assert_string_equal(first.text, "-f");
    assert_false(first.flag);
}

TEST_CASE(refusals)
{
    static const struct {
        const char *words[2];
        const char *says;
    } cases[] = {
        {{"--flagg"}, "--flagg: unknown option (did you mean --flag?)"},
        {{"--zzzzzzzzzz=1"}, "--zzzzzzzzzz: unknown option (see program --help)"},
        {{"-x"}, "-x: unknown option (see program --help)"},
        {{"-fx"}, "-fx: unknown option"},
        {{"--fl"}, "--fl: unknown option"},
        {{"--flag=1"}, "--flag: takes no value"},
        {{"--text"}, "--text: a value is missing (--text TEXT)"},
        {{"-t"}, "--text: a value is missing (--text TEXT)"},
        {{"--path="}, "--path: the path is empty"},
        {{"--number", "11"}, "--number"},
        {{"--number", "-6"}, "--number"},
        {{"--number", "1x"}, "--number"},
        {{"--number", ""}, "--number"},
        {{"--count", "-1"}, "--count"},
        {{"--count", "4294967296"}, "--count"},
        {{"--real", "0.4"}, "--real"},
        {{"--real", "nan"}, "--real"},
        {{"--period", "0s"}, "--period: the time must be above zero"},
        {{"--period", "soon"}, "--period"},
        {{"--choice", "pink"}, "--choice: 'pink' is none of red, green, blue"},
        {{"--bars", "thre"}, "--bars: 'thre' is none of one, two, three"},
        {{"--set", "red,"}, "--set: '' is none of red, green, blue"},
        {{"--even", "odd"}, "--even: odd"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *word;
        struct error err = {0};
        enum status status = parse(cases[i].words, cases[i].words[1] ? 2 : 1, &word, &err);
        if (status != STATUS_INVALID || !strstr(err.text, cases[i].says))
            fail_msg("case %zu: status %d, '%s'", i, (int)status, err.text);
    }
}

TEST_CASE(flags_in_files)
{
    struct error err = {0};
    struct first target = {0};
    const struct option *flag = option_find(&tables[0], "flag");
    assert_null(option_find(&tables[0], "flagg"));
    assert_int_equal(option_set(flag, &target, "yes", &err), STATUS_OK);
    assert_true(target.flag);
    assert_int_equal(option_set(flag, &target, "no", &err), STATUS_OK);
    assert_false(target.flag);
    assert_int_equal(option_set(flag, &target, "perhaps", &err), STATUS_INVALID);
    assert_string_equal(err.text, "--flag: \"perhaps\" is neither yes nor no");
}

TEST_CASE(help_lists_every_option)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    option_table_write_help(out, &tables[0]);
    option_table_write_help(out, &tables[1]);
    (void)fclose(out);
    assert_non_null(strstr(text, "  -f, --flag           a flag\n"));
    assert_non_null(strstr(text, "  --number N           a number\n"));
    assert_null(strstr(text, "--even"));
    assert_non_null(strstr(text,
                           "  --other-with-a-long-name SOMETHING\n"
                           "                       of another table, with a meaning that does "
                           "not fit one\n"
                           "                       line of the help\n"));
    free(text);
}

TEST_MAIN(values, lists, words_and_letters, refusals, flags_in_files, help_lists_every_option)
