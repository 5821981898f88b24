// Whom a client connects to, with which keys, and whom it does not.
#include "common/wire/trust.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/wire/keys.h"
#include "tests/support/test.h"

#define KEY_ONE   "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"
#define KEY_TWO   "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
#define KEY_THREE "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6"

// A configuration folder of its own, with a key and perhaps known_collectors.
struct fixture {
    char home[64];
    char folder[96], key[128], known[128];
    struct wire_keypair own;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    (void)snprintf(fixture->home, sizeof fixture->home, "/tmp/inferstat-trust-XXXXXX");
    assert_non_null(mkdtemp(fixture->home));
    (void)snprintf(fixture->folder, sizeof fixture->folder, "%s/inferstat", fixture->home);
    (void)snprintf(fixture->key, sizeof fixture->key, "%s/key", fixture->folder);
    (void)snprintf(fixture->known, sizeof fixture->known, "%s/known_collectors", fixture->folder);
    assert_int_equal(keys_create(&fixture->own, fixture->key, "own", NULL), STATUS_OK);
    assert_int_equal(setenv("XDG_CONFIG_HOME", fixture->home, 1), 0);
    (void)unsetenv("INFERSTAT_KEY");
    (void)unsetenv("INFERSTAT_SERVER_KEY");
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    char pub[160];
    (void)snprintf(pub, sizeof pub, "%s.pub", fixture->key);
    (void)unlink(pub);
    (void)unlink(fixture->key);
    (void)unlink(fixture->known);
    assert_int_equal(rmdir(fixture->folder), 0);
    assert_int_equal(rmdir(fixture->home), 0);
    free(fixture);
    return 0;
}

static void know(const struct fixture *fixture, const char *text, mode_t mode)
{
    (void)unlink(fixture->known);
    int fd = open(fixture->known, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    (void)close(fd);
}

static enum status resolve(struct trust *trust, const char *text,
                           const struct trust_options *options, struct error *err)
{
    static const struct trust_options none;
    struct address address;
    struct trust_source source;
    *trust = (struct trust){0};
    assert_int_equal(address_parse(&address, text, NULL), STATUS_OK);
    const enum status status = trust_source_read(&source, options ? options : &none, err);
    return status == STATUS_OK ? trust_decide(trust, &address, &source, err) : status;
}

static void assert_passes(const struct trust *trust, const struct fixture *fixture,
                          const char *const *keys, unsigned count)
{
    assert_int_equal(trust->pass_count, count);
    assert_string_equal(trust->warning, "");
    for (unsigned i = 0; i < count; i++) {
        char text[WIRE_KEY_TEXT_SIZE];
        assert_string_equal(wire_key_text(text, trust->passes[i].server_key), keys[i]);
        assert_memory_equal(&trust->passes[i].own, &fixture->own, sizeof fixture->own);
        assert_ptr_equal(trust_pass(trust, i), &trust->passes[i]);
        assert_ptr_equal(trust_pass(trust, i + 5 * count), &trust->passes[i]);
    }
}

TEST_CASE(test_nothing_known)
{
    static const struct {
        const char *address;
        enum status status;
    } cases[] = {
        {"ipc:///run/inferstat", STATUS_OK},      {"tcp://127.0.0.1", STATUS_OK},
        {"tcp://127.1.2.3:99", STATUS_OK},        {"tcp://localhost", STATUS_OK},
        {"tcp://[::1]:7000", STATUS_OK},          {"tcp://10.0.0.1", STATUS_DENIED},
        {"tcp://collector.lan", STATUS_DENIED},   {"tcp://[fe80::1%eth0]", STATUS_DENIED},
        {"tcp://[2001:db8::7]", STATUS_DENIED},   {"tcp://localhost.lan", STATUS_DENIED},
        {"tcp://[::ffff:7f00:1]", STATUS_DENIED},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct trust trust;
        struct error err = {0};
        if (resolve(&trust, cases[i].address, NULL, &err) != cases[i].status)
            fail_msg("%s: %s", cases[i].address, err.text);
        assert_int_equal(trust.pass_count, 0);
        assert_string_equal(trust.warning, "");
        assert_null(trust_pass(&trust, 0));
        if (cases[i].status == STATUS_OK)
            continue;
        assert_non_null(strstr(err.text, "--server-key"));
        const struct trust_options insecure = {.insecure = true};
        assert_int_equal(resolve(&trust, cases[i].address, &insecure, &err), STATUS_OK);
        assert_int_equal(trust.pass_count, 0);
        assert_non_null(strstr(trust.warning, cases[i].address));
    }
}

STATE_CASE(test_known_collectors, struct fixture *fixture)
{
    know(fixture,
         "# whom we trust\n"
         "\n"
         "tcp://collector.lan " KEY_ONE " until May\n"
         "tcp://[2001:db8::7]:6000\t" KEY_THREE "\n"
         "  tcp://10.0.0.1:5571 " KEY_TWO "\n"
         "tcp://Collector.LAN:5571 " KEY_TWO " from April\n"
         "tcp://collector.lan " KEY_ONE " again\n"
         "tcp://localhost:6000 " KEY_TWO " even here\n"
         "ipc:///run/inferstat " KEY_TWO "\n",
         0644);
    static const struct {
        const char *address;
        const char *keys[2];
    } cases[] = {
        {"tcp://collector.lan", {KEY_ONE, KEY_TWO}},
        {"tcp://COLLECTOR.lan:5571", {KEY_ONE, KEY_TWO}},
        {"tcp://10.0.0.1", {KEY_TWO}},
        {"tcp://[2001:db8::7]:6000", {KEY_THREE}},
        {"tcp://127.0.0.1:6000", {KEY_TWO}},
        {"tcp://127.0.0.1:6001", {NULL}},
        {"ipc:///run/inferstat", {NULL}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct trust trust;
        struct error err = {0};
        unsigned count = 0;
        while (count < 2 && cases[i].keys[count])
            count++;
        if (resolve(&trust, cases[i].address, NULL, &err) != STATUS_OK)
            fail_msg("%s: %s", cases[i].address, err.text);
        assert_passes(&trust, fixture, cases[i].keys, count);
    }
    // Another port is another collector.
    struct trust trust;
    assert_int_equal(resolve(&trust, "tcp://collector.lan:6000", NULL, NULL), STATUS_DENIED);
    // Where the key is known, going without is no way.
    const struct trust_options insecure = {.insecure = true};
    assert_int_equal(resolve(&trust, "tcp://collector.lan", &insecure, NULL), STATUS_OK);
    assert_int_equal(trust.pass_count, 2);
}

// More keys than are tried: the first ones.
STATE_CASE(test_many_keys, struct fixture *fixture)
{
    char text[1024] = "", key[WIRE_KEY_TEXT_SIZE];
    for (unsigned i = 1; i <= TRUST_PASSES_MAX + 2; i++) {
        unsigned char bytes[WIRE_KEY_SIZE] = {(unsigned char)i};
        size_t used = strlen(text);
        (void)snprintf(text + used, sizeof text - used, "tcp://10.0.0.1 %s\n",
                       wire_key_text(key, bytes));
    }
    know(fixture, text, 0600);
    struct trust trust;
    assert_int_equal(resolve(&trust, "tcp://10.0.0.1", NULL, NULL), STATUS_OK);
    assert_int_equal(trust.pass_count, TRUST_PASSES_MAX);
    assert_int_equal(trust.passes[TRUST_PASSES_MAX - 1].server_key[0], TRUST_PASSES_MAX);
}

STATE_CASE(test_bad_lists, struct fixture *fixture)
{
    static char long_line[KEYS_LINE_SIZE + 64];
    memset(long_line, '#', sizeof long_line - 1);
    static const struct {
        const char *text;
        mode_t mode;
        enum status status;
        const char *said;
    } cases[] = {
        {"tcp://10.0.0.1\n", 0600, STATUS_INVALID, "known_collectors:1: not a public key"},
        {"#\n\ntcp://10.0.0.1 key\n", 0600, STATUS_INVALID, "known_collectors:3: not a public"},
        {"10.0.0.1 " KEY_ONE "\n", 0600, STATUS_INVALID, "known_collectors:1: 10.0.0.1: not an"},
        {"tcp://* " KEY_ONE "\n", 0600, STATUS_INVALID, "known_collectors:1: tcp://*: a wildcard"},
        {KEY_ONE " tcp://10.0.0.1\n", 0600, STATUS_INVALID, "known_collectors:1: "},
        {"#\n\x01\n", 0600, STATUS_INVALID, "known_collectors:2: not a line"},
        {long_line, 0600, STATUS_INVALID, "known_collectors:1: not a line"},
        {"tcp://10.0.0.1 " KEY_ONE "\n", 0666, STATUS_DENIED, "others may change it"},
        {"tcp://10.0.0.1 " KEY_ONE "\n", 0620, STATUS_DENIED, "others may change it"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct trust trust;
        struct error err = {0};
        know(fixture, cases[i].text, cases[i].mode);
        enum status status = resolve(&trust, "tcp://10.0.0.1", NULL, &err);
        if (status != cases[i].status || !strstr(err.text, cases[i].said))
            fail_msg("case %zu: %d, \"%s\"", i, (int)status, err.text);
    }
}

STATE_CASE(test_options, struct fixture *fixture)
{
    static const char *const one[] = {KEY_ONE}, *const both[] = {KEY_TWO, KEY_THREE};
    know(fixture, "tcp://10.0.0.1 " KEY_TWO "\n", 0600);
    struct trust trust;
    struct error err = {0};
    const struct trust_options by_key = {.server_key = KEY_ONE};
    assert_int_equal(resolve(&trust, "tcp://10.0.0.1", &by_key, &err), STATUS_OK);
    assert_passes(&trust, fixture, one, 1);
    // On loopback too, where one says so; never over ipc.
    assert_int_equal(resolve(&trust, "tcp://127.0.0.1", &by_key, &err), STATUS_OK);
    assert_passes(&trust, fixture, one, 1);
    assert_int_equal(resolve(&trust, "ipc:///run/inferstat", &by_key, &err), STATUS_OK);
    assert_int_equal(trust.pass_count, 0);

    // The environment counts less than the option, and more than the list.
    assert_int_equal(setenv("INFERSTAT_SERVER_KEY", KEY_THREE, 1), 0);
    assert_int_equal(resolve(&trust, "tcp://10.0.0.1", &by_key, &err), STATUS_OK);
    assert_passes(&trust, fixture, one, 1);
    assert_int_equal(resolve(&trust, "tcp://10.0.0.1", NULL, &err), STATUS_OK);
    assert_passes(&trust, fixture, both + 1, 1);
    assert_int_equal(setenv("INFERSTAT_SERVER_KEY", "", 1), 0);
    assert_int_equal(resolve(&trust, "tcp://10.0.0.1", NULL, &err), STATUS_OK);
    assert_passes(&trust, fixture, both, 1);

    // A file of keys.
    know(fixture, KEY_TWO " old\n" KEY_THREE " new\n", 0644);
    const struct trust_options by_file = {.server_key = fixture->known};
    assert_int_equal(resolve(&trust, "tcp://10.0.0.1", &by_file, &err), STATUS_OK);
    assert_passes(&trust, fixture, both, 2);
    const struct trust_options by_nothing = {.server_key = "/nowhere/at.all"};
    assert_int_equal(resolve(&trust, "tcp://10.0.0.1", &by_nothing, &err), STATUS_NOT_FOUND);
    assert_non_null(strstr(err.text, "--server-key"));
}

STATE_CASE(test_own_key, struct fixture *fixture)
{
    struct trust trust;
    struct error err = {0};
    struct trust_options options = {.server_key = KEY_ONE};
    assert_int_equal(chmod(fixture->key, 0640), 0);
    assert_int_equal(resolve(&trust, "tcp://10.0.0.1", &options, &err), STATUS_DENIED);
    assert_non_null(strstr(err.text, "chmod 600"));
    assert_int_equal(trust.pass_count, 0);
    assert_int_equal(chmod(fixture->key, 0600), 0);

    char moved[160];
    (void)snprintf(moved, sizeof moved, "%s/moved", fixture->folder);
    assert_int_equal(rename(fixture->key, moved), 0);
    assert_int_equal(resolve(&trust, "tcp://10.0.0.1", &options, &err), STATUS_NOT_FOUND);
    assert_non_null(strstr(err.text, "inferstat keygen"));
    assert_int_equal(setenv("INFERSTAT_KEY", moved, 1), 0);
    assert_int_equal(resolve(&trust, "tcp://10.0.0.1", &options, &err), STATUS_OK);
    options.key_file = fixture->key;
    assert_int_equal(resolve(&trust, "tcp://10.0.0.1", &options, &err), STATUS_NOT_FOUND);
    assert_non_null(strstr(err.text, fixture->key));
    options.key_file = moved;
    assert_int_equal(resolve(&trust, "tcp://10.0.0.1", &options, &err), STATUS_OK);
    assert_int_equal(trust.pass_count, 1);
    assert_int_equal(rename(moved, fixture->key), 0);
}

// What was read once is decided by: whatever becomes of the environment, nobody looks there.
STATE_CASE(test_environment_is_read_once, struct fixture *fixture)
{
    static const char *const one[] = {KEY_ONE};
    static const struct trust_options none;
    struct trust_source source;
    struct address address;
    struct error err = {0};
    know(fixture, "tcp://10.0.0.1 " KEY_ONE "\n", 0600);
    assert_int_equal(address_parse(&address, "tcp://10.0.0.1", NULL), STATUS_OK);
    assert_int_equal(trust_source_read(&source, &none, &err), STATUS_OK);

    assert_int_equal(setenv("XDG_CONFIG_HOME", "/nowhere", 1), 0);
    assert_int_equal(setenv("INFERSTAT_KEY", "/nowhere/at.all", 1), 0);
    assert_int_equal(setenv("INFERSTAT_SERVER_KEY", KEY_TWO, 1), 0);
    struct trust trust;
    assert_int_equal(trust_decide(&trust, &address, &source, &err), STATUS_OK);
    assert_passes(&trust, fixture, one, 1);
    assert_int_equal(unsetenv("INFERSTAT_SERVER_KEY"), 0);

    // Nor is there anything to read where no folder is named: nobody is known.
    assert_int_equal(unsetenv("XDG_CONFIG_HOME"), 0);
    const char *home = getenv("HOME");
    char *kept = home ? strdup(home) : NULL;
    assert_int_equal(unsetenv("HOME"), 0);
    assert_int_equal(unsetenv("INFERSTAT_KEY"), 0);
    assert_int_equal(trust_source_read(&source, &none, &err), STATUS_OK);
    assert_string_equal(source.key_file, "");
    assert_string_equal(source.known_collectors, "");
    assert_int_equal(trust_decide(&trust, &address, &source, &err), STATUS_DENIED);
    if (kept)
        assert_int_equal(setenv("HOME", kept, 1), 0);
    free(kept);
}

TEST_MAIN_EACH(setup, teardown, test_nothing_known, test_known_collectors, test_many_keys,
               test_bad_lists, test_options, test_own_key, test_environment_is_read_once)
