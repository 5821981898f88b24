// The query thread: answers queries and administrators' commands with a read-only connection of
// its own, so that it never blocks ingest.  Queries are cancelled when they exceed their time
// budget.  Long ones are passed to workers (query_worker.h), changes of the store to the writer.
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
    const char *files_under;         // files_under.h; NULL or empty: no files over TCP
    struct queue *inbox;             // struct job, for the writer
    struct queue *replies;           // struct answer, from the writer and the query workers
    struct write_error *write_error; // of the writer
};

MUST_CHECK enum status query_service_start(struct query_service **out,
                                           const struct query_service_config *config,
                                           struct error *err);

// Stops the thread.  Accepts NULL.
void query_service_stop(struct query_service *service);

#endif
