// Run list: the runs whose lifetime overlaps a filter's window, of its host and run.
#ifndef INFERSTAT_STORE_READ_RUN_LIST_H
#define INFERSTAT_STORE_READ_RUN_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"

struct store;

struct listed_run {
    int64_t run, host;
    int64_t started_ns, heard_ns; // lifetime
    int64_t stored;               // records, over its lifetime
    bool has_suspects;            // records with a suspect clock (schema.h)
    bool open;
};

struct run_list {
    struct listed_run *list; // ascending by run
    size_t count, room;
};

// Reads the list; it is empty on failure.
MUST_CHECK enum status run_list_read(struct run_list *runs, struct store *store,
                                     const struct query_filter *filter, struct error *err);
void run_list_deinit(struct run_list *runs); // accepts a zeroed structure

// Finds a run by id; NULL if it is not in the list.
const struct listed_run *run_list_find(const struct run_list *runs, int64_t run);

#endif
