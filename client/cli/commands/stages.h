// Waterfall chart of a model load: start, duration and share of each load stage, as lines of text.
// Call stages_ask once, then stages_choose and stages_draw for each load.
#pragma once

#include "client/cli/commands/record_pages.h"

// One stage of a load.
struct stage {
    struct value name;  // borrowed from stages.pages
    int64_t started_ns; // wall clock
    int64_t duration_ns;
    int64_t ordinal; // position among the load's stages
};

// The stages of several loads, and the one load that is drawn.  Initialise with zeroes; only the
// functions below set the members.
struct stages {
    struct record_pages pages; // stage records of all loads

    int64_t load_started_ns, load_ns; // start and duration of the chosen load
    struct stage *chosen;             // stages of the chosen load, sorted by ordinal
    size_t count, room;               // elements and capacity of `chosen`
};

// Queries the stages of all loads in `loads`, a page of load records.  Release `*stages` with
// stages_deinit, also after an error.
MUST_CHECK enum status stages_ask(struct stages *stages, struct cli *cli,
                                  const struct result *loads, struct error *err);
void stages_deinit(struct stages *stages);

// Chooses the load in `row` of `loads`, the page of stages_ask.
MUST_CHECK enum status stages_choose(struct stages *stages, const struct result *loads, size_t row,
                                     struct error *err);

// Formats the chart of the chosen load and calls `put` with each line, which is valid during the
// call.  A line has the name, duration and share of one stage, and a bar if a terminal of `width`
// columns (0: no limit) is wide enough.  If the load has stages and took longer than all of them,
// a last line "other" has the difference.
void stages_draw(const struct stages *stages, unsigned width,
                 void (*put)(void *context, const char *line), void *context);
