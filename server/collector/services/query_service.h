// The query thread: answers queries and administrators' commands with a read-only connection of
// its own, so that it never blocks ingest.  Queries are cancelled when they exceed their time
// budget.  Long ones are passed to workers (query_worker.h), changes of the store to the writer.
#ifndef INFERSTAT_COLLECTOR_SERVICES_QUERY_SERVICE_H
#define INFERSTAT_COLLECTOR_SERVICES_QUERY_SERVICE_H

#include "common/core/base/error.h"
#include "server/collector/services/admission.h"
#include "server/collector/threads/channels.h"

struct query_service;

// `path` is the store's, `files_under` the folder of files named over TCP (files_under.h; empty:
// none).  All arguments are borrowed until query_service_stop.
MUST_CHECK enum status query_service_start(struct query_service **out,
                                           const struct endpoints *endpoints, const char *path,
                                           const char *files_under, struct channels *channels,
                                           struct error *err);

// Stops the thread.  Accepts NULL.
void query_service_stop(struct query_service *service);

#endif
