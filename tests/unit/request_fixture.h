// A store with two runs of two hosts, three models and two devices: what tests of the
// slowest requests begin with.
#ifndef INFERSTAT_TESTS_REQUEST_FIXTURE_H
#define INFERSTAT_TESTS_REQUEST_FIXTURE_H

#include <stdint.h>

#include "tests/support/folder.h"

struct sqlite3;
struct store;

#define START_NS INT64_C(1790000000000000000) // when both runs began
#define MS       INT64_C(1000000)
#define SECOND   (1000 * MS)
#define DAY      (86400 * SECOND)

extern char folder[FOLDER_PATH_SIZE];
extern char path[FOLDER_PATH_SIZE]; // of the store
extern struct sqlite3 *db;          // open for writing
extern struct store *store;         // open for reading
extern uint32_t models[3], devices[2];

// For cmocka.
int request_set_up(void **state);
int request_tear_down(void **state);

struct request {
    int64_t started_ns, queue_ns, prefill_ns, decode_ns;
    int64_t prompt, generated, concurrent;
    unsigned model, device;
};

// Inserts it as an inference of that run.
void add_request(int64_t run, const struct request *request);

#endif
