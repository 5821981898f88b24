// All rollups of a store's records at once, by the collector's own code.
#pragma once

#include <stdint.h>

#include "common/core/base/error.h"

// Makes of a store, closed and in one's own hands, what a collector leaves behind that
// had kept it up to `now_ns`: what rollups do not hold yet is folded in, what does not
// pay is taken away, and levels are not made for times that are older than the default
// retention keeps them.  Nothing is synced: after a loss of power the file is lost.
MUST_CHECK enum status history_roll_up(const char *path, int64_t now_ns, struct error *err);
