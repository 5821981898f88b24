// Kinds of records as command line arguments.
#ifndef INFERSTAT_CLIENT_CLI_ARGS_KINDS_H
#define INFERSTAT_CLIENT_CLI_ARGS_KINDS_H

#include <stdint.h>

#include "client/cli/cli.h"
#include "common/core/record/record.h"

// The kind of that name, singular or plural ("loads"); RECORD_KIND_COUNT if there is none.
enum record_kind kinds_find(const char *word);

// The set of kinds (bit k: enum record_kind k) that the command's arguments name; 0 without
// arguments.  STATUS_INVALID names the nearest kind.
MUST_CHECK enum status kinds_parse(uint32_t *out, const struct cli *cli, struct error *err);

#endif
