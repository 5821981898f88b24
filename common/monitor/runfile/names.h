// String interning table of a run (models, operations, stages, devices): append-only, in
// memory that may be mapped from the run file.  Records refer to names by id, from 1.
// Adding takes a lock; lookup by id is lock-free.
#ifndef INFERSTAT_MONITOR_NAMES_H
#define INFERSTAT_MONITOR_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"

enum {
    NAMES_MAX = 65535,
    NAMES_TEXT_MAX = 4 * 1024 * 1024, // bytes of all texts with lengths and terminators
    NAMES_SIZE_MAX = 255,             // bytes of one name; longer ones are cut
};

struct names;

// Size in bytes of a table's memory area.
size_t names_area_size(void);

// Callback that allocates bytes offset .. offset + size of the area before they are
// written (a run file grows on demand).  False: no space.
typedef bool names_back(void *context, size_t offset, size_t size);

// Initialises an empty table in `area` (zeroed, 64-byte aligned, borrowed).  `back` may
// be NULL when the whole area is allocated.
MUST_CHECK enum status names_open(struct names **out, void *area, names_back *back, void *context);

// Opens a table that another process wrote, read-only, and validates all of it.
// STATUS_CORRUPT when it is inconsistent.
MUST_CHECK enum status names_attach(struct names **out, void *area);

// Frees the handle, not the area.  NULL is fine.
void names_close(struct names *names);

// Returns the id of a text, adding a copy if it is new.  0 for NULL and "", and for new
// texts when the table is full or read-only.  Invalid UTF-8 is escaped.  Any thread.
uint32_t names_add(struct names *names, const char *text);

// Returns the id of a text in the table, or 0.  Any thread.
uint32_t names_find(struct names *names, const char *text);

// The number of names; ids are 1 to this.  Any thread, no lock.
uint32_t names_count(const struct names *names);

// The text of an id, terminated, valid while the area is; "" for 0 and unknown ids.
// `size` may be NULL.  Any thread, no lock.
const char *names_text(const struct names *names, uint32_t name, size_t *size);

#endif
