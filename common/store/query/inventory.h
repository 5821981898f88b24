// What a store knows of its fleet as a whole, for exporters: hosts, models, requests in progress,
// and how many records of each host were stored and lost.  Read in one snapshot, again and again.
//
// One thread at a time.
#pragma once

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/result.h"

struct groups;
struct store;

// A table without rows may lack columns.  Hosts and models are those of the runs that are open or
// were heard of in the last 24 hours.
enum inventory_table {
    // host runs_open os kernel cpu cpu_count container? driver? version clock_offset_ns? (of its
    // newest run)
    INVENTORY_HOSTS,
    // model format architecture? quantisation? (as described last)
    INVENTORY_MODELS,
    // host model? running_requests? waiting_requests?: sums over the open processes, as last
    // sampled; without a model: of processes that do not say of which model
    INVENTORY_REQUESTS,
    // host reason? stored? lost? coverage?, one row for each host: the records stored since
    // inventory_begin, and the share stored of all that its runs in the store produced; and one for
    // each reason of losses (DELIVERY_REASONS): the records lost since inventory_begin.  Counts
    // never go back: what forgetting runs takes from the store stays counted.  Of the first 10,000
    // hosts
    INVENTORY_RECORDS,
    INVENTORY_TABLES,
};

// Initially zero; private.
struct inventory {
    struct groups *hosts; // struct inventory_host
};

// Begins to count at what the store has now.  Once, before the first inventory_read.
MUST_CHECK enum status inventory_begin(struct inventory *inventory, struct store *store,
                                       struct error *err);

// Reads all tables into `tables`, which the caller frees with result_free.  `now_ns` is the wall
// clock.
MUST_CHECK enum status inventory_read(struct inventory *inventory, struct store *store,
                                      int64_t now_ns, struct result *tables[INVENTORY_TABLES],
                                      struct error *err);
void inventory_deinit(struct inventory *inventory);
