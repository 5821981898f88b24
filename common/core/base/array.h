// Growable array: functions that enlarge and search an array.  The caller has two variables: the
// pointer to the items (NULL at first; free it with free) and the capacity in items (0 at first).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Reserves room for at least `wanted` items in `*items`, by doubling `*capacity`; new items are not
// initialised.  Returns false and changes nothing if memory is out.
#define ARRAY_RESERVE(items, capacity, wanted)                                                     \
    array_reserve((items), (capacity), (wanted), sizeof **(items))

// Implementation of ARRAY_RESERVE; `items` is the address of the array's pointer.
bool array_reserve(void *items, size_t *capacity, size_t wanted, size_t item_size)
    __attribute__((warn_unused_result));

// Binary search for the item whose first field, an int64_t, equals `key`; NULL if there is none.
// The items must be sorted by that field: qsort with array_compare_first.
void *array_find(const void *items, size_t count, size_t item_size, int64_t key);
int array_compare_first(const void *left, const void *right);
