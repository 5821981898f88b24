// Column definitions: the columns that the listing commands and `inferstat tail` show for each
// kind of record (load, inference, ...).
#pragma once

#include "client/cli/output/table.h"
#include "common/core/query/query.h"
#include "common/core/record/record.h"

// Returns the columns of `kind`; static.
const struct columns *columns_of(enum record_kind kind);

// Writes a column for each dimension that the query groups by; returns how many.
unsigned columns_by_group(struct column *out, const struct query *query);
