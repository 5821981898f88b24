// The names that a store knows, of models, hosts, devices and the like.  Explains why a filter
// finds nothing, and lists names for the completion of shells.
#pragma once

#include "client/cli/cli.h"

// Names in no order, each once.  Initialise with zeros, release with known_names_deinit.
struct known_names {
    char **all;
    size_t count, room;
};

// Appends the names of `dimension`; adds none of a dimension whose names are not listed.
MUST_CHECK enum status known_names_read(struct known_names *names, struct cli *cli,
                                        enum query_dimension dimension, struct error *err);
// Appends the text of a cell, if it has one that is not there yet.
MUST_CHECK enum status known_names_add(struct known_names *names, struct value name,
                                       struct error *err);
void known_names_deinit(struct known_names *names);

// Call it when a query with `filter` found nothing.  For text without --check, a name that the
// store does not know, and that is a part of others (case ignored), becomes the pattern of these:
// returns true, and a note on standard error names them.  Otherwise writes to cli->nothing which
// name is unknown, with the nearest one or some that are known; leaves it if all are known.
bool known_names_widen(struct cli *cli, struct query_filter *filter);
