// Of which runs a sealed segment's rows are: how many of each, and their fingerprint
// (fingerprint.h).  It stands beside the segment's bytes, with a checksum of its own, so
// that ledgers can be told of rows that go without a look at them, and of rows that
// nobody can read any longer.
#ifndef INFERSTAT_STORE_SEALED_RUNS_H
#define INFERSTAT_STORE_SEALED_RUNS_H

#include "common/core/bit_coder.h"
#include "common/store/sealed.h"

struct sealed_run {
    int64_t run, rows;
    uint64_t sum;
};

struct sealed_runs {
    struct sealed_run *list; // rising by run
    uint32_t count;
};

// Appends what there is of a segment's rows to `out`, which the caller frees.  STATUS_NOMEM.
MUST_CHECK enum status sealed_runs_pack(const struct sealed_segment *segment,
                                        const struct seal_rows *rows, struct byte_sink *out);

// Reads what sealed_runs_pack made.  STATUS_CORRUPT where it is not that segment's, or
// damaged; STATUS_NOMEM.
MUST_CHECK enum status sealed_runs_read(struct sealed_runs *out,
                                        const struct sealed_segment *segment, const void *bytes,
                                        size_t size);
void sealed_runs_deinit(struct sealed_runs *runs); // also zeroed

#endif
