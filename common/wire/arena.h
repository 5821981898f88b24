// Arena allocator with a memory limit: many small allocations, freed together.  One arena holds
// everything that a decoded message points to.  One thread at a time.
#ifndef INFERSTAT_WIRE_ARENA_H
#define INFERSTAT_WIRE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "common/core/base/status.h"

struct arena;

// Creates an arena whose first block has about `first_size` bytes.  `limit` bounds the total of
// allocations and their headers, in bytes.
MUST_CHECK enum status arena_new(struct arena **out, size_t first_size, size_t limit);
void arena_free(struct arena *arena);

// Frees all allocations; keeps one block for reuse.
void arena_reset(struct arena *arena);

// Allocates `size` bytes, aligned for any number or pointer; NULL beyond the limit or when out of
// memory (arena_failed).
void *arena_alloc(struct arena *arena, size_t size);

// Allocates `*count` zeroed elements of `size` bytes.  On failure returns NULL and sets *count to
// 0, so that a loop over the elements does nothing.
void *arena_array(struct arena *arena, size_t *count, size_t size);

// The size that was passed to arena_alloc for `piece`.
size_t arena_piece_size(const void *piece);

// Heap bytes of the arena, unused parts of blocks included.
size_t arena_size(const struct arena *arena);

// True if an allocation failed since the arena was created or reset.  arena_over_limit: true if one
// failed because of the limit.
bool arena_failed(const struct arena *arena);
bool arena_over_limit(const struct arena *arena);

#endif
