// The events that last on each host: such as began and have not ended, of runs that are open.
#ifndef INFERSTAT_STORE_QUERY_LASTING_H
#define INFERSTAT_STORE_QUERY_LASTING_H

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"

struct store;

enum { LASTING_TEXT_SIZE = 256 };

// One kind of event of one host, on all its devices that have it.
struct lasting_event {
    int64_t host; // id of the table name
    int64_t since_ns;
    char name[QUERY_TEXT_SIZE];   // of the event, as in records
    char what[LASTING_TEXT_SIZE]; // "power cap (8 devices)"; "" if the name says all
};

// Initially zero.  By host; what most devices have first.
struct lasting {
    struct lasting_event *list;
    size_t count, room;
};

// Reads those of one host (id of the table name), or of all (0), among the newest 1,000 records of
// events of each run.  Call lasting_deinit also after a failure.
MUST_CHECK enum status lasting_read(struct lasting *out, struct store *store, int64_t host,
                                    struct error *err);
void lasting_deinit(struct lasting *lasting);

#endif
