// Waterfall charts of model loads: start, duration and share of each load stage.
#ifndef INFERSTAT_CLIENT_CLI_COMMANDS_STAGES_H
#define INFERSTAT_CLIENT_CLI_COMMANDS_STAGES_H

#include "client/cli/cli.h"

// The stages of all loads in one page of results.
struct stages;

// Queries the stages of all loads in `loads`, a page of QUERY_RECORDS.  Release with stages_free.
MUST_CHECK enum status stages_ask(struct stages **out, struct cli *cli, const struct result *loads,
                                  struct error *err);
void stages_free(struct stages *stages);

// One stage of a load; `name` points into struct stages.
struct stage {
    struct value name;
    int64_t started_ns;
    int64_t duration_ns;
    int64_t ordinal;
};

// The stages of the load in `row` of `loads`, by ordinal; `*count` may be 0.  Borrowed until the
// next call.
const struct stage *stages_of(struct stages *stages, const struct result *loads, size_t row,
                              size_t *count);

// Formats the waterfall of one load and calls `put` with each line: name, duration, share, and a
// bar if the terminal is wide enough (`width` columns; 0: no limit).  The last line, "other", is
// the load's time outside its stages, if any.
void stages_draw(const struct stage *stages, size_t count, int64_t load_started_ns, int64_t load_ns,
                 unsigned width, void (*put)(void *context, const char *line), void *context);

#endif
