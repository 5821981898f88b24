// Progress of a long command: one line on a terminal's standard error, drawn again up to five times
// a second: how much is done, at which rate, and the time left if the total is known.  Elsewhere
// nothing is written.  One thread uses a progress; progress_watch starts another that draws.
#pragma once

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "common/core/base/unit.h"
#include "common/sys/thread.h"

enum { PROGRESS_PATH_SIZE = 1280, PROGRESS_TEXT_SIZE = 256 };

struct progress {
    FILE *out;                        // NULL: no terminal
    const char *what, *things;        // "audit", "runs"; static
    enum unit unit;                   // UNIT_COUNT or UNIT_BYTES
    uint64_t total;                   // 0: unknown
    uint64_t began_ns, next_ns;       // monotonic
    char watched[PROGRESS_PATH_SIZE]; // a file that grows
    uint64_t begun_size;              // of it
    struct thread thread;
    atomic_bool ends;
};

// Begins one that draws on `out` if that is a terminal.
void progress_begin(struct progress *progress, FILE *out, const char *what, const char *things,
                    enum unit unit, uint64_t total);

void progress_set(struct progress *progress, uint64_t done);

// Until progress_end, what is done is by how much the file at `path` grows, with its -wal; the
// caller may wait meanwhile.
void progress_watch(struct progress *progress, const char *path);

// Erases the line.
void progress_end(struct progress *progress);

// Writes the line for what was done in `elapsed_ns`, such as
// "audit: 1,200 of 4,800 runs, 25.0 %, 600/s, 6.0s left".  Returns `text`.
char *progress_text(char text[PROGRESS_TEXT_SIZE], const struct progress *progress, uint64_t done,
                    uint64_t elapsed_ns);
