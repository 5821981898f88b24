// Arena (bump) allocator with a memory limit: many small allocations, freed together.  The message
// codec (codec.h) uses it: one arena holds everything that a decoded message points to.  An arena
// is used by one thread at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/core/base/status.h"

struct arena;

// Creates an arena, which allocates its first block of about `first_size` bytes when needed.
// `limit` bounds the total size in bytes of all blocks.
MUST_CHECK enum status arena_new(struct arena **out, size_t first_size, size_t limit);
void arena_free(struct arena *arena);

// Frees all allocations, but keeps one block for reuse.  Clears the two flags below.
void arena_reset(struct arena *arena);

// Allocates `size` bytes, aligned to 8 bytes (less than malloc aligns).  Returns NULL if the limit
// would be exceeded or memory is out; arena_failed is then true.
void *arena_alloc(struct arena *arena, size_t size);

// Allocates `*count` zeroed elements of `size` bytes each; NULL if `*count` is 0.  On failure
// returns NULL and sets `*count` to 0, so that a loop over the elements does nothing.
void *arena_array(struct arena *arena, size_t *count, size_t size);

// The size that was passed to arena_alloc for the allocation `piece`.
size_t arena_piece_size(const void *piece);

// Heap bytes of the arena, unused parts of blocks included.
size_t arena_size(const struct arena *arena);

// arena_failed: true if an allocation failed since the arena was created or reset.
// arena_over_limit: true if one of these failed because of the limit.
bool arena_failed(const struct arena *arena);
bool arena_over_limit(const struct arena *arena);
