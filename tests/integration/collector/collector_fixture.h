// inferstatd as a process with a folder, a store and a producer: what its tests begin with.
#ifndef INFERSTAT_TESTS_COLLECTOR_FIXTURE_H
#define INFERSTAT_TESTS_COLLECTOR_FIXTURE_H

#include "tests/support/daemon.h"
#include "tests/support/folder.h"
#include "tests/support/producer.h"
#include "tests/support/test.h"

extern char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE]; // the store's path
extern char address[FOLDER_PATH_SIZE + 8];                    // ipc://FOLDER/c
extern struct daemon collector;
extern struct producer producer;

// Makes the folder and the names above.
int collector_set_up(void **state);
// Ends the collector, if it was started, and removes the folder.
int collector_tear_down(void **state);

// Starts inferstatd on the store and the address with one more option, or NULL.
void collector_start(const char *option, const char *value);

// The endpoint of a service; valid until the thread's next call.
const char *endpoint(const char *service);

// An integer of the store, by a connection of its own.
int64_t integer(const char *sql);

#endif
