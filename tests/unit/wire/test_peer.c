#include "common/wire/peer.h"

#include "tests/support/test.h"

TEST_CASE(test_address_of_a_user)
{
    static const struct {
        const char *text;
        uid_t uid;
        pid_t pid;
        bool fails;
    } cases[] = {
        {"localhost:0:0:1", 0, 1, false},
        {"localhost:1000:100:4711", 1000, 4711, false},
        {"localhost:1000:100:0", 1000, 0, false},
        {"localhost:4294967294:4294967294:2147483647", 4294967294U, 2147483647, false},
        {"localhost:4294967295:0:1", 0, 0, true}, // no user
        {"localhost:0:4294967295:1", 0, 0, true},
        {"localhost:4294967296:0:1", 0, 0, true},
        {"localhost:99999999999999999999999999:0:1", 0, 0, true},
        {"localhost:0:0:2147483648", 0, 0, true},
        {"localhost:0:0:-1", 0, 0, true},
        {"localhost:0:0", 0, 0, true},
        {"localhost:0:0:", 0, 0, true},
        {"localhost::0:1", 0, 0, true},
        {"localhost:0:0:1:", 0, 0, true},
        {"localhost:0:0:1 ", 0, 0, true},
        {"localhost: 1:0:1", 0, 0, true},
        {"localhost:+1:0:1", 0, 0, true},
        {"localhost:01:0:1", 0, 0, true},
        {"localhost:0x1:0:1", 0, 0, true},
        {"localhost:1000;100:4711", 0, 0, true},
        {"localhost", 0, 0, true},
        {"Localhost:0:0:1", 0, 0, true},
        {"127.0.0.1", 0, 0, true},
        {"", 0, 0, true},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct wire_peer peer = {.kind = PEER_KEY, .pid = 5};
        if (peer_read_address(&peer, cases[i].text) == cases[i].fails)
            fail_msg("%s", cases[i].text);
        assert_int_equal(peer.kind, cases[i].fails ? PEER_KEY : PEER_USER);
        assert_int_equal(peer.pid, cases[i].fails ? 5 : cases[i].pid);
        assert_int_equal(peer.uid, cases[i].uid);
    }
}

TEST_CASE(test_owners)
{
    static const struct wire_peer peers[] = {
        {.kind = PEER_USER, .uid = 1000, .pid = 7},
        {.kind = PEER_USER, .uid = 1000, .pid = 8},
        {.kind = PEER_USER, .uid = 1001, .pid = 7},
        {.kind = PEER_USER},
        {.kind = PEER_LOOPBACK, .host = "127.0.0.1"},
        {.kind = PEER_LOOPBACK, .host = "::1"},
        {.kind = PEER_KEY, .key = {1, 2}, .host = "10.0.0.1"},
        {.kind = PEER_KEY, .key = {1, 2}, .host = "10.0.0.2"},
        {.kind = PEER_KEY, .key = {1, 3}, .host = "10.0.0.1"},
    };
    static const unsigned owners[] = {0, 0, 1, 2, 3, 3, 4, 4, 5};
    for (size_t i = 0; i < COUNT_OF(peers); i++)
        for (size_t j = 0; j < COUNT_OF(peers); j++)
            if (peer_is_same_owner(&peers[i], &peers[j]) != (owners[i] == owners[j]))
                fail_msg("peers %zu and %zu", i, j);
}

TEST_CASE(test_text)
{
    static const struct {
        struct wire_peer peer;
        const char *text, *owner;
    } cases[] = {
        {{.kind = PEER_USER, .pid = 4711}, "user 0, process 4711", "user:0"},
        {{.kind = PEER_USER}, "user 0", "user:0"},
        {{.kind = PEER_USER, .uid = 4294967294U, .pid = 1},
         "user 4294967294, process 1",
         "user:4294967294"},
        {{.kind = PEER_KEY, .key = {[31] = 1}},
         "key 0000000000000000000000000000000000000001",
         "key:0000000000000000000000000000000000000001"},
        {{.kind = PEER_LOOPBACK, .host = "127.0.0.1"}, "127.0.0.1", "loopback"},
        {{.kind = PEER_LOOPBACK}, "unknown host", "loopback"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[PEER_TEXT_SIZE], owner[PEER_OWNER_SIZE];
        assert_string_equal(peer_text(text, &cases[i].peer), cases[i].text);
        assert_string_equal(peer_owner_text(owner, &cases[i].peer), cases[i].owner);
        struct wire_peer read = {.host = "x"};
        assert_true(peer_read_owner(&read, owner));
        assert_true(peer_is_same_owner(&read, &cases[i].peer));
    }
    static const char *const wrong[] = {"",
                                        "user:",
                                        "user:-1",
                                        "user:1 ",
                                        "user:4294967295",
                                        "loopback ",
                                        "key:",
                                        "key:0",
                                        "key:0000000000000000000000000000000000000000",
                                        "user",
                                        "1000"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct wire_peer read = {.host = "x"};
        if (peer_read_owner(&read, wrong[i]))
            fail_msg("%s", wrong[i]);
        assert_string_equal(read.host, "x");
    }
}

TEST_CASE(test_host)
{
    struct wire_peer peer = {.kind = PEER_USER, .uid = 5, .pid = 6};
    char longer[200];
    peer_set_host(&peer, "::1");
    assert_int_equal(peer.kind, PEER_LOOPBACK);
    assert_int_equal(peer.uid + (uid_t)peer.pid, 0);
    assert_string_equal(peer.host, "::1");
    memset(longer, 'a', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    peer_set_host(&peer, longer);
    assert_int_equal(strlen(peer.host), PEER_HOST_SIZE - 1);
    peer_set_host(&peer, NULL);
    assert_string_equal(peer.host, "");
}

TEST_MAIN(test_address_of_a_user, test_owners, test_text, test_host)
