// Reads the collector's file of alert rules and hooks (alert_file.h).  Since it names commands to
// run, only its owner may write it: this user or root (text_file.h).
#pragma once

#include "common/core/alert/alert_file.h"

// Reads the built-in rules and the file at `path` ("": none).  Errors name the file, the line and
// the column.  After any result the caller calls alert_file_deinit.
MUST_CHECK enum status rules_file_read(struct alert_file *out, const char *path, struct error *err);

// Checks what the file, read from `path`, needs on this machine: each command of a hook is an
// executable file.  Errors name the file and the line.
MUST_CHECK enum status rules_file_check(const struct alert_file *file, const char *path,
                                        struct error *err);
