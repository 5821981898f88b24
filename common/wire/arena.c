#include "common/wire/arena.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 8, BLOCK_SIZE_MIN = 1024, BLOCK_SIZE_MAX = 1024 * 1024 };

// AddressSanitizer sees a step past the end of a block, not past a piece inside
// one: with it every piece has a block of its own.
#if defined(__SANITIZE_ADDRESS__)
enum { BLOCK_PER_PIECE = 1 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { BLOCK_PER_PIECE = 1 };
#else
enum { BLOCK_PER_PIECE = 0 };
#endif
#else
enum { BLOCK_PER_PIECE = 0 };
#endif

struct block {
    struct block *next;
    size_t size; // of the bytes behind this header
    size_t used;
};

// Each piece has its size in front.
struct piece {
    size_t size;
};

_Static_assert(sizeof(struct block) % ALIGNMENT == 0, "pieces are aligned");
_Static_assert(sizeof(struct piece) % ALIGNMENT == 0, "pieces are aligned");

struct arena {
    struct block *blocks; // the newest first
    size_t next_size;
    size_t limit;
    size_t left; // of the limit
    bool failed;
    bool over_limit;
};

enum status arena_new(struct arena **out, size_t first_size, size_t limit)
{
    struct arena *arena = calloc(1, sizeof *arena);
    if (!arena)
        return STATUS_NOMEM;
    arena->next_size = first_size < BLOCK_SIZE_MIN   ? BLOCK_SIZE_MIN
                       : first_size > BLOCK_SIZE_MAX ? BLOCK_SIZE_MAX
                                                     : first_size;
    arena->limit = limit;
    arena->left = limit;
    *out = arena;
    return STATUS_OK;
}

static void free_blocks(struct block *block)
{
    while (block) {
        struct block *next = block->next;
        free(block);
        block = next;
    }
}

void arena_free(struct arena *arena)
{
    if (!arena)
        return;
    free_blocks(arena->blocks);
    free(arena);
}

void arena_reset(struct arena *arena)
{
    struct block *kept = arena->blocks;
    if (kept) {
        free_blocks(kept->next);
        kept->next = NULL;
        kept->used = 0;
    }
    arena->left = arena->limit - (kept ? kept->size : 0);
    arena->failed = false;
    arena->over_limit = false;
}

static bool add_block(struct arena *arena, size_t needed)
{
    size_t size = BLOCK_PER_PIECE || needed > arena->next_size ? needed : arena->next_size;
    if (size > arena->left)
        size = needed;
    if (size > arena->left) {
        arena->over_limit = true;
        return false;
    }
    struct block *block = malloc(sizeof *block + size);
    if (!block)
        return false;
    *block = (struct block){.next = arena->blocks, .size = size};
    arena->blocks = block;
    arena->left -= size;
    if (arena->next_size < BLOCK_SIZE_MAX)
        arena->next_size *= 2;
    return true;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    if (size > arena->limit) {
        arena->failed = true;
        arena->over_limit = true;
        return NULL;
    }
    size_t room = BLOCK_PER_PIECE ? size : (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    size_t needed = sizeof(struct piece) + room;
    struct block *block = arena->blocks;
    if (BLOCK_PER_PIECE || !block || block->size - block->used < needed) {
        if (!add_block(arena, needed)) {
            arena->failed = true;
            return NULL;
        }
        block = arena->blocks;
    }
    struct piece *piece = (void *)((char *)(block + 1) + block->used);
    piece->size = size;
    block->used += needed;
    return piece + 1;
}

void *arena_array(struct arena *arena, size_t *count, size_t size)
{
    if (*count == 0)
        return NULL;
    void *array = NULL;
    if (*count <= arena->limit / size)
        array = arena_alloc(arena, *count * size);
    else
        arena->failed = arena->over_limit = true;
    if (array)
        memset(array, 0, *count * size);
    else
        *count = 0;
    return array;
}

size_t arena_piece_size(const void *piece)
{
    return ((const struct piece *)piece - 1)->size;
}

size_t arena_size(const struct arena *arena)
{
    return sizeof *arena + arena->limit - arena->left;
}

bool arena_failed(const struct arena *arena)
{
    return arena->failed;
}

bool arena_over_limit(const struct arena *arena)
{
    return arena->over_limit;
}
