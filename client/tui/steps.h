// The rows of a chart, one a step of time, kept from one answer to the next.  Steps that are over
// change little: by requests that end later, or are stored late.  So between two answers about the
// whole window only the newest steps are asked for, and put into the rows.  Each answer decides for
// itself whether output tokens count by gaps (throughput.h): to decide for the whole window would
// take reading all of it.  No I/O, no clock.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"

// Zeroed, it has no rows.
struct steps {
    struct result *rows; // owned, the oldest first: what charts show of each step; NULL: none
    uint32_t generation; // as in the scope that was asked about
    int64_t step_ns;
    int64_t reach_ns; // how far before the newest row steps are asked for again
    bool is_still;    // the window does not move
};

// Narrows a query, which is about the whole window, to the newest steps.  Returns false, and leaves
// it, if the rows are of another generation or step, or if they are all among the newest.
bool steps_narrow(const struct steps *steps, uint32_t generation, int64_t now_ns,
                  struct query *query);

// Puts an answer into the rows, and replaces it (NULL: no data) by a copy of all of them.  `asked`
// is what was asked, `since_ns` the start of the whole window.  Requests that changed the oldest
// step asked for may have changed those before it: then the next reach is longer.
MUST_CHECK enum status steps_merge(struct steps *steps, const struct query *asked, int64_t since_ns,
                                   struct result **answer, struct error *err);
