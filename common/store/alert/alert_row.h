// An alert as a row of the table alert, and what one evaluation changes.  Plain data.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/core/alert/alert_file.h"
#include "common/core/alert/alert_state.h"
#include "common/core/query/query_text.h"

enum {
    ALERT_GROUP_NAMES = 3,       // model, host, device: the first dimensions
    ALERT_OPEN_MAX = 10000,      // alerts that are open at a time
    ALERT_HISTORY_ROWS = 100000, // episodes that are kept, the newest
    ALERT_SILENCES_MAX = 1000,   // that have not ended
    ALERT_WHY_SIZE = 512,        // terminating NUL included
};

// An episode of a group.
struct alert_row {
    int64_t id; // 0: not in the table yet
    char rule[ALERT_NAME_SIZE];
    char group[ALERT_GROUP_NAMES][QUERY_TEXT_SIZE]; // "": it has no such name
    struct alert_series series;                     // resolved_ns is not 0: the episode is over;
                                                    // ALERT_OK: it never fired, and its row goes
    double threshold;
    enum unit unit;
    char why[ALERT_WHY_SIZE];       // "": unknown
    char window[QUERY_WINDOW_SIZE]; // of its rule, "5m"; "": unknown; only alert_queue.h reads it
};

// The rows that one evaluation changes.
struct alert_pass {
    struct alert_row *rows; // sorted by rule and group, then new ones; owned
    size_t count, room;
    int64_t now_ns;
    const struct alert_file *file;          // of the rules and hooks; borrowed
    const struct alert_rule_health *health; // of each of its rules; borrowed
    int64_t disk_free_bytes;                // of the store's disk
    uint64_t *given_up;                     // set to the calls given up in the pass; may be NULL
};

// Whether the values of a rule can be read.
enum { ALERT_WHY_UNREAD_SIZE = 200 };
struct alert_rule_health {
    int64_t since_ns; // since when they cannot; 0: they can
    char error[ALERT_WHY_UNREAD_SIZE];
};
