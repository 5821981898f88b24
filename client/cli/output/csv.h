// CSV (RFC 4180 quoting, lines end with LF) to a stream.  Absent values are
// empty fields; an empty text is "".  On a terminal, control characters are escaped
// (text_escape); a file and a pipe get texts unchanged.  Failures stay in the stream
// (ferror).
#ifndef INFERSTAT_CLIENT_CLI_OUTPUT_CSV_H
#define INFERSTAT_CLIENT_CLI_OUTPUT_CSV_H

#include <stdio.h>

#include "common/core/query/result.h"

// One field, quoted if necessary.
void csv_write_value(FILE *out, struct value value);

// The header line of keys.
void csv_write_header(FILE *out, const struct result *result);

void csv_write_row(FILE *out, const struct result *result, size_t row);

#endif
