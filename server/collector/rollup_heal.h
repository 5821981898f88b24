// Damaged rows of the table rollup: made again where their records are there, else given
// up, so that one flipped bit holds up neither what is stored nor what expires.  Inside
// of a transaction of the caller's; writer thread only.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_HEAL_H
#define INFERSTAT_COLLECTOR_ROLLUP_HEAL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/cell.h"
#include "common/store/gap_table.h"

struct sqlite3;

// Whose rows.
struct rollup_patient {
    struct sqlite3 *db;
    enum record_kind kind;
    int64_t expired_ns; // records before that have expired
    bool told;          // of a row that was lost; set by what follows
};

// Has all rollups of a time made again from records, like those of what was cleared.
MUST_CHECK enum status rollup_heal_span(struct sqlite3 *db, enum record_kind kind,
                                        const struct gap_span *span, struct error *err);

// Does what can be done about a damaged row: has its time made again, or, where records
// of it have expired, deletes it and leaves a gap in its place.
MUST_CHECK enum status rollup_heal_row(struct rollup_patient *patient, const struct cell_key *key,
                                       struct error *err);

// Looks at some rows of a metric, grouping and level whose buckets touch the span, from
// `*key` on, which goes behind the last of them; gives up those that are damaged.
// `*left`: there may be more.
MUST_CHECK enum status rollup_heal_some(struct rollup_patient *patient, struct cell_key *key,
                                        const struct gap_span *span, bool *left, struct error *err);

#endif
