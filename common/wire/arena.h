// Memory that is taken piece by piece and given back all at once: one arena
// holds everything a decoded message points to.  One thread at a time.
#ifndef INFERSTAT_WIRE_ARENA_H
#define INFERSTAT_WIRE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "common/core/status.h"

struct arena;

// An arena whose first block has `first_size` bytes or so, and that gives out no
// more than `limit` bytes in all, its own bookkeeping included.
MUST_CHECK enum status arena_new(struct arena **out, size_t first_size, size_t limit);
void arena_free(struct arena *arena);

// Gives everything back but one block, to begin again.
void arena_reset(struct arena *arena);

// `size` bytes, aligned for any number or pointer; NULL beyond the limit or out
// of memory, which the arena remembers.
void *arena_alloc(struct arena *arena, size_t size);

// `count` zeroed elements of `size` bytes.  When they cannot be had, *count
// becomes 0 and NULL is returned, so that loops over them do nothing.
void *arena_array(struct arena *arena, size_t *count, size_t size);

// How many bytes were asked for at `piece`, which arena_alloc returned.
size_t arena_piece_size(const void *piece);

// Bytes the arena has taken, whether given out or not.
size_t arena_size(const struct arena *arena);

// Whether any request failed since the arena was made or reset, and whether the
// limit was the reason.
bool arena_failed(const struct arena *arena);
bool arena_over_limit(const struct arena *arena);

#endif
