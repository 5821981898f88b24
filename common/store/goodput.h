// goodput_per_second: requests that met every objective, by time.
#ifndef INFERSTAT_STORE_GOODPUT_H
#define INFERSTAT_STORE_GOODPUT_H

#include <stdint.h>

#include "common/core/error.h"
#include "common/core/query.h"
#include "common/core/slo.h"
#include "common/store/gather.h"

enum { GOODPUT_SQL_SIZE = 1024 };

// Whether an inference `t` meets the objectives, as an expression of SQL: 1 or 0.
MUST_CHECK enum status goodput_sql(char out[GOODPUT_SQL_SIZE], const char *slo, struct error *err);

// The seconds that an answer's requests are counted over, or the part of them in the step
// that starts at `step_ns`.
double goodput_seconds(const struct query *query, const struct gather *gather, int64_t step_ns);

#endif
