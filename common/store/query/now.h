// Judges the state of a model on a host from what NOW (query_now.c) has read: pure, no I/O.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/record/record.h"

// The states, from the one that most needs attention: a model has the first that applies.
//   down     a process of it ended without closing, less than 24 h ago, and no other began since
//   silent   nothing was heard of a process for 10 s, and no other began since
//   errors   of the window's requests at least NOW_FAILED_LEAST and NOW_FAILED_RATIO failed, or
//            all; or none ended, and a load failed
//   slow     worse than usual by NOW_SPEED_FACTOR or NOW_TTFT_FACTOR, and than on any former day; a
//            model of items by NOW_SPEED_FACTOR in the time of its requests
//   loading  no request ended in the window, and its process is loading or starting
//   ok       requests ended in the window, or one is in progress
//   idle     connected, no request in the window
//   ended    its processes closed, or were imported
#define NOW_STATES(X)                                                                              \
    X(DOWN, RECORD_RUN_DOWN)                                                                       \
    X(SILENT, "silent")                                                                            \
    X(ERRORS, "errors")                                                                            \
    X(SLOW, "slow")                                                                                \
    X(LOADING, "loading")                                                                          \
    X(OK, "ok")                                                                                    \
    X(IDLE, "idle")                                                                                \
    X(ENDED, "ended")

enum now_state {
#define NOW_STATE_ENUM(name, text) NOW_##name,
    NOW_STATES(NOW_STATE_ENUM)
#undef NOW_STATE_ENUM
};

enum {
    NOW_FAILED_LEAST = 3,
    NOW_REQUESTS_LEAST = 10, // of the window, and of a former day's hour, for their median to count
    NOW_DAYS = 14,           // former days whose same hour is the usual
    NOW_DAYS_LEAST = 3,      // of them with enough requests
    NOW_REASON_SIZE = 384,
};
#define NOW_FAILED_RATIO 0.05
#define NOW_SPEED_FACTOR 1.5 // usual median of the speed / that of the window
#define NOW_TTFT_FACTOR  2.0 // median TTFT of the window / the usual one

// The median of a metric in the window, and in the same hour of former days.
struct now_level {
    double now; // valid if `count` > 0
    uint64_t count;
    double days[NOW_DAYS]; // medians of the days that had enough requests
    unsigned day_count;
};

// What is known of a model on a host.  Texts are borrowed, NULL: none.  Times are wall clock, 0:
// unknown.
struct now_facts {
    // Its processes, without those that a later one of the same model and host replaces.
    unsigned live, down, silent;
    int64_t down_ns, silent_ns, ended_ns, live_ns; // of these: since when, the earliest; the last
                                                   // end; the earliest start of a live one
    bool is_imported;                              // that with this end, which did not close
    const char *doing;      // activity of a live one, such as "load read_header"
    const char *last;       // what the process that is down did last
    int64_t lost_requests;  // that were in progress in those that are down, as last sampled
    bool is_loading;        // `doing` is a load or the startup
    bool is_busy;           // it works on this model, or put tokens out in the window
    int64_t window_ns;      // length of the window
    int64_t since_ns;       // its start
    int64_t idle_ns;        // end of its newest request, or start of the process
    uint64_t requests;      // that ended in the window
    uint64_t failed;        // of them
    int64_t failed_ns;      // the first of those
    const char *error;      // the newest reason of a failure
    int64_t load_failed_ns; // when one of these processes last failed to load it in the window: a
                            // live one; without those, one that is down, else silent, else closed
    const char *load_error;
    const char *trouble; // what lasts on its host: "throttling: power cap (8 devices)"
    struct now_level speed, ttft;
    struct now_level e2e; // of models whose requests have items, and no tokens
};

struct now_verdict {
    enum now_state state;
    int64_t since_ns; // 0: unknown
    char reason[NOW_REASON_SIZE];
};

void now_judge(const struct now_facts *facts, struct now_verdict *out);

// Static.
const char *now_state_text(enum now_state state);
