// Kinds of records as words of a command line.
#ifndef INFERSTAT_CLIENT_CLI_KINDS_H
#define INFERSTAT_CLIENT_CLI_KINDS_H

#include <stdint.h>

#include "client/cli/cli.h"
#include "common/core/record/record.h"

// The kind that the word names, in the plural too ("loads"); else RECORD_KIND_COUNT.
enum record_kind kinds_find(const char *word);

// The set (bit k: enum record_kind k) that the command's words name; 0 without
// words.  STATUS_INVALID names the nearest kind.
MUST_CHECK enum status kinds_parse(uint32_t *out, const struct cli *cli, struct error *err);

#endif
