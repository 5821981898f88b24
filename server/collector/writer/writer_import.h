// Applies import batches between the writer's groups.  Writer thread only.
#ifndef INFERSTAT_COLLECTOR_WRITER_WRITER_IMPORT_H
#define INFERSTAT_COLLECTOR_WRITER_WRITER_IMPORT_H

#include "common/core/base/error.h"
#include "server/collector/writer/writer_insert.h"
#include "server/collector/writer/writer_runs.h"

struct import_request;
struct rollups;
struct sqlite3;

// Borrowed.
struct writer_import_parts {
    struct sqlite3 *db;
    struct inserter *inserter;
    struct runs *runs;
    struct rollups *rollups; // NULL: none are written
};

// Applies the request's batch in a transaction of its own, updates the other caches of ids,
// and completes the request.
void writer_import_apply(const struct writer_import_parts *parts, struct import_request *request);

#endif
