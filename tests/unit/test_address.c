#include "common/wire/address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct good_case {
    const char *text;
    const char *shown; // by address_text
    const char *ingest;
    const char *admin;
};

static void test_good(void **state)
{
    (void)state;
    static const struct good_case cases[] = {
        {"ipc:///run/inferstat", "ipc:///run/inferstat", "ipc:///run/inferstat/ingest",
         "ipc:///run/inferstat/admin"},
        {"ipc:///a", "ipc:///a", "ipc:///a/ingest", "ipc:///a/admin"},
        {"ipc:///a//", "ipc:///a", "ipc:///a/ingest", "ipc:///a/admin"},
        {"ipc:///with space/x", "ipc:///with space/x", "ipc:///with space/x/ingest",
         "ipc:///with space/x/admin"},
        {"tcp://127.0.0.1:6000", "tcp://127.0.0.1:6000", "tcp://127.0.0.1:6000",
         "tcp://127.0.0.1:6003"},
        {"tcp://127.0.0.1", "tcp://127.0.0.1:5571", "tcp://127.0.0.1:5571", "tcp://127.0.0.1:5574"},
        {"tcp://127.255.255.254:1", "tcp://127.255.255.254:1", "tcp://127.255.255.254:1",
         "tcp://127.255.255.254:4"},
        {"tcp://[::1]:65532", "tcp://[::1]:65532", "tcp://[::1]:65532", "tcp://[::1]:65535"},
        {"tcp://[::1]", "tcp://[::1]:5571", "tcp://[::1]:5571", "tcp://[::1]:5574"},
        {"tcp://localhost:6000", "tcp://localhost:6000", "tcp://127.0.0.1:6000",
         "tcp://127.0.0.1:6003"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct address address;
        struct error err = {0};
        char text[ADDRESS_TEXT_SIZE];
        if (address_parse(&address, cases[i].text, &err) != STATUS_OK)
            fail_msg("%s: %s", cases[i].text, err.text);
        assert_string_equal(address_text(text, &address), cases[i].shown);
        assert_string_equal(address_endpoint(text, &address, ADDRESS_INGEST), cases[i].ingest);
        assert_string_equal(address_endpoint(text, &address, ADDRESS_ADMIN), cases[i].admin);
        assert_string_equal(address_service_name(ADDRESS_ADMIN), "admin");
    }
}

struct bad_case {
    const char *text;
    enum status status;
    const char *said; // in the message
};

static void test_bad(void **state)
{
    (void)state;
    static const struct bad_case cases[] = {
        {"", STATUS_INVALID, "an empty text"},
        {"/run/inferstat", STATUS_INVALID, "not an address"},
        {"udp://127.0.0.1:1", STATUS_INVALID, "not an address"},
        {"IPC:///run", STATUS_INVALID, "not an address"},
        {"ipc://", STATUS_INVALID, "not an absolute folder"},
        {"ipc://run/inferstat", STATUS_INVALID, "not an absolute folder"},
        {"ipc://@name", STATUS_INVALID, "not an absolute folder"},
        {"ipc:///", STATUS_INVALID, "missing"},
        {"ipc:////", STATUS_INVALID, "missing"},
        {"tcp://", STATUS_INVALID, "host is missing"},
        {"tcp://:5571", STATUS_INVALID, "host is missing"},
        {"tcp://[]:5571", STATUS_INVALID, "host is missing"},
        {"tcp://[::1:5571", STATUS_INVALID, "bracket"},
        {"tcp://[::1]5571", STATUS_INVALID, "bracket"},
        {"tcp://::1:5571", STATUS_INVALID, "[::1]"},
        {"tcp://[127.0.0.1]:5571", STATUS_INVALID, "not an IPv6"},
        {"tcp://127.0.0.1:", STATUS_INVALID, "1..65532"},
        {"tcp://127.0.0.1:0", STATUS_INVALID, "1..65532"},
        {"tcp://127.0.0.1:65533", STATUS_INVALID, "1..65532"},
        {"tcp://127.0.0.1:655350000000000000000", STATUS_INVALID, "1..65532"},
        {"tcp://127.0.0.1:-1", STATUS_INVALID, "1..65532"},
        {"tcp://127.0.0.1: 80", STATUS_INVALID, "1..65532"},
        {"tcp://127.0.0.1:80x", STATUS_INVALID, "1..65532"},
        {"tcp://[::1]:99999", STATUS_INVALID, "1..65532"},
        {"tcp://*:5571", STATUS_INVALID, "wildcard"},
        {"tcp://0.0.0.0:5571", STATUS_INVALID, "wildcard"},
        {"tcp://[::]:5571", STATUS_INVALID, "wildcard"},
        {"tcp://192.168.0.1:5571", STATUS_DENIED, "SSH tunnel"},
        {"tcp://example.org", STATUS_DENIED, "SSH tunnel"},
        {"tcp://localhost.example.org", STATUS_DENIED, "SSH tunnel"},
        {"tcp://127.0.0.1.example.org", STATUS_DENIED, "SSH tunnel"},
        {"tcp://128.0.0.1", STATUS_DENIED, "SSH tunnel"},
        {"tcp://127.1", STATUS_DENIED, "SSH tunnel"},
        {"tcp://[fe80::1]:5571", STATUS_DENIED, "SSH tunnel"},
        {"tcp://[::ffff:10.0.0.1]:5571", STATUS_DENIED, "SSH tunnel"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct address address;
        struct error err = {0};
        enum status status = address_parse(&address, cases[i].text, &err);
        if (status != cases[i].status || !strstr(err.text, cases[i].said))
            fail_msg("%s: status %d, \"%s\"", cases[i].text, (int)status, err.text);
    }
}

// "/ingest" must fit: 107 bytes in all, so 100 for the folder.
static void test_socket_path_limit(void **state)
{
    (void)state;
    char text[ADDRESS_TEXT_SIZE] = "ipc:///";
    struct address address;
    struct error err = {0};
    memset(text + 7, 'f', 99);
    assert_int_equal(address_parse(&address, text, &err), STATUS_OK);
    char endpoint[ADDRESS_TEXT_SIZE];
    assert_int_equal(strlen(address_endpoint(endpoint, &address, ADDRESS_INGEST)), 6 + 107);
    text[7 + 99] = 'f';
    assert_int_equal(address_parse(&address, text, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "108"));
    assert_non_null(strstr(err.text, "107"));
    assert_int_equal(address_default(&address, text, NULL, &err), STATUS_INVALID);
    assert_int_equal(address_default(&address, NULL, text + 6, &err), STATUS_INVALID);
}

static void test_long_texts_are_refused(void **state)
{
    (void)state;
    static char text[100000];
    static const char *const starts[] = {"",       "ipc:///", "ipc://",
                                         "tcp://", "tcp://[", "tcp://127.0.0.1:"};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        memset(text, '1', sizeof text - 1);
        memcpy(text, starts[i], strlen(starts[i]));
        struct address address;
        struct error err = {0};
        assert_int_equal(address_parse(&address, text, &err), STATUS_INVALID);
        assert_int_equal(address_default(&address, NULL, text, &err), STATUS_INVALID);
    }
}

static void test_default(void **state)
{
    (void)state;
    static const struct {
        const char *environment, *runtime_dir, *shown;
    } cases[] = {
        {NULL, NULL, "ipc:///run/inferstat"},
        {"", "", "ipc:///run/inferstat"},
        {NULL, "/run/user/1000", "ipc:///run/user/1000/inferstat"},
        {"", "/run/user/1000", "ipc:///run/user/1000/inferstat"},
        {"tcp://[::1]:7000", "/run/user/1000", "tcp://[::1]:7000"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct address address;
        struct error err = {0};
        char text[ADDRESS_TEXT_SIZE];
        assert_int_equal(
            address_default(&address, cases[i].environment, cases[i].runtime_dir, &err), STATUS_OK);
        assert_string_equal(address_text(text, &address), cases[i].shown);
    }
    struct address address;
    struct error err = {0};
    assert_int_equal(address_default(&address, "nonsense", NULL, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "INFERSTAT_COLLECTOR"));
    assert_int_equal(address_default(&address, NULL, "relative", &err), STATUS_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_socket_path_limit),
        cmocka_unit_test(test_long_texts_are_refused),
        cmocka_unit_test(test_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
