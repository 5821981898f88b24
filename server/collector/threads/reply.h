// Answers to queries, encoded.
#ifndef INFERSTAT_COLLECTOR_THREADS_REPLY_H
#define INFERSTAT_COLLECTOR_THREADS_REPLY_H

#include "common/core/base/error.h"
#include "common/core/query/result.h"
#include "server/collector/threads/job.h"

// The answer to query `id`: the table where `status` is STATUS_OK, else what went
// wrong and why.  A table too large for a message becomes an answer that
// says so.  NULL when out of memory.
struct answer *reply_encode(const struct job_return *to, uint64_t id, enum status status,
                            struct result *result, const struct error *why);

#endif
