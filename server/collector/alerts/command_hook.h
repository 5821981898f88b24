// Command hook: runs a program with an alert on its standard input.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"

// Runs the program `argv[0]`, an absolute path, without a shell, and waits for its end.  Its
// standard input is a file with `size` bytes of `input`; its standard output is discarded, and so
// is its standard error but for the beginning, which is part of the error's text.  The environment
// has PATH and LANG only.
//
// The program has a process group of its own.  When it has ended, and after `limit_ns`, all
// processes of the group are killed.  (A child that leaves the group is not.)
//
// STATUS_OK: it ended with 0.  STATUS_CHECK_FAILED: it ended otherwise; STATUS_TIMEOUT: it was
// killed after `limit_ns`; STATUS_CANCELLED: it was killed because `stop_fd` became readable (it is
// not read); STATUS_IO: it could not be started.  Any thread.
MUST_CHECK enum status command_hook_run(char *const argv[], const char *input, size_t size,
                                        uint64_t limit_ns, int stop_fd, struct error *err);
