// The query thread: answers readers' queries and administrators' commands.  It reads the store
// through a read-only SQLite connection of its own, so that it never blocks ingest.  It cancels a
// query after 4 s.  It passes longer queries and imports to worker threads (query_worker.h), and
// other changes of the store to the writer thread.
#ifndef INFERSTAT_COLLECTOR_SERVICES_QUERY_SERVICE_H
#define INFERSTAT_COLLECTOR_SERVICES_QUERY_SERVICE_H

#include "common/core/base/error.h"
#include "server/collector/services/admission.h"
#include "server/collector/threads/channels.h"

struct query_service;

// `path` is the store's file.  `files_under` is the folder of the files that may be named over
// TCP (files_under.h); empty: none may be named.  All arguments are borrowed until
// query_service_stop.
MUST_CHECK enum status query_service_start(struct query_service **out,
                                           const struct endpoints *endpoints, const char *path,
                                           const char *files_under, struct channels *channels,
                                           struct error *err);

// Stops the thread.  Accepts NULL.
void query_service_stop(struct query_service *service);

#endif
