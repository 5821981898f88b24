// Encodes replies to queries.
#ifndef INFERSTAT_COLLECTOR_THREADS_REPLY_H
#define INFERSTAT_COLLECTOR_THREADS_REPLY_H

#include "common/core/base/error.h"
#include "common/core/query/result.h"
#include "server/collector/threads/job.h"

// Encodes the reply to query `id`: `result` when `status` is STATUS_OK, else the error `why`.
// A result too large for a message becomes the error REPLY_TOO_LARGE.  Returns NULL when out of
// memory.
struct answer *reply_encode(const struct job_return *to, uint64_t id, enum status status,
                            struct result *result, const struct error *why);

#endif
