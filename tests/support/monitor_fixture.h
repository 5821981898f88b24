// What tests of the whole monitor share: a monitor in a folder of its own, a few
// records, and a log to wait for.
#pragma once

#include <pthread.h>

#include "common/monitor/delivery/replay.h"
#include "common/monitor/inferstat.h"
#include "tests/support/fake_collector.h"
#include "tests/support/folder.h"

#define SECOND UINT64_C(1000000000)

// What the library logged: take_line is its log function, with this as context.
struct lines {
    pthread_mutex_t lock;
    unsigned lost, found, refused, rejected, load, infer, losses, evicted, kept, waits;
    char text[4096];
};

struct fixture {
    char folder[FOLDER_PATH_SIZE];
    char address[FOLDER_PATH_SIZE + 8];
    struct inferstat_options options;
    struct fake_collector *collector;
    struct inferstat_monitor *monitor;
    uint32_t model, device; // ids of names, for tests that need them
    struct lines lines; // after log_lines; lasts as long as the monitor, also where a test fails
};

// cmocka's set-up and tear-down: `*state` is a struct fixture.
int set_up(void **state);
int tear_down(void **state);

// Folders of run files and of spools, a collector that is not open yet, and how dead runs are
// replayed to it; what that logs is in `lines`.
struct scene {
    char folder[FOLDER_PATH_SIZE], runs[FOLDER_PATH_SIZE], spools[FOLDER_PATH_SIZE];
    char address[FOLDER_PATH_SIZE + 8];
    struct fake_collector *collector;
    struct lines lines;
    struct trust_source trust;
    struct replay_settings settings;
};

int scene_begin(void **state); // as set_up
int scene_finish(void **state);
// Replays everything once; `listener` may be NULL.
struct replay_counts scene_replay(struct scene *scene, replay_listener *listener, void *context);

struct inferstat_monitor *open_monitor(struct fixture *fixture);
enum inferstat_status close_monitor(struct fixture *fixture, uint64_t timeout_ns,
                                    struct inferstat_totals *totals);
// What it saw; fails the test where that was faulty.
struct fake_state seen_by(struct fake_collector *collector);
unsigned count_run_files(const char *folder);

// Records `times` operations, or one inference.
void operate(struct inferstat_monitor *monitor, uint32_t operation, unsigned times);
void infer(struct inferstat_monitor *monitor, uint32_t model, unsigned tokens);

// The monitor that is opened next logs into the fixture's lines.
struct lines *log_lines(struct fixture *fixture);
void take_line(void *context, enum inferstat_log_level level, const char *text);
unsigned read_count(struct lines *lines, const unsigned *count);
// Fails the test when the count does not come in a minute.
void wait_for(struct lines *lines, const unsigned *count, unsigned wanted);
