// Reads prompts from one text, the lines of a file, or standard input as lines arrive.
#ifndef INFERSTAT_SERVER_WORKLOAD_LLM_PROMPTS_H
#define INFERSTAT_SERVER_WORKLOAD_LLM_PROMPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"

struct prompts;

// The same text again and again.
MUST_CHECK enum status prompts_from_text(struct prompts **out, const char *text, struct error *err);

// The non-empty lines of a file, without line ends.  "-" is standard input.  `repeat`: starts
// again after the last line if the file is seekable.  A pipe need not have a writer yet.
// Waiting for a line ends when `stop_fd` becomes readable.
MUST_CHECK enum status prompts_from_file(struct prompts **out, const char *path, bool repeat,
                                         int stop_fd, struct error *err);

// Accepts NULL.
void prompts_free(struct prompts *prompts);

// The next prompt, borrowed until the next call of this or of prompts_poll.  Fails
// with STATUS_NO_DATA after the last one, STATUS_CANCELLED when stopped, STATUS_IO, and
// STATUS_INVALID on a line above 16 MiB, which the next call skips.
MUST_CHECK enum status prompts_next(struct prompts *prompts, const char **text, size_t *size,
                                    struct error *err);

// When the last returned prompt arrived, monotonic clock: when its last byte was read from a pipe
// or terminal; 0 for a text or a file.
uint64_t prompts_ready_ns(const struct prompts *prompts);

// Reads available input without waiting, so that arrival times are exact.
void prompts_poll(struct prompts *prompts);

#endif
