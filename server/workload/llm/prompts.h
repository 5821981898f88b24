// Prompt source: one repeated text, or the lines of a file, pipe or standard input as they arrive.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"

struct prompts;

// Creates a source that repeats `text`, borrowed until prompts_free, without end.
MUST_CHECK enum status prompts_from_text(struct prompts **out, const char *text, struct error *err);

// Creates a source of the non-empty lines of a file, without line ends; `path` "-" is standard
// input.  With `repeat`, a seekable file starts again after its last line.  Opening a pipe does not
// wait for a writer.  A wait for a line ends when the descriptor `stop_fd` becomes readable.
// Copies `path`.  Fails with STATUS_NOT_FOUND, STATUS_IO or STATUS_NOMEM.
MUST_CHECK enum status prompts_from_file(struct prompts **out, const char *path, bool repeat,
                                         int stop_fd, struct error *err);

// Accepts NULL.
void prompts_free(struct prompts *prompts);

// Sets `*text` (not NUL-terminated) and `*size` to the next prompt, borrowed until the next call of
// prompts_next or prompts_poll.  A repeated text never ends or fails.  A source of lines waits for
// the next line.  Fails with STATUS_NO_DATA after the last line, STATUS_CANCELLED if `stop_fd` is
// readable, STATUS_INVALID if a line exceeds 16 MiB (the next call skips it), or STATUS_IO.
MUST_CHECK enum status prompts_next(struct prompts *prompts, const char **text, size_t *size,
                                    struct error *err);

// Returns the arrival time of the last returned prompt (monotonic clock): when its last byte was
// read from a pipe or terminal.  0 for a repeated text or a regular file.
uint64_t prompts_ready_ns(const struct prompts *prompts);

// Reads available input without waiting.  Call it often while computing, so that arrival times are
// exact.
void prompts_poll(struct prompts *prompts);

// Returns how many prompts can be returned without a wait, at most `most`: any number of a text or
// file that repeats, else the lines in the part of the input that has been read.
uint64_t prompts_count_ready(const struct prompts *prompts, uint64_t most);
