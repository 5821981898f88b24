// An arena allocator: many small allocations, freed together.  One arena holds everything
// a decoded message points to.  One thread at a time.
#ifndef INFERSTAT_WIRE_ARENA_H
#define INFERSTAT_WIRE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "common/core/base/status.h"

struct arena;

// An arena whose first block has about `first_size` bytes, and that allocates at most
// `limit` bytes in total, including its own bookkeeping.
MUST_CHECK enum status arena_new(struct arena **out, size_t first_size, size_t limit);
void arena_free(struct arena *arena);

// Frees everything except one block, for reuse.
void arena_reset(struct arena *arena);

// `size` bytes, aligned for any number or pointer; NULL beyond the limit or out of
// memory, which arena_failed reports.
void *arena_alloc(struct arena *arena, size_t size);

// `*count` zeroed elements of `size` bytes.  On failure sets *count to 0 and returns NULL,
// so that loops over them do nothing.
void *arena_array(struct arena *arena, size_t *count, size_t size);

// The requested size of `piece`, which arena_alloc returned.
size_t arena_piece_size(const void *piece);

// Bytes that the arena holds, allocated to callers or not.
size_t arena_size(const struct arena *arena);

// True if an allocation failed since the arena was created or reset; true if the limit
// was the reason.
bool arena_failed(const struct arena *arena);
bool arena_over_limit(const struct arena *arena);

#endif
