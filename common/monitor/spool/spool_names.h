// The names found in a spool's segments, by number.
#ifndef INFERSTAT_MONITOR_SPOOL_NAMES_H
#define INFERSTAT_MONITOR_SPOOL_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/monitor/runfile/names.h"

struct spool_names;

// NULL: out of memory.
struct spool_names *spool_names_new(void);
void spool_names_free(struct spool_names *names);

// Sets the text of a number, 1..NAMES_MAX, unless it has one.  STATUS_NOMEM; STATUS_FULL
// beyond NAMES_TEXT_MAX bytes of texts.
MUST_CHECK enum status spool_names_put(struct spool_names *names, uint32_t name, const char *text,
                                       size_t size);

// Returns its text, `*size` bytes, not terminated; NULL when it has none.
const char *spool_names_get(const struct spool_names *names, uint32_t name, size_t *size);

// The highest number that has a text.
uint32_t spool_names_highest(const struct spool_names *names);

#endif
