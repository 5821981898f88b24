#include "common/wire/address.h"

#include "tests/support/test.h"

struct good_case {
    const char *text;
    const char *shown; // by address_text
    const char *ingest;
    const char *admin;
};

TEST_CASE(test_good)
{
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
        {"tcp://192.168.0.1:6000", "tcp://192.168.0.1:6000", "tcp://192.168.0.1:6000",
         "tcp://192.168.0.1:6003"},
        {"tcp://gpu-17.example.org", "tcp://gpu-17.example.org:5571",
         "tcp://gpu-17.example.org:5571", "tcp://gpu-17.example.org:5574"},
        {"tcp://[fe80::1%eth0]:6000", "tcp://[fe80::1%eth0]:6000", "tcp://[fe80::1%eth0]:6000",
         "tcp://[fe80::1%eth0]:6003"},
        {"tcp://[2001:db8::7]:6000", "tcp://[2001:db8::7]:6000", "tcp://[2001:db8::7]:6000",
         "tcp://[2001:db8::7]:6003"},
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

TEST_CASE(test_bad)
{
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
        {"tcp://[*]:5571", STATUS_INVALID, "not an IPv6"},
        {"tcp://127.1", STATUS_INVALID, "neither"},
        {"tcp://256.0.0.1", STATUS_INVALID, "neither"},
        {"tcp://eth0;10.0.0.1:5571", STATUS_INVALID, "neither"},
        {"tcp://a/b:5571", STATUS_INVALID, "neither"},
        {"tcp://two words:5571", STATUS_INVALID, "neither"},
        {"tcp://\x1b[2J", STATUS_INVALID, "neither"},
        {"tcp://-v:5571", STATUS_INVALID, "neither"},
        {"tcp://.:5571", STATUS_INVALID, "neither"},
        {"tcp://[fe80::1%]:5571", STATUS_INVALID, "not an IPv6"},
        {"tcp://[fe80::1%a;b]:5571", STATUS_INVALID, "not an IPv6"},
        {"tcp://[::1%lo]:5571", STATUS_INVALID, "not an IPv6"},
        {"tcp://[1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa]", STATUS_INVALID,
         "not an IPv6"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct address address;
        struct error err = {0};
        enum status status = address_parse(&address, cases[i].text, &err);
        if (status != cases[i].status || !strstr(err.text, cases[i].said))
            fail_msg("%s: status %d, \"%s\"", cases[i].text, (int)status, err.text);
    }
}

TEST_CASE(test_listening)
{
    static const struct {
        const char *text;
        enum status status;
        bool local;
    } cases[] = {
        {"ipc:///run/inferstat", STATUS_OK, true},
        {"tcp://127.0.0.1:6000", STATUS_OK, true},
        {"tcp://127.9.9.9:6000", STATUS_OK, true},
        {"tcp://localhost", STATUS_OK, true},
        {"tcp://[::1]", STATUS_OK, true},
        {"tcp://*:5571", STATUS_OK, false},
        {"tcp://0.0.0.0:5571", STATUS_OK, false},
        {"tcp://[::]:5571", STATUS_OK, false},
        {"tcp://10.0.0.7", STATUS_OK, false},
        {"tcp://128.0.0.1", STATUS_OK, false},
        {"tcp://[::ffff:127.0.0.1]:1", STATUS_OK, false}, // trusted no further than needed
        {"tcp://[fe80::1%eth0]", STATUS_OK, false},
        {"tcp://example.org", STATUS_INVALID, false},
        {"tcp://localhost.example.org", STATUS_INVALID, false},
        {"tcp://127.0.0.1.example.org", STATUS_INVALID, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct address address;
        struct error err = {0};
        if (address_parse_listen(&address, cases[i].text, &err) != cases[i].status)
            fail_msg("%s: %s", cases[i].text, err.text);
        if (cases[i].status == STATUS_OK && address_is_local(&address) != cases[i].local)
            fail_msg("%s: local is not %d", cases[i].text, cases[i].local);
        // What may not be listened on may be a collector's name all the same.
        if (cases[i].status != STATUS_OK) {
            assert_int_equal(address_parse(&address, cases[i].text, &err), STATUS_OK);
            assert_false(address_is_local(&address));
        }
    }
}

// "/ingest" must fit: 107 bytes in all, so 100 for the folder.
TEST_CASE(test_socket_path_limit)
{
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
}

TEST_CASE(test_long_texts_are_refused)
{
    static char text[100000];
    static const char *const starts[] = {"",       "ipc:///", "ipc://",
                                         "tcp://", "tcp://[", "tcp://127.0.0.1:"};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        memset(text, '1', sizeof text - 1);
        memcpy(text, starts[i], strlen(starts[i]));
        struct address address;
        struct error err = {0};
        assert_int_equal(address_parse(&address, text, &err), STATUS_INVALID);
    }
}

TEST_MAIN(test_good, test_bad, test_listening, test_socket_path_limit, test_long_texts_are_refused)
