// JSON (RFC 8259) to a stream.  What comes out is valid whatever goes in:
// malformed UTF-8 becomes U+FFFD, NaN and infinite numbers become null.
// Failures stay in the stream (ferror).
#ifndef INFERSTAT_CLIENT_CLI_JSON_H
#define INFERSTAT_CLIENT_CLI_JSON_H

#include <stddef.h>
#include <stdio.h>

#include "common/core/result.h"

// A string with its quotes.
void json_write_text(FILE *out, const char *text, size_t size);

// A number: the shortest digits that read back as the same double.
void json_write_real(FILE *out, double value);

void json_write_value(FILE *out, struct value value);

// One object: a member a column.  `kind` (NULL: none) comes first, as "kind".
void json_write_row(FILE *out, const struct result *result, size_t row, const char *kind);

// The members alone, without braces.
void json_write_members(FILE *out, const struct result *result, size_t row);

#endif
