// Configuration-file parser: reads `key = value` lines; skips blank lines and `#` comments.  Keys
// are the program's long options.
#ifndef INFERSTAT_SYS_CONFIG_H
#define INFERSTAT_SYS_CONFIG_H

#include "common/core/base/error.h"

// Callback for one pair; a status other than STATUS_OK ends the reading.
typedef enum status on_config_entry(void *context, const char *key, const char *value,
                                    struct error *err);

// Callback for an invalid line; the error names the file and the line.
typedef void config_complain(void *context, const struct error *why);

// Reads the file and calls `callback` with each pair, in order.  STATUS_INVALID: a line is
// malformed or longer than 4095 bytes; with `complain` (NULL: none) calls it and continues with the
// next line. Errors of lines and of `callback` name the file and the line.
MUST_CHECK enum status config_read(const char *path, on_config_entry *callback,
                                   config_complain *complain, void *context, struct error *err);

// Reads all files FOLDER/*.conf in order of name, as config_read does.  Succeeds if the folder does
// not exist.
MUST_CHECK enum status config_read_folder(const char *folder, on_config_entry *callback,
                                          void *context, struct error *err);

#endif
