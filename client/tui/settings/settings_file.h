// The file with the settings of the dashboard.  Main thread only.
#pragma once

#include "client/tui/model.h"
#include "common/core/base/error.h"

// Applies the lines of the file, if there is one.  What is wrong is left out, and told in
// model->settings.error.
void settings_load(struct model *model, const char *path);

// Writes what was changed to the file, atomically, in a folder that is made if need be; all other
// lines stay.  Returns STATUS_INVALID if the file is not a text of at most 64 KB.
MUST_CHECK enum status settings_save(struct model *model, const char *path, struct error *err);
