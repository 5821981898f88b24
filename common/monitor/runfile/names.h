// The interned names of a run (models, operations, stages, devices): an append-only
// table that records refer to by number, from 1, in memory that may be mapped from
// the run file.  Adding takes a lock; lookup by number is lock-free.
#ifndef INFERSTAT_MONITOR_NAMES_H
#define INFERSTAT_MONITOR_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"

enum {
    NAMES_MAX = 65535,
    NAMES_TEXT_MAX = 4 * 1024 * 1024, // bytes of all texts, lengths and ends included
    NAMES_SIZE_MAX = 255,             // bytes of one name; longer ones are cut
};

struct names;

// Bytes of a table's memory area.
size_t names_area_size(void);

// Callback that allocates bytes offset .. offset + size of the area before they are
// written (a run file grows on demand).  False: no space.
typedef bool names_back(void *context, size_t offset, size_t size);

// Lays an empty table over `area` (zeroed, 64-byte aligned, borrowed).  `back`
// may be NULL when the whole area is allocated.
MUST_CHECK enum status names_open(struct names **out, void *area, names_back *back, void *context);

// Opens a table that another process wrote, read-only, and validates all of it.
// STATUS_CORRUPT when it is inconsistent.
MUST_CHECK enum status names_attach(struct names **out, void *area);

// Frees the handle, not the area.  NULL is fine.
void names_close(struct names *names);

// Returns the number of a text, adding a copy if it is new.  0 for NULL, for "" and
// when the table is full or read-only.  Text that is not UTF-8 is escaped.  Any thread.
uint32_t names_add(struct names *names, const char *text);

// Returns the number of a text in the table, or 0.  Any thread.
uint32_t names_find(struct names *names, const char *text);

// How many there are.  Any thread, no lock.
uint32_t names_count(const struct names *names);

// The text of a number, terminated, valid while the area is; "" for 0 and unknown
// numbers.  `size` may be NULL.  Any thread, no lock.
const char *names_text(const struct names *names, uint32_t name, size_t *size);

#endif
