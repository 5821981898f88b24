// Configuration-file parser: reads `key = value` lines, and skips blank lines and `#` comments.
// The programs accept the names of their long options as keys; the parser itself accepts any key.
#pragma once

#include "common/core/base/error.h"

// Callback for one line's key and value, without surrounding white space; borrowed during the call.
// A status other than STATUS_OK ends the reading, but see `complain` in config_read.
typedef enum status on_config_entry(void *context, const char *key, const char *value,
                                    struct error *err);

// Callback for an invalid line; `why` names the file and the line.
typedef void config_complain(void *context, const struct error *why);

// Reads the file and calls `callback` for each key and value, in order; `context` is passed to both
// callbacks.  A line is invalid if it is malformed, is longer than 4095 bytes, or `callback`
// returns STATUS_INVALID for it.  After an invalid line config_read calls `complain` and continues
// with the next line; without `complain` (NULL) it returns STATUS_INVALID.  Returns
// STATUS_NOT_FOUND if there is no such file.  Errors of lines and of `callback` name the file and
// the line.
MUST_CHECK enum status config_read(const char *path, on_config_entry *callback,
                                   config_complain *complain, void *context, struct error *err);

// Calls config_read, without `complain`, for each file FOLDER/*.conf in order of name, until one
// fails.  Succeeds if the folder does not exist.
MUST_CHECK enum status config_read_folder(const char *folder, on_config_entry *callback,
                                          void *context, struct error *err);
