// The thread that has the query and admin sockets and a reading connection of
// its own: it never holds up ingest.  A query that takes longer than its budget
// is ended.  Clearing is handed to the writer, an audit to the slow lane.
#ifndef INFERSTAT_COLLECTOR_SERVICES_QUERY_SERVICE_H
#define INFERSTAT_COLLECTOR_SERVICES_QUERY_SERVICE_H

#include "common/core/base/error.h"
#include "server/collector/services/endpoints.h"
#include "server/collector/threads/queue.h"
#include "server/collector/threads/write_error.h"

struct query_service;

struct query_service_config {
    const struct endpoints *endpoints;
    const char *path;                // of the store
    const char *files_under;         // files_under.h; NULL or empty: none are named over TCP
    struct queue *inbox;             // struct work, for the writer
    struct queue *replies;           // struct answer, from the writer
    struct write_error *write_error; // of the writer
};

MUST_CHECK enum status query_service_start(struct query_service **out,
                                           const struct query_service_config *config,
                                           struct error *err);

// Ends the thread.  NULL is fine.
void query_service_stop(struct query_service *service);

#endif
