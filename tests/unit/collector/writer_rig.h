// The writer's handling of messages over a store of its own, a message at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/codec.h"
#include "server/collector/threads/channels.h"
#include "server/collector/writer/writer_batch.h"
#include "tests/support/folder.h"

#define RIG_NS INT64_C(1790000000000000000) // when messages arrive

struct rig {
    char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE];
    struct sqlite3 *db;
    struct runs *runs;
    struct inserter *inserter;
    struct batches *batches;
    struct channels *channels;
    struct table_builder *builder;
    bool trims; // runs are let go of between groups, at times
    // The sender of messages.
    char sender;           // every byte of its key; 0: it has none
    struct wire_peer peer; // if it has none
    unsigned connection;   // below 32
    int64_t later_ns;      // than RIG_NS
};
extern struct rig rig;

extern const unsigned char rig_run[16];
extern const struct wire_bytes rig_two_names[2];

// Of each test.
int rig_set_up(void **state);
int rig_tear_down(void **state);

// Asks the store, or changes it.
int64_t rig_integer(const char *sql);
void rig_exec(const char *sql);

// Takes a message as one group of its own; rolled back where `fail`.
void rig_group(const struct message *message, bool fail);

// The Ack that was sent last, to be freed; NULL when there is none.
struct message *rig_last_ack(void);
void rig_free_ack(struct message *message); // NULL is fine

// rig_run says Hello.
void rig_hello(void);

// A record of the kind with every column set from its position.
void rig_fill(struct record *record, enum record_kind kind);

// A batch of rig_run: operations first..last of stream 0, with the names they need.
struct message rig_operations(uint64_t first, uint64_t last);

// What another process says of rig_run, which made two records and was killed.
struct message rig_killed_goodbye(void);
