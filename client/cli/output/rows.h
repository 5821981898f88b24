// Result printer: writes the rows of query results as a text table, CSV, JSON or JSON Lines.  A
// command calls rows_write for each page of rows, then rows_end once, and checks ferror for write
// errors.  CSV has RFC 4180 quoting, LF line ends and a header of column keys.  In CSV, null is an
// empty field and an empty text is "".  Text tables, and CSV on a terminal, have control characters
// escaped (text_escape).
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "client/cli/args/cli_options.h"
#include "client/cli/output/table.h"

// State of one output.  The caller sets the members of the first group (borrowed) and zeroes the
// others, which only this module changes.
struct rows {
    FILE *out;
    enum cli_format format;
    const struct columns *columns; // text table: its columns; NULL: all columns of the first result
    const char *fields;            // only these columns, separated by commas; NULL: all
    unsigned width;                // text table: terminal columns; 0: no limit
    bool colours;                  // text table: states that need a look are coloured
    const char *kind;              // JSON: value of a member "kind" in each row; NULL: no member

    uint64_t count;      // rows written so far
    bool begun;          // the CSV header or {"rows": [ has been written
    struct table *table; // text table: the rows so far
    char unknown[160];   // a field that the result has not, in words; "": none
};

// Writes rows first..end - 1 of `result`.  Before them, the first call writes the CSV header or
// begins the JSON object {"rows": [...]}.  A text table is only collected; rows_end prints it.
void rows_write(struct rows *rows, const struct result *result, size_t first, size_t end);

// Adds a line below the last row of a text table; call it after the first rows_write.
void rows_add_below(struct rows *rows, const char *line);

// Ends the output and frees the table.  `status` is the outcome of reading the rows.  If it is
// STATUS_OK, prints a table that has rows, or completes the JSON object (with an empty list if
// there were no rows).  Returns `status`, STATUS_INVALID if a field is unknown, or STATUS_NOMEM if
// the table could not be built.
MUST_CHECK enum status rows_end(struct rows *rows, enum status status, struct error *err);

// Writes one row as a JSON object on one line.
void rows_write_json(FILE *out, const struct result *result, size_t row);
