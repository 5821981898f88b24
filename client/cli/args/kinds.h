// Parser for command-line arguments that are kinds of records.
#ifndef INFERSTAT_CLIENT_CLI_ARGS_KINDS_H
#define INFERSTAT_CLIENT_CLI_ARGS_KINDS_H

#include <stdint.h>

#include "client/cli/cli.h"
#include "common/core/record/record.h"

// Finds a kind by its name, singular or plural ("loads"); RECORD_KIND_COUNT: unknown.
enum record_kind kinds_find(const char *word);

// Parses the command's arguments as a set of kinds (bit k: enum record_kind k); 0 without
// arguments.  STATUS_INVALID: unknown kind; the message suggests the nearest one.
MUST_CHECK enum status kinds_parse(uint32_t *out, const struct cli *cli, struct error *err);

#endif
