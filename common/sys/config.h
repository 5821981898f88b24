// Configuration files: `key = value` lines, `#` comments, blank lines.  Keys
// equal the long options of the program.
#ifndef INFERSTAT_SYS_CONFIG_H
#define INFERSTAT_SYS_CONFIG_H

#include "common/core/base/error.h"

// Handles one pair; anything but STATUS_OK ends the reading.
typedef enum status config_take(void *context, const char *key, const char *value,
                                struct error *err);

// Reads the file and calls `take` for each pair, in order.  Errors name the file
// and the line.  Lines over 4095 bytes are refused.
MUST_CHECK enum status config_read(const char *path, config_take *take, void *context,
                                   struct error *err);

// The same, but continues after an invalid line (STATUS_INVALID): `complain` gets the
// reason, with file and line.
typedef void config_complain(void *context, const struct error *why);
MUST_CHECK enum status config_read_leniently(const char *path, config_take *take,
                                             config_complain *complain, void *context,
                                             struct error *err);

// As config_read, for all files FOLDER/*.conf in order of name.  A missing folder has none.
MUST_CHECK enum status config_read_folder(const char *folder, config_take *take, void *context,
                                          struct error *err);

#endif
