// The sides of bench_ingest: each takes in the same records and says how many a
// second.  Whatever is sent was encoded before the clock starts.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/record/record.h"

enum { INGEST_PRODUCERS = 8, INGEST_CROWD = 500 };

struct load {
    const char *folder;           // for everybody's files
    const struct record *records; // inferences
    uint64_t count;
};

// A single thread that inserts the rows one after the other into a table with their
// columns and no index, with the store's settings, in transactions of 65,536.
double loop_rate(const struct load *load);

// inferstatd with so many producers: a record counts when the acknowledgement
// that follows its commit has come.  All together send the load's count, each at
// least two batches: a crowd sends some records several times, as its own.
struct crowd {
    unsigned producers;
    bool sealed;     // CURVE over TCP on loopback instead of ipc
    bool no_rollups; // the collector makes none
};

// Inferences that the rollups of a store lack in some metric.
#define INGEST_LACKING                                                                             \
    "SELECT coalesce(max(id), 0) - (SELECT coalesce(min(watermark), 0) FROM rollup_state"          \
    " WHERE metric / 256 = 6) FROM inference"

// The processor time of eight producers goes on until the rollups have all: what they lack
// when the last record is acknowledged is work that was put off, not saved.
struct crowd_result {
    double rate;
    uint64_t idle_bytes;  // resident memory of the collector before the first Hello
    uint64_t peak_bytes;  // the most it had
    uint64_t after_bytes; // two seconds after the last record
    double processor_ns;  // that the collector took, a record
    double busiest_ns;    // and of its threads the busiest
    double lacking;       // records in the rollups, when the last was acknowledged
};

void crowd_rate(const struct load *load, const struct crowd *crowd, struct crowd_result *result);

// What rollups cost the thread that stores, without sockets and other threads: the writer's
// own modules store the same records, in groups of a batch of each of eight producers, in
// one store with and in one without rollups, turn by turn; a sheet is folded when it is
// full, as under load, and the last one in the end.
struct fold_result {
    double store_ns;  // the thread's processor time a record, without rollups
    double rolled_ns; // with them, until they have all
};

void fold_cost(const struct load *load, struct fold_result *result);

// victoria-metrics, which takes the records as Influx lines over HTTP: one line a
// record, its names as tags, its other columns as fields.  A record counts when
// the answer to its request has come (204), which is before it is on disk or can
// be queried.
struct victoria_client {
    unsigned connections;
    unsigned lines; // of one request
};

double victoria_rate(const struct load *load, const struct victoria_client *client);
// The client that is fastest with this machine's victoria-metrics.
struct victoria_client victoria_best_client(const struct load *load);
