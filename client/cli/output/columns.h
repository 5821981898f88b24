// The columns of the tables that list records, and of the live tail.
#ifndef INFERSTAT_CLIENT_CLI_OUTPUT_COLUMNS_H
#define INFERSTAT_CLIENT_CLI_OUTPUT_COLUMNS_H

#include "client/cli/output/table.h"
#include "common/core/record/record.h"

const struct columns *columns_of(enum record_kind kind);

#endif
