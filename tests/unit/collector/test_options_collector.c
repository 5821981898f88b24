// inferstatd's options: precedence, refusals.
#include <sys/stat.h>
#include <unistd.h>

#include "common/wire/keys.h"
#include "server/collector/options.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

static char folder[FOLDER_PATH_SIZE], config[FOLDER_PATH_SIZE];

TEST_FIXTURE(set_up)
{
    folder_make(folder);
    (void)folder_path(config, folder, "c.conf");
    return setenv("XDG_DATA_HOME", folder, 1) | setenv("XDG_CONFIG_HOME", folder, 1);
}

TEST_FIXTURE(tear_down)
{
    folder_remove(folder);
    return 0;
}

static struct options_environment environment = {.collector = "tcp://127.0.0.1:6000",
                                                 .runtime_dir = "/run/user/1"};

// Reads options written as words apart by spaces.
static enum status read_words(struct options *options, const char *words, struct error *err)
{
    static char copy[1024];
    char *argv[16] = {copy}, *rest = NULL;
    int argc = 0;
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

TEST_CASE(test_defaults)
{
    struct options options;
    char db[FOLDER_PATH_SIZE];
    assert_int_equal(read_words(&options, "", NULL), STATUS_OK);
    assert_int_equal(options.listen_count, 1);
    expect_listen(&options, 0, "tcp://127.0.0.1:6000"); // the environment's
    assert_string_equal(options.db, folder_path(db, folder, "inferstat/inferstat.db"));
    assert_int_equal(options.log_level, LOG_LEVEL_INFO);
    const struct options_environment bare = {.runtime_dir = folder};
    char name[] = "inferstatd";
    char *const argv[] = {name, NULL};
    assert_int_equal(options_read(&options, 1, argv, &bare, NULL), STATUS_OK);
    expect_listen(&options, 0, format_text("ipc://%s/inferstat", folder));
}

TEST_CASE(test_options_beat_the_environment_and_that_the_file)
{
    struct options options;
    char words[600];
    write_text(config,
               "listen = ipc:///a\nlisten = ipc:///b\ndb = /from/file.db\nlog-level = debug\n"
               "max-names = 7\nmax-runs-per-key = 8\nmax-connections = 9\n"
               "authorized-keys = /k\nkey = /s\ninsecure = no\nfiles-under = /f\n"
               "seal-after = 30d\nretention = raw=30d,bytes=50GB\n"
               "quota = names=7,bytes=1GB\n");
    (void)snprintf(words, sizeof words, "--config %s", config);
    assert_int_equal(read_words(&options, words, NULL), STATUS_OK);
    assert_int_equal(options.listen_count, 1);
    expect_listen(&options, 0, "tcp://127.0.0.1:6000");
    environment.collector = "";
    assert_int_equal(read_words(&options, words, NULL), STATUS_OK);
    environment.collector = "tcp://127.0.0.1:6000";
    assert_int_equal(options.listen_count, 2);
    expect_listen(&options, 1, "ipc:///b");
    assert_string_equal(options.db, "/from/file.db");
    assert_int_equal(options.log_level, LOG_LEVEL_DEBUG);
    assert_int_equal(options.limits.names, 7);
    assert_int_equal(options.limits.runs_per_key, 8);
    assert_int_equal(options.limits.connections, 9);
    assert_int_equal(options.retention.raw_ns, INT64_C(30) * 86400 * 1000000000);
    assert_int_equal(options.retention.bytes, INT64_C(50) << 30);
    assert_int_equal(options.quota.most[QUOTA_NAMES], 7);
    assert_int_equal(options.quota.most[QUOTA_BYTES], INT64_C(1) << 30);
    assert_int_equal(options.quota.most[QUOTA_RUNS], 4096);
    assert_string_equal(options.authorized_keys, "/k");
    assert_string_equal(options.key, "/s");
    assert_string_equal(options.files_under, "/f");
    assert_false(options.insecure);
    assert_int_equal(
        read_words(
            &options,
            format_text("--db=/x.db --listen ipc:///c --log-level error --config %s --max-names 1"
                        " --key /t --insecure --retention minute=1d",
                        config),
            NULL),
        STATUS_OK);
    assert_int_equal(options.listen_count, 1);
    expect_listen(&options, 0, "ipc:///c");
    assert_string_equal(options.db, "/x.db");
    assert_int_equal(options.log_level, LOG_LEVEL_ERROR);
    assert_int_equal(options.limits.names, 1);
    assert_int_equal(options.retention.raw_ns, RETENTION_FOREVER);
    assert_int_equal(options.retention.level_ns[ROLLUP_MINUTE], INT64_C(86400) * 1000000000);
    assert_int_equal(options.retention.bytes, 0);
    assert_int_equal(options.limits.connections, 9);
    assert_string_equal(options.key, "/t");
    assert_true(options.insecure);
}

TEST_CASE(test_the_systems_files)
{
    struct options options;
    struct error err = {0};
    char etc[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE];
    assert_int_equal(mkdir(folder_path(etc, folder, "etc"), 0755), 0);
    environment.system_folder = etc;
    assert_int_equal(read_words(&options, "", NULL), STATUS_OK); // there are none
    assert_int_equal(options.limits.names, LIMITS_NAMES);
    assert_string_equal(options.key, "");
    // Keys that cannot be got at are not none.
    assert_int_equal(symlink("server.key", folder_path(path, etc, "server.key")), 0);
    assert_int_equal(read_words(&options, "", &err), STATUS_DENIED);
    assert_non_null(strstr(err.text, "server.key: cannot see"));
    assert_int_equal(unlink(path), 0);
    write_text(folder_path(path, etc, "inferstatd.conf"), "db = /1\nmax-names = 1\n");
    assert_int_equal(mkdir(folder_path(path, etc, "conf.d"), 0755), 0);
    write_text(folder_path(path, etc, "conf.d/20.conf"), "max-names = 3\n");
    write_text(folder_path(path, etc, "conf.d/10.conf"), "max-names = 2\nmax-connections = 2\n");
    write_text(folder_path(path, etc, "conf.d/30.conf~"), "nonsense\n");
    write_text(folder_path(path, etc, "conf.d/.conf"), "nonsense\n");
    write_text(folder_path(path, etc, "server.key"), "");
    assert_int_equal(read_words(&options, "", &err), STATUS_OK);
    assert_string_equal(options.db, "/1");
    assert_int_equal(options.limits.names, 3);
    assert_int_equal(options.limits.connections, 2);
    assert_string_equal(options.key, folder_path(path, etc, "server.key"));
    assert_string_equal(options.authorized_keys, "/1.keys");
    assert_int_equal(read_words(&options, "--insecure", NULL), STATUS_OK);
    assert_string_equal(options.key, "");
    assert_int_equal(read_words(&options, "--max-names 9", NULL), STATUS_OK);
    assert_int_equal(options.limits.names, 9);
    // A file that is named is the only one.
    write_text(config, "max-connections = 5\n");
    assert_int_equal(read_words(&options, format_text("--config %s", config), NULL), STATUS_OK);
    assert_int_equal(options.limits.names, LIMITS_NAMES);
    assert_int_equal(options.limits.connections, 5);
    write_text(folder_path(path, etc, "conf.d/20.conf"), "\nmax-names = many\n");
    assert_int_equal(read_words(&options, "", &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "20.conf:2: --max-names"));
    environment.system_folder = NULL;
}

TEST_CASE(test_refusals)
{
    static const struct {
        const char *words, *says;
    } cases[] = {
        {"--nonsense", "unknown option"},
        {"--lisen x", "--listen"},
        {"--db", "missing"},
        {"--db=", "empty"},
        {"--check-config=yes", "no value"},
        {"-x", "unknown option"},
        {"file.db", "not an option"},
        {"--listen nowhere", "nowhere"},
        {"--listen tcp://0.0.0.0:1", NULL}, // whether it may is checked later
        {"--listen tcp://somewhere:1", "somewhere"},
        {"--max-names 0", "--max-names"},
        {"--max-names 65536", "65535"},
        {"--max-runs-per-key none", "--max-runs-per-key"},
        {"--max-connections 65536", "65535"},
        {"--insecure=yes", "no value"},
        {"--retention raw=soon", "raw: \"soon\""},
        {"--retention", "missing"},
        {"--log-level silly", "silly"},
        {"--metrics 127.0.0.1", "not HOST:PORT"},
        {"--metrics [::1]", "not HOST:PORT"},
        {"--metrics :9464", "--metrics"},
        {"--metrics 127.0.0.1:0", "--metrics"},
        {"--metrics somewhere:9464", "somewhere"},
        {"--metrics-series 999", "1000"},
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

TEST_CASE(test_a_file_that_is_wrong_names_its_line)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"db = /x\nlisten = nowhere\n", ":2"},
        {"help = 1\n", "help"},
        {"config = /other\n", "config"},
        {"log_level = info\n", "log-level"},
        {"insecure = perhaps\n", "neither yes nor no"},
        {"key =\n", "empty"},
        {"db = /x\nretention = raw=30d,rwa=1d\n", ":2"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct options options;
        struct error err = {0};
        write_text(config, cases[i].text);
        assert_int_not_equal(read_words(&options, format_text("--config %s", config), &err),
                             STATUS_OK);
        if (!strstr(err.text, cases[i].says) || !strstr(err.text, config))
            fail_msg("\"%s\" does not say \"%s\" and the file", err.text, cases[i].says);
    }
}

TEST_CASE(test_a_file_that_cannot_be_read_has_no_line)
{
    struct options options;
    struct error err = {0};
    char words[600], says[600];
    (void)snprintf(words, sizeof words, "--config %s", folder);
    (void)snprintf(says, sizeof says, "%s: cannot read it: Is a directory", folder);
    assert_int_equal(read_words(&options, words, &err), STATUS_IO);
    assert_string_equal(err.text, says);
}

TEST_CASE(test_help_names_every_option)
{
    static const char *const names[] = {"--listen",          "--db",         "--config",
                                        "--check-config",    "--log-level",  "--help",
                                        "--version",         "--key",        "--authorized-keys",
                                        "--insecure",        "--max-names",  "--max-runs-per-key",
                                        "--max-connections", "--files-under"};
    char *help = NULL;
    size_t size;
    FILE *out = open_memstream(&help, &size);
    options_help(out);
    assert_int_equal(fclose(out), 0);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        assert_non_null(strstr(help, names[i]));
    free(help);
    struct options options;
    assert_int_equal(read_words(&options, "--help --nonsense", NULL), STATUS_OK);
    assert_true(options.help);
}

static void expect_verdict(const char *words, enum status expected, const char *says)
{
    struct options options;
    struct wire_keypair keys = {0};
    struct error err = {0};
    if (read_words(&options, words, &err) != STATUS_OK)
        fail_msg("%s: %s", words, err.text);
    const enum status status = options_check(&options, &keys, &err);
    if (status != expected || (says && !strstr(err.text, says)))
        fail_msg("%s: %s: \"%s\" does not say \"%s\"", words, status_text(status), err.text,
                 says ? says : "");
    assert_true(status != STATUS_OK || !options.key[0] || wire_keypair_fits(&keys));
}

TEST_CASE(test_who_may_listen_where)
{
    struct wire_keypair keys;
    struct error err = {0};
    char key[FOLDER_PATH_SIZE], list[FOLDER_PATH_SIZE], words[1200];
    (void)folder_path(key, folder, "s.key");
    (void)folder_path(list, folder, "s.keys");
    expect_ok(keys_create(&keys, key, "test", &err), &err);
    static const char *const far[] = {"tcp://192.0.2.1:5571", "tcp://*:5571", "tcp://0.0.0.0",
                                      "tcp://[::]:5571", "tcp://[2001:db8::1]:5571"};
    for (size_t i = 0; i < COUNT_OF(far); i++) {
        expect_verdict(format_text("--listen ipc:///x --listen %s", far[i]), STATUS_DENIED,
                       "inferstat keygen --server");
        expect_verdict(format_text("--listen %s --insecure", far[i]), STATUS_OK, NULL);
        expect_verdict(format_text("--listen %s --key %s --authorized-keys %s", far[i], key, list),
                       STATUS_OK, NULL);
    }
    expect_verdict("--listen ipc:///x --listen tcp://127.0.0.1 --listen tcp://[::1]", STATUS_OK,
                   NULL);
    expect_verdict(format_text("--key %s --insecure", key), STATUS_INVALID, "contradict");
    expect_verdict(format_text("--key %s.none", key), STATUS_NOT_FOUND, "s.key.none");
    write_text(list, "# ours\nnonsense\n");
    (void)snprintf(words, sizeof words, "--key %s --authorized-keys %s", key, list);
    expect_verdict(words, STATUS_INVALID, "s.keys:2: ");
    write_text(list, "");
    assert_int_equal(chmod(key, 0640), 0);
    expect_verdict(words, STATUS_DENIED, "chmod");
}

// Writes a file that only its owner can read, or one that others can.
static const char *write_mode(const char *name, const char *text, mode_t mode)
{
    static char paths[4][FOLDER_PATH_SIZE];
    static unsigned next;
    char *path = folder_path(paths[next++ % COUNT_OF(paths)], folder, name);
    write_text(path, text);
    assert_int_equal(chmod(path, mode), 0);
    return path;
}

// Makes NAME.pem, a certificate, and NAME.key.
static void make_certificate(const char *name)
{
    char command[2048];
    (void)snprintf(command, sizeof command,
                   "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
                   " -days 1 -subj /CN=test -keyout %s/%s.key -out %s/%s.pem 2>/dev/null",
                   folder, name, folder, name);
    assert_int_equal(system(command), 0);
}

TEST_CASE(test_who_may_have_the_metrics)
{
    static const char token[] = "0123456789abcdef\n";
    const char *secret = write_mode("token", token, 0600);
    char pem[FOLDER_PATH_SIZE], key[FOLDER_PATH_SIZE], other[FOLDER_PATH_SIZE];
    make_certificate("one");
    make_certificate("other");
    (void)folder_path(pem, folder, "one.pem");
    (void)folder_path(key, folder, "one.key");
    (void)folder_path(other, folder, "other.key");
    static const char *const far[] = {"192.0.2.1:9464", "*:9464", "0.0.0.0:9464", "[::]:9464"};
    char all[1024];
    (void)snprintf(all, sizeof all, "--metrics-token %s --metrics-certificate %s --metrics-key %s",
                   secret, pem, key);
    for (size_t i = 0; i < COUNT_OF(far); i++) {
        char metrics[100];
        (void)snprintf(metrics, sizeof metrics, "--listen ipc:///x --metrics %s", far[i]);
        expect_verdict(metrics, STATUS_DENIED, "--metrics-token");
        expect_verdict(format_text("%s --metrics-token %s", metrics, secret), STATUS_DENIED,
                       "--metrics-certificate");
        expect_verdict(
            format_text("%s --metrics-certificate %s --metrics-key %s", metrics, pem, key),
            STATUS_DENIED, "--metrics-token");
        expect_verdict(format_text("%s %s", metrics, all), STATUS_OK, NULL);
        expect_verdict(format_text("%s --insecure", metrics), STATUS_OK, NULL);
    }
    expect_verdict("--metrics 127.0.0.1:9464", STATUS_OK, NULL);
    expect_verdict("--metrics localhost:9464", STATUS_OK, NULL);
    expect_verdict("--metrics [::1]:9464", STATUS_OK, NULL);
    expect_verdict(all, STATUS_INVALID, "need --metrics");
    expect_verdict(format_text("--metrics [::1]:9464 --metrics-key %s", key), STATUS_INVALID,
                   "belong together");
    expect_verdict(
        format_text("--metrics [::1]:9464 --metrics-certificate %s --metrics-key %s", pem, other),
        STATUS_INVALID, "the certificate or its key cannot be used");
}

TEST_CASE(test_tokens)
{
    static const struct {
        const char *text;
        mode_t mode;
        enum status status;
        const char *says;
    } cases[] = {
        {"0123456789abcdef", 0600, STATUS_OK, NULL},
        {"0123456789abcdef\r\nmore", 0400, STATUS_OK, NULL},
        {"0123456789abcde\n", 0600, STATUS_INVALID, "15 characters"},
        {"\n0123456789abcdef\n", 0600, STATUS_INVALID, "0 characters"},
        {"0123456789 abcdef\n", 0600, STATUS_INVALID, "visible"},
        {"0123456789\xC3\xA4-bcdef\n", 0600, STATUS_INVALID, "visible"},
        {"0123456789abcdef\n", 0640, STATUS_DENIED, "chmod 600"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *path = write_mode("other-token", cases[i].text, cases[i].mode);
        expect_verdict(format_text("--metrics 127.0.0.1:9464 --metrics-token %s", path),
                       cases[i].status, cases[i].says);
        assert_int_equal(unlink(path), 0);
    }
    expect_verdict("--metrics 127.0.0.1:9464 --metrics-token /nowhere/token", STATUS_NOT_FOUND,
                   "/nowhere/token");
}

TEST_MAIN_ONCE(set_up, tear_down, test_defaults,
               test_options_beat_the_environment_and_that_the_file, test_the_systems_files,
               test_refusals, test_a_file_that_is_wrong_names_its_line,
               test_a_file_that_cannot_be_read_has_no_line, test_help_names_every_option,
               test_who_may_listen_where, test_who_may_have_the_metrics, test_tokens)
