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

// The time of a load outside its stages; 0 if there is none or the load has no stages.
int64_t stages_other_ns(const struct stage *stage, size_t count, int64_t load_ns);

enum { STAGES_LINE_SIZE = 512 };

// Writes a line of the waterfall: name, duration, share, and a bar of `bar`
// columns (0: none) where the load's duration is the whole.  A stage named NULL
// is the remaining time, without a start.  Returns `line`.
char *stages_line(char line[STAGES_LINE_SIZE], const struct stage *stage, int64_t load_started_ns,
                  int64_t load_ns, unsigned bar);

#endif
