// The stages of loads as a waterfall: the start and share of each stage in its load.
#ifndef INFERSTAT_CLIENT_CLI_COMMANDS_STAGES_H
#define INFERSTAT_CLIENT_CLI_COMMANDS_STAGES_H

#include "client/cli/cli.h"

// Stages of the loads in a page of them.  The caller frees it.
struct stages;

// Reads the stages of all loads in `loads`, a page of QUERY_RECORDS.
MUST_CHECK enum status stages_ask(struct stages **out, struct cli *cli, const struct result *loads,
                                  struct error *err);
void stages_free(struct stages *stages);

// One stage of a load; texts belong to the stages.
struct stage {
    struct value name;
    int64_t started_ns;
    int64_t duration_ns;
    int64_t ordinal;
};

// The stages of the load in `row` of the page, in order; `*count` may be 0.
// Borrowed until the next call.
const struct stage *stages_of(struct stages *stages, const struct result *loads, size_t row,
                              size_t *count);

// Writes the waterfall of that load by `put`, line by line: name, duration, share, and on a
// terminal of enough columns (`width`; 0: no limit) a bar.  The last line is the time outside
// the stages, if there is any.
void stages_draw(const struct stage *stages, size_t count, int64_t load_started_ns, int64_t load_ns,
                 unsigned width, void (*put)(void *context, const char *line), void *context);

#endif
