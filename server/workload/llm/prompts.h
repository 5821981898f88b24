// Prompt source: one repeated text, or the lines of a file, pipe or standard input as they arrive.
#ifndef INFERSTAT_SERVER_WORKLOAD_LLM_PROMPTS_H
#define INFERSTAT_SERVER_WORKLOAD_LLM_PROMPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"

struct prompts;

// A source that repeats one text without end.
MUST_CHECK enum status prompts_from_text(struct prompts **out, const char *text, struct error *err);

// A source of the non-empty lines of a file, without line ends.  "-" is standard input.  With
// `repeat` it starts again after the last line if the file is seekable.  Opening a pipe does not
// wait for a writer.  A wait for a line ends when `stop_fd` becomes readable.
MUST_CHECK enum status prompts_from_file(struct prompts **out, const char *path, bool repeat,
                                         int stop_fd, struct error *err);

// Accepts NULL.
void prompts_free(struct prompts *prompts);

// Returns the next prompt, borrowed until the next call of prompts_next or prompts_poll.  Fails
// with STATUS_NO_DATA after the last one, STATUS_CANCELLED when `stop_fd` is readable, STATUS_IO,
// and STATUS_INVALID on a line above 16 MiB, which the next call skips.
MUST_CHECK enum status prompts_next(struct prompts *prompts, const char **text, size_t *size,
                                    struct error *err);

// Arrival time of the last returned prompt, monotonic clock: when its last byte was read from a
// pipe or terminal; 0 for a text or a file.
uint64_t prompts_ready_ns(const struct prompts *prompts);

// Reads available input without waiting.  Call it while busy, so that arrival times are exact.
void prompts_poll(struct prompts *prompts);

#endif
