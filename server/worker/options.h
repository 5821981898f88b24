// Options of the command line, from tables: parsing, checking and help read the
// same lines.
#ifndef INFERSTAT_SERVER_WORKER_OPTIONS_H
#define INFERSTAT_SERVER_WORKER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/core/error.h"
#include "common/core/status.h"

enum option_type {
    OPTION_FLAG,    // bool, set to true
    OPTION_TEXT,    // const char *, borrowed from the command line
    OPTION_INTEGER, // int64_t, minimum..maximum
    OPTION_REAL,    // double, minimum..maximum
};

struct option_line {
    const char *name;  // with its dashes
    const char *value; // as help shows it; NULL for flags
    enum option_type type;
    size_t place; // of the member in the structure that is filled
    double minimum, maximum;
    const char *help;
};

struct option_table {
    const struct option_line *lines;
    size_t count;
    void *target; // the structure `place` counts from
};

// Reads arguments from *at on, "--name value" or "--name=value", by the first table
// that knows the name.  Stops before the first word that is no option, at the
// end, or behind "--", which sets `*ended`: what follows are words, whatever they look
// like, and nothing is read any more.  *at is where.  "-" alone is a word.  Fails with
// STATUS_INVALID on an unknown option (naming the nearest), a missing value or one
// that is not what it should be.
MUST_CHECK enum status options_parse(char *const *arguments, int count, int *at,
                                     const struct option_table *tables, size_t table_count,
                                     bool *ended, struct error *err);

// Writes one line an option.
void options_help(FILE *out, const struct option_table *table);

#endif
