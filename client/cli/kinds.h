// Kinds of records as words of a command line.
#ifndef INFERSTAT_CLIENT_CLI_KINDS_H
#define INFERSTAT_CLIENT_CLI_KINDS_H

#include <stdint.h>

#include "client/cli/cli.h"

// The set (bit k: enum record_kind k) that the command's words name; 0 without
// words.  Takes the plural too ("loads").  STATUS_INVALID names the nearest kind.
MUST_CHECK enum status kinds_parse(uint32_t *out, const struct cli *cli, struct error *err);

#endif
