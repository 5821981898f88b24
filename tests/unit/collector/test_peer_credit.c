// How much of each peer is under way.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "server/collector/threads/peer_credit.h"
#include "tests/support/test.h"

static struct peer_credit *peer_credit;

TEST_FIXTURE(set_up)
{
    peer_credit = calloc(1, sizeof *peer_credit);
    if (!peer_credit)
        return -1;
    peer_credit_init(peer_credit);
    return 0;
}

TEST_FIXTURE(tear_down)
{
    free(peer_credit);
    return 0;
}

static struct wire_route route(uint32_t peer)
{
    return (struct wire_route){.connection = peer};
}

static struct peer_credit_slot *take(uint32_t peer, uint32_t records)
{
    const struct wire_route of = route(peer);
    return peer_credit_acquire(peer_credit, 0, &of, records);
}

TEST_CASE(test_within_the_credit_all_is_taken)
{
    peer_credit_set_credit(peer_credit, 65536, 1);
    struct peer_credit_slot *first = NULL;
    for (uint32_t taken = 0; taken < 65536; taken += 256) {
        struct peer_credit_slot *peer = take(1, 256);
        assert_non_null(peer);
        assert_true(!first || peer == first);
        first = peer;
    }
    for (uint32_t taken = 0; taken < 65536; taken += 256)
        peer_credit_release(first, 256);
}

TEST_CASE(test_far_beyond_it_nothing)
{
    peer_credit_set_credit(peer_credit, 512, 1);
    unsigned taken = 0;
    struct peer_credit_slot *greedy = NULL, *peer;
    while (taken < 1000 && (peer = take(1, 4096)) != NULL) {
        greedy = peer;
        taken++;
    }
    assert_in_range(taken, 2, 8);
    // Others are not concerned, nor is the same route at another socket.
    struct peer_credit_slot *other = take(2, 4096);
    assert_non_null(other);
    const struct wire_route same = route(1);
    struct peer_credit_slot *elsewhere = peer_credit_acquire(peer_credit, 1, &same, 4096);
    assert_non_null(elsewhere);
    assert_ptr_not_equal(elsewhere, greedy);
    peer_credit_release(other, 4096);
    peer_credit_release(elsewhere, 4096);
    // What was dealt with makes room.
    peer_credit_release(greedy, 4096);
    assert_ptr_equal(take(1, 4096), greedy);
    assert_null(take(1, 4096));
    while (taken-- > 0)
        peer_credit_release(greedy, 4096);
    // One message is always taken, however large.
    greedy = take(1, 1000000);
    assert_non_null(greedy);
    assert_null(take(1, 1));
    peer_credit_release(greedy, 1000000);
}

TEST_CASE(test_less_credit_counts_after_a_while)
{
    static const uint64_t second = 1000000000;
    peer_credit_set_credit(peer_credit, 65536, 1);
    struct peer_credit_slot *peer = take(1, 100000);
    peer_credit_set_credit(peer_credit, 64, 2);
    assert_ptr_equal(take(1, 20000), peer);
    peer_credit_set_credit(peer_credit, 64, 6 * second);
    assert_ptr_equal(take(1, 20000), peer);
    peer_credit_set_credit(peer_credit, 64, 12 * second);
    assert_null(take(1, 1));
    peer_credit_release(peer, 100000);
    peer_credit_release(peer, 20000);
    peer_credit_release(peer, 20000);
    assert_non_null(peer = take(1, 1));
    peer_credit_release(peer, 1);
}

enum { PEERS = 5000, ROUNDS = 20 };

static struct peer_credit_slot *_Atomic handed[PEERS];
static atomic_bool done;

static void *give_back(void *context)
{
    (void)context;
    while (!atomic_load(&done))
        for (unsigned i = 0; i < PEERS; i++)
            peer_credit_release(atomic_exchange(&handed[i], NULL), 7);
    return NULL;
}

// Peers come and go while another thread gives back: nothing stays in flight.
TEST_CASE(test_threads_give_back)
{
    pthread_t thread;
    peer_credit_set_credit(peer_credit, 64, 1);
    atomic_store(&done, false);
    assert_int_equal(pthread_create(&thread, NULL, give_back, NULL), 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < PEERS; i++) {
            struct peer_credit_slot *peer = take(round * PEERS / 2 + i, 7);
            assert_non_null(peer);
            peer_credit_release(atomic_exchange(&handed[i], peer), 7);
        }
    }
    atomic_store(&done, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (unsigned i = 0; i < PEERS; i++)
        peer_credit_release(atomic_exchange(&handed[i], NULL), 7);
    for (unsigned i = 0; i < PEER_CREDIT_SLOTS; i++)
        assert_int_equal(atomic_load(&peer_credit->slots[i].in_flight), 0);
}

TEST_MAIN_EACH(set_up, tear_down, test_within_the_credit_all_is_taken, test_far_beyond_it_nothing,
               test_less_credit_counts_after_a_while, test_threads_give_back)
