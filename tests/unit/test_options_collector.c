// inferstatd's options: precedence, refusals.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/collector/options.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

static char folder[FOLDER_PATH_SIZE], config[FOLDER_PATH_SIZE];

static int set_up(void **state)
{
    (void)state;
    folder_make(folder);
    (void)folder_path(config, folder, "c.conf");
    return setenv("XDG_DATA_HOME", folder, 1);
}

static int tear_down(void **state)
{
    (void)state;
    folder_remove(folder);
    return 0;
}

static void write_config(const char *text)
{
    FILE *file = fopen(config, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

// Reads options written as words apart by spaces.
static enum status read_words(struct options *options, const char *words, struct error *err)
{
    static char copy[1024];
    char *argv[16] = {copy}, *rest = NULL;
    int argc = 0;
    const struct options_environment environment = {.collector = "tcp://127.0.0.1:6000",
                                                    .runtime_dir = "/run/user/1"};
    (void)snprintf(copy, sizeof copy, "inferstatd %s", words);
    for (char *word = strtok_r(copy, " ", &rest); word && argc < 15;
         word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    return options_read(options, argc, argv, &environment, err);
}

static void expect_listen(const struct options *options, unsigned index, const char *expected)
{
    char text[ADDRESS_TEXT_SIZE];
    assert_true(index < options->listen_count);
    assert_string_equal(address_text(text, &options->listen[index]), expected);
}

static void test_defaults(void **state)
{
    (void)state;
    struct options options;
    char db[FOLDER_PATH_SIZE];
    assert_int_equal(read_words(&options, "", NULL), STATUS_OK);
    assert_int_equal(options.listen_count, 1);
    expect_listen(&options, 0, "tcp://127.0.0.1:6000"); // the environment's
    assert_string_equal(options.db, folder_path(db, folder, "inferstat/inferstat.db"));
    assert_int_equal(options.log_level, LOG_LEVEL_INFO);
    const struct options_environment bare = {.runtime_dir = "/run/user/1"};
    char name[] = "inferstatd";
    char *const argv[] = {name, NULL};
    assert_int_equal(options_read(&options, 1, argv, &bare, NULL), STATUS_OK);
    expect_listen(&options, 0, "ipc:///run/user/1/inferstat");
}

static void test_options_beat_the_file(void **state)
{
    (void)state;
    struct options options;
    char words[600];
    write_config("listen = ipc:///a\nlisten = ipc:///b\ndb = /from/file.db\nlog-level = debug\n");
    (void)snprintf(words, sizeof words, "--config %s", config);
    assert_int_equal(read_words(&options, words, NULL), STATUS_OK);
    assert_int_equal(options.listen_count, 2);
    expect_listen(&options, 1, "ipc:///b");
    assert_string_equal(options.db, "/from/file.db");
    assert_int_equal(options.log_level, LOG_LEVEL_DEBUG);
    (void)snprintf(words, sizeof words,
                   "--db=/x.db --listen ipc:///c --log-level error --config %s", config);
    assert_int_equal(read_words(&options, words, NULL), STATUS_OK);
    assert_int_equal(options.listen_count, 1);
    expect_listen(&options, 0, "ipc:///c");
    assert_string_equal(options.db, "/x.db");
    assert_int_equal(options.log_level, LOG_LEVEL_ERROR);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *words, *says;
    } cases[] = {
        {"--nonsense", "unknown option"},
        {"--lisen x", "--listen"},
        {"--db", "missing"},
        {"--db=", "empty"},
        {"--check-config=yes", "no value"},
        {"-h", "not an option"},
        {"file.db", "not an option"},
        {"--listen nowhere", "nowhere"},
        {"--listen tcp://0.0.0.0:1", ""},
        {"--log-level silly", "silly"},
        {"--listen ipc:///1 --listen ipc:///2 --listen ipc:///3 --listen ipc:///4 --listen "
         "ipc:///5",
         NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct options options;
        struct error err = {0};
        const enum status status = read_words(&options, cases[i].words, &err);
        assert_int_equal(status == STATUS_OK, cases[i].says == NULL);
        if (cases[i].says && !strstr(err.text, cases[i].says))
            fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].words, err.text, cases[i].says);
    }
}

static void test_a_file_that_is_wrong_names_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"db = /x\nlisten = nowhere\n", ":2"},
        {"help = 1\n", "help"},
        {"config = /other\n", "config"},
        {"log_level = info\n", "log-level"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct options options;
        struct error err = {0};
        char words[600];
        write_config(cases[i].text);
        (void)snprintf(words, sizeof words, "--config %s", config);
        assert_int_not_equal(read_words(&options, words, &err), STATUS_OK);
        if (!strstr(err.text, cases[i].says) || !strstr(err.text, config))
            fail_msg("\"%s\" does not say \"%s\" and the file", err.text, cases[i].says);
    }
}

static void test_a_file_that_cannot_be_read_has_no_line(void **state)
{
    (void)state;
    struct options options;
    struct error err = {0};
    char words[600], says[600];
    (void)snprintf(words, sizeof words, "--config %s", folder);
    (void)snprintf(says, sizeof says, "%s: cannot read it: Is a directory", folder);
    assert_int_equal(read_words(&options, words, &err), STATUS_IO);
    assert_string_equal(err.text, says);
}

static void test_help_names_every_option(void **state)
{
    (void)state;
    static const char *const names[] = {"--listen",    "--db",   "--config", "--check-config",
                                        "--log-level", "--help", "--version"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        assert_non_null(strstr(options_help(), names[i]));
    struct options options;
    assert_int_equal(read_words(&options, "--help --nonsense", NULL), STATUS_OK);
    assert_true(options.help);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_options_beat_the_file),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_a_file_that_is_wrong_names_its_line),
        cmocka_unit_test(test_a_file_that_cannot_be_read_has_no_line),
        cmocka_unit_test(test_help_names_every_option),
    };
    return cmocka_run_group_tests_name("options_collector", tests, set_up, tear_down);
}
