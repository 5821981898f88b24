// Letting a sealed segment go as a whole, without a look at its rows: by what stands
// beside it of its runs (sealed_runs.h).  So even what is damaged goes, and is counted.
#ifndef INFERSTAT_STORE_SEALED_LOSS_H
#define INFERSTAT_STORE_SEALED_LOSS_H

#include "common/store/sealed.h"

enum sealed_loss { SEALED_EXPIRED, SEALED_CLEARED };

// Takes the segment out and counts its rows in their runs' ledgers, in the caller's
// transaction.  Where what stands beside it is damaged: STATUS_CORRUPT, and nothing is
// changed; with `whatever` it goes all the same, and the audit finds that rows lack.
// `*rows`: so many were counted; 0: nobody knows how many they were.
MUST_CHECK enum status sealed_lose(struct sqlite3 *db, const struct sealed_segment *segment,
                                   enum sealed_loss loss, bool whatever, int64_t *rows,
                                   struct error *err);

// Reads all of a segment: STATUS_CORRUPT where it is damaged.
MUST_CHECK enum status sealed_check(struct sqlite3 *db, const struct sealed_segment *segment,
                                    struct error *err);

#endif
