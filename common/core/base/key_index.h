// Hash table that numbers distinct keys, each of a few integers, from 0 in the order in which
// they first come.
#ifndef INFERSTAT_CORE_KEY_INDEX_H
#define INFERSTAT_CORE_KEY_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"

// Zeroed but for `width`: empty.
struct key_index {
    unsigned width;   // integers of a key
    int64_t *keys;    // [number * width]
    uint32_t *places; // open addressing, 2 * room of them: number + 1; 0: free
    size_t count, room;
};

// Finds the number of a key; false if it was never added.
bool key_index_find(const struct key_index *index, const int64_t *key, size_t *number);

// The same, adding the key if it is new.  Fails only with STATUS_NOMEM.
MUST_CHECK enum status key_index_add(struct key_index *index, const int64_t *key, size_t *number);

// Drop all keys; clear keeps the memory.
void key_index_clear(struct key_index *index);
void key_index_deinit(struct key_index *index);

#endif
