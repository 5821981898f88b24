// CSV writer: writes query results to a stream (RFC 4180 quoting, lines end with LF).  A null
// is an empty field, an empty text is "".  Control characters are escaped (text_escape) if the
// stream is a terminal.  The caller checks ferror for write errors.
#ifndef INFERSTAT_CLIENT_CLI_OUTPUT_CSV_H
#define INFERSTAT_CLIENT_CLI_OUTPUT_CSV_H

#include <stdio.h>

#include "common/core/query/result.h"

// Writes one field, quoted if necessary.
void csv_write_value(FILE *out, struct value value);

// Writes the header line: the keys of the columns.
void csv_write_header(FILE *out, const struct result *result);

void csv_write_row(FILE *out, const struct result *result, size_t row);

#endif
