// Whether the store's file is whole, as SQLite sees it.
#ifndef INFERSTAT_STORE_STRUCTURE_H
#define INFERSTAT_STORE_STRUCTURE_H

#include "common/core/error.h"

struct store;

// Reads every page of the file and compares tables with their indexes.
// STATUS_CORRUPT names the first damage found; STATUS_TIMEOUT over the store's
// budget.
MUST_CHECK enum status structure_check(struct store *store, struct error *err);

#endif
