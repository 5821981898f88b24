// The runs that a filter's host, run and window cover: those whose life touches it.
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
    int64_t started_ns, heard_ns; // its life
    int64_t stored;               // in all of it
    bool has_suspects;            // records whose times cannot be right
    bool open;
    size_t open_place; // among the open ones
};

struct run_list {
    struct listed_run *list; // rising by run
    size_t count, room, open_count;
};

// On failure there is nothing in it.
MUST_CHECK enum status run_list_read(struct run_list *runs, struct store *store,
                                     const struct query_filter *filter, struct error *err);
void run_list_deinit(struct run_list *runs); // also zeroed

// The run, or NULL.
const struct listed_run *run_list_find(const struct run_list *runs, int64_t run);

#endif
