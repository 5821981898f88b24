// Waterfall charts of model loads: start, duration and share of each load stage.
#ifndef INFERSTAT_CLIENT_CLI_COMMANDS_STAGES_H
#define INFERSTAT_CLIENT_CLI_COMMANDS_STAGES_H

#include "client/cli/commands/record_pages.h"

// One stage of a load.
struct stage {
    struct value name;
    int64_t started_ns;
    int64_t duration_ns;
    int64_t ordinal;
};

// The stages of all loads in one page of results.  Initialise with zeroes.
struct stages {
    struct record_pages pages;

    // The chosen load, and its stages by ordinal.
    int64_t load_started_ns, load_ns;
    struct stage *chosen;
    size_t count, room;
};

// Queries the stages of all loads in `loads`, a page of QUERY_RECORDS.  Release with stages_deinit,
// also after an error.
MUST_CHECK enum status stages_ask(struct stages *stages, struct cli *cli,
                                  const struct result *loads, struct error *err);
void stages_deinit(struct stages *stages);

// Chooses the load in `row` of `loads`.
MUST_CHECK enum status stages_choose(struct stages *stages, const struct result *loads, size_t row,
                                     struct error *err);

// Formats the waterfall of the chosen load and calls `put` with each line: name, duration, share,
// and a bar if the terminal is wide enough (`width` columns; 0: no limit).  The last line, "other",
// is the load's time outside its stages, if any.
void stages_draw(const struct stages *stages, unsigned width,
                 void (*put)(void *context, const char *line), void *context);

#endif
