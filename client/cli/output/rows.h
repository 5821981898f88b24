// Streaming writer of result rows as CSV, JSON or JSON Lines, page by page.  The caller checks
// ferror for write errors.
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
    const char *kind; // value of a "kind" member in each row (not in CSV); NULL: none
    uint64_t count;   // rows written
    bool begun;       // the header or opening bracket is written
};

// Writes rows `first` up to `end` (exclusive) of a result; the first call writes the CSV header
// or JSON's opening bracket before them.
void rows_write(struct rows *rows, const struct result *result, size_t first, size_t end);

// Ends the output: writes JSON's closing bracket, or an empty list if there were no rows.
void rows_end(struct rows *rows);

// Writes a complete result (NULL: no rows) and ends the output.
void rows_print(FILE *out, enum cli_format format, const struct result *result);

// Writes one row as a JSON object on one line.
void rows_write_json(FILE *out, const struct result *result, size_t row);

#endif
