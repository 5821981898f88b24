// A producer's machine of the delivery protocol under a test's clock.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/delivery/delivery.h"

enum { RIG_MS = 1000000 };

// A producer's machine under the test's clock, in milliseconds, with the
// answers of collectors whose stores are named by a letter.
struct rig {
    struct delivery_producer *producer;
    uint64_t now_ms;
    struct delivery_action action; // the latest
};

struct rig rig_new_with_spool(uint32_t batch_records, uint32_t ring_records);
struct rig rig_new(uint32_t batch_records);
void rig_free(struct rig *rig);
void produce(struct rig *rig, uint32_t stream, uint64_t produced);
bool next(struct rig *rig);
void expect(struct rig *rig, enum delivery_action_kind kind);
void expect_batch(struct rig *rig, uint32_t stream, uint64_t first, uint64_t last);
void expect_free(struct rig *rig, uint32_t stream, uint64_t last);
void expect_nothing(struct rig *rig);
void unsent(struct rig *rig);
enum status ack(struct rig *rig, char store, struct delivery_ack answer);
enum status ack_one(struct rig *rig, char store, uint64_t sequence, uint64_t next_number);
void welcome_new(struct rig *rig, char store);
void contact_new(struct rig *rig);
