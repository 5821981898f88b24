// Where prompts come from: one text, the lines of a file, or the lines of standard
// input as they come.
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

// The lines of a file, without their ends and without empty ones.  "-" is standard
// input.  `repeat`: after the last line comes the first again, where the file can
// be read again.  A pipe need not have a writer yet.  `stop_fd` ends waiting for a line
// when it becomes readable.
MUST_CHECK enum status prompts_from_file(struct prompts **out, const char *path, bool repeat,
                                         int stop_fd, struct error *err);

// Accepts NULL.
void prompts_free(struct prompts *prompts);

// The next prompt, borrowed until the next call of this or of prompts_look.  Fails
// with STATUS_NO_DATA after the last one, STATUS_CANCELLED when a stop was asked for,
// STATUS_IO, STATUS_INVALID on a line above 16 MiB: the next call goes on behind it.
MUST_CHECK enum status prompts_next(struct prompts *prompts, const char **text, size_t *size,
                                    struct error *err);

// When the prompt given last was there, by the monotonic clock: when its last byte was
// read, of a pipe or a terminal; 0 of a text or a file, which are there from the start.
uint64_t prompts_ready_ns(const struct prompts *prompts);

// Reads what has come meanwhile, without waiting, so that its time is known.
void prompts_look(struct prompts *prompts);

#endif
