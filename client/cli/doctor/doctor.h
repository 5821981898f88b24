// The report of `inferstat doctor`, and its checks of the host.
#pragma once

#include <stdint.h>

#include "client/cli/cli.h"

enum doctor_state { DOCTOR_OK, DOCTOR_WARNING, DOCTOR_ERROR, DOCTOR_STATES };

// What was found so far.
struct doctor {
    struct cli *cli;
    struct result *report;
    unsigned counts[DOCTOR_STATES];
};

// Adds a line: what was checked, what was found (printf), and what to do (NULL: nothing).
void doctor_say(struct doctor *doctor, enum doctor_state state, const char *check, const char *todo,
                const char *found, ...) __attribute__((format(printf, 5, 6)));

// Adds a line about the free space of the file system with `path`.  Less than 100 MB is an error,
// less than 1 GB a warning.  `size_bytes` is what is kept there, `growth_bytes` what comes a day
// (0: unknown).
void doctor_say_space(struct doctor *doctor, const char *check, const char *path,
                      int64_t free_bytes, int64_t size_bytes, int64_t growth_bytes);

// Check this host: spool and run files, device driver, build, processor, control groups, limits.
void doctor_check_host(struct doctor *doctor);
