// The producer's machine where there is a spool.
#include "common/core/delivery/delivery.h"

#include "tests/unit/core/delivery_rig.h"
#include "tests/support/test.h"

static const uint64_t ms = RIG_MS;

static void expect_spool(struct rig *rig, uint32_t stream, uint64_t first, uint64_t last)
{
    expect(rig, DELIVERY_SPOOL);
    assert_int_equal(rig->action.stream, stream);
    assert_int_equal(rig->action.first, first);
    assert_int_equal(rig->action.last, last);
}

static void spooled(struct rig *rig, bool done)
{
    delivery_producer_spooled(rig->producer, &rig->action, done, rig->now_ms * ms);
}

static void do_spool(struct rig *rig, uint32_t stream, uint64_t first, uint64_t last)
{
    expect_spool(rig, stream, first, last);
    spooled(rig, true);
}

static void lose(struct rig *rig, uint32_t stream, uint64_t first, uint64_t last,
                 enum delivery_reason reason)
{
    const struct delivery_range range = {.stream = stream,
                                         .first = first,
                                         .last = last,
                                         .reason = reason,
                                         .since_ns = 5,
                                         .until_ns = 6};
    assert_int_equal(delivery_producer_lost(rig->producer, &range), STATUS_OK);
}

// The ranges to be told are these of stream 0: {first, last, reason}, ended by 0.
static void expect_drops(struct rig *rig, const uint64_t (*wanted)[3])
{
    size_t count, i = 0;
    const struct delivery_range *drops = delivery_producer_drops(rig->producer, &count);
    for (; wanted[i][0]; i++) {
        assert_true(i < count);
        assert_int_equal(drops[i].first, wanted[i][0]);
        assert_int_equal(drops[i].last, wanted[i][1]);
        assert_int_equal(drops[i].reason, wanted[i][2]);
    }
    assert_int_equal(count, i);
}

// Until contact is lost: Hello is sent, a second passes.
static void lose_contact(struct rig *rig)
{
    expect(rig, DELIVERY_SEND_HELLO);
    rig->now_ms += 1000;
    expect(rig, DELIVERY_LOST_CONTACT);
}

static void rest(struct rig *rig)
{
    while (next(rig))
        assert_int_not_equal(rig->action.kind, DELIVERY_SPOOL);
}

TEST_CASE(test_lost_contact_spools_what_waits)
{
    struct rig rig = rig_new_with_spool(10, 100);
    produce(&rig, 0, 25);
    produce(&rig, 1, 4);
    lose_contact(&rig);
    rig.now_ms += 2999;
    rest(&rig);
    rig.now_ms += 1;
    do_spool(&rig, 0, 1, 10);
    do_spool(&rig, 1, 1, 4);
    do_spool(&rig, 0, 11, 20);
    produce(&rig, 1, 6); // for the next sweep
    do_spool(&rig, 0, 21, 25);
    rest(&rig);
    rig.now_ms += 2999;
    rest(&rig);
    rig.now_ms += 1;
    do_spool(&rig, 1, 5, 6);
    rest(&rig);
    rig_free(&rig);
}

TEST_CASE(test_contact_ends_spooling)
{
    struct rig rig = rig_new_with_spool(10, 100);
    produce(&rig, 0, 25);
    lose_contact(&rig);
    rig.now_ms += 3000;
    do_spool(&rig, 0, 1, 10);
    expect_spool(&rig, 0, 11, 20);
    spooled(&rig, false);
    welcome_new(&rig, 'A');
    expect_batch(&rig, 0, 1, 10); // from the spool
    expect_batch(&rig, 0, 11, 20);
    expect_batch(&rig, 0, 21, 25);
    assert_int_equal(ack_one(&rig, 'A', 2, 16), STATUS_OK);
    expect_free(&rig, 0, 15); // of the spool and of the ring
    expect(&rig, DELIVERY_CONTACT);
    rig.now_ms += 500;
    expect_nothing(&rig);
    rig_free(&rig);
}

TEST_CASE(test_half_a_ring_goes_to_the_spool)
{
    struct rig rig = rig_new_with_spool(10, 40);
    produce(&rig, 0, 19);
    contact_new(&rig);
    expect_batch(&rig, 0, 1, 10);
    expect_batch(&rig, 0, 11, 19);
    expect_nothing(&rig);
    produce(&rig, 0, 20);
    expect_spool(&rig, 0, 1, 10); // though it is under way
    spooled(&rig, true);
    expect_batch(&rig, 0, 20, 20);
    expect_nothing(&rig);
    assert_int_equal(ack_one(&rig, 'A', 2, 20), STATUS_OK);
    expect_free(&rig, 0, 19);
    produce(&rig, 0, 45);
    expect_spool(&rig, 0, 20, 29); // what is freed needs no spool
    spooled(&rig, true);
    expect_batch(&rig, 0, 21, 30);
    rig_free(&rig);
}

// Records of two slots fill a ring twice as soon.
TEST_CASE(test_half_a_ring_of_large_records)
{
    struct rig rig = rig_new_with_spool(10, 40);
    produce(&rig, 0, 10);
    contact_new(&rig);
    expect_batch(&rig, 0, 1, 10);
    expect_nothing(&rig);
    delivery_producer_ring_fits(rig.producer, 0, 20);
    expect_spool(&rig, 0, 1, 10);
    rig_free(&rig);
}

TEST_CASE(test_a_spool_that_cannot_be_written)
{
    struct rig rig = rig_new_with_spool(10, 20);
    produce(&rig, 0, 10);
    produce(&rig, 1, 10);
    expect_spool(&rig, 0, 1, 10);
    spooled(&rig, false);
    expect(&rig, DELIVERY_SEND_HELLO); // all else goes on
    rig.now_ms += 499;
    expect_nothing(&rig);
    rig.now_ms += 1;
    do_spool(&rig, 1, 1, 10);
    do_spool(&rig, 0, 1, 10);
    expect_nothing(&rig);
    rig_free(&rig);
}

TEST_CASE(test_an_owner_who_leaves)
{
    struct rig rig = rig_new_with_spool(10, 100);
    produce(&rig, 0, 12);
    expect(&rig, DELIVERY_SEND_HELLO);
    expect_nothing(&rig);
    delivery_producer_spool_all(rig.producer);
    do_spool(&rig, 0, 1, 10);
    do_spool(&rig, 0, 11, 12);
    expect_nothing(&rig);
    rig_free(&rig);
}

// Gone from the spool: sending goes on around it, and the collector is told.
TEST_CASE(test_lost_ranges_are_told_and_jumped)
{
    struct rig rig = rig_new_with_spool(10, 100);
    produce(&rig, 0, 40);
    delivery_producer_spool_holds(rig.producer, 0, 30);
    lose(&rig, 0, 1, 3, DELIVERY_SPOOL_FULL);
    lose(&rig, 0, 4, 5, DELIVERY_SPOOL_FULL);
    lose(&rig, 0, 12, 14, DELIVERY_SPOOL_DAMAGED);
    lose(&rig, 0, 28, 99, DELIVERY_SPOOL_DAMAGED); // the ring's are not lost
    const uint64_t all[][3] = {{1, 5, DELIVERY_SPOOL_FULL},
                               {12, 14, DELIVERY_SPOOL_DAMAGED},
                               {28, 30, DELIVERY_SPOOL_DAMAGED},
                               {0}};
    expect_drops(&rig, all);
    expect(&rig, DELIVERY_SEND_HELLO);
    // Room for what is really under way, whatever lies between.
    assert_int_equal(ack(&rig, 'A', (struct delivery_ack){.credit = 32, .protocol = 2}), STATUS_OK);
    expect(&rig, DELIVERY_CONTACT);
    expect_batch(&rig, 0, 6, 11);
    expect_batch(&rig, 0, 15, 24);
    expect_batch(&rig, 0, 25, 27);
    expect_batch(&rig, 0, 31, 40);
    expect_nothing(&rig);
    assert_int_equal(ack_one(&rig, 'A', 1, 15), STATUS_OK);
    expect_free(&rig, 0, 14);
    const uint64_t said[][3] = {{28, 30, DELIVERY_SPOOL_DAMAGED}, {0}};
    expect_drops(&rig, said);
    assert_int_equal(ack_one(&rig, 'A', 4, 41), STATUS_OK);
    expect_drops(&rig, (const uint64_t[][3]){{0}});
    expect_free(&rig, 0, 40);
    delivery_producer_close(rig.producer);
    expect(&rig, DELIVERY_SEND_GOODBYE);
    rig_free(&rig);
}

TEST_CASE(test_older_collectors_know_no_damage)
{
    struct rig rig = rig_new_with_spool(10, 100);
    produce(&rig, 0, 10);
    delivery_producer_spool_holds(rig.producer, 0, 10);
    lose(&rig, 0, 2, 3, DELIVERY_SPOOL_DAMAGED);
    expect(&rig, DELIVERY_SEND_HELLO);
    assert_int_equal(ack(&rig, 'A', (struct delivery_ack){.credit = 9, .protocol = 1}), STATUS_OK);
    expect_drops(&rig, (const uint64_t[][3]){{2, 3, DELIVERY_SPOOL_FULL}, {0}});
    rig_free(&rig);
}

// Lost while it is under way: should the batch not arrive, the range goes instead.
TEST_CASE(test_lost_under_way)
{
    struct rig rig = rig_new_with_spool(10, 100);
    produce(&rig, 0, 20);
    delivery_producer_spool_holds(rig.producer, 0, 20);
    contact_new(&rig);
    expect_batch(&rig, 0, 1, 10);
    expect_batch(&rig, 0, 11, 20);
    expect_nothing(&rig);
    lose(&rig, 0, 1, 15, DELIVERY_SPOOL_FULL);
    expect(&rig, DELIVERY_SEND_HEARTBEAT); // at once
    expect_nothing(&rig);
    assert_int_equal(ack_one(&rig, 'A', 3, 16), STATUS_OK); // both batches were lost
    expect_free(&rig, 0, 15);
    expect_batch(&rig, 0, 16, 20);
    rig_free(&rig);
}

// Another store: what is gone is still gone, what was freed is elsewhere.
TEST_CASE(test_another_store)
{
    struct rig rig = rig_new_with_spool(10, 100);
    produce(&rig, 0, 20);
    delivery_producer_spool_holds(rig.producer, 0, 20);
    contact_new(&rig);
    expect_batch(&rig, 0, 1, 10);
    expect_batch(&rig, 0, 11, 20);
    assert_int_equal(ack_one(&rig, 'A', 1, 6), STATUS_OK);
    expect_free(&rig, 0, 5);
    // Acknowledged, not yet freed, lost, and then the store is another one.
    assert_int_equal(ack_one(&rig, 'A', 1, 9), STATUS_OK);
    lose(&rig, 0, 1, 8, DELIVERY_SPOOL_FULL);
    expect_drops(&rig, (const uint64_t[][3]){{0}});
    delivery_producer_reconnect(rig.producer);
    expect_free(&rig, 0, 8);
    lose(&rig, 0, 9, 10, DELIVERY_SPOOL_FULL);
    welcome_new(&rig, 'B');
    expect_drops(&rig, (const uint64_t[][3]){{1, 8, DELIVERY_ACKNOWLEDGED_ELSEWHERE},
                                             {9, 10, DELIVERY_SPOOL_FULL},
                                             {0}});
    expect_batch(&rig, 0, 11, 20);
    rig_free(&rig);
}

TEST_CASE(test_what_cannot_be_lost)
{
    struct rig rig = rig_new_with_spool(10, 100);
    const struct delivery_range unknown = {.stream = 7, .first = 1, .last = 2};
    assert_int_equal(delivery_producer_lost(rig.producer, &unknown), STATUS_INVALID);
    delivery_producer_spool_holds(rig.producer, 7, 5);
    produce(&rig, 0, 5);
    lose(&rig, 0, 1, 5, DELIVERY_SPOOL_FULL); // all in the ring
    expect_drops(&rig, (const uint64_t[][3]){{0}});
    delivery_producer_spool_holds(rig.producer, 0, 9); // no more than there is
    lose(&rig, 0, 5, 9, DELIVERY_SPOOL_FULL);
    expect_drops(&rig, (const uint64_t[][3]){{5, 5, DELIVERY_SPOOL_FULL}, {0}});
    rig_free(&rig);
}

// More ranges than a message takes: the first go first, the others follow.
TEST_CASE(test_many_ranges)
{
    struct rig rig = rig_new_with_spool(10, 100);
    const uint64_t produced = 2 * DELIVERY_DROPS_MAX + 10;
    produce(&rig, 0, produced);
    delivery_producer_spool_holds(rig.producer, 0, produced);
    for (uint64_t i = 1; i <= DELIVERY_DROPS_MAX; i++)
        lose(&rig, 0, 2 * i, 2 * i, DELIVERY_SPOOL_DAMAGED);
    const struct delivery_range another = {.first = produced, .last = produced};
    assert_int_equal(delivery_producer_lost(rig.producer, &another), STATUS_FULL);
    size_t count;
    (void)delivery_producer_drops(rig.producer, &count);
    assert_int_equal(count, DELIVERY_DROPS_MAX);
    contact_new(&rig);
    expect_batch(&rig, 0, 1, 1);
    assert_int_equal(ack_one(&rig, 'A', 1, 3), STATUS_OK);
    expect_free(&rig, 0, 2);
    assert_int_equal(delivery_producer_lost(rig.producer, &another), STATUS_OK);
    // One was freed already and is elsewhere for a new store: that one goes first.
    delivery_producer_reconnect(rig.producer);
    welcome_new(&rig, 'B');
    const struct delivery_range *drops = delivery_producer_drops(rig.producer, &count);
    assert_int_equal(count, DELIVERY_DROPS_MAX);
    assert_int_equal(drops[0].reason, DELIVERY_ACKNOWLEDGED_ELSEWHERE);
    assert_int_equal(drops[count - 1].last, 2 * DELIVERY_DROPS_MAX);
    rig_free(&rig);
}

TEST_MAIN(test_lost_contact_spools_what_waits, test_contact_ends_spooling,
          test_half_a_ring_goes_to_the_spool, test_half_a_ring_of_large_records,
          test_a_spool_that_cannot_be_written, test_an_owner_who_leaves,
          test_lost_ranges_are_told_and_jumped, test_older_collectors_know_no_damage,
          test_lost_under_way, test_another_store, test_what_cannot_be_lost, test_many_ranges)
