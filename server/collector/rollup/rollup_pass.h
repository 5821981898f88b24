// A pass over the memtable of a kind with many series.  Their records come in turn, so that a short
// range of them has one of each series, and a row would be written for each record.  So a pass
// writes all rows of the memtable at once, but in parts, each short and in a transaction of its
// own: one metric of some hosts.  The SQL table rollup_state says what the table has then; after a
// crash the next pass begins where the last one ended.  Writer thread only.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/collector/rollup/rollup_kind.h"
#include "server/collector/rollup/rollup_levels.h"

// The caller sets the first members (borrowed), and `kind` to RECORD_KIND_COUNT.
struct rollup_pass {
    struct rollup_levels *levels;
    struct rollup_flush *flush; // of passes alone: it keeps the groups between the parts
    struct sqlite3_stmt *save;  // of rollup_kind_prepare
    size_t above;               // for kinds with more series
    size_t groups_most;         // of a part
    unsigned kind;              // that is written; RECORD_KIND_COUNT: none
};

// True if the kind is written by passes.
bool rollup_pass_is_for(const struct rollup_pass *pass, const struct rollup_kind *kind);

// False if the records of a pass that was broken off have not all been read again.
bool rollup_pass_is_ready(const struct rollup_kind *kind);

// Writes the next part; the first one begins the pass.  `rebuilt` is the day being rebuilt.  Fails
// as rollup_levels_write does.
MUST_CHECK enum status rollup_pass_write(struct rollup_pass *pass, struct rollup_kind *kind,
                                         struct gap_span rebuilt, int64_t wall_ns, uint64_t now_ns,
                                         struct rollup_row_key *damaged, struct error *err);

// Frees what the pass keeps between its parts; another one begins where it ended.
void rollup_pass_end(struct rollup_pass *pass);
