#include "server/collector/access/quota.h"

#include <unistd.h>

#include "common/core/base/error.h"
#include "common/sys/log.h"
#include "server/collector/threads/limits.h"
#include "tests/support/test.h"

#define SECOND_NS UINT64_C(1000000000)

static const uint64_t start_ns = 1000 * SECOND_NS;

static struct wire_peer user(uid_t uid)
{
    return (struct wire_peer){.kind = PEER_USER, .uid = uid, .pid = 7};
}

static struct quota *make(const char *rules_text, int64_t store_bytes, uint64_t store_names)
{
    struct quota_rules rules = quota_rules_default();
    struct quota *quota = NULL;
    struct error err = {0};
    if (rules_text)
        expect_ok(quota_rules_parse(&rules, rules_text, &err), &err);
    expect_ok(quota_new(&quota, &rules, store_bytes, store_names, &err), &err);
    return quota;
}

// ---- The log ------------------------------------------------------------------------

static int log_file = -1, log_saved = -1;

static void log_begin(void)
{
    char name[] = "/tmp/inferstat-quota-XXXXXX";
    log_file = mkstemp(name);
    assert_true(log_file >= 0);
    (void)unlink(name);
    (void)fflush(stderr);
    log_saved = dup(STDERR_FILENO);
    assert_true(dup2(log_file, STDERR_FILENO) == STDERR_FILENO);
    log_open("test", LOG_LEVEL_WARNING);
}

// What was logged since log_begin.
static const char *log_end(void)
{
    static char text[8192];
    assert_true(dup2(log_saved, STDERR_FILENO) == STDERR_FILENO);
    (void)close(log_saved);
    const ssize_t size = pread(log_file, text, sizeof text - 1, 0);
    assert_true(size >= 0);
    text[size] = '\0';
    (void)close(log_file);
    return text;
}

static void expect_lines(unsigned lines, const char *text)
{
    const char *log = log_end();
    unsigned count = 0;
    for (const char *at = log; *at; at++)
        count += *at == '\n';
    if (count != lines || !strstr(log, text))
        fail_msg("%u lines with \"%s\", not:\n%s", lines, text, log);
}

// ---- Rules --------------------------------------------------------------------------

TEST_CASE(test_rules)
{
    static const struct {
        const char *text, *said; // NULL: it is right
    } cases[] = {
        {"names=5", NULL},
        {"names=200000,bytes=10GB,records=unlimited,answers=64KB", NULL},
        {"connections=1", NULL},
        {"names=0", "outside"},
        {"names=-1", "outside"},
        {"names=5,names=6", "twice"},
        {"name=5", "not a quota"},
        {"quux=5", "not a quota"},
        {"names", "not a quota"},
        {"", "not a quota"},
        {"names=5,", "not a quota"},
        {"bytes=5", "less than"},
        {"bytes=x", "not a size"},
        {"records=1.5", "whole number"},
        {"names=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         "whole number"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct quota_rules rules = quota_rules_default();
        struct error err = {0};
        const enum status status = quota_rules_parse(&rules, cases[i].text, &err);
        if ((status == STATUS_OK) != !cases[i].said ||
            (cases[i].said && !strstr(err.text, cases[i].said)))
            fail_msg("%s: %s", cases[i].text, err.text);
    }
    struct quota_rules rules = quota_rules_default();
    assert_int_equal(quota_rules_parse(&rules, "bytes=1MB,records=unlimited,runs=7", NULL),
                     STATUS_OK);
    assert_int_equal(rules.most[QUOTA_BYTES], 1 << 20);
    assert_int_equal(rules.most[QUOTA_RECORDS], 0);
    assert_int_equal(rules.most[QUOTA_RUNS], 7);
    assert_int_equal(rules.most[QUOTA_NAMES], 100000);
}

// ---- Levels and rates -----------------------------------------------------------------

TEST_CASE(test_a_level)
{
    struct quota *quota = make("connections=3", 0, 1000);
    const struct wire_peer alice = user(1000), bob = user(1001);
    const unsigned a = quota_owner(quota, &alice);
    const unsigned b = quota_owner(quota, &bob);
    assert_int_not_equal(a, b);
    assert_int_equal(quota_owner(quota, &alice), a);
    assert_true(quota_take(quota, a, QUOTA_CONNECTIONS, 2, start_ns));
    assert_false(quota_take(quota, a, QUOTA_CONNECTIONS, 2, start_ns));
    assert_true(quota_take(quota, a, QUOTA_CONNECTIONS, 1, start_ns));
    assert_false(quota_take(quota, a, QUOTA_CONNECTIONS, 1, start_ns + 90000 * SECOND_NS));
    assert_true(quota_take(quota, b, QUOTA_CONNECTIONS, 3, start_ns));
    quota_give(quota, a, QUOTA_CONNECTIONS, 1);
    assert_true(quota_take(quota, a, QUOTA_CONNECTIONS, 1, start_ns));
    quota_give(quota, a, QUOTA_CONNECTIONS, 99); // never below nothing
    assert_true(quota_take(quota, a, QUOTA_CONNECTIONS, 3, start_ns));
    quota_free(quota);
}

TEST_CASE(test_a_rate)
{
    struct quota *quota = make("runs=60", 0, 1000);
    const struct wire_peer alice = user(1000);
    const unsigned a = quota_owner(quota, &alice);
    for (unsigned i = 0; i < 60; i++)
        assert_true(quota_take(quota, a, QUOTA_RUNS, 1, start_ns));
    assert_false(quota_take(quota, a, QUOTA_RUNS, 1, start_ns));
    assert_false(quota_take(quota, a, QUOTA_RUNS, 1, start_ns));
    assert_true(quota_take(quota, a, QUOTA_RUNS, 1, start_ns + 60 * SECOND_NS)); // one a minute
    assert_false(quota_take(quota, a, QUOTA_RUNS, 1, start_ns + 60 * SECOND_NS));
    for (unsigned i = 0; i < 60; i++)
        assert_true(quota_take(quota, a, QUOTA_RUNS, 1, start_ns + 7200 * SECOND_NS));
    assert_false(quota_take(quota, a, QUOTA_RUNS, 1, start_ns + 7200 * SECOND_NS));
    quota_free(quota);
}

TEST_CASE(test_no_quota)
{
    const struct wire_peer alice = user(1000);
    unsigned owner = 5;
    assert_true(quota_take(NULL, 0, QUOTA_RUNS, UINT64_MAX, start_ns));
    assert_true(quota_take_name(NULL, 0, false, start_ns));
    assert_true(quota_admit(NULL, &alice, &(struct quota_message){1, 1, 1}, start_ns, &owner));
    assert_int_equal(owner, 0);
    quota_give(NULL, 0, QUOTA_ANSWERS, 1);
    quota_press(NULL, 0, 0, start_ns);
    quota_complain(NULL, &alice, "x", 1);
    quota_free(NULL);
    struct quota *quota = make("runs=unlimited", 0, 1000);
    for (unsigned i = 0; i < 10000; i++)
        assert_true(quota_take(quota, 1, QUOTA_RUNS, 1U << 30, start_ns));
    quota_free(quota);
}

// ---- Names --------------------------------------------------------------------------

TEST_CASE(test_the_last_names_are_for_hosts_and_newcomers)
{
    enum { RESERVED = 1000, STORE = QUOTA_NAMES_LAST * RESERVED };
    struct quota *quota = make("names=70000", 0, STORE);
    const struct wire_peer greedy = user(1), newcomer = user(2);
    const unsigned a = quota_owner(quota, &greedy);
    const unsigned b = quota_owner(quota, &newcomer);
    for (unsigned i = 0; i < STORE - RESERVED; i++)
        assert_true(quota_take_name(quota, a, false, start_ns));
    assert_false(quota_take_name(quota, a, false, start_ns));
    assert_true(quota_take_name(quota, a, true, start_ns)); // a host
    for (unsigned i = 0; i < QUOTA_NAMES_FEW; i++)
        assert_true(quota_take_name(quota, b, false, start_ns));
    assert_false(quota_take_name(quota, b, false, start_ns));
    // Hosts, until the store is full.
    for (unsigned i = 0; i < RESERVED - QUOTA_NAMES_FEW - 1; i++)
        assert_true(quota_take_name(quota, a, true, start_ns));
    assert_false(quota_take_name(quota, b, true, start_ns));
    quota_free(quota);
}

// What cannot be deleted while it is in use stays a small part of the store.
TEST_CASE(test_a_small_store_takes_fewer_names_and_runs)
{
    static const struct {
        const char *rules;
        int64_t store_bytes;
        uint64_t names, runs, store_names;
    } cases[] = {
        {NULL, 0, 100000, 4096, 1000000},
        {NULL, INT64_C(1) << 40, 100000, 4096, 1000000},
        {NULL, 24 << 20, 3072, 96, 24576},
        {NULL, 1 << 20, 1024, 64, 1024},
        {"names=5000,runs=7", 24 << 20, 5000, 7, 24576},
        {"names=unlimited", 24 << 20, 0, 96, 24576},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct quota *quota = make(cases[i].rules, cases[i].store_bytes, 1000000);
        uint64_t taken = 0;
        assert_int_equal(quota_most(quota, QUOTA_NAMES), cases[i].names);
        assert_int_equal(quota_most(quota, QUOTA_RUNS), cases[i].runs);
        for (uid_t uid = 0; uid < 100; uid++) { // hosts of many owners, until the store is full
            const struct wire_peer peer = user(uid);
            const unsigned owner = quota_owner(quota, &peer);
            while (taken <= cases[i].store_names && quota_take_name(quota, owner, true, start_ns))
                taken++;
        }
        assert_int_equal(taken, cases[i].store_names);
        quota_free(quota);
    }
}

TEST_CASE(test_names_as_the_store_has_them)
{
    struct quota *quota = make("names=10", 0, LIMITS_STORE_NAMES);
    const struct wire_peer alice = user(1000);
    const unsigned a = quota_owner(quota, &alice);
    quota_add_names(quota, "user:1000", 9);
    quota_add_names(quota, NULL, 500);
    quota_add_names(quota, "nonsense", 500);
    assert_true(quota_take_name(quota, a, false, start_ns));
    assert_false(quota_take_name(quota, a, true, start_ns)); // its own limit holds for hosts, too
    quota_reset_names(quota);
    quota_add_names(quota, "user:1000", 5);
    for (unsigned i = 0; i < 5; i++)
        assert_true(quota_take_name(quota, a, false, start_ns));
    assert_false(quota_take_name(quota, a, false, start_ns));
    quota_free(quota);
}

// ---- Owners -------------------------------------------------------------------------

TEST_CASE(test_more_owners_than_places)
{
    struct quota *quota = make("connections=1", 0, 1000);
    for (uid_t uid = 0; uid < 4095; uid++) {
        const struct wire_peer peer = user(uid);
        const unsigned owner = quota_owner(quota, &peer);
        assert_int_not_equal(owner, 0);
        if (uid > 0)
            assert_true(quota_take(quota, owner, QUOTA_CONNECTIONS, 1, start_ns));
    }
    const struct wire_peer late = user(5000), first = user(0);
    assert_int_equal(quota_owner(quota, &late), 0);
    assert_int_not_equal(quota_owner(quota, &first), 0);
    assert_true(quota_take(quota, 0, QUOTA_CONNECTIONS, 1, start_ns));
    assert_false(quota_take(quota, 0, QUOTA_CONNECTIONS, 1, start_ns)); // the others share one
    quota_free(quota);
}

// ---- Ingest -------------------------------------------------------------------------

static bool admit(struct quota *quota, const struct wire_peer *peer, uint64_t bytes,
                  uint64_t records, uint64_t rows, uint64_t now_ns)
{
    unsigned owner;
    return quota_admit(quota, peer, &(struct quota_message){bytes, records, rows}, now_ns, &owner);
}

TEST_CASE(test_ingest)
{
    struct quota *quota = make("records=1000", 2 << 20, 1000);
    const struct wire_peer alice = user(1), bob = user(2);
    // A large batch passes, and then the next ones wait until it is paid for.
    assert_true(admit(quota, &alice, 1000, 4000, 4000, start_ns));
    assert_false(admit(quota, &alice, 1000, 1, 1, start_ns + 2 * SECOND_NS));
    assert_true(admit(quota, &alice, 1000, 0, 0, start_ns + 2 * SECOND_NS)); // a heartbeat
    assert_true(admit(quota, &bob, 1000, 500, 500, start_ns + 2 * SECOND_NS));
    assert_true(admit(quota, &alice, 1000, 1, 1, start_ns + 4 * SECOND_NS));
    // Half of the store's limit a day.
    assert_true(admit(quota, &bob, (1 << 20) - 1000, 0, 0, start_ns + 4 * SECOND_NS));
    assert_false(admit(quota, &bob, 10000, 0, 0, start_ns + 5 * SECOND_NS));
    assert_true(admit(quota, &bob, 4000, 0, 0, start_ns + 5 * SECOND_NS));
    assert_true(admit(quota, &bob, 10000, 0, 0, start_ns + 86404 * SECOND_NS));
    quota_free(quota);
}

// Sends messages of 10,000 bytes as long as they are admitted, at most `most`; returns their bytes.
static uint64_t flood(struct quota *quota, uid_t uid, unsigned most)
{
    const struct wire_peer peer = user(uid);
    uint64_t sent = 0;
    for (unsigned i = 0; i < most && admit(quota, &peer, 10000, 0, 1, start_ns); i++)
        sent += 10000;
    return sent;
}

enum { FLOODERS = 20, PERMITTED = 4 << 20 };

static uint64_t flood_by_all(struct quota *quota)
{
    uint64_t sent = 0;
    for (unsigned turn = 0; turn < 100; turn++)
        for (uid_t uid = 1; uid <= FLOODERS; uid++)
            sent += flood(quota, uid, 1);
    return sent;
}

// However much some add to a store above its limit, others may add a little.
TEST_CASE(test_pressure)
{
    struct quota *quota = make("bytes=unlimited", 16 * PERMITTED, 1000);
    const struct wire_peer flooder = user(1);
    assert_int_equal(flood_by_all(quota), 100 * FLOODERS * 10000);
    quota_press(quota, 0, 0, start_ns);
    quota_press(quota, 1, 0, start_ns);
    const uint64_t sent = flood_by_all(quota);
    assert_true(sent > PERMITTED / 2 && sent < PERMITTED);
    assert_int_equal(flood(quota, 99, 1), 10000);
    assert_false(admit(quota, &flooder, 100, 0, 1, start_ns)); // a new run
    assert_true(admit(quota, &flooder, 100, 0, 0, start_ns));  // a heartbeat
    quota_press(quota, 1, sent + 60000, start_ns);             // still in the queue
    quota_press(quota, sent + 60000, 0, start_ns);
    assert_int_equal(flood(quota, 1, 1), 0);
    quota_press(quota, sent / 2, 0, start_ns); // some was deleted
    const uint64_t again = flood_by_all(quota);
    assert_true(again > PERMITTED / 16 && again < PERMITTED - sent / 2);
    // As much is deleted as is added: one that adds little is never refused.
    uint64_t little = 0, now_ns = start_ns;
    for (unsigned i = 0; i < 600; i++, now_ns += SECOND_NS / 10) {
        quota_press(quota, PERMITTED / 4 * 3, 0, now_ns);
        (void)flood_by_all(quota);
        little += flood(quota, 99, 1);
    }
    assert_int_equal(little, 600 * 10000);
    // Whatever it holds: each has a part of the last eighth.
    quota_press(quota, 100 * PERMITTED, 0, now_ns);
    assert_int_equal(flood_by_all(quota), 0);
    for (uid_t uid = 200; uid < 200 + FLOODERS; uid++)
        assert_int_equal(flood(quota, uid, 1), 10000);
    // If nothing can be deleted, they get a little more in time.
    uint64_t late = 0;
    for (unsigned i = 1; i <= 6000; i++) {
        quota_press(quota, (100 + i) * PERMITTED, 0, now_ns + i * (SECOND_NS / 10));
        late += flood(quota, 1, 1);
    }
    assert_true(late > 0 && late < PERMITTED / 8 / 4);
    quota_press(quota, 0, 0, now_ns + 600 * SECOND_NS);
    assert_int_equal(flood_by_all(quota), 100 * FLOODERS * 10000);
    quota_free(quota);
}

// ---- Warnings -----------------------------------------------------------------------

TEST_CASE(test_one_line_in_ten_seconds)
{
    struct quota *quota = make("runs=100", 0, 1000);
    const struct wire_peer alice = user(4000000), bob = user(4000001);
    const unsigned a = quota_owner(quota, &alice);
    const unsigned b = quota_owner(quota, &bob);
    log_begin();
    for (unsigned i = 0; i < 79; i++)
        (void)quota_take(quota, a, QUOTA_RUNS, 1, start_ns);
    expect_lines(0, "");
    log_begin();
    for (unsigned i = 0; i < 21; i++)
        (void)quota_take(quota, a, QUOTA_RUNS, 1, start_ns);
    expect_lines(1, "user 4000000: quota of runs: 80 of 100 an hour\n");
    log_begin();
    for (unsigned i = 0; i < 50; i++)
        (void)quota_take(quota, a, QUOTA_RUNS, 1, start_ns);
    expect_lines(1, "user 4000000: quota of runs: 100 of 100 an hour: new runs are refused\n");
    log_begin();
    (void)quota_take(quota, a, QUOTA_RUNS, 1, start_ns + 10 * SECOND_NS);
    expect_lines(1, "new runs are refused (50 times)\n");
    log_begin();
    (void)quota_take(quota, b, QUOTA_RUNS, 1000, start_ns + 10 * SECOND_NS);
    expect_lines(1, "user 4000001: quota of runs: 1000 of 100 an hour\n");
    quota_free(quota);
}

TEST_CASE(test_complaints)
{
    struct quota *quota = make(NULL, 0, 1000);
    const struct wire_peer alice = user(4000000), bob = user(4000001);
    log_begin();
    for (unsigned i = 0; i < 10; i++) {
        quota_complain(quota, &alice, "sends garbage", 3);
        quota_complain(quota, &alice, "does not read", 1);
        quota_complain(quota, &bob, "sends garbage", 1);
        quota_complain(quota, &bob, "sends garbage", 0);
    }
    expect_lines(3, "user 4000000, process 7: sends garbage (3 times)\n");
    log_begin(); // peers without key and user are one owner, but each address is named
    const struct wire_peer near = {.host = "127.0.0.1"}, far = {.host = "10.0.0.1"};
    for (unsigned i = 0; i < 10; i++) {
        quota_complain(quota, &near, "sends garbage", 1);
        quota_complain(quota, &far, "sends garbage", 1);
    }
    expect_lines(2, "10.0.0.1: sends garbage\n");
    // A crowd leaves room for nobody, and does no harm.
    log_begin();
    for (uid_t i = 0; i < 5000; i++) {
        const struct wire_peer one = user(5000000 + i);
        quota_complain(quota, &one, "sends garbage", 1);
    }
    const char *log = log_end();
    assert_non_null(strstr(log, "user 5000000, process 7: sends garbage\n"));
    quota_free(quota);
}

TEST_MAIN(test_rules, test_a_level, test_a_rate, test_no_quota,
          test_the_last_names_are_for_hosts_and_newcomers,
          test_a_small_store_takes_fewer_names_and_runs, test_names_as_the_store_has_them,
          test_more_owners_than_places, test_ingest, test_pressure, test_one_line_in_ten_seconds,
          test_complaints)
