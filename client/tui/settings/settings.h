// Settings that the user makes with F2: colours, units, interval and the columns of the tables, and
// their form as lines `key = value` of a configuration file.  settings_file.h reads and writes the
// file.  No I/O, no global state.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "client/tui/model.h"
#include "common/core/base/error.h"

// True if the choice of columns of some table was changed.
bool settings_columns_changed(const struct settings *settings);

// The rows of the setup screen: settings, then the columns of the table that has the keys.
size_t settings_rows(const struct model *model);

// The label and the value of a row.  The texts are static, or of the model's table.
void settings_row(const struct model *model, size_t row, const char **label, const char **value);

// Sets the row to its next value, or the one before (`step` -1).
void settings_step(struct model *model, size_t row, int step);

// Applies a line of the file.  Unknown keys are ignored: a later version may know them.  Returns
// STATUS_INVALID if the value of a known key is invalid; other columns in a list of columns hold.
MUST_CHECK enum status settings_apply(struct model *model, const char *key, const char *value,
                                      struct error *err);

// The text of a new file: `old` (NUL-terminated) with the lines of what was changed replaced or
// added; all else, comments too, stays as it is.  The caller frees it; NULL: out of memory.
char *settings_text(const struct model *model, const char *old);
