// Records of another store, a batch at a time, between the groups of the writer.
// Writer thread only.
#ifndef INFERSTAT_COLLECTOR_WRITER_WRITER_IMPORT_H
#define INFERSTAT_COLLECTOR_WRITER_WRITER_IMPORT_H

#include "common/core/base/error.h"
#include "server/collector/writer/writer_insert.h"
#include "server/collector/writer/writer_runs.h"

struct import_request;
struct rollups;
struct sqlite3;
struct writer_import;

// What it works with; borrowed.
struct writer_import_parts {
    struct sqlite3 *db;
    struct inserter *inserter;
    struct runs *runs;
    struct rollups *rollups; // NULL: none are kept
};

void writer_import_free(struct writer_import *import); // NULL is fine

// Applies the order's batch in a transaction of its own, tells those who count ids of
// what came, and says what became of the order.  `*import` is made by the first one.
void writer_import_take(struct writer_import **import, const struct writer_import_parts *parts,
                        struct import_request *order);

#endif
