// Export: writes what the dashboard shows to a file, in the format that the file's name ends in.
//   .txt .svg    the screen
//   .csv .json   the rows that the focused panel shows, in their order; all columns of the answer
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "client/tui/canvas.h"
#include "common/core/base/error.h"
#include "common/core/query/result.h"

// Rows of a result, by their indices.
struct export_list {
    const struct result *result; // NULL: there are none
    const size_t *rows;
    size_t count;
};

// Writes the rows of a list, as CSV or as the JSON object {"rows": [...]}.  Returns STATUS_NOMEM if
// memory is short; write errors are ferror's.
typedef enum status export_rows(FILE *out, const struct export_list *list, bool is_json,
                                struct error *err);

// True if export_write writes the list, not the screen.
bool export_is_rows(const char *path);

// Creates the file `path`, or with `replace` replaces it, and writes `canvas` or `list`.  Returns
// STATUS_BUSY if the file exists, STATUS_INVALID if the name has another ending, STATUS_NO_DATA if
// there are no rows, STATUS_IO if the file cannot be written; nothing is left then.
MUST_CHECK enum status export_write(const char *path, bool replace, const struct canvas *canvas,
                                    const struct export_list *list, export_rows *rows,
                                    struct error *err);
