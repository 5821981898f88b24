// The names of a run: texts (models, operations, stages, devices) that records
// refer to by number, from 1, append-only, in memory that may be mapped from the
// run file.  Adding takes a lock; reading a name by number takes none.
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

// Bytes of the area a table lies in.
size_t names_area_size(void);

// Makes sure that bytes offset .. offset + size of the area may be written
// (a run file's are allocated little by little).  False: no room.
typedef bool names_back(void *context, size_t offset, size_t size);

// Lays an empty table over `area` (zeroed, 64-byte aligned, borrowed).  `back`
// may be NULL when all of the area is there.
MUST_CHECK enum status names_open(struct names **out, void *area, names_back *back, void *context);

// Opens a table that another process wrote, to read: checks every figure and
// text.  STATUS_CORRUPT where they cannot be true.
MUST_CHECK enum status names_attach(struct names **out, void *area);

// Frees what is not the area.  NULL is fine.
void names_close(struct names *names);

// The number of a text, which is copied when it is new.  0 for NULL, for "" and
// when the table is full or only read.  What is not UTF-8 is escaped.  Any thread.
uint32_t names_add(struct names *names, const char *text);

// The number of a text that is there already, or 0.  Any thread.
uint32_t names_find(struct names *names, const char *text);

// How many there are.  Any thread, no lock.
uint32_t names_count(const struct names *names);

// The text of a number, terminated, for as long as the area lives; "" for 0 and
// for what is not there.  `size` may be NULL.  Any thread, no lock.
const char *names_text(const struct names *names, uint32_t name, size_t *size);

#endif
