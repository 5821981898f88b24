// Growable arrays: an array from malloc (NULL while empty) and how many items fit into it.
#ifndef INFERSTAT_CORE_ARRAY_H
#define INFERSTAT_CORE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Makes `*items` hold at least `wanted` items; the new ones are not initialised.  Grows by
// doubling.  Returns false and changes nothing when out of memory.
#define ARRAY_RESERVE(items, capacity, wanted)                                                     \
    array_reserve((items), (capacity), (wanted), sizeof **(items))

// What ARRAY_RESERVE expands to; `items` is the address of a pointer.
bool array_reserve(void *items, size_t *capacity, size_t wanted, size_t item_size)
    __attribute__((warn_unused_result));

// The item that begins with the integer `key`, or NULL; `count` items, ordered by the integer that
// each begins with, as qsort does with array_compare_first.
void *array_find(const void *items, size_t count, size_t item_size, int64_t key);
int array_compare_first(const void *left, const void *right);

#endif
