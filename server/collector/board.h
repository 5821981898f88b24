// What was committed last, for the live feed: the highest id of each kind.  The
// writer posts, the live thread reads; the writer never waits for it, and what
// is posted between two reads becomes one.
#ifndef INFERSTAT_COLLECTOR_BOARD_H
#define INFERSTAT_COLLECTOR_BOARD_H

#include <stdint.h>

#include "common/core/error.h"
#include "common/core/record.h"

struct board;

struct board_ids {
    int64_t last[RECORD_KIND_COUNT]; // of runs: the run's number
};

MUST_CHECK enum status board_new(struct board **out, struct error *err);
void board_free(struct board *board);

void board_post(struct board *board, const struct board_ids *ids); // writer

void board_wake(struct board *board); // any thread: makes the descriptor readable

// Readable after a post; read and reset by board_read.
int board_fd(const struct board *board);
void board_read(struct board *board, struct board_ids *ids); // live thread

#endif
