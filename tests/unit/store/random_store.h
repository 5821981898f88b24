// A random store for tests of averages over rollups: runs of a few hosts, names that look
// like SQL, times near the edges of buckets, values at the ends of 64 bits.
#pragma once

#include <sqlite3.h>

#include "common/core/query/query.h"
#include "common/store/rollup/rollup.h"
#include "common/store/store.h"
#include "tests/unit/store/store_fixture.h"

#define MINUTE_NS INT64_C(60000000000)
#define HOUR_NS   (60 * MINUTE_NS)
#define DAY_NS    (24 * HOUR_NS)
#define MARCH_NS  INT64_C(1772323200000000000) // 2026-03-01 00:00

enum { RUNS = 5, HOSTS = 3, ROWS_MAX = 400, RIG_METRICS = 10, RIG_NAMES = 10 };

// Metrics of several kinds, stored and derived.
extern const char *const rig_metrics[RIG_METRICS];

// The store's names, from number 1 on: hosts, devices, models, operations.
extern const char *const rig_names[RIG_NAMES];

extern char full_path[FOLDER_PATH_SIZE];
extern sqlite3 *full; // what it was before rows expired
extern uint64_t seed;
extern bool implausible_times; // some records have them

// A number below `room`.
int64_t pick(int64_t room);

// A time, often near an edge of a bucket or in a crowd.
int64_t pick_time(void);

// An integer; fails the test where it fails.
int64_t integer_in(sqlite3 *of, const char *sql);

// For cmocka; make_store makes the store.
int random_set_up(void **state);
int random_tear_down(void **state);

// A store of `count` random records of a kind, and a copy of it.
void make_store(enum record_kind kind, int64_t count);
void drop_store(void);
// A store of inferences with ledgers, some of which failed.
void make_random(int64_t count);
void add_records(enum record_kind kind, int64_t count);
void add_gaps(enum record_kind kind);

struct store *open_store(void);
const struct query_metric *metric_of(const char *name);
