// Whether a kind's table is as inferstat made it.  Where rows leave it for a while, what
// others hung on them would be lost: columns of their own, triggers, tables that refer to
// its rows.  Indexes and views may be anybody's.
#ifndef INFERSTAT_STORE_OWN_TABLE_H
#define INFERSTAT_STORE_OWN_TABLE_H

#include "common/core/error.h"
#include "common/core/record.h"

struct sqlite3;

// STATUS_UNSUPPORTED: it is not; the text names the first thing that is somebody else's.
MUST_CHECK enum status own_table_check(struct sqlite3 *db, enum record_kind kind,
                                       struct error *err);

#endif
