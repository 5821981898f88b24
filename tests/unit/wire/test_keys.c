// Key files and lists of public keys: what is made, what is read and what is refused.
#include "common/wire/keys.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/test.h"

#define KEY_ONE "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"
#define KEY_TWO "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
#define SECRET  "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6"

struct fixture {
    char folder[64];
    char path[128], pub[128];
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    (void)snprintf(fixture->folder, sizeof fixture->folder, "/tmp/inferstat-keys-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    (void)snprintf(fixture->path, sizeof fixture->path, "%s/key", fixture->folder);
    (void)snprintf(fixture->pub, sizeof fixture->pub, "%s/key.pub", fixture->folder);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    char command[160];
    (void)unlink(fixture->path);
    (void)unlink(fixture->pub);
    (void)snprintf(command, sizeof command, "%s/link", fixture->folder);
    (void)unlink(command);
    assert_int_equal(rmdir(fixture->folder), 0); // no drafts are left
    free(fixture);
    return 0;
}

static void put_file(const char *path, const void *bytes, size_t size, mode_t mode)
{
    (void)unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), (ssize_t)size);
    assert_int_equal(fchmod(fd, mode), 0);
    (void)close(fd);
}

static void put_text(const char *path, const char *text, mode_t mode)
{
    put_file(path, text, strlen(text), mode);
}

STATE_CASE(test_create, struct fixture *fixture)
{
    struct wire_keypair made, read;
    struct error err = {0};
    mode_t before = umask(0);
    expect_ok(keys_create(&made, fixture->path, "gpu-17 of the lab", &err), &err);
    (void)umask(before);
    struct stat about;
    assert_int_equal(stat(fixture->path, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0600);
    assert_int_equal(about.st_nlink, 1);
    assert_int_equal(stat(fixture->pub, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0644);
    assert_int_equal(keys_read(&read, fixture->path, &err), STATUS_OK);
    assert_memory_equal(&read, &made, sizeof made);

    unsigned char keys[2][WIRE_KEY_SIZE];
    size_t count = 0;
    assert_int_equal(keys_read_public(keys, 2, &count, fixture->pub, &err), STATUS_OK);
    assert_int_equal(count, 1);
    assert_memory_equal(keys[0], made.public_key, WIRE_KEY_SIZE);
    char text[256] = "", key[WIRE_KEY_TEXT_SIZE], line[256];
    FILE *file = fopen(fixture->pub, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    (void)fclose(file);
    (void)snprintf(line, sizeof line, "%s gpu-17 of the lab\n",
                   wire_key_text(key, made.public_key));
    assert_string_equal(text, line);

    // A key is never written over, nor is the public one alone.
    assert_int_equal(keys_create(&made, fixture->path, "", &err), STATUS_BUSY);
    assert_int_equal(unlink(fixture->path), 0);
    assert_int_equal(keys_create(&made, fixture->path, "", &err), STATUS_BUSY);
    assert_int_equal(access(fixture->path, F_OK), -1);
}

STATE_CASE(test_create_refusals, struct fixture *fixture)
{
    struct wire_keypair made;
    struct error err = {0};
    static char endless[KEYS_PATH_SIZE + 1];
    memset(endless, 'x', sizeof endless - 1);
    assert_int_equal(keys_create(&made, endless, "", &err), STATUS_INVALID);
    assert_int_equal(keys_create(&made, "", "", &err), STATUS_INVALID);
    assert_int_equal(keys_create(&made, fixture->path, "two\nlines", &err), STATUS_INVALID);
    assert_int_equal(keys_create(&made, fixture->path, "\xff", &err), STATUS_INVALID);
    endless[KEYS_COMMENT_SIZE] = '\0';
    assert_int_equal(keys_create(&made, fixture->path, endless, &err), STATUS_INVALID);
    put_text(fixture->path, "a file", 0600);
    char below[160];
    (void)snprintf(below, sizeof below, "%s/key", fixture->path);
    assert_int_not_equal(keys_create(&made, below, "", &err), STATUS_OK);
    assert_non_null(strstr(err.text, "folder"));
}

STATE_CASE(test_folders_are_made, struct fixture *fixture)
{
    struct wire_keypair made;
    struct stat about;
    char folder[160], path[192];
    (void)snprintf(folder, sizeof folder, "%s/a/b", fixture->folder);
    (void)snprintf(path, sizeof path, "%s/key", folder);
    assert_int_equal(keys_create(&made, path, "", NULL), STATUS_OK);
    assert_int_equal(stat(folder, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0700);
    assert_int_equal(unlink(path), 0);
    (void)snprintf(path, sizeof path, "%s/key.pub", folder);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    *strrchr(folder, '/') = '\0';
    assert_int_equal(rmdir(folder), 0);
}

static const char sound[] = "inferstat-secret-key 1\npublic " KEY_TWO "\nsecret " SECRET "\n";

STATE_CASE(test_modes, struct fixture *fixture)
{
    static const struct {
        mode_t mode;
        enum status status;
    } cases[] = {
        {0600, STATUS_OK},     {0400, STATUS_OK},     {0700, STATUS_OK},
        {0640, STATUS_DENIED}, {0604, STATUS_DENIED}, {0620, STATUS_DENIED},
        {0602, STATUS_DENIED}, {0610, STATUS_DENIED}, {0644, STATUS_DENIED},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct wire_keypair read;
        struct error err = {0};
        put_text(fixture->path, sound, cases[i].mode);
        if (keys_read(&read, fixture->path, &err) != cases[i].status)
            fail_msg("mode %o: %s", (unsigned)cases[i].mode, err.text);
        if (cases[i].status == STATUS_DENIED)
            assert_non_null(strstr(err.text, "chmod 600"));
    }
}

// Only root can make a file another's.
STATE_CASE(test_owners, struct fixture *fixture)
{
    struct wire_keypair read;
    struct error err = {0};
    char link_path[128];
    if (geteuid() != 0) {
        print_message("not root: nobody else's files here\n");
        skip();
    }
    put_text(fixture->path, sound, 0600);
    assert_int_equal(chown(fixture->path, 12345, 12345), 0);
    assert_int_equal(keys_read(&read, fixture->path, &err), STATUS_DENIED);
    assert_non_null(strstr(err.text, "another user"));

    // A link of one's own is followed, another's is not.
    assert_int_equal(chown(fixture->path, 0, 0), 0);
    (void)snprintf(link_path, sizeof link_path, "%s/link", fixture->folder);
    assert_int_equal(symlink("key", link_path), 0);
    assert_int_equal(keys_read(&read, link_path, &err), STATUS_OK);
    assert_int_equal(lchown(link_path, 12345, 12345), 0);
    assert_int_equal(keys_read(&read, link_path, &err), STATUS_DENIED);
}

STATE_CASE(test_links, struct fixture *fixture)
{
    struct wire_keypair read;
    struct error err = {0};
    char link_path[128];
    (void)snprintf(link_path, sizeof link_path, "%s/link", fixture->folder);
    assert_int_equal(symlink("key", link_path), 0);
    assert_int_equal(keys_read(&read, link_path, &err), STATUS_NOT_FOUND);
    put_text(fixture->path, sound, 0600);
    assert_int_equal(keys_read(&read, link_path, &err), STATUS_OK);
    put_text(fixture->path, sound, 0640); // the file counts, not the link
    assert_int_equal(keys_read(&read, link_path, &err), STATUS_DENIED);
    // To itself, without end.
    (void)unlink(link_path);
    assert_int_equal(symlink("link", link_path), 0);
    assert_int_equal(keys_read(&read, link_path, &err), STATUS_IO);
}

STATE_CASE(test_no_files, struct fixture *fixture)
{
    struct wire_keypair read;
    struct error err = {0};
    assert_int_equal(keys_read(&read, fixture->path, &err), STATUS_NOT_FOUND);
    assert_int_equal(keys_read(&read, fixture->folder, &err), STATUS_INVALID);
    assert_int_equal(keys_read(&read, "/dev/zero", &err), STATUS_INVALID);
    assert_int_equal(mkfifo(fixture->path, 0600), 0);
    assert_int_equal(keys_read(&read, fixture->path, &err), STATUS_INVALID); // at once
}

STATE_CASE(test_garbage, struct fixture *fixture)
{
    static const struct {
        const char *text;
        const char *said;
    } cases[] = {
        {"", "not a secret key's file"},
        {"\n", "not a secret key's file"},
        {"inferstat-secret-key 2\npublic " KEY_TWO "\nsecret " SECRET "\n", "not a secret"},
        {"inferstat-secret-key 1 \npublic " KEY_TWO "\nsecret " SECRET "\n", "not a secret"},
        {"inferstat-secret-key 1\r\npublic " KEY_TWO "\r\nsecret " SECRET "\r\n", "not a secret"},
        {KEY_TWO " a public one\n", "not a secret key's file"},
        {"inferstat-secret-key 1\n", ":1:"},
        {"inferstat-secret-key 1\npublic " KEY_TWO "\n", ":2:"},
        {"inferstat-secret-key 1\nsecret " SECRET "\npublic " KEY_TWO "\n", ":2:"},
        {"inferstat-secret-key 1\npublic " KEY_TWO "\nsecret " KEY_ONE "x\n", ":3:"},
        {"inferstat-secret-key 1\npublic  " KEY_TWO "\nsecret " SECRET "\n", ":2:"},
        {"inferstat-secret-key 1\npublic " KEY_TWO "\nsecret " SECRET "\n\n", ":4:"},
        {"inferstat-secret-key 1\npublic " KEY_TWO "\nsecret \xff\n", ":3:"},
        {"inferstat-secret-key 1\npublic " KEY_ONE "\nsecret " SECRET "\n", "not that of"},
    };
    struct wire_keypair read;
    struct error err = {0};
    put_text(fixture->path, sound, 0600);
    assert_int_equal(keys_read(&read, fixture->path, &err), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        put_text(fixture->path, cases[i].text, 0600);
        enum status status = keys_read(&read, fixture->path, &err);
        if (status != STATUS_INVALID || !strstr(err.text, cases[i].said))
            fail_msg("case %zu: %d, \"%s\"", i, (int)status, err.text);
        // Nothing secret is left over or said.
        static const struct wire_keypair nothing;
        assert_memory_equal(&read, &nothing, sizeof read);
        assert_null(strstr(err.text, SECRET));
    }
    // Cut anywhere, it is no key file, but for the last line's end.
    for (size_t size = 0; size < sizeof sound - 2; size++) {
        put_file(fixture->path, sound, size, 0600);
        assert_int_equal(keys_read(&read, fixture->path, &err), STATUS_INVALID);
    }
    // And neither is one with a NUL, or far too long.
    char nul[sizeof sound];
    memcpy(nul, sound, sizeof nul);
    put_file(fixture->path, nul, sizeof nul, 0600);
    assert_int_equal(keys_read(&read, fixture->path, &err), STATUS_INVALID);
    assert_int_equal(truncate(fixture->path, 16 * 1024 * 1024 + 1), 0);
    assert_int_equal(keys_read(&read, fixture->path, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "longer than"));
}

STATE_CASE(test_public_keys, struct fixture *fixture)
{
    static char long_line[KEYS_LINE_SIZE + 64];
    memset(long_line, 'x', sizeof long_line - 1);
    memcpy(long_line, KEY_ONE " ", 41);
    static char longest_line[KEYS_LINE_SIZE];
    memcpy(longest_line, long_line, sizeof longest_line - 1);
    static const struct {
        const char *text;
        size_t count; // 0: refused
        const char *said;
    } cases[] = {
        {KEY_ONE, 1, NULL},
        {KEY_ONE "\n", 1, NULL},
        {"# keys\n\n \t\n  " KEY_ONE "\tgpu-17\n# more\n" KEY_TWO " gpu 18\n", 2, NULL},
        {longest_line, 1, NULL},
        {"", 0, "no key"},
        {"# " KEY_ONE "\n", 0, "no key"},
        {KEY_ONE "\nnone\n", 0, ":2:"},
        {KEY_ONE "x\n", 0, ":1:"},
        {"\n\n" KEY_ONE "\n" KEY_TWO "\n" KEY_ONE "\n", 0, ":5: more than 2"},
        {long_line, 0, ":1: not a line"},
        {KEY_ONE "\n\x1b[2J\n", 0, ":2: not a line"},
        {KEY_ONE " \xc0\x80\n", 0, ":1: not a line"},
        {KEY_ONE "\r\n", 0, ":1: not a line"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        unsigned char keys[2][WIRE_KEY_SIZE];
        char text[WIRE_KEY_TEXT_SIZE];
        size_t count = 0;
        struct error err = {0};
        put_text(fixture->pub, cases[i].text, 0644);
        enum status status = keys_read_public(keys, 2, &count, fixture->pub, &err);
        if (status != (cases[i].count ? STATUS_OK : STATUS_INVALID) ||
            (cases[i].said && !strstr(err.text, cases[i].said)))
            fail_msg("case %zu: %d, \"%s\"", i, (int)status, err.text);
        if (!cases[i].count)
            continue;
        assert_int_equal(count, cases[i].count);
        assert_string_equal(wire_key_text(text, keys[0]), KEY_ONE);
        if (count == 2)
            assert_string_equal(wire_key_text(text, keys[1]), KEY_TWO);
    }
    // Others may read it, but not say whom to trust.
    unsigned char keys[2][WIRE_KEY_SIZE];
    size_t count = 0;
    struct error err = {0};
    put_text(fixture->pub, KEY_ONE "\n", 0664);
    assert_int_equal(keys_read_public(keys, 2, &count, fixture->pub, &err), STATUS_DENIED);
    assert_non_null(strstr(err.text, "chmod go-w"));
    put_text(fixture->pub, KEY_ONE "\n", 0646);
    assert_int_equal(keys_read_public(keys, 2, &count, fixture->pub, &err), STATUS_DENIED);
    (void)unlink(fixture->pub);
    assert_int_equal(keys_read_public(keys, 2, &count, fixture->pub, &err), STATUS_NOT_FOUND);
}

TEST_CASE(test_default_path)
{
    char path[KEYS_PATH_SIZE];
    struct error err = {0};
    assert_int_equal(setenv("XDG_CONFIG_HOME", "/etc/xdg", 1), 0);
    assert_int_equal(keys_default_path(path, sizeof path, "key", &err), STATUS_OK);
    assert_string_equal(path, "/etc/xdg/inferstat/key");
    assert_int_equal(keys_default_path(path, 20, "key", &err), STATUS_INVALID);
    assert_int_equal(setenv("XDG_CONFIG_HOME", "relative", 1), 0);
    assert_int_equal(setenv("HOME", "/home/ada", 1), 0);
    assert_int_equal(keys_default_path(path, sizeof path, "key", &err), STATUS_OK);
    assert_string_equal(path, "/home/ada/.config/inferstat/key");
    assert_int_equal(unsetenv("HOME"), 0);
    assert_int_equal(keys_default_path(path, sizeof path, "key", &err), STATUS_NOT_FOUND);
}

TEST_MAIN_EACH(setup, teardown, test_create, test_create_refusals, test_folders_are_made,
               test_modes, test_owners, test_links, test_no_files, test_garbage, test_public_keys,
               test_default_path)
