// CSV writer: writes query results to a FILE, with RFC 4180 quoting and LF line ends.  A null
// value becomes an empty field, an empty text becomes "".  Control characters are escaped
// (text_escape) if the file is a terminal.  The caller checks ferror for write errors.
#ifndef INFERSTAT_CLIENT_CLI_OUTPUT_CSV_H
#define INFERSTAT_CLIENT_CLI_OUTPUT_CSV_H

#include <stdio.h>

#include "common/core/query/result.h"

// Writes one field, quoted if necessary.
void csv_write_value(FILE *out, struct value value);

// Writes the header line, which has the key (name) of each column.
void csv_write_header(FILE *out, const struct result *result);

// Writes row `row` of `result` as one line.
void csv_write_row(FILE *out, const struct result *result, size_t row);

#endif
