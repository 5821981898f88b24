// String interning table with the names of a run: models, operations, stages, devices.  Records
// refer to a name by its id, a number from 1.  The table is append-only and lies in memory that
// the caller provides, which may be mapped from the run file.  names_add and names_find take a
// lock; lookup by id is lock-free.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"

enum {
    NAMES_MAX = 65535,                // names in a table
    NAMES_TEXT_MAX = 4 * 1024 * 1024, // bytes of all texts with lengths and terminators
    NAMES_SIZE_MAX = 255,             // bytes of one name; longer ones are cut
};

struct names;

// Returns the size in bytes of the memory area that a table needs.
size_t names_area_size(void);

// Callback that allocates `size` bytes of the area from `offset` on, before they are written:
// a run file grows on demand.  False if there is no space.
typedef bool names_back(void *context, size_t offset, size_t size);

// Initialises an empty table in `area` (zeroed, 64-byte aligned, borrowed).  `back` may
// be NULL when the whole area is allocated.
MUST_CHECK enum status names_open(struct names **out, void *area, names_back *back, void *context);

// Opens the table of a dead process, read-only, and validates all of it.  No process may write to
// the area until names_close: runfile_attach holds the run file's lock.  Returns STATUS_CORRUPT if
// the table is inconsistent.
MUST_CHECK enum status names_attach(struct names **out, void *area);

// Frees the handle, not the area.  NULL is fine.
void names_close(struct names *names);

// Copies a text of the application to `out`: cut at a character to fit, and escaped if it is
// invalid UTF-8.  Returns its length.
size_t names_clean(char *out, size_t out_size, const char *text);

// Returns the id of `text`; adds a copy of a new text.  Returns 0 for NULL and "", for every text
// if the table is read-only, and for a new text if the table is full or there is no memory or
// space.  `text` is cleaned as by names_clean, to NAMES_SIZE_MAX bytes.  Any thread.
uint32_t names_add(struct names *names, const char *text);

// Returns the id of `text`, or 0 if the table does not have it or is read-only.  Any thread.
uint32_t names_find(struct names *names, const char *text);

// Returns the number of names, which is the highest id.  Any thread, no lock.
uint32_t names_count(const struct names *names);

// Returns the text with the id `name`, terminated and valid as long as the area; "" for 0 and
// unknown ids.  Sets `*size` to its length (`size` may be NULL).  Any thread, no lock.
const char *names_text(const struct names *names, uint32_t name, size_t *size);
