// inferstatd as a process with a folder, a store and a producer: what its tests begin with.
#pragma once

#include "tests/support/daemon.h"
#include "tests/support/folder.h"
#include "tests/support/producer.h"
#include "tests/support/test.h"

extern char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE]; // the store's path
extern char address[FOLDER_PATH_SIZE + 8];                    // ipc://FOLDER/c
extern struct daemon collector;
extern struct producer producer;
extern struct record records[64]; // inferences 1 to 64

// Makes the folder, the names and the records above.
int collector_set_up(void **state);
// Ends the collector, if it was started, and removes the folder.
int collector_tear_down(void **state);

// The same with a collector that is started, and a producer that is connected.
int collector_run(void **state);
int collector_end(void **state);

// Starts inferstatd on the store and the address with one more option, or NULL.
void collector_start(const char *option, const char *value);

// Says Hello for a run that the store knows nothing of.
void say_hello(void);
// Sends records first..last of stream 0 and waits until they are acknowledged.
void store_numbers(uint64_t first, uint64_t last);
// Sends `count` models from number `first` on, in one batch.  Each has 16 KB of text.
void send_models(uint32_t stream, uint64_t first, unsigned count);

// Runs inferstatd with these arguments; it must end with that status and words.
void expect_refusal(const char *const *argv, int status, const char *words);

// The endpoint of a service; valid until the thread's next call.
const char *endpoint(const char *service);

// An integer of the store, by a connection of its own.
int64_t integer(const char *sql);
