#include "tests/support/test.h"

#include "client/cli/args/cli_options.h"

enum { WORDS_MAX = 64 };

static const enum cli_option *options_of(const char *name)
{
    static const enum cli_option alerts[] = {OPTION_COLLECTOR, OPTION_FOR, OPTION_COUNT};
    return strcmp(name, "top") == 0 ? alerts + 2 : strcmp(name, "alerts") == 0 ? alerts : NULL;
}

// Parses a line of words with one blank between; "_" stands for an empty word.
static enum status parse(struct cli_options *options, const char *line, struct error *err)
{
    static char copy[1024];
    static char empty[] = "";
    static char program[] = "inferstat";
    char *words[WORDS_MAX] = {program};
    int count = 1;
    (void)snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        words[count++] = strcmp(word, "_") == 0 ? empty : word;
    return options_parse(options, count, words, options_of, err);
}

// Exactly the options of a list that OPTION_COUNT ends were given.
static void expect_given(const struct cli_options *options, const enum cli_option *expected)
{
    for (int i = 0; i < OPTION_COUNT; i++)
        assert_int_equal(options->given[i], options_contain(expected, (enum cli_option)i));
}

TEST_CASE(test_words)
{
    struct cli_options options;
    assert_int_equal(parse(&options, "--db x.db avg ttft_ns --by model,host --json", NULL),
                     STATUS_OK);
    assert_string_equal(options.command, "avg");
    assert_int_equal(options.argument_count, 1);
    assert_string_equal(options.arguments[0], "ttft_ns");
    assert_string_equal(options.db, "x.db");
    assert_int_equal(options.format, FORMAT_JSON);
    assert_string_equal(options.by, "model,host");
    const enum cli_option given[] = {OPTION_DB, OPTION_BY, OPTION_JSON, OPTION_COUNT};
    expect_given(&options, given);
}

// A public key may look like an option, but not behind the commands that take keys.
TEST_CASE(test_keys)
{
    struct cli_options options;
    struct error err;
    static const char key[] = "-jf8n{v#0=U6#QeR2pM]X-y{=GgR%UEc5%kox8YF";
    static const char dashes[] = "--f8n{v#0:U6#QeR2pM]X-y{:GgR%UEc5%kox8YF";
    assert_int_equal(parse(&options,
                           format_text("authorize %s --role producer,admin --name gpu07 --key k "
                                       "--replaces %s --server-key %s --insecure",
                                       key, dashes, key),
                           &err),
                     STATUS_OK);
    assert_int_equal(options.argument_count, 1);
    assert_string_equal(options.arguments[0], key);
    assert_int_equal(options.roles, 1U << QUERY_ROLE_PRODUCER | 1U << QUERY_ROLE_ADMIN);
    assert_string_equal(options.name, "gpu07");
    assert_string_equal(options.replaces, dashes);
    assert_string_equal(options.trust.key_file, "k");
    assert_string_equal(options.trust.server_key, key);
    assert_true(options.trust.insecure);
    assert_int_equal(parse(&options, format_text("revoke %s", dashes), &err), STATUS_OK);
    assert_string_equal(options.arguments[0], dashes);
    assert_int_equal(parse(&options, format_text("loads %s", key), &err), STATUS_INVALID);
    assert_int_equal(parse(&options, "revoke --collector=ipc:///tmp/aaaaaaaaaaaaaaaaa x", &err),
                     STATUS_OK); // 40 letters of a key's, and an option all the same
    assert_string_equal(options.collector, "ipc:///tmp/aaaaaaaaaaaaaaaaa");
}

TEST_CASE(test_values)
{
    struct cli_options options;
    assert_int_equal(parse(&options,
                           "loads --model=a=b --host h --device d --run 12ab --operation o "
                           "--stage s --workload w --status error --since 1h --until=1m --limit=0 "
                           "--timeout 250ms -n7 --step 90m "
                           "--slo ttft=1s --slowest 3 --against b --margin 3% --bundle f --query q",
                           NULL),
                     STATUS_OK);
    assert_string_equal(options.where[QUERY_BY_MODEL], "a=b");
    assert_string_equal(options.where[QUERY_BY_HOST], "h");
    assert_string_equal(options.where[QUERY_BY_DEVICE], "d");
    assert_string_equal(options.where[QUERY_BY_RUN], "12ab");
    assert_string_equal(options.where[QUERY_BY_OPERATION], "o");
    assert_string_equal(options.where[QUERY_BY_STAGE], "s");
    assert_string_equal(options.where[QUERY_BY_WORKLOAD], "w");
    assert_string_equal(options.where[QUERY_BY_STATUS], "error");
    assert_string_equal(options.since, "1h");
    assert_string_equal(options.until, "1m");
    assert_int_equal(options.limit, 7); // the last one given counts
    assert_int_equal(options.timeout_ns, 250000000);
    assert_string_equal(options.step, "90m");
    assert_string_equal(options.slo, "ttft=1s");
    assert_int_equal(options.slowest, 3);
    assert_string_equal(options.against, "b");
    assert_string_equal(options.margin, "3%");
    assert_string_equal(options.bundle, "f");
    assert_string_equal(options.query, "q");
}

TEST_CASE(test_letters_and_ends)
{
    struct cli_options options;
    assert_int_equal(parse(&options, "clear -yh -n 5 -- --json - x", NULL), STATUS_OK);
    const enum cli_option given[] = {OPTION_YES, OPTION_HELP, OPTION_LIMIT, OPTION_COUNT};
    expect_given(&options, given);
    assert_int_equal(options.argument_count, 3);
    assert_string_equal(options.arguments[0], "--json");
    assert_string_equal(options.arguments[1], "-");
    assert_int_equal(options.limit, 5);

    assert_int_equal(parse(&options, "", NULL), STATUS_OK);
    assert_null(options.command);
    expect_given(&options, &(const enum cli_option){OPTION_COUNT});
}

TEST_CASE(test_refusals)
{
    static const struct {
        const char *line;
        const char *why;
    } cases[] = {
        {"--jsn", "did you mean --json?"},
        {"loads --colector x", "did you mean --collector?"},
        {"top --foo", "--foo: unknown option (see inferstat --help)"},
        {"alerts --fo 2h", "did you mean --for?"},
        {"--zzzzzzzz", "see inferstat --help"},
        {"--", ""},
        {"-z", "-z: unknown option"},
        {"-yz", "-yz: unknown option"},
        {"--db", "--db: a value is missing (--db FILE)"},
        {"-n", "--limit: a value is missing (--limit N)"},
        {"--json=1", "--json: takes no value"},
        {"--limit x", "--limit"},
        {"--limit -1", "--limit"},
        {"--limit 4294967296", "--limit"},
        {"--timeout 0", "--timeout: the time must be above zero"},
        {"--timeout 1parsec", "--timeout"},
        {"--slowest 0", "--slowest"},
        {"--format xml", "--format: 'xml' is none of csv, json, jsonl"},
        {"--json --csv", "only one of them"},
        {"--csv --format csv", "only one of them"},
        {"--collector a --db b", "only one of them"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct cli_options options;
        struct error err = {0};
        enum status status = parse(&options, cases[i].line, &err);
        assert_int_equal(status, cases[i].why[0] ? STATUS_INVALID : STATUS_OK);
        if (!strstr(err.text, cases[i].why))
            fail_msg("'%s': '%s' lacks '%s'", cases[i].line, err.text, cases[i].why);
    }
}

TEST_CASE(test_words_at_their_limit)
{
    char word[] = "w", last[] = "last";
    char *words[CLI_ARGUMENTS_MAX + 3];
    struct cli_options options;
    struct error err = {0};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        words[i] = word;
    assert_int_equal(options_parse(&options, CLI_ARGUMENTS_MAX + 2, words, NULL, &err),
                     STATUS_OK); // beside the program's name and the command
    assert_int_equal(options.argument_count, CLI_ARGUMENTS_MAX);
    words[CLI_ARGUMENTS_MAX + 2] = last;
    assert_int_equal(options_parse(&options, CLI_ARGUMENTS_MAX + 3, words, NULL, &err),
                     STATUS_INVALID);
    assert_string_equal(err.text, "unexpected argument 'last': at most 64");
}

TEST_CASE(test_check)
{
    struct cli_options options;
    struct error err = {0};
    static const enum cli_option json[] = {OPTION_JSON, OPTION_COUNT};
    static const enum cli_option csv[] = {OPTION_CSV, OPTION_COUNT};
    assert_int_equal(parse(&options, "ping --json", NULL), STATUS_OK);
    assert_int_equal(options_check(&options, json, "ping", &err), STATUS_OK);
    assert_int_equal(options_check(&options, csv, "ping", &err), STATUS_INVALID);
    assert_string_equal(err.text, "ping: unknown option --json (see inferstat ping --help)");
}

TEST_MAIN(test_words, test_keys, test_values, test_letters_and_ends, test_refusals,
          test_words_at_their_limit, test_check)
