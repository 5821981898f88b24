#include "tests/unit/core/delivery_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const uint64_t ms = RIG_MS;

struct rig rig_new_with_spool(uint32_t batch_records, uint32_t ring_records)
{
    struct rig rig = {.now_ms = 1000000};
    struct delivery_config config = {.batch_records = batch_records,
                                     .resend_after_ns = 1000 * ms,
                                     .resend_max_ns = 4000 * ms,
                                     .heartbeat_ns = 1000 * ms,
                                     .spool_after_ns = ring_records ? 3000 * ms : 0,
                                     .spool_retry_ns = 500 * ms,
                                     .ring_records = ring_records};
    assert_int_equal(delivery_producer_new(&rig.producer, &config), STATUS_OK);
    return rig;
}

struct rig rig_new(uint32_t batch_records)
{
    return rig_new_with_spool(batch_records, 0);
}

void rig_free(struct rig *rig)
{
    delivery_producer_free(rig->producer);
}

void produce(struct rig *rig, uint32_t stream, uint64_t produced)
{
    struct delivery_stream state = {.stream = stream, .produced = produced};
    assert_int_equal(delivery_producer_stream(rig->producer, &state, 0), STATUS_OK);
}

bool next(struct rig *rig)
{
    return delivery_producer_next(rig->producer, rig->now_ms * ms, &rig->action);
}

void expect(struct rig *rig, enum delivery_action_kind kind)
{
    assert_true(next(rig));
    assert_int_equal(rig->action.kind, kind);
}

void expect_batch(struct rig *rig, uint32_t stream, uint64_t first, uint64_t last)
{
    expect(rig, DELIVERY_SEND_BATCH);
    assert_int_equal(rig->action.stream, stream);
    assert_int_equal(rig->action.first, first);
    assert_int_equal(rig->action.last, last);
}

void expect_free(struct rig *rig, uint32_t stream, uint64_t last)
{
    expect(rig, DELIVERY_FREE);
    assert_int_equal(rig->action.stream, stream);
    assert_int_equal(rig->action.last, last);
}

void expect_nothing(struct rig *rig)
{
    if (next(rig))
        fail_msg("unexpected action %d", (int)rig->action.kind);
}

void unsent(struct rig *rig)
{
    delivery_producer_unsent(rig->producer, &rig->action, rig->now_ms * ms);
}

enum status ack(struct rig *rig, char store, struct delivery_ack answer)
{
    memset(answer.store, store, sizeof answer.store);
    return delivery_producer_ack(rig->producer, &answer, rig->now_ms * ms, 77);
}

// An answer about stream 0 only.
enum status ack_one(struct rig *rig, char store, uint64_t sequence, uint64_t next_number)
{
    struct delivery_next wanted = {.stream = 0, .next = next_number};
    return ack(rig, store,
               (struct delivery_ack){
                   .sequence = sequence, .next = &wanted, .next_count = 1, .credit = 1000});
}

void welcome_new(struct rig *rig, char store)
{
    expect(rig, DELIVERY_SEND_HELLO);
    assert_int_equal(rig->action.sequence, 0);
    assert_int_equal(ack(rig, store, (struct delivery_ack){.credit = 1000}), STATUS_OK);
}

void contact_new(struct rig *rig)
{
    welcome_new(rig, 'A');
    expect(rig, DELIVERY_CONTACT);
}
