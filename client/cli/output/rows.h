// Writes rows of results as CSV, JSON or JSON Lines to a stream, page by page.  Failures stay
// in the stream (ferror).
#ifndef INFERSTAT_CLIENT_CLI_OUTPUT_ROWS_H
#define INFERSTAT_CLIENT_CLI_OUTPUT_ROWS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "client/cli/args/cli_options.h"
#include "common/core/query/result.h"

// Set `out` and `format` (CSV, JSON or JSONL), the rest zero.
struct rows {
    FILE *out;
    enum cli_format format;
    const char *kind; // NULL, or a "kind" for each row (not in CSV)
    uint64_t count;   // rows written
    bool begun;       // the header or opening bracket is written
};

// Writes rows `first` up to `end` (not included) of a result, after the header on the first
// call: nothing is written before there is an answer.
void rows_write(struct rows *rows, const struct result *result, size_t first, size_t end);

// Ends the output, also without rows: writes JSON's closing brackets.
void rows_end(struct rows *rows);

// Writes a whole result (NULL: no rows), with its end.
void rows_print(FILE *out, enum cli_format format, const struct result *result);

// Writes one row as a JSON object on a line of its own.
void rows_write_json(FILE *out, const struct result *result, size_t row);

#endif
