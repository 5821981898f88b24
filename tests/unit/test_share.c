// How much of each peer is under way.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "server/collector/share.h"
#include "tests/support/test.h"

static struct share *share;

static int set_up(void **state)
{
    (void)state;
    return share_new(&share, NULL) == STATUS_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    share_free(share);
    return 0;
}

static struct wire_route route(uint32_t peer)
{
    struct wire_route route = {.size = 5};
    memcpy(route.id + 1, &peer, sizeof peer);
    return route;
}

static struct share_peer *take(uint32_t peer, uint32_t records)
{
    const struct wire_route of = route(peer);
    return share_take(share, 0, &of, records);
}

static void test_within_the_credit_all_is_taken(void **state)
{
    (void)state;
    share_set_credit(share, 65536, 1);
    struct share_peer *first = NULL;
    for (uint32_t taken = 0; taken < 65536; taken += 256) {
        struct share_peer *peer = take(1, 256);
        assert_non_null(peer);
        assert_true(!first || peer == first);
        first = peer;
    }
    for (uint32_t taken = 0; taken < 65536; taken += 256)
        share_give(first, 256);
}

static void test_far_beyond_it_nothing(void **state)
{
    (void)state;
    share_set_credit(share, 512, 1);
    unsigned taken = 0;
    struct share_peer *greedy = NULL, *peer;
    while (taken < 1000 && (peer = take(1, 4096)) != NULL) {
        greedy = peer;
        taken++;
    }
    assert_in_range(taken, 2, 8);
    // Others are not concerned, nor is the same route at another socket.
    struct share_peer *other = take(2, 4096);
    assert_non_null(other);
    const struct wire_route same = route(1);
    struct share_peer *elsewhere = share_take(share, 1, &same, 4096);
    assert_non_null(elsewhere);
    assert_ptr_not_equal(elsewhere, greedy);
    share_give(other, 4096);
    share_give(elsewhere, 4096);
    // What was dealt with makes room.
    share_give(greedy, 4096);
    assert_ptr_equal(take(1, 4096), greedy);
    assert_null(take(1, 4096));
    while (taken-- > 0)
        share_give(greedy, 4096);
    // One message is always taken, however large.
    greedy = take(1, 1000000);
    assert_non_null(greedy);
    assert_null(take(1, 1));
    share_give(greedy, 1000000);
}

static void test_less_credit_counts_after_a_while(void **state)
{
    (void)state;
    static const uint64_t second = 1000000000;
    share_set_credit(share, 65536, 1);
    struct share_peer *peer = take(1, 100000);
    share_set_credit(share, 64, 2);
    assert_ptr_equal(take(1, 20000), peer);
    share_set_credit(share, 64, 6 * second);
    assert_ptr_equal(take(1, 20000), peer);
    share_set_credit(share, 64, 12 * second);
    assert_null(take(1, 1));
    share_give(peer, 100000);
    share_give(peer, 20000);
    share_give(peer, 20000);
    assert_non_null(peer = take(1, 1));
    share_give(peer, 1);
}

enum { PEERS = 5000, ROUNDS = 20 };

static struct share_peer *_Atomic handed[PEERS];
static atomic_bool done;

static void *give_back(void *context)
{
    (void)context;
    while (!atomic_load(&done))
        for (unsigned i = 0; i < PEERS; i++)
            share_give(atomic_exchange(&handed[i], NULL), 7);
    return NULL;
}

// Peers come and go while another thread gives back: none is freed too early.
static void test_threads_give_back(void **state)
{
    (void)state;
    pthread_t thread;
    share_set_credit(share, 64, 1);
    atomic_store(&done, false);
    assert_int_equal(pthread_create(&thread, NULL, give_back, NULL), 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < PEERS; i++) {
            struct share_peer *peer = take(round * PEERS / 2 + i, 7);
            assert_non_null(peer);
            share_give(atomic_exchange(&handed[i], peer), 7);
        }
    }
    atomic_store(&done, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (unsigned i = 0; i < PEERS; i++)
        share_give(atomic_exchange(&handed[i], NULL), 7);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_within_the_credit_all_is_taken),
        TEST(test_far_beyond_it_nothing),
        TEST(test_less_credit_counts_after_a_while),
        TEST(test_threads_give_back),
    };
    return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
